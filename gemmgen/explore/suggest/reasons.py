"""A suggestion's decisions in words, as the comments of a schedule file."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from math import ceil, prod
from typing import TYPE_CHECKING

from gemmgen.base.source import counted
from gemmgen.base.units import duration, significant
from gemmgen.explore.suggest.measured_plans import MeasuredPlan
from gemmgen.explore.suggest.size_classes import strategy
from gemmgen.explore.suggest.sizes import residents
from gemmgen.explore.suggest.tma_variant import tma_reasons
from gemmgen.explore.suggest.warpgroup_plan import WarpgroupPlan
from gemmgen.explore.suggest.warpgroup_reasons import warpgroup_reasons
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.target import SINCE, TARGETS, WARP, has
from gemmgen.schedule.formatting import format_access
from gemmgen.schedule.roles import batches

if TYPE_CHECKING:
    from gemmgen.explore.suggest.choose import Suggestion

WIDTH = 100


def as_comments(sentences: Iterable[str]) -> str:
    """The lines of a schedule file that say ``sentences``."""
    wrapper = textwrap.TextWrapper(
        WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False
    )
    return "".join(f"{wrapper.fill(sentence)}\n" for sentence in sentences)


def reasons(s: Suggestion) -> Iterator[str]:
    """One sentence or two for each decision."""
    yield _problem(s)
    yield from _target(s)
    measured = s.chosen.measured
    if isinstance(s.chosen.plan, WarpgroupPlan):
        yield from warpgroup_reasons(s, s.chosen.plan)
    elif isinstance(s.chosen.plan, MeasuredPlan):
        if s.chosen.plan.tiles():
            yield s.chosen.plan.tiles()
    else:
        yield from _of_threads(s)
    if measured is not None:
        yield measured.reason()
        if measured.exact:
            return
    flops = 2 * prod(s.request.shape) / s.chosen.seconds / 1e12
    yield (
        f"Estimated: {duration(s.chosen.seconds)}, {significant(flops)} TFLOP/s.  `gemmgen bench` "
        "measures it, `gemmgen tune` searches around it."
    )


def _of_threads(s: Suggestion) -> Iterator[str]:
    """The decisions for a schedule of threads or warps."""
    plan = s.settled
    yield strategy(s)
    yield _tile(s)
    if plan.exact:
        yield "assume: the tile divides the extents, so no access has a guard."
    yield from _split(s)
    yield _threads(s)
    if plan.single:
        yield "interleave: adjacent threads own adjacent elements of a row of C, stored singly."
    yield from _accesses(s)
    yield from _copies(s)
    yield from tma_reasons(s)
    if plan.residue:
        k, size = plan.request.shape[2], plan.form.tile[2]
        yield (
            f"residue: K = {k} is {counted(k // size, 'tile')} of {size} and {k % size} more; the "
            "partial tile is peeled to the front, so that copies in the loop need no guard along k."
        )
    if plan.form.blocks:
        yield (
            f"launch_bounds: registers are capped so that {plan.form.blocks} blocks fit on a "
            "multiprocessor."
        )
    if plan.raster > 1:
        yield "raster: concurrent blocks share tiles of A and B in the L2 cache."


def _problem(s: Suggestion) -> str:
    """The product, with extents in place of letters."""
    request = s.request
    gemm = request.problem.gemm
    c, a, b = (
        f"{x.tensor}[{', '.join(str(request.extent(i)) for i in x.indices)}]"
        for x in (gemm.c, gemm.a, gemm.b)
    )
    types = [request.dtype[role] for role in "abc"]
    stored = types[0] if len(set(types)) == 1 else ", ".join(types[:2]) + f" to {types[2]}"
    measured = s.chosen.measured
    known = "Measured" if measured and measured.exact else "An estimate, not measured"
    return (
        f"{known}: {c} = {a} * {b} in {stored}, for the {request.gpu.sms} "
        f"multiprocessors of {request.gpu.name}."
    )


def _target(s: Suggestion) -> Iterator[str]:
    """What runs on a GPU whose architecture is not a target of the language."""
    gpu = s.request.gpu
    if gpu.arch not in TARGETS:
        yield (
            f"target: {gpu.name} is {gpu.arch}, which is not a target yet: code for {gpu.target} "
            f"or older runs there, without instructions that only {gpu.arch} has.  wgmma runs on "
            "sm_90a only."
        )


def _tile(s: Suggestion) -> str:
    """The tile, the waves of its blocks, and the best one of another size."""
    plan = s.settled
    form, shape = plan.form, s.request.shape
    rows, columns = ceil(shape[0] / form.tile[0]), ceil(shape[1] / form.tile[1])
    held = residents(plan)
    waves = s.blocks / plan.parts / s.resident_blocks
    matrices = f" for each of {prod(shape[3:])} matrices" if batches(s.request.problem.gemm) else ""
    each = "1 block" if held == 1 else f"{held} blocks"
    chosen = (
        f"tile: {rows} x {columns} tiles of {form.name}{matrices} are {waves:.2f} waves, at {each} "
        "on each multiprocessor."
    )
    others = [o for o in s.options if o.plan.form.tile[:2] != form.tile[:2]]
    if not others:
        return chosen
    other = min(others, key=lambda o: o.seconds)
    longer = other.seconds / s.chosen.seconds
    split = f" in {other.plan.parts} slices of K" if other.plan.parts > 1 else ""
    return (
        f"{chosen}  The best of another size, {other.plan.form.name}{split}, is estimated "
        f"{longer:.2f} times as long."
    )


def _split(s: Suggestion) -> Iterator[str]:
    plan = s.settled
    k = s.request.shape[2]
    if plan.form.kind == "lanes":
        rows, columns = plan.form.micro
        yield (
            f"split_k: the {WARP} lanes of a warp split K = {k} of its "
            f"{counted(rows * columns, 'accumulator')}; no tile is staged."
        )
    elif plan.parts > 1:
        tiles = s.blocks // plan.parts
        split = (
            f"split_k: {counted(tiles, 'tile')} would be {tiles / s.resident_blocks:.2f} waves of "
            f"{s.resident_blocks} blocks; {plan.parts} blocks a tile split its K = {k}, "
            f"{s.blocks} blocks in all"
        )
        added = f", and {plan.groups} groups of slices are reduced in parallel"
        yield split + (f"{added}." if plan.groups > 1 else ".")


def _threads(s: Suggestion) -> str:
    form = s.settled.form
    m, n = form.micro
    warps = counted(max(1, form.threads // WARP), "warp")
    atom = ATOMS[s.emitted.program.main.spread.atom]
    reads = f"a thread's {m} x {n} accumulators take {m} + {n} reads for {m * n} multiply-adds"
    match form.kind:
        case "tensor":
            return (
                f"tensor_core: {warps} of {form.warp[0]} x {form.warp[1]}, which multiply "
                f"{atom.m} x {atom.n} x {atom.k} at a time."
            )
        case "lanes":
            return f"register_block: {warps} a block, each with {m} x {n} accumulators."
        case "block":
            tile = f"{form.warp[0]} x {form.warp[1]}"
            return f"register_block: {warps} of {tile}; {reads} of shared memory."
        case _:
            return f"register_block: {form.threads} threads; {reads}."


def _accesses(s: Suggestion) -> Iterator[str]:
    """The width of global memory accesses, tensor by tensor."""
    plan, request = s.settled, s.request
    facts: list[str] = []
    for role in "abc":
        access = request.access[role]
        name, size, width = format_access(access), request.pitch(role), plan.load(role)
        if plan.transposed(role) and plan.asynchronous:
            facts.append(f"{name} is transposed into shared memory, element by element")
        elif width > 1:
            facts.append(f"{name} has rows of {size} elements, multiples of {width}")
        elif request.width[role] == 1:
            facts.append(f"{name} has rows of {size} elements, an odd number, copied one by one")
    if facts:
        yield f"vectorize: {'; '.join(facts)}."


def _copies(s: Suggestion) -> Iterator[str]:
    if s.settled.staged:
        yield (
            f"double_buffer: {s.settled.form.stages} tiles of k in shared memory, loaded "
            f"{_how(s)}; fragments are read a step ahead."
        )


def _how(s: Suggestion) -> str:
    plan = s.settled
    if plan.asynchronous:
        return "by cp.async"
    if plan.through:
        return "through registers, wide, and transposed"
    if has(s.request.gpu.arch, SINCE["cp_async"]):
        request = s.request
        copied = ((role, BYTES[request.dtype[role]] * plan.load(role)) for role in plan.staged)
        role, size = min(copied, key=lambda copy: copy[1])
        return (
            f"through registers: cp.async copies 4 bytes or more at a time, and an access of "
            f"{request.access[role].tensor} has {size}"
        )
    return "through registers: this GPU has no cp.async"
