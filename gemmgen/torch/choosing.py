"""The choice of a kernel for the tensors of a call: the schedule's own, or a sibling of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from gemmgen.base.errors import CallError
from gemmgen.base.record import record
from gemmgen.calling.arguments import View, contiguous_strides, geometry
from gemmgen.gpu.gpus import Gpu
from gemmgen.ir.blocked_letters import plain as plain_letter
from gemmgen.ir.decompositions import Fast
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.interface import Interface
from gemmgen.ir.requirement import AtLeast, AtLeastBlocks, AtMost
from gemmgen.ir.target import runnable
from gemmgen.ir.tensor_map import ALIGNMENT
from gemmgen.numerics.formats import NAMES
from gemmgen.pipeline import Emitted
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Access, Schedule
from gemmgen.schedule.roles import roles
from gemmgen.torch.same_order import no_kernel_of_the_order, wanted_order
from gemmgen.torch.siblings import compiled, owners, plain, siblings
from gemmgen.torch.storage import storage_order
from gemmgen.torch.suggested import nearest, suggested

Order = tuple[int, ...] | None
"""A permutation of a tensor's dimensions; None: a copy in the given order, contiguous but for
scales, whose rows are aligned."""
F32 = BYTES["f32"]
EXTENTS = (AtLeast, AtLeastBlocks, AtMost)
"""Requirements that no other access of a tensor satisfies."""


@record
class OperatorCall:
    """The call that a kernel is chosen for.

    ``views`` are the input tensors in the order of their letters, with pointers that need only be
    right modulo 16; ``extents`` are the letters'; ``gpu`` is None on the CPU.  ``known`` are
    kernels that ran before, with their extents, if no more are to be compiled.  ``output`` is C if
    the caller passes it; else C is new and contiguous.  ``fast``: f32 may be multiplied as products
    of bf16 terms.
    """

    views: Mapping[str, View]
    letters: Mapping[str, tuple[str, ...]]
    extents: Mapping[str, int]
    gpu: Gpu | None
    known: tuple[tuple[Emitted, Mapping[str, int]], ...] = ()
    output: View | None = None
    fast: Fast = False


@record
class ChosenKernel:
    """A kernel, the shape of its output, and the order of each tensor that must be permuted or
    copied."""

    emitted: Emitted
    shape: tuple[int, ...]
    orders: tuple[tuple[str, Order], ...]
    views: Mapping[str, View] = field(repr=False)
    """All tensors as the kernel takes them."""


def choose(schedule: Schedule, own: bool, call: OperatorCall) -> ChosenKernel:
    """The kernel for a call; ``own``: the schedule has a user's directives, and is preferred.

    Raises ``CallError`` if no kernel can take the tensors.
    """
    if call.gpu is not None and not own:
        schedule = replace(schedule, target=runnable(schedule.target, call.gpu.arch))
    gemm = schedule.gemm
    tiled = frozenset(roles(gemm))
    inputs = (gemm.a.tensor, gemm.b.tensor)
    orders: dict[str, Order] = {}
    views: dict[str, View] = {}
    scales = {scale.tensor for scale in gemm.scales}
    for name, view in call.views.items():
        letters = tuple(map(plain_letter, call.letters[name]))
        order = storage_order(letters, tiled, view.shape, view.strides)
        if name in scales:
            in_place = order == tuple(range(len(view.shape))) and _is_aligned(view)
            views[name] = view if in_place else _with_aligned_rows(view)
            if not in_place:
                orders[name] = None
            continue
        if order == tuple(range(len(view.shape))):
            views[name] = view
            continue
        orders[name] = order if name in inputs else None
        views[name] = _taken(view, orders[name])
    shape = tuple(call.extents[letter] for letter in gemm.c.indices)
    if call.output is not None:
        order = _output_order(schedule, tiled, call.output)
        if order is not None:
            orders[gemm.c.tensor] = order
        views[gemm.c.tensor] = _taken(call.output, order) if order else call.output
    else:
        dtype = NAMES[dict(schedule.dtypes)[gemm.c.tensor]]
        gpu = next(iter(views.values())).device
        views[gemm.c.tensor] = View(0, shape, contiguous_strides(shape), dtype, gpu)
    a, b, c = (_permuted(access, orders) for access in (gemm.a, gemm.b, gemm.c))
    line = replace(gemm, a=a, b=b, c=c)
    found = _fitting(replace(schedule, gemm=line), own and line == gemm, views, call)
    return ChosenKernel(found, shape, tuple(orders.items()), views)


def _output_order(schedule: Schedule, tiled: frozenset[str], output: View) -> Order:
    """The permutation in which a kernel writes C in place; None for the given order."""
    order = storage_order(schedule.gemm.c.indices, tiled, output.shape, output.strides)
    if order is None:
        name, steps = schedule.gemm.c.tensor, output.strides
        raise CallError(
            f"{name} has strides {steps}, and a kernel writes rows or columns whose elements are "
            f"adjacent: pass a {name} that is contiguous, or a slice of one"
        )
    return None if order == tuple(range(len(order))) else order


def _taken(view: View, order: Order) -> View:
    """The view that the kernel gets: permuted, or of a contiguous copy."""
    if order is None:
        return replace(view, pointer=0, strides=contiguous_strides(view.shape))
    shape, strides = (tuple(of[i] for i in order) for of in (view.shape, view.strides))
    return replace(view, shape=shape, strides=strides)


def _is_aligned(view: View) -> bool:
    """Whether TMA takes the rows of f32 scales."""
    return view.pointer % ALIGNMENT == 0 and view.strides[0] * F32 % ALIGNMENT == 0


def _with_aligned_rows(view: View) -> View:
    """The view of a copy whose rows begin where TMA takes them: scales are few."""
    rows = -(-view.shape[-1] * F32 // ALIGNMENT) * ALIGNMENT // F32
    return replace(view, pointer=0, strides=(rows, 1))


def _permuted(access: Access, orders: Mapping[str, Order]) -> Access:
    order = orders.get(access.tensor)
    return replace(access, indices=tuple(access.indices[i] for i in order)) if order else access


def _fitting(
    schedule: Schedule, own: bool, views: Mapping[str, View], call: OperatorCall
) -> Emitted:
    """The first kernel whose requirements the tensors meet."""
    refusal: CallError | None = None
    wanted = wanted_order(schedule, own, views, call.extents, call.gpu, fast=call.fast)
    for emitted in _candidates(schedule, own, views, call):
        if not wanted(emitted):
            continue
        try:
            values = geometry(emitted.interface, views).values
        except CallError as error:
            refusal = error
            continue
        if not _unmet(emitted.interface, values, views):
            return emitted
    if schedule.same_bits is not None:
        raise no_kernel_of_the_order(schedule, refusal)
    assert refusal is not None, "the last kernel has no requirements"
    raise refusal


def _candidates(
    schedule: Schedule, own: bool, views: Mapping[str, View], call: OperatorCall
) -> Iterator[Emitted]:
    m, n, k = (call.extents[letter] for letter in roles(schedule.gemm))
    if own:
        yield from _related(compiled(format_schedule(schedule)), views, call)
    elif call.known and schedule.same_bits is None:
        yield from nearest(call.known, schedule.gemm, call.extents)
    elif call.gpu is not None:
        problem = schedule.problem_alone
        best = suggested(problem, call.extents, views, call.gpu, fast=call.fast)
        if best is not None:
            yield from _related(best, views, call)
    yield compiled(plain(schedule, (m, n, k), call.gpu is not None))


def _related(first: Emitted, views: Mapping[str, View], call: OperatorCall) -> Iterator[Emitted]:
    """A kernel, and its siblings with fewer requirements."""
    yield first
    yield from siblings(first.schedule, _lacking(first.interface, views, call))


def _lacking(interface: Interface, views: Mapping[str, View], call: OperatorCall) -> frozenset[str]:
    """The tensors that don't meet what their accesses require."""
    values = {interface.extent(letter): size for letter, size in call.extents.items()}
    for param in interface.params:
        if param.kind == "tensor":
            view = views[param.name]
            steps = zip(interface.steps(param), view.shape, view.strides, strict=True)
            # A single row, or matrix, has no successor: its stride does not matter.
            values |= {name: step if size > 1 else 0 for name, size, step in steps if name}
    return _unmet(interface, values, views)


def _unmet(
    interface: Interface, values: Mapping[str, int], views: Mapping[str, View]
) -> frozenset[str]:
    """The tensors whose wide accesses, or assumptions, don't hold."""
    values = {**values, **{name: view.pointer for name, view in views.items()}}
    checked = (x for x in interface.requirements if not isinstance(x, EXTENTS))
    failing = (x for x in checked if not x.holds(values))
    return frozenset[str]().union(*(owners(requirement, interface) for requirement in failing))
