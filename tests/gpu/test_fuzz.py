"""300 random schedules on a GPU: right, and the bits of the CPU run but for library functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from gemmgen.formats import bits, is_nan
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.draw import schedule_at
from gemmgen.fuzz.trial import ARCH, cases, compile_text, exact
from gemmgen.gpu.launch import Kernel
from gemmgen.interface import Interface
from gemmgen.pipeline import Emitted
from gemmgen.sim.run import CompiledKernel
from gemmgen.verify.calls import Caller, Case

cp = pytest.importorskip("cupy")
SEED, SCHEDULES, BATCH = 11, 300, 20
NAN, NEGATED_NAN = 0x7FFFFFFF, 0xFFFFFFFF
"""A GPU's NaN of f32; its negative looks like what CPU runs fill shared memory with."""
Argument = np.ndarray | int | float


class OnDevice:
    """A kernel that is run like the one on the CPU: NumPy arrays with all that lies beside them."""

    def __init__(self, emitted: Emitted):
        self.interface = emitted.interface
        self.kernel = Kernel(emitted.text, emitted.interface, ARCH)  # whatever target it names

    def run(self, arguments: Mapping[str, Argument], **_: object) -> None:
        memories: list[tuple[np.ndarray, object]] = []
        given: dict[str, object] = {}
        for param in self.interface.params:
            value = arguments[param.name]
            if isinstance(value, np.ndarray):
                root = root_of(value)
                memory = cp.asarray(root)
                memories.append((root, memory))
                offset = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
                at = cp.cuda.MemoryPointer(memory.data.mem, memory.data.ptr - memory.data.mem.ptr)
                given[param.name] = cp.ndarray(
                    value.shape, value.dtype, at + offset, strides=value.strides
                )
            elif param.kind == "scalar":
                given[param.name] = value
        if all(grid_of(self.interface, arguments)):
            self.kernel(**given)
        for root, memory in memories:
            root[...] = cp.asnumpy(memory)
            if root.dtype == np.float32:
                found = root.view(np.uint32)
                found[found == NEGATED_NAN] = NAN


def grid_of(interface: Interface, arguments: Mapping[str, Argument]) -> list[int]:
    return [int(arguments[name]) for name, _ in interface.tiles]


def root_of(array: np.ndarray) -> np.ndarray:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


class Kept:
    """Runs a kernel, and keeps what C's memory then holds."""

    def __init__(self, kernel: OnDevice | CompiledKernel, interface: Interface):
        self.kernel = kernel
        self.written = next(p for p in interface.params if p.written)
        self.memory = np.zeros(0, np.float32)

    def run(self, arguments: Mapping[str, Argument], **how: object) -> None:
        self.kernel.run(arguments, **how)
        array = arguments[self.written.name]
        assert isinstance(array, np.ndarray)
        self.memory = np.array(array)


@pytest.mark.parametrize("first", range(0, SCHEDULES, BATCH))
def test_random_schedules_are_right_and_give_the_bits_of_the_cpu_run(first: int) -> None:
    for index in range(first, first + BATCH):
        emitted = compile_text(schedule_at(SEED, index))
        if emitted is not None:
            device = Kept(OnDevice(emitted), emitted.interface)
            host = Kept(CompiledKernel(emitted.text, emitted.interface), emitted.interface)
            chosen = dict.fromkeys(
                replace(case, order="ascending") for case in cases(emitted, Dice(SEED, index))
            )
            for case in chosen:
                check(emitted, case, device, host, f"gemmgen fuzz --replay {SEED}:{index}")
            assert isinstance(host.kernel, CompiledKernel)
            host.kernel.close()


def check(emitted: Emitted, case: Case, device: Kept, host: Kept, replay: str) -> None:
    caller = Caller(emitted)
    for kernel in (device, host):
        complaint = caller.complaint(case, kernel)  # type: ignore[arg-type]
        assert complaint is None, f"{replay}, {case.text()}: {complaint}"
    if exact(emitted):
        numbers = ~is_nan(host.memory, host.written.dtype)
        assert (is_nan(device.memory, host.written.dtype) == ~numbers).all(), replay
        assert (bits(device.memory)[numbers] == bits(host.memory)[numbers]).all(), replay
