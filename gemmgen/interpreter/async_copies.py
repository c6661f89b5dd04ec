"""Asynchronous copies, interpreted: under way from their issue to the wait for their group.

When a copy lands between the two is the hardware's choice, so a program is run at both extremes.
Late, the target is poison until the wait: a read too early shows.  Early, it holds the copy at
once: what another store leaves there meanwhile shows.  In both the target changes at the issue, so
a copy into what is still read shows too.  The source's values are those of the issue, as no kernel
writes what it copies from.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Literal

import numpy as np

from gemmgen.base.record import record
from gemmgen.interpreter.memory import POISON, Elements, FlatMemory, Index, Mask, Registers, Trap
from gemmgen.ir.lowered import CopyAsync, LoweredProgram, contains

Landing = Literal["late", "early"]
LANDINGS: tuple[Landing, ...] = ("late", "early")
Target = FlatMemory | Registers


def landings_of(program: LoweredProgram) -> tuple[Landing, ...]:
    """Those that ``program`` can tell apart: one is enough where nothing is asynchronous."""
    copies = any(contains(kernel.body, CopyAsync) for kernel in program.kernels)
    return LANDINGS if copies else LANDINGS[:1]


@record
class _Copy:
    """Of each thread one element: ``value`` to ``index`` of ``target``."""

    target: Target
    index: Index
    value: Elements
    mask: Mask

    def land(self) -> None:
        self.target.store(self.index, self.value, self.mask)

    def trap(self) -> Trap:
        lane = 0 if self.mask is None else int(np.argmax(self.mask))
        place = self.index if isinstance(self.index, int) else int(self.index[lane])
        return self.target.trap(lane, place, "a copy that is not waited for")


class Copies:
    """The copies that all threads have under way, by groups: threads commit and wait together."""

    def __init__(self, landing: Landing):
        self.landing = landing
        self.issued: list[_Copy] = []
        self.groups: list[list[_Copy]] = []

    def issue(self, target: Target, index: Index, value: Elements, mask: Mask) -> None:
        """Begins the copy of ``value`` to an element of each thread."""
        copy = _Copy(target, index, value, mask)
        nothing = np.full_like(value, POISON[value.dtype.type])
        (replace(copy, value=nothing) if self.late else copy).land()
        self.issued.append(copy)

    @property
    def late(self) -> bool:
        return self.landing == "late"

    def commit(self, mask: Mask) -> None:
        assert mask is None, "groups are counted for all threads alike"
        self.groups.append(self.issued)
        self.issued = []

    def wait(self, pending: int, mask: Mask) -> None:
        assert mask is None, "groups are counted for all threads alike"
        while len(self.groups) > pending:
            for copy in self.groups.pop(0):
                if self.late:
                    copy.land()

    def end(self) -> None:
        """The threads leave the kernel; raises ``Trap`` where a copy is under way."""
        for copy in (*self.issued, *chain.from_iterable(self.groups)):
            raise copy.trap()
