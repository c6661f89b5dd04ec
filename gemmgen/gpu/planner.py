"""The plan of a call, from the cache of earlier calls' plans or made from its tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemmgen.base.errors import CallError
from gemmgen.calling.arguments import View, geometry, may_be_absent, output_layout
from gemmgen.calling.binding import Binding
from gemmgen.calling.element_types import output_type
from gemmgen.calling.overlaps import check_addresses, check_memory
from gemmgen.gpu import arrays
from gemmgen.gpu.device import cupy, multiprocessors
from gemmgen.gpu.driver import Loaded, Starter
from gemmgen.gpu.plan import LaunchPlan, clearance, limits_of
from gemmgen.ir.interface import Interface

_PLANS = 4096
"""Plans that a kernel caches; the oldest is evicted first."""

Planned = tuple[arrays.Library, LaunchPlan, list[int]]
"""The tensors' library, the plan, and the tensors' addresses."""


class Planner:
    """The plans of one kernel."""

    def __init__(self, interface: Interface, binding: Binding, loaded: Loaded, gpu: int) -> None:
        self._interface, self._binding, self._loaded, self._gpu = interface, binding, loaded, gpu
        self._plans: dict[tuple[arrays.Library, bool], arrays.Plans] = {}
        self._current_device = cupy().cuda.runtime.getDevice
        self._held = held(loaded) if interface.resident else 1

    def find(self, tensors: Sequence[object], is_absent: bool) -> Planned | None:
        """The cached plan of a call; ``is_absent``: C is not among ``tensors``."""
        library = arrays.library(tensors[0])
        plans = self._plans.get((library, is_absent)) if library is not None else None
        found = plans.find(tensors) if plans is not None else None
        return None if library is None or found is None else (library, *found)

    def look_at(self, values: list[object]) -> Planned:
        """The plan of a call after checks of each tensor.

        Tensors of other libraries are replaced in ``values`` by CuPy arrays.
        """
        library = self._checked(values)
        present = [value for value in values if value is not None]
        known = library, len(present) < len(values)
        plans = self._plans.setdefault(known, library.plans(_PLANS))
        found = plans.find(present, checked=True)
        if found is None:
            views = {
                param.name: library.view(value)
                for param, value in zip(self._binding.tensors, values, strict=True)
                if value is not None
            }
            found = self.plan(library, views), [view.pointer for view in views.values()]
            plans.remember(present, found[0])
        return library, *found

    def admit(self, plan: LaunchPlan, addresses: list[int]) -> None:
        """Checks the addresses, and that the kernel's GPU is current."""
        if not plan.is_clear(addresses):
            names = [param.name for param in self._binding.tensors]
            exact = dict(zip(names, addresses, strict=True))
            check_memory(plan.geometry, exact)
            check_addresses(plan.geometry, self._interface, exact)
        self.check_current()

    def check_current(self) -> None:
        """Refuses a launch while another GPU than the kernel's is current."""
        if self._current_device() != self._gpu:
            at = self._gpu
            raise CallError(
                f"the kernel was loaded on GPU {at}, which isn't current: call it within "
                f"cupy.cuda.Device({at}) or torch.cuda.device({at})"
            )

    def _checked(self, values: list[object]) -> arrays.Library:
        library: arrays.Library | None = None
        for at, param in enumerate(self._binding.tensors):
            if values[at] is None:
                if not may_be_absent(param, 0.0):
                    raise CallError(self._binding.missing(param, values))
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

    def plan(self, library: arrays.Library, views: dict[str, View]) -> LaunchPlan:
        """A new plan; it allocates C if there is no view of it."""
        binding, interface, allocate = self._binding, self._interface, None
        for name, view in views.items():
            if view.device != self._gpu:
                raise CallError(
                    f"{name} is on GPU {view.device}, and the kernel was loaded on {self._gpu}: "
                    f"gemmgen.compile gives one for GPU {view.device} where that is current"
                )
        output = binding.tensors[binding.output]
        if output.name not in views:
            layout = output_layout(output, interface, views)
            kind = output_type(output, interface, views)
            allocate = library.allocator(*layout, output, kind, self._gpu)
            views = {**views, output.name: View(0, *layout, kind, self._gpu)}
        found = geometry(interface, views, self._held)
        values = found.values
        no_product = {interface.product[1]: 0} if interface.product else {}
        return LaunchPlan(
            found,
            found.grid,
            starter(self._loaded, found.grid, values),
            starter(self._loaded, found.grid, {**values, **no_product}),
            tuple(interface.scratch_elements(param, values) for param in interface.scratch),
            allocate,
            clearance(limits_of(found, interface, binding), binding.output),
        )


def held(loaded: Loaded) -> int:
    """The multiprocessors of a kernel's GPU, or the clusters that run there at a time."""
    if not loaded.interface.cluster:
        return multiprocessors(loaded.gpu)
    from gemmgen.gpu.active_clusters import active_clusters

    return active_clusters(loaded)


def starter(loaded: Loaded, blocks: int, extents: Mapping[str, int]) -> Starter:
    """Launches of ``blocks`` blocks with these extents, leading dimensions and strides."""
    integers = tuple(extents[param.name] for param in loaded.integers)
    if not loaded.interface.maps:
        return Starter(loaded, blocks, integers)
    if loaded.interface.before:
        from gemmgen.gpu.pre_pass_launches import OrderedStarter

        return OrderedStarter(loaded, blocks, integers, extents)
    from gemmgen.gpu.tensor_maps import MappedStarter

    return MappedStarter(loaded, blocks, integers, extents)
