"""The measured gain of a rung over the one before."""

from __future__ import annotations

from collections.abc import Mapping

from gemmgen_docs import compared, measured
from gemmgen_docs.translation import ENGLISH, said

SAID = 4096
"""The size that is said first."""
LARGE = 1024
"""From this size on a rung is expected to gain."""
LITTLE = 1.03
"""Below so much the page says why."""


def gain(name: str, lang: str = ENGLISH) -> str:
    """How many times as fast as the rung before it is, at each measured size; empty if none is."""
    before, found = compared.rung_before(name), gains(name)
    if SAID not in found:
        return ""
    others = [f"{times:.2f} at {size}" for size, times in found.items() if size != SAID]
    more = f"; {', '.join(others[:-1])} and {others[-1]}" if len(others) > 1 else ""
    own_folder = measured.folder_of(name) == measured.folder_of(before)
    page = compared.page_of(before) if own_folder else f"../beyond/{compared.page_of(before)}"
    return said(
        f"At {SAID} it is **{found[SAID]:.2f} times as fast as [`{before}`]({page})**{more}.",
        lang,
    )


def gains(name: str) -> Mapping[int, float]:
    """The time of the rung before over that of a rung, by M = N = K."""
    own = measured.cubes(name)
    before = measured.cubes(compared.rung_before(name), measured.folder_of(name))
    return {size: before[size]["ms"] / own[size]["ms"] for size in sorted(own.keys() & before)}


def little(name: str) -> dict[int, float]:
    """The large sizes at which a rung gains little or nothing."""
    return {size: g for size, g in gains(name).items() if size >= LARGE and g < LITTLE}
