"""``--shapes FILE``: a list of shapes, one a line, with comments."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.base.errors import Mistake, Mistakes, UsageError
from gemmgen.base.output_file import shown_path
from gemmgen.base.source import Source, Span, shown
from gemmgen.cli.shape_option import Shape, resolve
from gemmgen.schedule.model import Gemm
from gemmgen.schedule.read import decode, read_bytes
from gemmgen.schedule.roles import batches, roles
from gemmgen.schedule.written_shapes import written_shape

EXAMPLE = "2048x2304x768"


def read_shapes(path: str, gemm: Gemm) -> tuple[Shape, ...]:
    """The shapes of the file for a gemm line, in its order; raises ``ScheduleError`` with the place
    of every mistake."""
    hint = f"; it has a shape a line, {EXAMPLE} say"
    source = decode(read_bytes(path, hint), shown_path(path)).cleaned()
    mistakes, found = Mistakes(source), list[Shape]()
    for text, span in _entries(source):
        try:
            shape = _shape(text, gemm)
        except UsageError as wrong:
            letters = ", ".join((*roles(gemm), *batches(gemm)))
            message = f"{shown(text)}: {wrong}"
            hint = f"write {EXAMPLE}, or extents by letter ({letters})"
            mistakes.append(Mistake(message, span, hint))
        else:
            found.append(shape)
    if not found and not mistakes:
        start = Span(0, 0)
        mistakes.append(Mistake("the file has no shape", start, f"write one a line, {EXAMPLE} say"))
    mistakes.check()
    return tuple(found)


def _entries(source: Source) -> Iterator[tuple[str, Span]]:
    """The text of each line without its comment, if it has any, and where that is."""
    start = 0
    for line in source.text.split("\n"):
        text = line.partition("#")[0]
        if text.strip():
            first = start + len(text) - len(text.lstrip())
            yield text.strip(), Span(first, first + len(text.strip()))
        start += len(line) + 1


def _shape(text: str, gemm: Gemm) -> Shape:
    sizes = resolve(written_shape(text), gemm, "the shape")
    check_extents(sizes)
    return sizes


def check_extents(sizes: Shape, what: str = "") -> None:
    """Raises ``UsageError`` for a shape with an extent of 0; ``what`` begins the message."""
    if min(sizes) < 1:
        raise UsageError(f"{what}an extent is 0; to tune, each is at least 1")
