"""Compile a kernel's text for this machine, and run it on NumPy arrays."""

from __future__ import annotations

import hashlib
import math
import tempfile
import weakref
from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gemmgen.errors import CallError
from gemmgen.interface import INT_MAX, Interface, Param
from gemmgen.sim import process, toolchain
from gemmgen.sim.failures import KernelFault
from gemmgen.sim.findings import summary
from gemmgen.sim.layout import shared_arrays
from gemmgen.sim.report import Context, TensorShape, read_findings

Array = npt.NDArray[np.float32]
Argument = Array | int | float

CACHED_KERNELS = 64
FLOAT_MAX = float(np.finfo(np.float32).max)
RUN_SECONDS = 60

SENT_WHOLE = 2**28
"""Bytes; of larger memory only the tensors' own rows go to the kernel."""


class CompiledKernel:
    """A kernel that this machine can run.  ``interface`` says with which arguments."""

    def __init__(
        self,
        text: str,
        interface: Interface,
        *,
        checked: bool = False,
        ucontext: bool = False,
        warn: bool = True,
    ):
        """``compile_kernel`` says what these are; without ``warn`` the text may cause warnings."""
        self.interface = interface
        self.checked = checked
        self._text = text
        directory = tempfile.TemporaryDirectory(prefix="gemmgen-")
        self.program = toolchain.build(
            text,
            interface,
            Path(directory.name),
            checked=checked,
            ucontext=ucontext,
            warn=warn,
        )
        self._arrays = shared_arrays(text, self.program) if checked else ()
        self._process = process.Process(self.program)
        self._finalize = weakref.finalize(self, _release, self._process, directory)

    def run(
        self,
        arguments: Mapping[str, Argument],
        *,
        order: str = "ascending",
        seed: int = 0,
        seconds: float = RUN_SECONDS,
        unreadable: Collection[str] = (),
    ) -> None:
        """Launches the kernel on ``arguments``, one for each parameter; the arrays change in place.

        A tensor is a float32 array that has the shape of its indices; the whole memory that it is
        a view of goes with it, so that what a kernel writes beside the tensor is there to be seen.
        ``order`` is that of a block's threads between two barriers: ``ascending``, ``descending``
        or ``shuffled`` (by ``seed``, anew in each interval).  A checked kernel may not read the
        tensors named in ``unreadable`` where it has not written them: C, where beta is 0.

        Raises CallError for arguments that the kernel does not take, KernelFault where the run is
        stopped or a checked run finds something (its ``findings`` say what; the arrays are
        unchanged), KernelTimeout after ``seconds``.
        """
        if order not in process.ORDERS:
            raise CallError(f"order is one of {', '.join(process.ORDERS)}, not {order!r}")
        launch = _launch(self.interface, arguments, order, seed, frozenset(unreadable))
        if not launch.grid:
            return
        if self.checked:
            arrays = tuple((array.offset, array.bytes) for array in self._arrays)
            launch = replace(launch, arrays=arrays)
        else:
            launch = replace(launch, tensors=())
        records = self._process.launch(launch, seconds)
        if records:
            findings = read_findings(records, self._context(launch))
            raise KernelFault(summary(findings), findings)
        self._check_shared()

    def _check_shared(self) -> None:
        declared, used = self.interface.static_shared, sum(a.bytes for a in self._arrays)
        if self.checked and declared and used != declared:
            raise KernelFault(
                f"the text declares {used} bytes of shared memory, its interface {declared}"
            )

    def _context(self, launch: process.Launch) -> Context:
        shapes = (TensorShape(t.name, t.shape, t.strides) for t in launch.tensors)
        file = f"{self.interface.name}.cu"
        return Context(self._text, file, self.program, launch.block[0], tuple(shapes), self._arrays)

    def close(self) -> None:
        """Ends the kernel's process and removes its program."""
        self._finalize()


_cache: OrderedDict[str, CompiledKernel] = OrderedDict()


