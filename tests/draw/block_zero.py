"""Block 0 of a kernel, run by the interpreter, with a log of what it accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import cast

import numpy as np

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel, compile_kernel
from gemmgen.analyze.block_step import PINGPONG
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.calling.launches import Order
from gemmgen.interpreter.async_copies import CheckedCopies
from gemmgen.interpreter.barriers import CheckedBarriers
from gemmgen.interpreter.checked_machine import Argument, CheckedMachine
from gemmgen.interpreter.checked_memory import Elements, FlatMemory, elements
from gemmgen.interpreter.machine import Boxes, Step
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.node_table import code_for
from gemmgen.interpreter.scheduler import Scheduler
from gemmgen.interpreter.scope import Closure
from gemmgen.interpreter.simt import Index, Lanes, Mask
from gemmgen.interpreter.together import Together
from gemmgen.interpreter.warp_roles import roles_of
from gemmgen.interpreter.workspace import LaunchState
from gemmgen.ir.edit import contraction
from gemmgen.ir.launch_shape import Shape
from gemmgen.ir.lowered import SharedArray
from gemmgen.ir.param import Param
from gemmgen.ir.thread_code import RegisterArray
from gemmgen.ir.warp_matrices import FragmentArray
from gemmgen.language import parse_schedule
from gemmgen.numerics.operators import Bools, Value
from gemmgen.schedule.read import read_source
from tests.draw.reading import schedule_of


@cache
def compiled(name: str) -> AnalyzedKernel:
    """An example's kernel."""
    return compile_kernel(schedule_of(name))


Event = tuple[str, str]


@dataclass
class Log:
    """``events``: what is done (load, store), in which buffer, or with which phase of a barrier, by
    the block or by one role of its warps.  ``requests``: of shared memory, the buffer, whether it
    is written, each thread's first element (-1: none), and how many."""

    events: list[Event] = field(default_factory=list)
    requests: list[tuple[str, bool, np.ndarray, int]] = field(default_factory=list)
    shared: dict[str, Elements] = field(default_factory=dict)
    quiet: bool = False

    def see(self, memory: Memory, index: Index, mask: Mask, width: int, *, write: bool) -> None:
        if not self.quiet:
            self.events.append(("store" if write else "load", memory.name))
            lanes = cast(FlatMemory, memory).lanes
            first = np.broadcast_to(np.asarray(index), lanes.count)
            first = first if mask is None else np.where(mask, first, -1)
            self.requests.append((memory.name, write, first[: lanes.threads], width))


class Logged(FlatMemory):
    """A memory that logs each access, wide ones once."""

    log: Log

    def load(self, index: Index, mask: Mask) -> Value:
        self.log.see(self, index, mask, 1, write=False)
        return super().load(index, mask)

    def store(self, index: Index, value: Value, mask: Mask) -> None:
        self.log.see(self, index, mask, 1, write=True)
        super().store(index, value, mask)

    def read(
        self, index: Index, width: int, mask: Mask, valid: Value | None = None
    ) -> Sequence[Value]:
        if valid is None or np.any(np.greater(valid, 0)):
            self.log.see(self, index, mask, width, write=False)
        before, self.log.quiet = self.log.quiet, True
        found = super().read(index, width, mask, valid)
        self.log.quiet = before
        return found

    def write(self, index: Index, values: Sequence[Value], mask: Mask) -> None:
        self.log.see(self, index, mask, len(values), write=True)
        before, self.log.quiet = self.log.quiet, True
        super().write(index, values, mask)
        self.log.quiet = before


class LoggedCopies(CheckedCopies):
    """Copies that land at once."""

    log: Log

    def issue(self, target: Memory, index: Index, values: Sequence[Value], mask: Mask) -> None:
        self.log.see(target, index, mask, len(values), write=True)
        before, self.log.quiet = self.log.quiet, True
        super().issue(target, index, values, mask)
        self.log.quiet = before

    def commit(self, mask: Mask) -> None:
        self.log.events.append(("commit", ""))
        super().commit(mask)

    def wait(self, pending: int, mask: Mask) -> None:
        self.log.events.append(("wait", str(pending)))
        super().wait(pending, mask)


class LoggedBarriers(CheckedBarriers):
    """Barriers with the phases that are announced, copied for, arrived at and waited for."""

    log: Log

    def _phase(self, name: str, index: Index, mask: Mask, ended: int = 0) -> str:
        """The present phase of the first lane's barrier, or one that has ended before it."""
        lane, at = next(self._each(index, mask))
        return f"{name}[{at}] {self._of(name, lane, at).phase - ended}"

    def expect(self, name: str, index: Index, count: int, mask: Mask) -> None:
        self.log.events.append(("expect", self._phase(name, index, mask)))
        super().expect(name, index, count, mask)

    def arrive(self, name: str, index: Index, mask: Mask, block: Value | None = None) -> None:
        self.log.events.append(("release", self._phase(name, index, mask)))
        if block is None:
            super().expect(name, index, 0, mask)
        else:
            super().arrive(name, index, mask, block)

    def test(self, name: str, index: Index, parity: Value, mask: Mask) -> Bools:
        """The answer is no, so that the wait is logged where the text has it."""
        return np.zeros(self.lanes.count, np.bool_)

    def wait(self, name: str, index: Index, parity: Value, mask: Mask) -> None:
        super().wait(name, index, parity, mask)
        self.log.events.append(("await", self._phase(name, index, mask, ended=1)))

    def load(
        self,
        boxes: Boxes,
        at: Sequence[Index],
        target: Memory,
        to: Index,
        barrier: tuple[str, Index],
        mask: Mask,
        blocks: Value | None = None,
    ) -> None:
        self.log.events.append(("box", f"{target.name} {self._phase(*barrier, mask)}"))
        super().load(boxes, at, target, to, barrier, mask, blocks)


