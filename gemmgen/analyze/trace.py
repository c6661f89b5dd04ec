"""A schedule's text to its kernel and what each pass changed, or to its located mistakes."""

from __future__ import annotations

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel
from gemmgen.base.errors import Mistake, ScheduleError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.base.text_diff import unified
from gemmgen.ir.text import print_ir
from gemmgen.pipeline import compile_source, rewrite


@record
class PassChange:
    """A pass, named by its directive ("gemm": the naive program), and what it changed.

    ``text`` is a unified diff of the program's text; of "gemm", that text itself.
    """

    directive: str
    text: str


@record
class Located:
    """A mistake and its place: ``line`` and ``column`` from 1, None if it has no position.

    ``length`` is the number of characters from there on, within that line, at least 1.
    """

    line: int | None
    column: int | None
    length: int
    message: str
    hint: str
    notes: tuple[str, ...]


@record
class Compilation:
    """Either a kernel and the changes of its passes, or at least one mistake and ``report``, the
    text that the command line prints for all of them."""

    kernel: AnalyzedKernel | None
    changes: tuple[PassChange, ...]
    mistakes: tuple[Located, ...]
    report: str


def trace(source: Source) -> Compilation:
    """Compile ``source``.  A mistake in it is returned, not raised."""
    try:
        emitted = compile_source(source)
    except ScheduleError as error:
        found = tuple(_located(error.source, mistake) for mistake in error.mistakes)
        return Compilation(None, (), found, str(error))
    steps = rewrite(emitted.schedule)
    texts = [print_ir(step.program) for step in steps]
    changes = [PassChange(steps[0].directive, texts[0])]
    for before, after, old, new in zip(texts, texts[1:], steps, steps[1:], strict=False):
        difference = unified(before, after, old.directive, new.directive)
        changes.append(PassChange(new.directive, difference))
    return Compilation(AnalyzedKernel.of(emitted), tuple(changes), (), "")


def _located(source: Source, mistake: Mistake) -> Located:
    texts = (mistake.message, mistake.hint, mistake.notes)
    if mistake.span is None:
        return Located(None, None, 1, *texts)
    line, column = source.position(mistake.span.start)
    rest = len(source.line(line)) - column + 1
    length = max(1, min(mistake.span.end - mistake.span.start, rest))
    return Located(line, column, length, *texts)
