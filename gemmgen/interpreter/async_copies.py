"""Asynchronous copies, interpreted: in flight from their issue to the wait for their group.

When a copy lands between the two is the hardware's choice, so a program is run at both extremes.
Late, the target is poison until the wait: a read too early shows.  Early, it holds the copy at
once: what another store leaves there meanwhile shows.  In both the target changes at the issue, so
a copy into what is still read shows too.  The source's values are those of the issue, as no kernel
writes what it copies from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import cast

import numpy as np

from gemmgen.base.record import record
from gemmgen.calling.launches import LANDINGS, Landing
from gemmgen.interpreter.checked_memory import CheckedMemory, Elements, poison_of
from gemmgen.interpreter.code import Code, Statements
from gemmgen.interpreter.machine import Step
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.simt import Index, Mask, Trap
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.instruction_table import INSTRUCTIONS
from gemmgen.ir.lowered import LoweredProgram
from gemmgen.ir.thread_code import executes
from gemmgen.numerics.operators import Value


def _copy_async(node: Instruction, code: Code) -> Step:
    into, of, count = node.operands
    (target, to), (source, at) = code.element(into), code.element(of)
    valid, copies = code.expression(count).run, code.machine.copies
    width = cast(int, node.get("width"))

    def step(mask: Mask) -> None:
        values = source.read(at(mask), width, mask, valid(mask))
        copies.issue(target, to(mask), values, mask)

    return step


def _commit(node: Instruction, code: Code) -> Step:
    return code.machine.copies.commit


def _wait(node: Instruction, code: Code) -> Step:
    (pending,) = (code.expression(operand).known for operand in node.operands)
    return partial(code.machine.copies.wait, cast(int, pending))


NODES: Statements = {"copy_async": _copy_async, "commit_group": _commit, "wait_group": _wait}


def landings_of(program: LoweredProgram) -> tuple[Landing, ...]:
    """Those under which ``program`` can behave differently: one, if nothing is asynchronous."""
    copies = [name for name, row in INSTRUCTIONS.items() if row.effect == "copy"]
    bodies = [kernel.body for kernel in program.kernels]
    some = any(executes(body, *copies, "wgmma_multiply") for body in bodies)
    return LANDINGS if some else LANDINGS[:1]


@record
class _Copy:
    """Of each thread one element: ``value`` to ``index`` of ``target``."""

    target: CheckedMemory
    index: Index
    value: Value
    mask: Mask

    def land(self) -> None:
        self.target.store(self.index, self.value, self.mask)

    def trap(self) -> Trap:
        lane = 0 if self.mask is None else int(np.argmax(self.mask))
        index = self.index if isinstance(self.index, int) else int(self.index[lane])
        return self.target.trap(lane, index, "a copy that is not waited for")


class CheckedCopies:
    """The copies that all threads have in flight, by groups: threads commit and wait together."""

    def __init__(self, landing: Landing):
        self.landing = landing
        self.issued: list[_Copy] = []
        self.groups: list[list[_Copy]] = []

    def issue(self, target: Memory, index: Index, values: Sequence[Value], mask: Mask) -> None:
        """Begins the copies of ``values`` to neighbours of each thread."""
        assert isinstance(target, CheckedMemory)
        target.check_aligned(index, len(values), mask)
        for e, value in enumerate(values):
            copy = _Copy(target, index + e, value, mask)
            nothing = np.full_like(value, poison_of(cast(Elements, value).dtype.type))
            (replace(copy, value=nothing) if self.late else copy).land()
            self.issued.append(copy)

    @property
    def late(self) -> bool:
        return self.landing == "late"

    def commit(self, mask: Mask) -> None:
        assert mask is None, "groups are counted for all threads together"
        self.groups.append(self.issued)
        self.issued = []

    def wait(self, pending: int, mask: Mask) -> None:
        assert mask is None, "groups are counted for all threads together"
        while len(self.groups) > pending:
            for copy in self.groups.pop(0):
                if self.late:
                    copy.land()

    def end(self) -> None:
        """The threads leave the kernel; raises ``Trap`` if a copy is in flight."""
        for copy in (*self.issued, *chain.from_iterable(self.groups)):
            raise copy.trap()
