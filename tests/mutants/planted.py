"""Mutants of more than one token: typical mistakes about tiles, fills and loops."""

from __future__ import annotations

import re
from collections.abc import Iterator

Change = tuple[int, str, str]

_COUNT = re.compile(r"\((\w+) - 1\) / (\w+) \+ 1")
_FILL = re.compile(
    r"(?<=[ {])([A-Za-z]\w*(?:\[[^;=?]*\])?) =(\s+)([^;?=][^;?]*?) \? ([^;:?]+?) :\s+0\.0f;"
)
_K_BOUND = re.compile(r"(?<=; )tile_k < (\w+)(?=;)")
_VALID = re.compile(r"(?<=int valid = )[^;]* (\w+)\)? : 0(?=;)")
_CAST = "(long long)"
_TYPES = ("const ", "float ", "double ", "int ")


def counts(body: str, start: int) -> Iterator[Change]:
    """One tile too many if a letter's extent is a multiple of the tile."""
    for found in _COUNT.finditer(body, start):
        yield found.start(), found[0], f"{found[1]} / {found[2]} + 1"


def stale_fills(body: str, start: int) -> Iterator[Change]:
    """Stale values where zero fill is missing."""
    for found in _FILL.finditer(body, start):
        target, gap, condition, value = found.groups()
        line = body[body.rfind("\n", 0, found.start()) + 1 : found.start()].strip()
        if not line.endswith(_TYPES) and not line.endswith("const float"):
            yield found.start(), found[0], f"if ({condition}){gap}{target} = {value};"


def unfilled_copies(body: str, start: int) -> Iterator[Change]:
    """An asynchronous copy of all bytes, although some are out of bounds."""
    for found in _VALID.finditer(body, start):
        yield found.start(), found[0], found[1]


def short_k(body: str, start: int) -> Iterator[Change]:
    """The contraction ends at k = 100."""
    for found in _K_BOUND.finditer(body, start):
        yield found.start(), found[0], f"tile_k < min({found[1]}, 100)"


def few_blocks(body: str, start: int) -> Iterator[Change]:
    """Blocks from the 30th on do nothing, in the kernel or in a function that it calls."""
    for found in re.finditer(r"(?<=\n)\{(?=\n)", body[start:]):
        yield start + found.start(), found[0], "{ if (blockIdx.x >= 30) return;"


def no_casts(body: str, start: int) -> Iterator[Change]:
    """All offsets of 32 bits."""
    first, last = body.find(_CAST, start), body.rfind(_CAST)
    if start <= first < last:
        region = body[first : last + len(_CAST)]
        yield first, region, region.replace(_CAST, "")
