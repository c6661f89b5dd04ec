"""A generated kernel as a Python function over CuPy arrays and PyTorch tensors.

    kernel = Kernel(emitted.text, emitted.interface, emitted.target)
    c = kernel(A, B, alpha=2.0)

Arguments go by the names of the schedule, or by position in the order of its ``gemm`` line.
Extents follow from shapes, leading dimensions and strides from strides (0 where a tensor is
expanded), nothing is copied, and the launch joins the caller's current stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from gemmgen.errors import CallError, CannotCheck
from gemmgen.formats import NAMES
from gemmgen.gpu import arrays, device, store
from gemmgen.gpu.arguments import (
    View,
    check_addresses,
    check_memory,
    geometry,
    may_be_absent,
    output_layout,
)
from gemmgen.gpu.binding import Binding
from gemmgen.gpu.driver import Loaded, Starter
from gemmgen.gpu.dynamo import leave_untraced, opaque
from gemmgen.gpu.numbers import DEFAULTS, number
from gemmgen.gpu.plan import Plan, clearance, limits_of
from gemmgen.gpu.scratch import Addresses, Pool
from gemmgen.interface import Interface

_PLANS = 4096
"""Kinds of calls that a kernel remembers, the oldest first to go."""


class EmittedKernel(Protocol):
    """What the compiler hands over."""

    @property
    def text(self) -> str: ...
    @property
    def interface(self) -> Interface: ...
    @property
    def target(self) -> str: ...


class Launch:
    """A call whose arguments are checked and packed: calling it launches, and no more.

    It joins the current stream of the library whose arrays it was prepared with, and keeps these
    alive.  ``output`` is C.  The same launch on two streams at once would share the memory that it
    uses and leaves, as it would C.
    """

    def __init__(
        self,
        tensors: Mapping[str, object],
        extents: Mapping[str, int],
        output: object,
        start: Callable[[], None],
    ) -> None:
        self.tensors, self.extents, self.output = tensors, extents, output
        self._start = start

    @opaque
    def __call__(self) -> None:
        self._start()


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
        self._binding = binding = Binding(interface, lend=True)
        self._loaded = Loaded(self._function.kernel, interface, binding, self.device)
        self._current_device = cp.cuda.runtime.getDevice
        self._pool = Pool(interface, self.device)
        self._count, self._output = len(binding.tensors), binding.output
        self._plans: dict[tuple[arrays.Library, bool], arrays.Plans] = {}
        names = [param.name for param in binding.scalars]
        defaults = [DEFAULTS.get(name) for name in names]
        self._defaults = tuple(value for value in defaults if value is not None)
        self._needs_numbers, self._scalar_names = None in defaults, frozenset(names)
        self._alpha = names.index(interface.product[0]) if interface.product else None
        self._beta = names.index("beta") if "beta" in names else None

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
        known = None if arguments else self._known(tensors)
        if known is not None:
            library, plan, addresses = known
            self._launch(library, plan.starter, plan, addresses, self._defaults)
            return tensors[self._output]
        bound = self._binding.bind(tensors, arguments)
        values, numbers = bound[: self._count], self._numbers(bound, arguments)
        library, plan, addresses = self._planned(values, numbers)
        lent = self._lent(plan, bound) if self._binding.scratch else ()
        self._launch(library, self._starter(plan, numbers), plan, (*addresses, *lent), numbers)
        return values[self._output]

    @opaque
    def prepare(self, *tensors: object, **arguments: object) -> Launch:
        """The same call checked and packed, to be launched later, many times, or into a graph."""
        bound = self._binding.bind(tensors, arguments)
        values, numbers = bound[: self._count], self._numbers(bound, arguments)
        library, plan, addresses = self._planned(values, numbers)
        named = {p.name: v for p, v in zip(self._binding.tensors, values, strict=True)}
        start = _nothing
        if plan.blocks:
            keep, scratch = None, self._lent(plan, bound)
            if plan.scratch and not scratch:
                keep = self._pool.own(library, plan.scratch)
                scratch = keep.addresses
            packed = (*addresses, *scratch, *numbers)
            launch = self._starter(plan, numbers).prepared(packed, keep)
            stream, gpu = library.stream, self.device

            def start() -> None:
                launch.start(stream(gpu))

        return Launch(named, plan.geometry.values, values[self._output], start)

    def _launch(
        self,
        library: arrays.Library,
        starter: Starter,
        plan: Plan,
        addresses: Sequence[int],
        numbers: tuple[float, ...],
    ) -> None:
        """Starts the kernel, with scratch memory where ``addresses`` has none."""
        if not plan.blocks:
            return
        stream = library.stream(self.device)
        if not plan.scratch or len(addresses) > self._count:
            starter.start(stream, (*addresses, *numbers))
            return
        with self._pool.lent(library, stream, plan.scratch) as scratch:
            starter.start(stream, (*addresses, *scratch, *numbers))

    def _known(self, tensors: tuple[object, ...]) -> tuple[arrays.Library, Plan, list[int]] | None:
        """The plan of a call like an earlier one, all tensors of which go by position."""
        if len(tensors) != self._count or self._needs_numbers:
            return None
        library = arrays.library(tensors[0])
        plans = self._plans.get((library, False)) if library is not None else None
        found = plans.find(tensors) if plans is not None else None
        if library is None or found is None:
            return None
        self._admit(*found)
        return library, *found

    def _numbers(self, bound: list[object], named: Mapping[str, object]) -> tuple[float, ...]:
        if not self._needs_numbers and self._scalar_names.isdisjoint(named):
            return self._defaults
        scalars = self._binding.scalars
        given = bound[self._count : self._count + len(scalars)]
        return tuple([number(p, v) for p, v in zip(scalars, given, strict=True)])

    def _starter(self, plan: Plan, numbers: tuple[float, ...]) -> Starter:
        if self._alpha is not None and numbers[self._alpha] == 0.0:
            return plan.without_product
        return plan.starter

    def _planned(
        self, values: list[object], numbers: tuple[float, ...]
    ) -> tuple[arrays.Library, Plan, list[int]]:
        """The call's plan, its tensors checked; an absent output is allocated, into ``values``."""
        at = self._output
        is_absent = values[at] is None
        library = arrays.library(values[0])
        plans = None if library is None else self._plans.get((library, is_absent))
        present = [*values[:at], *values[at + 1 :]] if is_absent else values
        found = None if plans is None else plans.find(present)
        if library is None or found is None:
            library, found = self._looked_at(values, is_absent)
        plan, addresses = found
        if plan.allocate is not None:
            if self._binding.tensors[at].read and not self._hides_output(numbers):
                raise CallError(self._binding.missing(self._binding.tensors[at]))
            values[at], address = plan.allocate()
            addresses.insert(at, address)
        self._admit(plan, addresses)
        return library, plan, addresses

    def _admit(self, plan: Plan, addresses: list[int]) -> None:
        """Refuses what depends on addresses, and on the GPU that is current."""
        if not plan.is_clear(addresses):
            names = [param.name for param in self._binding.tensors]
            exact = dict(zip(names, addresses, strict=True))
            check_memory(plan.geometry, exact)
            check_addresses(plan.geometry, self.interface, exact)
        if self._current_device() != self.device:
            raise CallError(f"the kernel was loaded on GPU {self.device}, which isn't current")

    def _hides_output(self, numbers: tuple[float, ...]) -> bool:
        """Does beta = 0 keep the kernel from reading C?"""
        return self._beta is not None and numbers[self._beta] == 0.0

    def _looked_at(
        self, values: list[object], is_absent: bool
    ) -> tuple[arrays.Library, tuple[Plan, list[int]]]:
        """The plan of tensors that are looked at one by one, as the first of their kind are.

        In ``values``, those of other libraries become CuPy arrays.
        """
        library = self._checked(values)
        plans = self._plans.setdefault((library, is_absent), library.plans(_PLANS))
        present = [value for value in values if value is not None]
        found = plans.find(present, checked=True)
        if found is None:
            views = {
                param.name: library.view(value)
                for param, value in zip(self._binding.tensors, values, strict=True)
                if value is not None
            }
            found = self._plan(library, views), [view.pointer for view in views.values()]
            plans.remember(present, found[0])
        return library, found

    def _checked(self, values: list[object]) -> arrays.Library:
        library: arrays.Library | None = None
        for at, param in enumerate(self._binding.tensors):
            if values[at] is None:
                if not may_be_absent(param, 0.0):
                    raise CallError(self._binding.missing(param))
                continue
            owner, value = arrays.adopt(param.name, values[at])
            if library is not None and owner is not library:
                raise CallError(
                    f"{param.name} is of another library than the tensors before it: pass CuPy "
                    "arrays or PyTorch tensors, not both"
                )
            owner.check(param.name, value)
            library, values[at] = owner, value
        assert library is not None, "a kernel has inputs"
        return library

    def _plan(self, library: arrays.Library, views: dict[str, View]) -> Plan:
        """The plan of a call that is new; without a view of C, C is to be allocated."""
        binding, interface, allocate = self._binding, self.interface, None
        for name, view in views.items():
            if view.device != self.device:
                raise CallError(
                    f"{name} is on GPU {view.device}, and the kernel was loaded on {self.device}"
                )
        output = binding.tensors[binding.output]
        if output.name not in views:
            layout = output_layout(output, interface, views)
            allocate = library.allocator(*layout, output.dtype, self.device)
            views = {**views, output.name: View(0, *layout, NAMES[output.dtype], self.device)}
        found = geometry(interface, views)
        values = found.values
        terms = {interface.product[1]: 0} if interface.product else {}
        return Plan(
            found,
            found.grid,
            self._loaded.starter(found.grid, values),
            self._loaded.starter(found.grid, {**values, **terms}),
            tuple(interface.scratch_elements(param, values) for param in interface.scratch),
            allocate,
            clearance(limits_of(found, interface, binding), binding.output),
        )

    def _lent(self, plan: Plan, bound: list[object]) -> Addresses:
        """The addresses of the memory that the caller passes for the launch's own use; () for
        none."""
        params = self._binding.scratch
        given = bound[len(bound) - len(params) :]
        if all([value is None for value in given]):
            return ()
        views: list[View | None] = []
        for param, value in zip(params, given, strict=True):
            view = None
            if value is not None:
                owner, value = arrays.adopt(param.name, value)
                owner.check(param.name, value)
                view = owner.view(value)
            views.append(view)
        return self._pool.check(plan.scratch, views)

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


def _nothing() -> None:
    """The launch of no block."""
