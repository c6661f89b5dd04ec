"""Hooks of MkDocs: pages are Markdown with calls of ``gemmgen_docs`` in double braces.

Nothing that the compiler can print is pasted into a page; it is made when the site is built.
"""

from __future__ import annotations

import posixpath
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.utils.templates import TemplateContext

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # this checkout's gemmgen, installed or not

from gemmgen_docs import compared, lexer, translation  # noqa: E402
from gemmgen_docs.pages import render  # noqa: E402

lexer.register()

DECISIONS = "adr"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds the pages of the examples beyond the ladder, those of the second ladder's rungs and
    every decision record to the navigation."""
    folder = Path(config.docs_dir) / DECISIONS
    found = [path.relative_to(config.docs_dir).as_posix() for path in sorted(folder.glob("*.md"))]
    if found and config.nav is not None:
        config.nav = [*map(_with_pages, config.nav), {"Decisions": found}]
    return config


def _with_pages(section: str | dict[str, list[str]]) -> str | dict[str, list[str]]:
    """A section of the navigation; one that names its first page, of a folder with a list of
    examples, with the pages of them all."""
    if isinstance(section, dict):
        for title, pages in section.items():
            folder = posixpath.dirname(pages[0])
            if pages == [f"{folder}/index.md"] and folder in compared.FOLDERS:
                names = compared.pages_of(compared.FOLDERS[folder])
                return {title: [*pages, *(f"{folder}/{page}" for page in names)]}
    return section


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page with its calls replaced by what they give."""
    if page.file.src_uri.startswith(f"{DECISIONS}/"):
        return markdown
    path = page.file.src_uri
    return render(_linked(markdown, path, files), translation.language(path))


def on_page_context(
    context: TemplateContext, page: Page, config: MkDocsConfig, nav: Navigation
) -> TemplateContext:
    """The theme's own words, and the ``lang`` of the page, in the page's language."""
    config.theme["language"] = translation.language(page.file.src_uri)
    return context


def _linked(markdown: str, path: str, files: Files) -> str:
    """A page with a link to the same page in each other language, below its title."""
    own = translation.language(path)
    plain = path if own == translation.ENGLISH else path.removeprefix(f"{own}/")
    versions = {
        lang: plain if lang == translation.ENGLISH else f"{lang}/{plain}"
        for lang in translation.NAMES
    }
    links = [
        f"[{translation.NAMES[lang]}]({posixpath.relpath(other, posixpath.dirname(path))})"
        f'{{ lang="{lang}" hreflang="{lang}" }}'
        for lang, other in versions.items()
        if lang != own and files.get_file_from_path(other) is not None
    ]
    if not links:
        return markdown
    title, rest = markdown.lstrip().split("\n", 1)
    return f"{title}\n\n{' '.join(links)}\n{rest}"
