"""A generated kernel as a Python function over CuPy arrays and PyTorch tensors.

    kernel = Kernel(emitted.text, emitted.interface, emitted.target)
    c = kernel(A=a, B=b, alpha=2.0)

Arguments go by the names of the schedule.  Extents follow from shapes, leading dimensions and
strides from strides (0 where a tensor is expanded), nothing is copied, and the launch joins the
caller's current stream.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from gemmgen.errors import CallError, CannotCheck
from gemmgen.gpu import arrays, device, store
from gemmgen.gpu.arguments import (
    Geometry,
    View,
    check_addresses,
    geometry,
    may_be_absent,
    output_shape,
    tensors,
)
from gemmgen.gpu.binding import Binding
from gemmgen.gpu.dynamo import leave_untraced, opaque
from gemmgen.gpu.numbers import number
from gemmgen.gpu.scratch import Pool, Scratch
from gemmgen.interface import Interface, Param

_KEPT = 256  # geometries a kernel remembers


class EmittedKernel(Protocol):
    """What the compiler hands over."""

    @property
    def text(self) -> str: ...
    @property
    def interface(self) -> Interface: ...
    @property
    def target(self) -> str: ...


@dataclass(frozen=True)
class Launch:
    """A call whose arguments are checked and packed: calling it launches, and no more.

    It joins CuPy's current stream, and keeps the arrays alive.  ``output`` is C.  ``scratch`` is
    memory that it uses and leaves; the same launch on two streams at once would share it, as it
    would C.
    """

    function: device.Function
    grid: int
    block: tuple[int, int]
    arguments: tuple[object, ...]
    dynamic_shared: int
    output: object
    tensors: Mapping[str, object]
    extents: Mapping[str, int]
    scratch: Scratch = ()

    @opaque
    def __call__(self) -> None:
        if self.grid:
            arguments = (*self.arguments, *[array.data.ptr for array in self.scratch])
            self.function((self.grid,), self.block, arguments, shared_mem=self.dynamic_shared)


@dataclass(frozen=True)
class _Plan:
    """What a signature fixes: the geometry, and the packed extents, leading dimensions, strides."""

    geometry: Geometry
    packed: Mapping[str, np.int32 | np.int64]


class Kernel:
    """One emitted text, compiled for the current GPU and loaded.

    Raises ``CannotCheck`` where there is no CuPy, driver or GPU, or the GPU can't run ``target``.
    """

    def __init__(
        self,
        text: str,
        interface: Interface,
        target: str = "sm_80",
        *,
        files: store.Stored | None = None,
    ):
        """``files``: the text compiled for this GPU already; else the cache has or gets it."""
        leave_untraced()
        cp = device.cupy()
        self.interface = interface
        self.device = cp.cuda.runtime.getDevice()
        self.arch = device.arch_for(target, *device.capability(self.device))
        self.files = files or store.stored(text, self.arch)
        self._function = cp.RawModule(path=str(self.files.cubin)).get_function(interface.name)
        self._reserve_shared()
        self._runtime = cp.cuda.runtime
        self._binding = Binding(interface, lend=True)
        self._pool = Pool(interface)
        self._tensors = tensors(interface)
        self._plans: dict[Hashable, _Plan] = {}
        self._shapes: dict[Hashable, tuple[int, ...]] = {}

    @classmethod
    def of(cls, emitted: EmittedKernel) -> Kernel:
        return cls(emitted.text, emitted.interface, emitted.target)

    @property
    def name(self) -> str:
        return self.interface.name

    @opaque
    def __call__(self, *tensors: object, **arguments: object) -> object:
        """Launches the kernel and returns C, which is allocated where it isn't passed and not read.

        The tensors of the ``gemm`` line may go by position: ``kernel(A, B)``, ``kernel(A, B, C)``.
        Raises ``CallError`` with one sentence for arguments that can't be launched with.
        """
        library, launch = self._bind(tensors, arguments)
        first = next(iter(launch.tensors.values()))
        with library.stream(first):
            if self.interface.scratch and not launch.scratch and launch.grid:
                launch = replace(launch, scratch=self._pool.here(launch.extents))
            launch()
        return launch.output

    @opaque
    def prepare(self, *tensors: object, **arguments: object) -> Launch:
        """The same call checked and packed, to be launched later, many times, or into a graph."""
        _, launch = self._bind(tensors, arguments)
        if self.interface.scratch and not launch.scratch and launch.grid:
            return replace(launch, scratch=self._pool.own(launch.extents))
        return launch

    def _bind(
        self, given: tuple[object, ...], named: dict[str, object]
    ) -> tuple[arrays.Library, Launch]:
        binding = self._binding
        bound = binding.bind(given, named)
        every = (*binding.tensors, *binding.scalars, *binding.scratch)
        arguments = {param.name: value for param, value in zip(every, bound, strict=True)}
        real = {p.name: np.float64 if p.dtype == "f64" else np.float32 for p in binding.scalars}
        numbers = {p.name: real[p.name](number(p, arguments[p.name])) for p in binding.scalars}
        values, library = self._gather(arguments, numbers)
        signature = tuple([library.signature(value) for value in values.values()])
        plan = self._plans.get(signature)
        if plan is None:
            plan = self._plan(library, values, signature)
        address = {name: library.address(value) for name, value in values.items()}
        check_addresses(plan.geometry, self.interface, address)
        if self._runtime.getDevice() != self.device:
            raise CallError(f"the kernel was loaded on GPU {self.device}, which isn't current")
        packed = tuple(
            [
                (
                    address[param.name]
                    if param.kind == "tensor"
                    else numbers[param.name] if param.kind == "scalar" else plan.packed[param.name]
                )
                for param in self.interface.params
                if not param.is_scratch
            ]
        )
        output = next(values[param.name] for param in self._tensors if param.written)
        shared = self.interface.dynamic_shared
        grid, block = plan.geometry.grid, self.interface.block
        extents = plan.geometry.values
        given = self._given_scratch(arguments, library, extents)
        launch = Launch(self._function, grid, block, packed, shared, output, values, extents, given)
        return library, launch

    def _given_scratch(
        self, arguments: Mapping[str, object], library: arrays.Library, extents: Mapping[str, int]
    ) -> Scratch:
        """The memory that the caller passes for the launch's own use; () for none."""
        names = [param.name for param in self.interface.scratch]
        given = {name: arguments[name] for name in names if arguments.get(name) is not None}
        if not given:
            return ()
        views = {name: self._view(library, name, value) for name, value in given.items()}
        self._pool.check(extents, views)
        return tuple(device.cupy().asarray(given[name]) for name in names)

    def _gather(
        self, arguments: dict[str, object], numbers: Mapping[str, np.floating]
    ) -> tuple[dict[str, object], arrays.Library]:
        """The tensors by name, all of one library, an absent output allocated."""
        values: dict[str, object] = {}
        library: arrays.Library | None = None
        absent: Param | None = None
        for param in self._tensors:
            value = arguments.get(param.name)
            if value is None:
                beta = numbers.get("beta")
                if not may_be_absent(param, None if beta is None else float(beta)):
                    raise CallError(self._binding.missing(param))
                absent = param
                continue
            owner = arrays.library(value)
            if owner is None:
                value = arrays.adopt(param.name, value)
                owner = arrays.library(value)
            if library is not None and owner is not library:
                raise CallError(
                    f"{param.name} is of another library than the tensors before it: pass CuPy "
                    "arrays or PyTorch tensors, not both"
                )
            values[param.name], library = value, owner
        assert library is not None, "a kernel has inputs"
        if absent is not None:
            shape = self._output_shape(absent, library, values)
            like = next(iter(values.values()))
            values[absent.name] = library.empty(shape, absent.dtype, like)
        return values, library

    def _output_shape(
        self, absent: Param, library: arrays.Library, values: Mapping[str, object]
    ) -> tuple[int, ...]:
        signature = tuple([library.signature(value) for value in values.values()])
        found = self._shapes.get(signature)
        if found is None:
            views = {name: self._view(library, name, value) for name, value in values.items()}
            found = output_shape(absent, self.interface, views)
            if len(self._shapes) >= _KEPT:
                self._shapes.clear()
            self._shapes[signature] = found
        return found

    def _plan(
        self, library: arrays.Library, values: Mapping[str, object], signature: Hashable
    ) -> _Plan:
        views = {name: self._view(library, name, value) for name, value in values.items()}
        for name, view in views.items():
            if view.device != self.device:
                raise CallError(
                    f"{name} is on GPU {view.device}, and the kernel was loaded on {self.device}"
                )
        found = geometry(self.interface, views)
        wide = {param.name for param in self.interface.params if param.kind == "stride"}
        packed = {n: (np.int64 if n in wide else np.int32)(v) for n, v in found.values.items()}
        plan = _Plan(found, packed)
        if len(self._plans) >= _KEPT:
            self._plans.clear()
        self._plans[signature] = plan
        return plan

    def _view(self, library: arrays.Library, name: str, value: object) -> View:
        try:
            return library.view(value)
        except CallError as error:
            raise CallError(f"{name} {error}") from None

    def _reserve_shared(self) -> None:
        """Asks for dynamic shared memory beyond the 48 KiB that every kernel may have."""
        wanted = self.interface.dynamic_shared
        if wanted <= 48 * 1024:
            return
        limit = device.shared_limit(self.device)
        if wanted + self.interface.static_shared > limit:
            raise CannotCheck(
                f"the kernel needs {wanted} bytes of shared memory, and this GPU gives a block "
                f"at most {limit}"
            )
        self._function.max_dynamic_shared_size_bytes = wanted
