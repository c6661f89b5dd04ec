"""One call made on the GPU and on the CPU: both are looked at, and their bits compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from gemmgen.calling.launches import Case
from gemmgen.fuzz.trial_calls import as_called
from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.gpu.launch import Kernel
from gemmgen.ir.interface import Interface
from gemmgen.numerics.formats import STORAGE, UNIT, bits, is_nan
from gemmgen.passes.tensor_core import TensorCore
from gemmgen.pipeline import Emitted
from gemmgen.proof.calls import Caller
from gemmgen.proof.rounded_epilogue import is_exact
from gemmgen.proof.sums import Summation
from gemmgen.sim.packing import Argument
from gemmgen.sim.poisoned_memory import ALIGNMENT
from gemmgen.sim.run import CompiledKernel

from .conftest import MOST_BYTES


class WrongResult(AssertionError):
    """A result that is wrong, or differs from the CPU run's."""


class OnDevice:
    """A kernel on the GPU that is run like one on the CPU: NumPy arrays go there with all that lies
    around them, to addresses of the same alignment, and back."""

    def __init__(self, emitted: Emitted, target: str | None = None):
        """``target`` replaces the schedule's own."""
        self.interface = emitted.interface
        self.kernel = Kernel(emitted.text, emitted.interface, target or emitted.target)

    def run(self, arguments: Mapping[str, Argument], **_: object) -> None:
        there: list[tuple[np.ndarray, DeviceArray]] = []
        given: dict[str, object] = {}
        for param in self.interface.params:
            value = arguments.get(param.name)
            if isinstance(value, np.ndarray):
                root = root_of(value)
                copy = on_device(root)
                there.append((root, copy))
                assert value.dtype == STORAGE[param.dtype]
                at = copy.data + (address(value) - address(root))  # type: ignore[operator]
                given[param.name] = cupy().ndarray(value.shape, value.dtype, at, value.strides)
            elif param.kind == "scalar":
                given[param.name] = value
        self.kernel(**given)
        for root, copy in there:
            as_bytes(root)[...] = copy.get()
        self._unlike_unwritten(arguments)

    @staticmethod
    def finish() -> None:
        """Waits for the GPU: an error of a kernel is raised here at the latest."""
        cupy().cuda.Device().synchronize()

    def _unlike_unwritten(self, arguments: Mapping[str, Argument]) -> None:
        """A GPU's NaN with its sign transposed looks like what CPU runs fill shared memory with."""
        for param in self.interface.params:
            value = arguments.get(param.name)
            if param.written and isinstance(value, np.ndarray) and UNIT[param.dtype]:
                found = bits(value)
                whole = found.dtype.type(~found.dtype.type(0))
                found = np.where(found == whole, whole >> 1, found).astype(found.dtype)
                value[...] = found.view(value.dtype)


def on_device(root: np.ndarray) -> DeviceArray:
    """A copy of ``root``'s bytes, as many bytes past a multiple of ``ALIGNMENT``."""
    memory = cupy().empty((root.nbytes + ALIGNMENT,), "uint8")
    start = (address(root) - memory.data.ptr) % ALIGNMENT
    copy = memory[start : start + root.nbytes]
    copy[...] = cupy().asarray(as_bytes(root))
    return copy


def as_bytes(root: np.ndarray) -> np.ndarray:
    return root.reshape(-1).view(np.uint8)


def root_of(array: np.ndarray) -> np.ndarray:
    """The array whose memory ``array`` is a view of, also where ``as_strided`` made it."""
    while True:
        base = array.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)
        if not isinstance(base, np.ndarray):
            return array
        array = base


def address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


class Kept:
    """Runs a kernel, and keeps what C then holds."""

    def __init__(self, kernel: OnDevice | CompiledKernel, interface: Interface):
        self.kernel = kernel
        self.written = next(p for p in interface.params if p.written)
        self.result = np.zeros(0, STORAGE[self.written.dtype])

    def run(self, arguments: Mapping[str, Argument], **how: object) -> None:
        self.kernel.run(arguments, **how)  # type: ignore[arg-type]
        array = arguments[self.written.name]
        assert isinstance(array, np.ndarray)
        self.result = array.copy()


class Sides:
    """A kernel on the GPU and, with ``host``, on the CPU; ``both`` and ``host_only`` count the
    calls so far, on the GPU and too large for it."""

    def __init__(self, emitted: Emitted, target: str | None = None, *, host: bool = True):
        self.emitted = emitted
        self.caller = Caller(emitted)
        self.both = self.host_only = 0
        self.device = Kept(OnDevice(emitted, target), emitted.interface)
        self.host: Kept | None = None
        if host:
            self._compiled = CompiledKernel(emitted.text, emitted.interface)
            self.host = Kept(self._compiled, emitted.interface)

    def check(self, case: Case, replay: str = "") -> None:
        """Both results are right; and of the same bits, except for library functions.  A call whose
        tensors span more than ``MOST_BYTES`` is made on the CPU alone, where memory is sparse.
        Raises ``WrongResult``."""
        case = as_called(self.emitted, in_any_order(self.emitted, case))
        fits = self.caller.span(case) <= MOST_BYTES
        self.both, self.host_only = self.both + fits, self.host_only + (not fits)
        for side, kept in (("GPU", self.device), ("CPU", self.host)):
            if kept is not None and (fits or side == "CPU"):
                complaint = self.caller.complaint(case, kept)  # type: ignore[arg-type]
                if complaint is not None:
                    raise WrongResult(f"{replay}, {case.text()}, {side}: {complaint}")
        if fits and self.host is not None and is_exact(self.emitted.program.problem):
            device, host = self.device.result, self.host.result
            numbers = ~is_nan(host, self.device.written.dtype)
            same = (is_nan(device, self.device.written.dtype) == ~numbers).all()
            if not same or (bits(device)[numbers] != bits(host)[numbers]).any():
                raise WrongResult(f"{replay}, {case.text()}: GPU and CPU differ in bits")

    def close(self) -> None:
        if self.host is not None:
            self._compiled.close()


def in_any_order(emitted: Emitted, case: Case) -> Case:
    """``case``; with integers, whose sums are exact, where the GPU adds in its own order:
    within tensor cores, and blocks that add to memory as they come."""
    cores = any(d.name == TensorCore.SPEC.name for d in emitted.schedule.directives)
    if cores or Summation.of(emitted.program).follows_blocks:
        return replace(case, data="integers") if case.data == "normal" else case
    return case