def compile_kernel(
    text: str, interface: Interface, *, checked: bool = False, ucontext: bool = False
) -> CompiledKernel:
    """Compiles the kernel between the fixed comment lines of ``text``, unless it has been before.

    ``checked`` has each of its accesses looked at while it runs, several times as slowly: a race of
    two threads between two barriers, an element of a tensor that two threads write, an access that
    is not wholly on a tensor's elements (the padding between rows is outside) or within a shared
    array, a read of shared memory that the block has not written, a wide access at an address that
    is no multiple of its size, an index outside its array's type, and ints that overflow.  ``run``
    then raises KernelFault with the ``findings``, each with its lines and their directives.

    ``ucontext`` takes the portable fibers in place of those for this processor.  Raises
    CompileFailure where g++ refuses the text or warns, CannotCheck where there is no g++.
    """
    key = hashlib.sha256(repr((text, interface, checked, ucontext)).encode()).hexdigest()
    if key not in _cache:
        _cache[key] = CompiledKernel(text, interface, checked=checked, ucontext=ucontext)
        if len(_cache) > CACHED_KERNELS:
            _cache.popitem(last=False)
    _cache.move_to_end(key)
    return _cache[key]


def _release(running: process.Process, directory: tempfile.TemporaryDirectory[str]) -> None:
    running.close()
    directory.cleanup()


def _launch(
    interface: Interface,
    arguments: Mapping[str, Argument],
    order: str,
    seed: int,
    unreadable: frozenset[str],
) -> process.Launch:
    names = [param.name for param in interface.params]
    for name in (*names, *arguments):
        if (name in names) != (name in arguments):
            problem = "needs an argument" if name in names else "has no parameter"
            raise CallError(f"{interface.name} {problem} {name}")
    values: dict[str, int] = {}
    for param in interface.params:
        value = arguments[param.name]
        if isinstance(value, np.ndarray):
            values[param.name] = _address(value)
        elif param.kind in ("extent", "ld"):
            values[param.name] = _checked_int(param, value)
    packing = _Packing(interface, values)
    packed = tuple(packing.pack(param, arguments[param.name]) for param in interface.params)
    for requirement in interface.violated(values):
        raise CallError(f"{interface.name} requires {requirement.text()}")
    grid = interface.grid(values)
    if grid > INT_MAX:
        raise CallError(f"{interface.name} would need {grid} blocks, more than {INT_MAX}")
    tensors = packing.tensors(unreadable)
    return process.Launch(grid, interface.block, packing.buffers(), packed, order, seed, tensors)


def _checked_int(param: Param, value: int | float) -> int:
    if isinstance(value, float) or not 0 <= value <= INT_MAX:
        raise CallError(f"{param.name} must be an int from 0 to {INT_MAX}, not {value!r}")
    return int(value)


def _checked_scalar(param: Param, value: int | float) -> float:
    if math.isfinite(value) and abs(value) > FLOAT_MAX:
        raise CallError(f"{param.name} = {value!r} is more than a float32 holds")
    return float(value)