class LoggedMachine(CheckedMachine):
    """A machine whose memories and barriers log; the ``acc`` of its products log their stores."""

    acc = "acc"

    def __init__(
        self,
        lanes: Lanes,
        arguments: dict[str, Argument],
        state: LaunchState,
        together: Together,
        role: str | None,
    ):
        written = {
            name: np.zeros(value.size, np.int64)
            for name, value in arguments.items()
            if isinstance(value, np.ndarray)
        }
        super().__init__(lanes, arguments, written, state, together, "early", role)
        self.log, self.copies = Log(), LoggedCopies("early")
        self.barriers = LoggedBarriers(lanes, together, "early")
        self.copies.log = self.barriers.log = self.log

    def parameter(self, param: Param) -> Closure | Memory:
        found = super().parameter(param)
        if isinstance(found, FlatMemory) and not param.is_scratch and not param.written:
            return self._logged(found)
        return found

    def shared(self, array: SharedArray) -> Memory:
        memory = cast(FlatMemory, super().shared(array))
        self.log.shared[array.name] = memory.data[: memory.size]
        return self._logged(memory)

    def _logged(self, memory: FlatMemory) -> Memory:
        memory.__class__ = Logged
        cast(Logged, memory).log = self.log
        return memory

    def registers(
        self, array: RegisterArray | FragmentArray, size: int
    ) -> tuple[Memory, Step | None]:
        memory, declare = super().registers(array, size)
        if array.name == self.acc:
            store, log = memory.store, self.log

            def logged(index: Index, value: Value, mask: Mask) -> None:
                if np.ndim(value):  # else one 0 for all threads: the accumulators of a tile begin
                    log.events.append(("multiply", ""))
                store(index, value, mask)

            memory.store = logged  # type: ignore[method-assign]
        return memory, declare

    def barrier(self, mask: Mask) -> None:
        self.log.events.append(("barrier", ""))
        super().barrier(mask)

    def sync(self, number: int, threads: int, mask: Mask) -> None:
        if number:  # 0 is the block's own barrier, which is logged already
            self.log.events.append(("barrier", ""))
        super().sync(number, threads, mask)

    def meet_cluster(self, mask: Mask) -> None:
        self.log.events.append(("barrier", ""))
        super().meet_cluster(mask)


def run(kernel: AnalyzedKernel, shape: Shape) -> Log:
    """What block 0 (or its consumers; with ping-pong, its first one) does at ``shape``.  Each
    element of a tensor holds its own number.  The other blocks of its cluster run, too."""
    logs = run_roles(kernel, shape)
    return logs.get(PINGPONG[0]) or list(logs.values())[-1]


def run_roles(
    kernel: AnalyzedKernel, shape: Shape, order: Order = "ascending"
) -> Mapping[str, Log]:
    """The same of each role of its warps, by name; "" if they have a program in common."""
    interface = kernel.lowered.interface
    arguments: dict[str, Argument] = dict(arguments_of(interface, kernel.program.problem, shape))
    for param in interface.tensors:
        known = {name: cast(int, arguments[name]) for name in interface.extent_names()}
        sizes = [interface.size(letter, known) for letter in param.indices]
        steps = [1 if s is None else cast(int, arguments[s]) for s in interface.steps(param)]
        span = 4 + sum(size * step for size, step in zip(sizes, steps, strict=True))
        arguments[param.name] = np.arange(span).astype(elements(param.dtype))
    extents = {name: cast(int, arguments[name]) for name in interface.sizing()}
    for param in interface.prepared:
        span = interface.scratch_elements(param, extents)
        arguments[param.name] = np.arange(span).astype(elements(param.dtype))
    count = interface.cluster_blocks
    state = LaunchState.of(interface, extents, order, count)
    together = Together(count, Scheduler(order))
    parts = {
        d.name if d.groups == 1 else PINGPONG[turn]: (d.name, part)
        for d in roles_of(kernel.lowered.body)
        for turn, part in enumerate(d.parts)
    }
    machines = {
        name: LoggedMachine(
            Lanes(0, count, *interface.block, part, count), arguments, state, together, role
        )
        for name, (role, part) in (parts or {"": (None, None)}).items()
    }

    def running(machine: LoggedMachine) -> None:
        machine.acc = contraction(kernel.program.main).acc
        step = code_for(machine).kernel(kernel.lowered)
        assert step is not None
        step(None)

    with np.errstate(all="ignore"):
        together.scheduler.run([(name, partial(running, m)) for name, m in machines.items()])
    return {name: machine.log for name, machine in machines.items()}


def of_text(text: str, folder: Path) -> AnalyzedKernel:
    """The kernel of a schedule that is written here."""
    path = folder / "own.sched"
    path.write_text(text)
    return compile_kernel(parse_schedule(read_source(str(path))))
