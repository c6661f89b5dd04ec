"""The generated parts of the documentation, each as Markdown."""
