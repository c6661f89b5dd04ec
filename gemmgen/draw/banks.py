"""Requests of a warp, bank by bank: without pad and swizzle, and as scheduled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gemmgen.analyze.maps import Picture, drawn
from gemmgen.analyze.unpadded import BankMaps, bank_maps
from gemmgen.base.errors import UsageError
from gemmgen.draw.marks import Drawing, Mark
from gemmgen.draw.requests import conflict, request, size_of
from gemmgen.draw.scene import Scene
from gemmgen.draw.wgmma import core_matrices, multiplies_in_place


def draw(scene: Scene) -> Drawing:
    """For each direction of each shared tile the request as scheduled; above it, if that differs,
    what it would be without pad and swizzle.

    Raises ``UsageError`` for a kernel that stages nothing in shared memory.
    """
    if multiplies_in_place(scene):
        return core_matrices(scene)
    found = bank_maps(scene.kernel)
    if not found:
        raise UsageError(
            "--what banks: this kernel has no tile in shared memory; "
            "cache_shared stages tiles there"
        )
    marks: list[Mark] = []
    x = y = 0.0
    for maps in found:
        for at, now in enumerate(maps.now):
            helped = _differs(maps) and maps.before[at].ways != now.ways
            pair = [(_BEFORE, maps.before[at]), (_now(maps), now)] if helped else []
            for heading, picture in pair or [(_now(maps), now)]:
                marks += request(f"{heading}: {conflict(picture)}", picture, 0.0, y)
                across, down = size_of(picture)
                x, y = max(x, across), y + down
    title = f"{scene.kernel.emitted.name}: the banks of a warp's costliest requests"
    description = " ".join(sentence for maps in found for sentence in _sentences(maps))
    text = "\n".join(part for maps in found for part in _texts(maps))
    return Drawing(title, f"{description} {_LEGEND}", x, y, tuple(marks), text)


_BEFORE = "without pad and swizzle"
_LEGEND = "Columns are banks, rows are wavefronts, numbers are threads of the warp."


def _differs(maps: BankMaps) -> bool:
    return bool(maps.statements and maps.before)


def _now(maps: BankMaps) -> str:
    return "; ".join(maps.statements) or "as scheduled, without pad or swizzle"


def _sentences(maps: BankMaps) -> Iterator[str]:
    for at, now in enumerate(maps.now):
        if _differs(maps):
            before = conflict(maps.before[at])
            yield f"{now.title}: {before} {_BEFORE}, {conflict(now)} with {_now(maps)}."
        else:
            yield f"{now.title}: {conflict(now)}."


def _texts(maps: BankMaps) -> Iterator[str]:
    for heading, found in _columns(maps):
        for picture in found:
            yield f"{heading}:\n{drawn(picture)}"


def _columns(maps: BankMaps) -> Iterator[tuple[str, Sequence[Picture]]]:
    if _differs(maps):
        yield _BEFORE, maps.before
    yield _now(maps), maps.now
