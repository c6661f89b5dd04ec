"""The reasons for a schedule whose warpgroups multiply tiles that TMA loads."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, prod
from typing import TYPE_CHECKING

from gemmgen.base.source import counted
from gemmgen.explore.suggest.warpgroup_plan import WarpgroupPlan
from gemmgen.explore.warpgroup_cost import GROUP
from gemmgen.schedule.roles import batches

if TYPE_CHECKING:
    from gemmgen.explore.suggest.choose import Suggestion

KIB = 1024


def warpgroup_reasons(s: Suggestion, plan: WarpgroupPlan) -> Iterator[str]:
    """One or two sentences per decision."""
    yield _tile(s, plan)
    yield _roles(plan)
    if plan.form.swapped:
        yield (
            f"rows={plan.oriented.letters[0]}: the {counted(s.request.shape[0], 'row')} of C are "
            f"columns of wgmma, in steps of 8; it has {GROUP} rows."
        )
    if s.request.terms:
        yield _terms(plan)
    stage = plan.sizes.stage_bytes / KIB
    yield (
        f"double_buffer: {plan.sizes.stages} stages of {stage:.0f} KiB in shared memory, loaded by "
        "TMA."
    )
    if plan.parts > 1:
        tiles = plan.blocks // plan.parts
        yield (
            f"split_k: {counted(tiles, 'tile')} would leave most of {s.request.gpu.sms} SMs idle; "
            f"{plan.parts} blocks for each tile split its K = {s.request.shape[2]}."
        )
    if plan.form.cluster != (1, 1):
        yield _cluster(plan)
    if plan.sizes.persistent:
        yield "persistent: each block computes several tiles; loads for the next one start early."
    c = s.request.access["c"].tensor
    if plan.sizes.staged:
        yield f"async_copy {c}: the epilogue stores {c} through shared memory by TMA."
        if plan.sizes.slices > 1:
            yield f"double_buffer {c}: TMA stores one slice while the next is written."
    else:
        yield f"async_copy: threads store {c}, since its rows or the tile's are too short for TMA."
    if not s.request.terms:
        yield "overlap_launch: the kernel starts while the preceding one ends (PDL)."


def _tile(s: Suggestion, plan: WarpgroupPlan) -> str:
    """The tile, the waves of its blocks, and the best one of another size."""
    form, shape = plan.form, s.request.shape
    rows, columns = (ceil(size / side) for size, side in zip(shape[:2], form.sides, strict=True))
    matrices = f" for each of {prod(shape[3:])} matrices" if batches(s.request.problem.gemm) else ""
    waves = s.blocks / plan.parts / s.resident_blocks
    chosen = (
        f"tile: {rows} x {columns} tiles of {form.name}{matrices} are {waves:.2f} waves of "
        f"{s.resident_blocks} blocks."
    )
    others = [o for o in s.options if o.plan.form.name != form.name]
    if not others:
        return chosen
    other = min(others, key=lambda option: option.seconds)
    longer = other.seconds / s.chosen.seconds
    return (
        f"{chosen}  The best of another size, {other.plan.form.name}, is estimated "
        f"{longer:.2f} times as long."
    )


def _roles(plan: WarpgroupPlan) -> str:
    form = plan.form
    instruction = f"tensor_core: wgmma of {GROUP} x {form.tile[1]}"
    if not plan.sizes.producer:
        return f"{instruction}, issued by the warpgroups that issue TMA."
    if form.consumers == 1:
        return f"{instruction} by one consumer warpgroup; a producer issues TMA."
    if form.pingpong:
        return (
            f"{instruction} by two ping-pong consumer warpgroups: one's epilogue overlaps the "
            "other's main loop."
        )
    return (
        f"{instruction} by {form.consumers} cooperative consumer warpgroups; a producer issues TMA."
    )


def _terms(plan: WarpgroupPlan) -> str:
    """What ``decompose`` computes, and its error as measured on an NVIDIA H200 against float64."""
    if plan.request.terms == "f16":
        return (
            "decompose: a pre-pass scales each row of A and column of B by a power of two and "
            f"splits it into {plan.sizes.planes} f16 terms, and the tensor cores compute "
            f"{plan.sizes.products} of their products (f16x3).  The error is up to 8 times that of "
            "sgemm, and more for numbers far below the largest of their row or column.  The file's "
            "header states a bound."
        )
    return (
        f"decompose: a pre-pass splits each f32 element into {plan.sizes.planes} bf16 terms, and "
        f"the tensor cores compute {plan.sizes.products} of their products (bf16x3).  The error is "
        "at most that of sgemm for K up to 4096 and numbers of either sign; for K = 65,536, or "
        "numbers of very different magnitudes, it is up to 4 times as large.  The file's header "
        "states a bound."
    )


def _cluster(plan: WarpgroupPlan) -> str:
    rows, columns = plan.form.cluster
    request = plan.oriented
    shared = [
        f"{count} blocks share each tile of {request.access[role].tensor}"
        for role, count in (("a", columns), ("b", rows))
        if count > 1
    ]
    return f"cluster: {' and '.join(shared)} by multicast."
