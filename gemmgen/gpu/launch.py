"""A generated kernel as a Python function over CuPy arrays and PyTorch tensors.

    kernel = Kernel(emitted.text, emitted.interface, emitted.target)
    c = kernel(A, B, alpha=2.0)

Arguments have the names of the schedule, or are positional in the order of its ``gemm`` line.
Extents follow from shapes, leading dimensions and strides from strides (0 for an expanded tensor),
nothing is copied, and the launch is on the caller's current stream.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gemmgen.base.errors import CallError, CannotCheck
from gemmgen.calling.arguments import View
from gemmgen.calling.binding import Binding
from gemmgen.calling.dynamo import leave_untraced, opaque
from gemmgen.calling.scalars import DEFAULTS, number
from gemmgen.gpu import arrays, device, store
from gemmgen.gpu.driver import Loaded, Starter
from gemmgen.gpu.plan import LaunchPlan
from gemmgen.gpu.planner import Planner
from gemmgen.gpu.scratch import Addresses, Pool
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.pipeline import Emitted


class Launch:
    """A call with its arguments checked and packed: calling it only launches.

    It launches on the current stream of the library whose arrays it was prepared with, and keeps
    these alive.  ``output`` is C.  Launches on two streams at once would share C and the scratch
    memory.  Raises ``CallError`` while another GPU is current.
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

    Raises ``CannotCheck`` if there is no CuPy, driver or GPU, or the GPU can't run ``target``.
    """

    def __init__(
        self,
        text: str,
        interface: Interface,
        target: str = "sm_80",
        *,
        files: store.Stored | None = None,
        schedule: str = "",
    ):
        """``files``: the text already compiled for this GPU, by default from the cache.
        ``schedule``: the schedule that the text was emitted from."""
        leave_untraced()
        self.text, self.schedule = text, schedule
        cp = device.cupy()
        self.interface = interface
        self.device = cp.cuda.runtime.getDevice()
        self.arch = device.arch_for(target, *device.capability(self.device))
        self.files = files or store.stored(text, self.arch)
        module = cp.RawModule(path=str(self.files.cubin))
        self._function = module.get_function(interface.name)
        names = (launch.interface.name for launch in interface.before)
        pre_passes = {name: module.get_function(name).kernel for name in names}
        self._reserve_shared()
        self._binding = binding = Binding(interface, lend=True)
        loaded = Loaded(self._function.kernel, interface, binding, self.device, pre_passes)
        self._planner = Planner(interface, binding, loaded, self.device)
        self._pool = Pool(interface, self.device)
        self._count, self._output = len(binding.tensors), binding.output
        names = [param.name for param in binding.scalars]
        known = [param for param in binding.scalars if param.name in DEFAULTS]
        self._defaults = tuple(number(param, None) for param in known)
        self._needs_numbers, self._scalar_names = len(known) < len(names), frozenset(names)
        self._alpha = names.index(interface.product[0]) if interface.product else None
        self._beta = names.index("beta") if "beta" in names else None
        self._quick = self._quick_counts()

    @classmethod
    def of(cls, emitted: Emitted) -> Kernel:
        schedule = emitted.schedule.text
        return cls(emitted.text, emitted.interface, emitted.target, schedule=schedule)

    def __repr__(self) -> str:
        return f"<gemmgen kernel {self._binding.signature()} on GPU {self.device}, {self.arch}>"

    @property
    def name(self) -> str:
        return self.interface.name

    @property
    def tensors(self) -> tuple[Param, ...]:
        """The tensors of the gemm line, then those of the epilogue."""
        return self._binding.tensors

    @property
    def scalars(self) -> tuple[Param, ...]:
        return self._binding.scalars

    @opaque
    def __call__(self, *tensors: object, **arguments: object) -> object:
        """Launches the kernel and returns C, which is allocated if it isn't passed and isn't read.

        The tensors of the ``gemm`` line may be positional: ``kernel(A, B)``, ``kernel(A, B, C)``.
        Raises ``CallError`` with one sentence for arguments that the kernel does not take.
        """
        known = None if arguments else self._known(tensors)
        if known is not None:
            library, plan, addresses, output = known
            self._launch(library, plan.starter, plan, addresses, self._defaults)
            return output
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
            stream, gpu, check_current = library.stream, self.device, self._planner.check_current

            def start() -> None:
                check_current()
                launch.start(stream(gpu))

        return Launch(named, plan.geometry.values, values[self._output], start)

    def _quick_counts(self) -> tuple[int, int]:
        """The number of tensors of a call that needs nothing else: with C, and without; -1 for
        never."""
        count, output = self._count, self._binding.tensors[self._output]
        if self._needs_numbers:
            return -1, -1
        is_last, is_hidden = self._output == count - 1, self._hides_output(self._defaults)
        return count, count - 1 if is_last and (not output.read or is_hidden) else -1

    def fixed(
        self, like: object, views: Mapping[str, View]
    ) -> Callable[[Sequence[int], tuple[float, ...]], None]:
        """A function that launches on tensors that differ from ``views`` in their addresses only,
        on the current stream of the library of ``like``.

        It takes the addresses, in the order of ``tensors``, and the numbers, in that of
        ``scalars``.  Its caller guarantees what a call would check: that the tensors are like
        ``views``, as aligned, and don't overlap C, and that this GPU is current.
        """
        library, _ = arrays.adopt("the tensor", like)
        plan = self._planner.plan(library, dict(views))

        def start(addresses: Sequence[int], numbers: tuple[float, ...]) -> None:
            self._launch(library, self._starter(plan, numbers), plan, addresses, numbers)

        return start

    def _launch(
        self,
        library: arrays.Library,
        starter: Starter,
        plan: LaunchPlan,
        addresses: Sequence[int],
        numbers: tuple[float, ...],
    ) -> None:
        """Starts the kernel, with scratch memory of the pool unless ``addresses`` has it."""
        if not plan.blocks:
            return
        stream = library.stream(self.device)
        if not plan.scratch or len(addresses) > self._count:
            starter.start(stream, (*addresses, *numbers))
            return
        with self._pool.lent(library, stream, plan.scratch) as scratch:
            starter.start(stream, (*addresses, *scratch, *numbers))

    def _known(
        self, tensors: tuple[object, ...]
    ) -> tuple[arrays.Library, LaunchPlan, list[int], object] | None:
        """The cached plan of a call with positional tensors only, and C."""
        is_absent = len(tensors) < self._count
        if len(tensors) != self._quick[is_absent]:
            return None
        found = self._planner.find(tensors, is_absent)
        if found is None:
            return None
        library, plan, addresses = found
        if plan.allocate is not None:
            output, address = plan.allocate()
            addresses.append(address)
        else:
            output = tensors[self._output]
        self._planner.admit(plan, addresses)
        return library, plan, addresses, output

    def _numbers(self, bound: list[object], named: Mapping[str, object]) -> tuple[float, ...]:
        if not self._needs_numbers and self._scalar_names.isdisjoint(named):
            return self._defaults
        scalars = self._binding.scalars
        given = bound[self._count : self._count + len(scalars)]
        return tuple([number(p, v) for p, v in zip(scalars, given, strict=True)])

    def _starter(self, plan: LaunchPlan, numbers: tuple[float, ...]) -> Starter:
        if self._alpha is not None and numbers[self._alpha] == 0.0:
            return plan.without_product
        return plan.starter

    def _planned(
        self, values: list[object], numbers: tuple[float, ...]
    ) -> tuple[arrays.Library, LaunchPlan, list[int]]:
        """The call's plan, after checks of its tensors; an absent output is allocated and put into
        ``values``."""
        at = self._output
        is_absent = values[at] is None
        present = [*values[:at], *values[at + 1 :]] if is_absent else values
        found = self._planner.find(present, is_absent)
        library, plan, addresses = found or self._planner.look_at(values)
        if plan.allocate is not None:
            if self._binding.tensors[at].read and not self._hides_output(numbers):
                raise CallError(self._binding.missing(self._binding.tensors[at]))
            values[at], address = plan.allocate()
            addresses.insert(at, address)
        self._planner.admit(plan, addresses)
        return library, plan, addresses

    def _hides_output(self, numbers: tuple[float, ...]) -> bool:
        """Whether beta = 0 keeps the kernel from reading C."""
        return self._beta is not None and numbers[self._beta] == 0.0

    def _lent(self, plan: LaunchPlan, bound: list[object]) -> Addresses:
        """The addresses of scratch memory that the caller passes; () for none."""
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
        """Allow the kernel's dynamic shared memory; without this a block has 48 KiB, including
        static memory."""
        wanted = self.interface.dynamic_shared
        if not wanted:
            return
        limit = device.shared_limit(self.device)
        if wanted + self.interface.static_shared > limit:
            raise CannotCheck(
                f"the kernel needs {wanted} bytes of shared memory, and this GPU gives a block "
                f"at most {limit}"
            )
        self._function.max_dynamic_shared_size_bytes = wanted


def _nothing() -> None:
    """The launch of a grid without blocks."""
