"""What the functions of pages say, in a page's language, by a table in ``data/``."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

ENGLISH = "en"
NAMES = {ENGLISH: "English", "zh": "中文"}
DOCS = Path(__file__).parents[1]
EXAMPLES = DOCS.parent / "examples"
FILES = {"zh": DOCS / "data" / "chinese.toml"}
"""For each language besides English the translation of each sentence, name or heading.

A slot ``{name}`` keeps numbers, code and names, but no words and no colons; ``{name:said}`` on the
right is translated too.  Of several rows that fit a text the one with the most letters outside of
its slots translates it.
"""

_NAMES = {path.stem for path in EXAMPLES.glob("*.sched")} | {"gemm"}
_WORD = re.compile(r"\b[a-z_]{3,}\b|: ")
_CODE = re.compile(r"`[^`]*`|\]\([^)]*\)")
_SLOT = re.compile(r"\\\{(\w+)\\\}")
_FILLED = re.compile(r"\{(\w+)(:said)?\}")
_WIDE = "[\\u3000-\\u303f\\u4e00-\\u9fff\\uff00-\\uffef]"
_BREAK = re.compile(rf"(?<={_WIDE})\n *(?={_WIDE})")
_SENTENCE = re.compile(r"(?<=\.) ")


def language(path: str) -> str:
    """The language of a page: that of its first folder, or English."""
    folder = path.partition("/")[0]
    return folder if folder in FILES else ENGLISH


@functools.cache
def said(english: str, lang: str) -> str:
    """``english`` in ``lang``; numbers, code and names are the same in each.

    Raises LookupError if no row of the table fits.
    """
    if lang == ENGLISH:
        return english
    for pattern, other in _patterns(lang):
        found = pattern.fullmatch(english)
        if found and (filled := _filled(other, found.groupdict(), lang)):
            return filled
    if _has_words(english):
        raise LookupError(f"no translation of {english!r} in {FILES[lang]}")
    return english


def _filled(other: str, slots: Mapping[str, str], lang: str) -> str | None:
    """``other`` with its slots; None if one that is kept has words."""
    if any(_has_words(slots[name]) for name, is_said in _FILLED.findall(other) if not is_said):
        return None
    return _FILLED.sub(
        lambda slot: said(slots[slot[1]], lang) if slot[2] else slots[slot[1]], other
    )


def _has_words(text: str) -> bool:
    return bool({*_WORD.findall(_CODE.sub("", text))} - _NAMES)


def sentences(english: str, lang: str) -> str:
    """The same of several sentences, one by one."""
    if lang == ENGLISH:
        return english
    return "".join(said(sentence, lang) for sentence in _SENTENCE.split(english))


@functools.cache
def table(lang: str) -> Mapping[str, str]:
    """The rows of a language's table, in their order."""
    return tomllib.loads(FILES[lang].read_text(encoding="utf-8"))


@functools.cache
def _patterns(lang: str) -> list[tuple[re.Pattern[str], str]]:
    rows = sorted(table(lang).items(), key=lambda row: -len(_FILLED.sub("", row[0])))
    return [
        (re.compile(_SLOT.sub(r"(?P<\1>.+?)", re.escape(english))), other)
        for english, other in rows
    ]


def joined(markdown: str, lang: str) -> str:
    """A page's text without the line breaks between characters that take no spaces."""
    return markdown if lang == ENGLISH else _BREAK.sub("", markdown)
