"""Hooks of MkDocs: pages are Markdown with calls of ``gemmgen_docs`` in double braces.

Nothing that the compiler can print is pasted into a page; it is made when the site is built.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # this checkout's gemmgen, installed or not

from gemmgen_docs import lexer  # noqa: E402
from gemmgen_docs.pages import render  # noqa: E402

lexer.register()

DECISIONS = "adr"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds every decision record to the navigation."""
    folder = Path(config.docs_dir) / DECISIONS
    found = [path.relative_to(config.docs_dir).as_posix() for path in sorted(folder.glob("*.md"))]
    if found and config.nav is not None:
        config.nav = [*config.nav, {"Decisions": found}]
    return config


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page with its calls replaced by what they give."""
    if page.file.src_uri.startswith(f"{DECISIONS}/"):
        return markdown
    return render(markdown)