class _Packing:
    """Gathers the memory that the tensors lie in; tensors of one memory share a buffer."""

    def __init__(self, interface: Interface, values: Mapping[str, int]):
        self._pitch, self._extent = dict(interface.pitch), interface.extent
        self._values = values
        self._roots: list[Array] = []
        self._names: list[str] = []
        self._written: set[int] = set()
        self._tensors: list[tuple[Param, Array, process.Pointer]] = []

    def pack(self, param: Param, value: Argument) -> int | float | process.Pointer:
        if param.kind != "tensor":
            if isinstance(value, np.ndarray):
                raise CallError(f"{param.name} must be a number, not an array")
            return _checked_scalar(param, value) if param.kind == "scalar" else int(value)
        if not isinstance(value, np.ndarray):
            raise CallError(f"{param.name} must be a float32 array, not {value!r}")
        self._check_tensor(param, value)
        root = _root(value, param.name)
        same = [i for i, other in enumerate(self._roots) if other is root]
        index = same[0] if same else len(self._roots)
        if not same:
            self._roots.append(root)
            self._names.append(param.name)
        if param.written:
            self._written.add(index)
        pointer = process.Pointer(index, _address(value) - _address(root))
        self._check_overlap(param, value)
        self._tensors.append((param, value, pointer))
        return pointer

    def _check_overlap(self, param: Param, array: Array) -> None:
        for other, before, _ in self._tensors:
            if (param.written or other.written) and np.may_share_memory(array, before):
                written, read = (param, other) if param.written else (other, param)
                raise CallError(f"{written.name} overlaps {read.name} in memory")

    def buffers(self) -> tuple[process.Buffer, ...]:
        return tuple(
            process.Buffer(name, _bytes(root), _address(root), i in self._written, self._pieces(i))
            for i, (name, root) in enumerate(zip(self._names, self._roots, strict=True))
        )

    def tensors(self, unreadable: frozenset[str]) -> tuple[process.Tensor, ...]:
        return tuple(
            process.Tensor(
                param.name,
                pointer,
                array.shape,
                _strides(array),
                param.read and param.name not in unreadable,
            )
            for param, array, pointer in self._tensors
        )

    def _pieces(self, buffer: int) -> tuple[tuple[int, int], ...]:
        """All of a buffer; of one that is too large to send, the rows of its tensors."""
        whole = self._roots[buffer].nbytes
        if whole <= SENT_WHOLE:
            return ((0, whole),)
        pieces: list[tuple[int, int]] = []
        for _, array, pointer in self._tensors:
            if pointer.buffer != buffer or not array.size:
                continue
            row = array.shape[-1] * array.itemsize
            for index in np.ndindex(array.shape[:-1]):
                steps = zip(index, array.strides, strict=False)
                pieces.append((pointer.offset + sum(i * step for i, step in steps), row))
        return tuple(pieces)

    def _check_tensor(self, param: Param, array: Array) -> None:
        name = param.name
        if array.dtype != np.float32:
            raise CallError(f"{name} must be a float32 array, not {array.dtype}")
        if param.written and not array.flags.writeable:
            raise CallError(f"{name} is written, but the array is read-only")
        shape = tuple(self._values[self._extent(letter)] for letter in param.indices)
        if array.shape != shape:
            raise CallError(f"{name} must have shape {shape}, not {array.shape}")
        if array.size == 0:
            return
        if array.shape[-1:] > (1,) and array.strides[-1] != array.itemsize:
            raise CallError(f"{name} must be contiguous along {param.indices[-1]}")
        if name in self._pitch and array.shape[-2] > 1:
            pitch = self._values[self._pitch[name]]
            if array.strides[-2] != pitch * array.itemsize:
                stride = array.strides[-2] // array.itemsize
                raise CallError(
                    f"{name} has rows {stride} elements apart, but {self._pitch[name]} is {pitch}"
                )


def _strides(array: Array) -> tuple[int, ...]:
    """In bytes, none of them 0: a dimension of one element has any."""
    strides = [array.itemsize]
    for i in range(array.ndim - 1, 0, -1):
        least = strides[0] * max(array.shape[i], 1)
        strides.insert(0, array.strides[i - 1] if array.shape[i - 1] > 1 else least)
    return tuple(max(stride, array.itemsize) for stride in strides)


def _address(array: Array) -> int:
    return array.__array_interface__["data"][0]


def _root(array: Array, name: str) -> Array:
    """The array whose memory ``array`` is a view of."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    if not array.flags.c_contiguous and not array.flags.f_contiguous:
        raise CallError(f"{name} must be a view of one contiguous array")
    return array


def _bytes(root: Array) -> memoryview:
    return root.reshape(-1, order="A").view(np.uint8).data
