"""Errors of users and their messages.

Every mistake in a schedule is a ``ScheduleError``: a position, the mistake, the arithmetic, a hint.
``assert`` is for bugs of gemmgen; the classes here never are.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from gemmgen.base.record import record
from gemmgen.base.source import Blame, Source, Span, shown

_MOST = 50
"""Mistakes that are printed in full; more are only counted."""
_ENOUGH = 1000
"""Mistakes after which checking ends: such a file is not a schedule, and could take long to
check."""


@record
class Mistake:
    """One mistake in a schedule: ``message`` and ``hint`` always, ``notes`` for arithmetic."""

    message: str
    span: Span | None
    hint: str
    notes: tuple[str, ...] = ()


class Refusal(Exception):
    """Raised by a rule's check, below the level that knows the source text.

    ``at`` is a ``Blame`` if the check does not know the statement that it blames.
    """

    def __init__(
        self, message: str, *, at: Span | Blame | None, hint: str, notes: tuple[str, ...] = ()
    ):
        super().__init__(message)
        self.place = at if isinstance(at, Blame) else None
        self.mistake = Mistake(message, None if isinstance(at, Blame) else at, hint, notes)


class Mistakes(list[Mistake]):
    """The mistakes found so far in ``source``; checking continues after each, up to a thousand."""

    def __init__(self, source: Source | None = None):
        super().__init__()
        self.source = source or Source("")

    def append(self, mistake: Mistake) -> None:
        super().append(mistake)
        if len(self) >= _ENOUGH:
            self.check()

    def check(self) -> None:
        """Raises ``ScheduleError`` if there is a mistake."""
        if self:
            raise ScheduleError(self.source, tuple(self))

    def repeated(
        self, message: str, span: Span, hint: str, first: Span, statement: Span | None = None
    ) -> None:
        """Records a thing that is given twice: ``first``, and the ``statement`` it is part of."""
        self.append(Mistake(message, span, hint, (self.first_given(first, statement),)))

    def first_given(self, span: Span, statement: Span | None = None) -> str:
        """The note on a repeated thing: the position of the first, and its text."""
        line, column = self.source.position(span.start)
        whole = statement or span
        quoted = self.source.text[whole.start : min(whole.end, whole.start + 200)]
        return f"first given on line {line}, column {column}: {shown(' '.join(quoted.split()))}"

    @contextmanager
    def caught(self, find: Callable[[Blame], Span | None] | None = None) -> Generator[None]:
        """Records a refusal raised in the context, and continues after it; ``find`` gives the span
        of a place."""
        try:
            yield
        except Refusal as refusal:
            span = find(refusal.place) if find and refusal.place else refusal.mistake.span
            self.append(replace(refusal.mistake, span=span))


class GemmgenError(Exception):
    """Base of the errors a user may see; ``exit_code`` is the command line's."""

    exit_code = 2


class ScheduleError(GemmgenError):
    """One or more mistakes in one schedule, in the order of the text.

    ``line``, ``column`` (from 1; None without a position), ``message`` and ``hint`` are those of
    the first one.
    """

    def __init__(self, source: Source, mistakes: tuple[Mistake, ...]):
        assert mistakes
        ordered = sorted(mistakes, key=lambda m: m.span.start if m.span else len(source.text) + 1)
        self.source = source
        self.mistakes = tuple(dict.fromkeys(ordered))
        first = self.mistakes[0]
        self.message, self.hint = first.message, first.hint
        self.line, self.column = source.position(first.span.start) if first.span else (None, None)
        super().__init__(self.render())

    def __reduce__(self) -> tuple[type[ScheduleError], tuple[Source, tuple[Mistake, ...]]]:
        """Makes it picklable: worker processes raise it."""
        return type(self), (self.source, self.mistakes)

    def render(self) -> str:
        """All mistakes with their positions, carets, notes and hints."""
        return _report(self.source, self.mistakes)


class CallError(GemmgenError, ValueError):
    """Arguments that a kernel can't be launched with, found before the launch; one sentence."""


class UsageError(GemmgenError):
    """An argument that can't be used: a missing file, an unwritable output, a builder's word."""


class FileError(UsageError):
    """Mistakes in a file that is not a schedule, with their positions, carets and hints."""

    def __init__(self, source: Source, *mistakes: Mistake):
        end = len(source.text) + 1
        ordered = sorted(mistakes, key=lambda m: m.span.start if m.span else end)
        super().__init__(_report(source, ordered))


class CannotCheck(GemmgenError):
    """A check needs something that this machine lacks (g++, NVRTC, a GPU)."""

    exit_code = 3


def _report(source: Source, mistakes: Sequence[Mistake]) -> str:
    report = [_render(source, mistake) for mistake in mistakes[:_MOST]]
    if len(mistakes) > _MOST:
        report.append(f"{source.name}: {len(mistakes) - _MOST} more mistakes")
    return "\n\n".join(report)


def _render(source: Source, mistake: Mistake) -> str:
    if mistake.span is None:
        lines = [f"{source.name}: error: {mistake.message}"]
    else:
        line, column = source.position(mistake.span.start)
        lines = [
            f"{source.name}:{line}:{column}: error: {mistake.message}",
            source.excerpt(mistake.span),
        ]
    lines += [f"  note: {note}" for note in mistake.notes]
    lines.append(f"  hint: {mistake.hint}")
    return "\n".join(lines)
