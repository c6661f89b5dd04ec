"""Refusals of names that collide: in a program, in the emitted text, or in a program around it.

``reserved`` checks the names of a schedule before anything is built, against everything that a
schedule may make of them.  What is checked here is what was made: a name that a program or a text
declares twice is refused, whatever wrote it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NoReturn

from gemmgen.base.errors import Mistake, ScheduleError
from gemmgen.base.source import Span
from gemmgen.ir.expr import Element, Var, walk
from gemmgen.ir.identifiers import LETTER, NAME
from gemmgen.ir.interface import Interface
from gemmgen.ir.nodes import Program
from gemmgen.ir.parameters import CONSTANTS, ld_name
from gemmgen.schedule.epilogue_names import BUILT_IN
from gemmgen.schedule.gemm_line import other_letter
from gemmgen.schedule.model import Access, Schedule
from gemmgen.schedule.roles import extents


def check_buffers(schedule: Schedule, program: Program) -> None:
    """Raise ``ScheduleError`` if two buffers of a kernel have one name, or if a buffer that a pass
    made has a name that the schedule gives to something else: what is one name in a program cannot
    be distinguished in its text."""
    tensors = {access.tensor for access in _accesses(schedule)} | _tensors_of_epilogue(schedule)
    others = _spans(schedule).keys() - tensors
    for kernel in program.kernels:
        counts = Counter(buffer.name for buffer in kernel.buffers)
        repeated = (name for name, count in counts.items() if count > 1 or name in others)
        check_identifiers(schedule, repeated)


def check_identifiers(schedule: Schedule, repeated: Iterable[str]) -> None:
    """Raise ``ScheduleError`` if there is a ``repeated`` name."""
    for name in repeated:
        _refuse(schedule, name, "the emitted text would have two things called")


def check_program(
    schedule: Schedule,
    interface: Interface,
    is_own: Callable[[str], bool],
    repeated: Iterable[str],
) -> None:
    """Raise ``ScheduleError`` if a name of the schedule is a host program's own, or if there is a
    ``repeated`` name."""
    letters = (letter for param in interface.tensors for letter in param.indices)
    names = (*(param.name for param in interface.params), *letters)
    for name in (*filter(is_own, names), *repeated):
        _refuse(schedule, name, "the program around the kernel has its own")


def _refuse(schedule: Schedule, name: str, why: str) -> NoReturn:
    word, span = _blamed(schedule, name)
    letters = {letter for access in _accesses(schedule) for letter in access.indices}
    other = f"my_{word.lstrip('_')}"
    if not (LETTER if word in letters else NAME).fullmatch(other):
        other = other_letter(_spans(schedule)) if word in letters else "my_name"
    mistake = Mistake(
        f"`{word}` can't have that name here: {why} {name}",
        span,
        f"any other name will do, such as `{other}`",
    )
    raise ScheduleError(schedule.source, (mistake,))


def _accesses(schedule: Schedule) -> tuple[Access, Access, Access]:
    return (schedule.gemm.c, schedule.gemm.a, schedule.gemm.b)


def _blamed(schedule: Schedule, name: str) -> tuple[str, Span]:
    """The word of the schedule that ``name`` follows from, the longest if several could be it."""
    spans = _spans(schedule)
    named = extents(schedule.gemm)
    found = [word for word in spans if _follows(name, word, named.get(word))]
    assert found, f"{name} is declared twice, and no name of the schedule has a part in it"
    word = max(found, key=len)
    return word, spans[word]


def _spans(schedule: Schedule) -> dict[str, Span]:
    """The words that the schedule chose as names, each at its first place."""
    text, spans = schedule.source.text, {schedule.kernel: _kernel_span(schedule)}
    for access in _accesses(schedule):
        for word in (access.tensor, *access.indices):
            spans.setdefault(word, _within(text, access.span, word))
    if schedule.epilogue is not None:
        for part in walk(schedule.epilogue.expression):
            if isinstance(part, Var | Element):
                own = part.name if isinstance(part, Var) else part.buffer
                spans.setdefault(own, _within(text, schedule.epilogue.span, own))
    return {word: span for word, span in spans.items() if word not in BUILT_IN}


def _within(text: str, span: Span, word: str) -> Span:
    found = re.compile(rf"\b{re.escape(word)}\b").search(text, span.start, span.end)
    return Span(*found.span()) if found else span


def _tensors_of_epilogue(schedule: Schedule) -> set[str]:
    parts = walk(schedule.epilogue.expression) if schedule.epilogue else ()
    return {part.buffer for part in parts if isinstance(part, Element)}


def _kernel_span(schedule: Schedule) -> Span:
    stated = re.search(rf"\bkernel[ \t]+({schedule.kernel})\b", schedule.source.text)
    return Span(*stated.span(1)) if stated else Span(0, 0)


def _follows(name: str, word: str, extent: str | None) -> bool:
    """Whether ``name`` may be derived from a word of the schedule, or from a letter of that
    ``extent``."""
    if f"_{word}_" in f"_{name}_" or name in (ld_name(word), extent):
        return True
    return extent is not None and name in {first + word.upper() for first in CONSTANTS}
