"""The generated parts of the documentation, as Markdown."""
