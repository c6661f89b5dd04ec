"""Schedules from Python: each call adds the statement of its name.

    Schedule("C[m,n] = A[m,k] * B[k,n]").tile(m=128, n=128, k=8).cache_shared("A[k,m]", "B")

is the same as the file

    gemm            C[m,n] = A[m,k] * B[k,n]
    tile            m=128 n=128 k=8
    cache_shared    A[k,m] B
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gemmgen.base.errors import UsageError
from gemmgen.base.record import record
from gemmgen.base.source import Source, digits, shown, value_shown
from gemmgen.language import VOCABULARY, parse_schedule
from gemmgen.schedule import model
from gemmgen.schedule.formatting import aligned
from gemmgen.schedule.sets import Settings
from gemmgen.schedule.words import LATER

Item = int | str
BuilderValue = Item | Iterable[Item]
"""A number, a word, or a set of them."""


@record
class ScheduleBuilder:
    """A schedule as lines of its text; every call returns a new one.

    The methods are the statements of the language: ``tile(m=128, n=128)``, ``kernel("my_gemm")``,
    ``assume("N % 4 == 0")``, ``let(t={64, 128})``.  ``build`` reports mistakes.
    """

    gemm_line: str = ""
    lines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_line(self.gemm_line, "the gemm line")

    def __getattr__(self, word: str) -> Callable[..., ScheduleBuilder]:
        if word not in VOCABULARY.statements:
            hint = LATER[word].hint if word in LATER else VOCABULARY.meant(word)
            unknown = f"a schedule has no {shown(word)}"
            raise AttributeError(f"{unknown}; {hint}" if hint and word[:1] != "_" else unknown)

        def statement(*words: str, **arguments: BuilderValue) -> ScheduleBuilder:
            return self._with(word, words, arguments)

        statement.__name__ = word
        return statement

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *VOCABULARY.statements})

    def text(self) -> str:
        """The schedule's text, in the order of the calls."""
        gemm = [aligned("gemm", self.gemm_line)] if self.gemm_line else []
        return "".join(line + "\n" for line in (*gemm, *self.lines))

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        count = len(self.lines) + bool(self.gemm_line)
        statements = f"{count} statement{'' if count == 1 else 's'}"
        return f"<Schedule {self.gemm_line or 'without a gemm line'}: {statements}>"

    def build(self, settings: Settings = ()) -> model.Schedule:
        """The canonical schedule; raises ``ScheduleError`` with positions in ``text()``."""
        return parse_schedule(Source(self.text()), settings)

    def _with(
        self, word: str, words: tuple[str, ...], arguments: dict[str, BuilderValue]
    ) -> ScheduleBuilder:
        equals = " = " if word == "let" else "="
        parts = [_check_line(part, word) for part in words]
        parts += [f"{name}{equals}{_value(value, word)}" for name, value in arguments.items()]
        line = aligned(word, " ".join(parts))
        return replace(self, lines=(*self.lines, line))


Schedule = ScheduleBuilder


def _value(value: BuilderValue, word: str) -> str:
    if isinstance(value, bool):
        raise UsageError(f"{word} takes numbers and words, not {value}")
    if isinstance(value, int):
        return digits(value)
    if isinstance(value, str):
        return _check_line(value, word)
    if not isinstance(value, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"{word} takes whole numbers and words, not {value_shown(value)}")
    items = list(value)
    if isinstance(value, set | frozenset):
        items.sort(key=lambda item: (isinstance(item, str), item))
    return "{" + ", ".join(_value(item, word) for item in items) + "}"


def _check_line(text: str, word: str) -> str:
    """``text``, if it is one line: text must not add statements."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"{word} takes text here, not {type(text).__name__}")
    if len(text.splitlines()) > 1 or "#" in text or not text.isprintable():
        raise UsageError(f"{word}: {shown(text)} is more than one line of a schedule, or a comment")
    return text
