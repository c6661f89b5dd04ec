"""Each identifier of an emitted text stands for one thing: the check on the text that is made.

The names of a schedule are checked before anything is built (``schedule.reserved``), against what
lowering may do with them.  This is the check on what it did: a declaration that repeats a name
which is visible there would be refused by a compiler, or hide what was meant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn

from gemmgen.base.errors import Mistake, ScheduleError
from gemmgen.base.source import Span
from gemmgen.ir.control import Block, Define, For, If
from gemmgen.ir.duties import Duties
from gemmgen.ir.expr import Element, Var, walk
from gemmgen.ir.interface import Interface
from gemmgen.ir.lane_matrices import OperandArray
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.parameters import namespace
from gemmgen.ir.thread_code import CountArrival, Node, Point, RegisterArray
from gemmgen.ir.warp_matrices import FragmentArray
from gemmgen.schedule.model import Schedule


def check_identifiers(schedule: Schedule, kernel: LoweredKernel) -> None:
    """Raises ``ScheduleError`` if a name of the schedule meets one of the text."""
    name = next(repeated(kernel), None)
    if name is not None:
        _refuse(schedule, name, "the emitted text would have two things called")


def check_program(schedule: Schedule, interface: Interface, is_own: Callable[[str], bool]) -> None:
    """Raises ``ScheduleError`` if a name of the schedule is one of a host program's own."""
    letters = (letter for param in interface.tensors for letter in param.indices)
    for name in (*(param.name for param in interface.params), *letters):
        if is_own(name):
            _refuse(schedule, name, "the program around the kernel has its own")


def _refuse(schedule: Schedule, name: str, why: str) -> NoReturn:
    word, span = _blamed(schedule, name)
    mistake = Mistake(
        f"`{word}` can't have that name here: {why} {name}",
        span,
        f"any other name will do, such as `my_{word}`",
    )
    raise ScheduleError(schedule.source, (mistake,))


def repeated(kernel: LoweredKernel) -> Iterator[str]:
    """Names that are declared although they are already visible."""
    seen: set[str] = set()
    interface = kernel.interface
    own = (interface.name, f"launch_{interface.name}", namespace(interface.name))
    functions = dict.fromkeys(function.name for function in kernel.functions)
    outside = (*own, *(c.name for c in kernel.constants), *functions)
    inside = (*(p.name for p in interface.params), *(a.name for a in kernel.shared))
    yield from _declare((*outside, *inside), seen)
    yield from _repeated(kernel.body, seen)
    for function in kernel.functions:
        known = {*outside}
        yield from _declare((parameter.name for parameter in function.parameters), known)
        yield from _repeated(function.body, known)


def _declare(names: Iterable[str], seen: set[str]) -> Iterator[str]:
    """Those of ``names`` that are visible already; all are added to ``seen``."""
    for name in names:
        if name in seen:
            yield name
        seen.add(name)


def _repeated(body: tuple[Node, ...], seen: set[str]) -> Iterator[str]:
    """Those of one scope; its names are added to ``seen``."""
    for node in body:
        match node:
            case (
                Define()
                | RegisterArray()
                | FragmentArray()
                | OperandArray()
                | Point()
                | CountArrival()
            ):
                yield from _declare((node.name,), seen)
            case For(variable):
                within = set(seen)
                yield from _declare((variable,), within)
                yield from _repeated(node.body, within)
            case If():
                yield from _repeated(node.body, set(seen))
                yield from _repeated(node.otherwise, set(seen))
            case Duties(duties):
                for duty in duties:
                    yield from _repeated(duty.body, set(seen))
            case Block():
                yield from _repeated(node.body, set(seen) if node.scoped else seen)
            case _:
                pass


def _blamed(schedule: Schedule, name: str) -> tuple[str, Span | None]:
    """The word of the schedule that ``name`` follows from, the longest if several could be it."""
    words: dict[str, Span] = {schedule.kernel: Span(0, 0)}
    for access in (schedule.gemm.c, schedule.gemm.a, schedule.gemm.b):
        words |= dict.fromkeys((access.tensor, *access.indices), access.span)
    if schedule.epilogue is not None:
        for part in walk(schedule.epilogue.expression):
            if isinstance(part, Var | Element):
                own = part.name if isinstance(part, Var) else part.buffer
                words.setdefault(own, schedule.epilogue.span)
    found = [w for w in words if re.search(rf"(^|_){re.escape(w)}($|_)", name)]
    word = max(found or [name], key=len)
    return word, words.get(word)
