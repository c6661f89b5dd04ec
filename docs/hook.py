"""Hooks of MkDocs: pages are Markdown with calls of ``gemmgen_docs`` in double braces.

Nothing that the compiler can print is pasted into a page; it is made when the site is built.
"""

from __future__ import annotations

import posixpath
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url
from mkdocs.utils.templates import TemplateContext

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # this checkout's gemmgen, installed or not

from gemmgen_docs import compared, lexer, records, terms, translation  # noqa: E402
from gemmgen_docs.kept import kept  # noqa: E402
from gemmgen_docs.pages import render  # noqa: E402
from gemmgen_playground import bundle  # noqa: E402

lexer.register()

DECISIONS = "adr"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Adds the pages of the examples beyond the ladder and those of the second ladder's rungs to
    the navigation."""
    if config.nav is not None:
        config.nav = _with_pages(config.nav)
    return config


def _with_pages(part: Any) -> Any:
    """A part of the navigation; a section that names its first page, of a folder with a list of
    examples, with the pages of them all."""
    if isinstance(part, dict):
        return {title: _with_pages(pages) for title, pages in part.items()}
    if not isinstance(part, list):
        return part
    folder = posixpath.dirname(part[0]) if part and isinstance(part[0], str) else ""
    if part == [f"{folder}/index.md"] and folder in compared.FOLDERS:
        names = compared.pages_of(compared.FOLDERS[folder])
        return [*part, *(f"{folder}/{page}" for page in names)]
    return [_with_pages(each) for each in part]


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page with its calls replaced by what they give."""
    path = page.file.src_uri
    if path.startswith(f"{DECISIONS}/"):
        return markdown
    if path == terms.PAGE:
        return terms.anchored(markdown)
    text, lang = _linked(markdown, path, files), translation.language(path)
    if records.CALL in text:  # it reads other pages
        return render(text, lang)
    return kept("page", lambda: render(text, lang), text, lang)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A page whose first use of each term of the glossary leads there."""
    path, glossary = page.file.src_uri, files.get_file_from_path(terms.PAGE)
    if path == terms.PAGE or glossary is None or translation.language(path) != translation.ENGLISH:
        return html
    return terms.with_links(html, get_relative_url(glossary.url, page.url))


def on_page_context(
    context: TemplateContext, page: Page, config: MkDocsConfig, nav: Navigation
) -> TemplateContext:
    """The theme's own words, and the ``lang`` of the page, in the page's language."""
    config.theme["language"] = translation.language(page.file.src_uri)
    return context


def on_post_build(config: MkDocsConfig) -> None:
    """What the playground loads, if it was built."""
    bundle.put_into(Path(config.site_dir))


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
