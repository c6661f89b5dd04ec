"""The example schedules: next to the package in a checkout, within it when installed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gemmgen.base.errors import UsageError
from gemmgen.base.source import shown
from gemmgen.schedule.words import close

SUFFIX = ".sched"
PAGE = ".py"

PERCENTAGES = {
    "naive": 10,
    "tiled": 20,
    "padded": 30,
    "double_buffered": 40,
    "register_blocked": 70,
    "fused": 81,
    "vectorized": 89,
}
"""The ladder of the document that names these levels, and the share of cuBLAS it gives for each."""

LADDER = (
    "naive",
    "uncoalesced",
    "tiled",
    "transposed",
    "padded",
    "double_buffered",
    "register_blocked",
    "fused",
    "vectorized",
    "warp_tiled",
)
"""The built-in ladder, as it is learned; ``uncoalesced`` and ``transposed`` are steps down."""


def folder() -> Path:
    """The folder of the examples."""
    here = Path(__file__).parents[1]
    for found in (here / "_examples", here.parent / "examples"):
        if found.is_dir():
            return found
    raise UsageError("this installation of gemmgen has no examples")


def ladder() -> tuple[str, ...]:
    """The examples that are rungs of the ladder, bottom to top."""
    return tuple(name for name in LADDER if name in names())


def names() -> tuple[str, ...]:
    """The ladder's examples in its order, then the others by name: ``versions/v1``."""
    found = [name.removesuffix(SUFFIX) for name in _files(folder(), SUFFIX)]
    climbing = [name for name in LADDER if name in found]
    return (*climbing, *(name for name in found if name not in climbing))


def pages() -> tuple[str, ...]:
    """The programs that use examples, by name: ``uses/attention.py``."""
    return _files(folder(), PAGE)


@cache
def _files(root: Path, suffix: str) -> tuple[str, ...]:
    """The files below ``root`` with this suffix, in the order of their names without it."""
    found = (path.relative_to(root).as_posix() for path in root.rglob(f"*{suffix}"))
    return tuple(sorted(found, key=lambda name: name.removesuffix(suffix)))


def path_of(name: str) -> Path:
    """The file of example ``name``; raises ``UsageError`` with the most similar name."""
    known, wanted = (*names(), *pages()), name.removesuffix(SUFFIX)
    if wanted not in known:
        near = close(wanted, known)
        hint = f"did you mean {near}?" if near else f"there are {', '.join(known)}"
        raise UsageError(f"there is no example {shown(name)}; {hint}")
    return folder() / (wanted if wanted.endswith(PAGE) else f"{wanted}{SUFFIX}")


def about(name: str) -> str:
    """An example's summary: the first sentence of its first comment (docstring)."""
    words: list[str] = []
    text = path_of(name).read_text(encoding="utf-8")
    if name.endswith(PAGE):
        return text.removeprefix('"""').splitlines()[0].removesuffix('"""').removesuffix(".")
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        words += line.removeprefix("#").split()
    sentence, _, _ = " ".join(words).partition(". ")
    return sentence.removesuffix(".")
