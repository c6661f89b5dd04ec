"""The sizes of a plan that its cost depends on: blocks, steps, issue slots, bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import ceil, inf, prod

from gemmgen.explore import cost
from gemmgen.explore.cost import H200, SECTOR, TENSOR, BlockSizes, Costs, Sizes, estimate, launched
from gemmgen.explore.suggest.schedules import SettledForm
from gemmgen.gpu.gpus import REGISTERS
from gemmgen.ir.atoms import Loads
from gemmgen.ir.dtypes import BYTES
from gemmgen.ir.target import MAX_REGISTERS, MAX_THREADS, OVERHEAD, RESIDENT_THREADS, TARGETS, WARP

ALIGNED = 16
AT_ONCE: dict[Loads, int] = {"rows": 512, "elements": 256}
"""Bytes that a warp's load of fragments reads: four matrices, or elements of f64."""
CLOCK = 128
"""Bytes of shared memory in a clock."""
STAGED, SPLIT = 44, 16
"""Registers of a thread in addition to its arrays if tiles are staged; those of split-K."""
EXACT = 0.97
"""The time of a launch without guards, as a share of one with them."""


def seconds(plan: SettledForm, costs: Costs = H200) -> float:
    """The time of one launch; infinite if no block fits on a multiprocessor."""
    ((_, _, found),) = estimates((plan,), costs)
    return found


def estimates(
    plans: Iterable[SettledForm], costs: Costs = H200
) -> Iterator[tuple[SettledForm, int, float]]:
    """Each of the plans, which differ only in their parts, with its resident blocks on a
    multiprocessor and the seconds of one launch, infinite if no block fits.  A block is measured
    once for all of more than one part."""
    known: dict[bool, tuple[int, BlockSizes]] = {}
    for plan in plans:
        split = plan.parts > 1
        if split not in known:
            known[split] = residents(plan), _block(plan)
        resident, block = known[split]
        if not resident:
            yield plan, 0, inf
            continue
        if (block.parts, block.groups) != (plan.parts, plan.groups):
            block = replace(block, parts=plan.parts, groups=plan.groups)
        time = estimate(_launch(plan, block, resident), plan.request.gpu, costs)
        yield plan, resident, time * (EXACT if plan.exact else 1.0)


def sizes_of(plan: SettledForm) -> Sizes:
    return _launch(plan, _block(plan), residents(plan))


def _launch(plan: SettledForm, block: BlockSizes, resident: int) -> Sizes:
    sizes = launched(block, plan.request.shape, plan.request.gpu)
    return sizes if sizes.resident == resident else replace(sizes, resident=resident)


def _block(plan: SettledForm) -> BlockSizes:
    form, request = plan.form, plan.request
    a, b, c = (BYTES[request.dtype[role]] for role in "abc")
    rows, columns = min(form.tile[0], request.shape[0]), min(form.tile[1], request.shape[1])
    k_elements = form.tile[2] // WARP if form.kind == "lanes" else form.tile[2]
    return BlockSizes(
        kind=form.kind,
        tile=form.tile,
        threads=form.threads,
        shared=shared_of(plan),
        registers=_wanted(plan),
        allowed=registers_of(plan),
        fmas=_fmas(plan, k_elements),
        reads=_reads(plan, k_elements),
        copies=sum(_copies(plan, role, k_elements) for role in "ab" if not _single(plan, role)),
        transposes=sum(_copies(plan, role, k_elements) for role in "ab" if _single(plan, role)),
        stores=sum(_stores(plan, role) for role in "ab"),
        port=_port(plan),
        stages=(form.stages if plan.asynchronous else min(2, form.stages)) if plan.staged else 1,
        accumulators=form.micro[0] * form.micro[1],
        parts=plan.parts,
        groups=plan.groups,
        scatter=_scatter(plan),
        through=b * _sparse(plan, "b") / rows + a * _sparse(plan, "a") / columns,
        bytes=(a, b, c),
        double=request.dtype["acc"] == "f64",
        operands=request.dtype["a"],
    )


def blocks_of(plan: SettledForm) -> int:
    """Blocks of a launch."""
    m, n, _, *batches = plan.request.shape
    rows, columns, _ = plan.form.tile
    return ceil(m / rows) * ceil(n / columns) * prod(batches) * plan.parts


def shared_of(plan: SettledForm) -> int:
    """Bytes of a block's shared tiles, all stages."""
    m, n, k = plan.form.tile
    tensor = plan.form.kind == "tensor"
    total = 0
    for role in plan.staged:
        item, size = BYTES[plan.request.dtype[role]], m if role == "a" else n
        if tensor:
            along_k = plan.request.along[role] == "k" or plan.transposed(role)
            rows, row = (size, k) if along_k else (k, size)
            total += rows * (row + plan.pad(role)) * item
        else:
            total += k * (size + (ALIGNED // item if plan.transposed(role) else 0)) * item
    return total * plan.form.stages


def arrays_of(plan: SettledForm) -> int:
    """Registers of a thread's arrays: accumulators, fragments, prefetched vectors."""
    form, wide = plan.form, BYTES[plan.request.dtype["acc"]] // 4
    m, n = form.warp if form.kind == "tensor" else form.micro
    if form.kind == "tensor":
        bytes_of_k = plan.traits.k * BYTES[plan.request.dtype["a"]]
        return wide * m * n // WARP + 2 * (m + n) * bytes_of_k // (4 * WARP)
    if form.kind == "lanes":
        return wide * (m * n + (m + n) * form.tile[2] // WARP)
    if form.kind == "direct":
        return wide * (m * n + m + n)
    waiting = 0
    if not plan.asynchronous:
        waiting = sum(form.tile["ab".index(r)] * form.tile[2] for r in plan.staged) // form.threads
    return wide * (m * n + 2 * (m + n)) + waiting


def registers_of(plan: SettledForm) -> int:
    """Estimated registers of a thread, capped by the launch bounds: two blocks per multiprocessor
    by default, if their arrays fit."""
    form, arrays = plan.form, arrays_of(plan)
    blocks = form.blocks or 1
    if not form.blocks and 2 * form.threads <= RESIDENT_THREADS:
        blocks = 2 if 2 * form.threads * (arrays + OVERHEAD) <= REGISTERS else 1
    return min(_wanted(plan), MAX_REGISTERS, REGISTERS // (form.threads * blocks))


def _wanted(plan: SettledForm) -> int:
    """Estimated registers of a thread without launch bounds."""
    overhead = STAGED + (SPLIT if plan.parts > 1 else 0) if plan.staged else OVERHEAD + 8
    return arrays_of(plan) + overhead


def residents(plan: SettledForm, registers: int | None = None) -> int:
    """Resident blocks per multiprocessor with this many registers a thread, by default the
    estimate; 0 if none fits."""
    form, gpu = plan.form, plan.request.gpu
    shared = shared_of(plan)
    if arrays_of(plan) + OVERHEAD > MAX_REGISTERS:
        return 0
    if shared > TARGETS[gpu.target].shared or form.threads > MAX_THREADS:
        return 0
    return cost.residents(form.threads, shared, registers or registers_of(plan), gpu)


def _sparse(plan: SettledForm, role: str) -> float:
    """Sectors per read of lanes along k, relative to coalesced reads: 1 if k is contiguous."""
    if plan.form.kind != "lanes" or plan.request.along[role] == "k":
        return 1.0
    used = plan.form.micro["ab".index(role)]
    return min(8, plan.request.pitch(role)) / min(8, used, plan.request.pitch(role))


def _scatter(plan: SettledForm) -> float:
    """Sectors that a warp's store touches, relative to those that it could fill."""
    form, request = plan.form, plan.request
    if form.kind == "tensor":
        return 1.0
    if form.kind == "lanes":
        return 8.0
    along = request.along["c"]
    role, at = ("a", 0) if along == "m" else ("b", 1)
    vector = plan.read(role) if role in plan.staged else form.micro[at]
    vector, width = max(1, vector), plan.load("c")
    lanes = form.warp[at] // form.micro[at] if form.kind == "block" else form.tile[at] // vector
    lanes = max(1, min(lanes, WARP))
    span = lanes * vector / SECTOR
    ragged = 0.0 if request.width["c"] >= 4 else 1 - 1 / SECTOR
    touched = min(lanes * (1 + ragged), span + ragged)
    return max(1.0, SECTOR * touched / (lanes * width))


def _fmas(plan: SettledForm, k_elements: int) -> float:
    form = plan.form
    if form.kind == "tensor":
        return k_elements * form.warp[0] * form.warp[1] / WARP / TENSOR
    return float(k_elements * form.micro[0] * form.micro[1])


def _reads(plan: SettledForm, k_elements: int) -> float:
    form = plan.form
    if form.kind == "tensor":
        return _bytes_of_fragments(plan) / AT_ONCE[plan.traits.loads]
    return float(
        sum(k_elements * form.micro["ab".index(role)] / plan.read(role) for role in plan.staged)
    )


def _bytes_of_fragments(plan: SettledForm) -> int:
    """That a warp reads in a step."""
    return plan.form.tile[2] * sum(plan.form.warp) * BYTES[plan.request.dtype["a"]]


def _single(plan: SettledForm, role: str) -> bool:
    """Whether an operand is copied to shared memory asynchronously, transposed, element by
    element."""
    return plan.asynchronous and plan.transposed(role)


def _copies(plan: SettledForm, role: str, k_elements: int) -> float:
    """Accesses of global memory by a thread in a step."""
    form, at = plan.form, "ab".index(role)
    if role in plan.staged:
        return form.tile[at] * form.tile[2] / form.threads / plan.load(role)
    return k_elements * form.micro[at] / plan.load(role)


def _stores(plan: SettledForm, role: str) -> float:
    """Stores into shared memory by a thread in a step, if copies pass through registers."""
    if role not in plan.staged or plan.asynchronous:
        return 0.0
    each = plan.form.tile["ab".index(role)] * plan.form.tile[2] / plan.form.threads
    return each if plan.transposed(role) else each / plan.load(role)


def _port(plan: SettledForm) -> float:
    """Clocks of shared memory for a warp in a step.

    A read of 16 bytes takes 2, or 4 if more than 8 of a warp's threads read different addresses; a
    store takes one for each element of a thread, times the bank conflicts of a transposed tile.
    """
    form = plan.form
    if form.kind == "tensor":
        staged = sum(form.tile[:2]) * form.tile[2] * BYTES[plan.request.dtype["a"]]
        return (_bytes_of_fragments(plan) + staged * WARP / form.threads) / CLOCK
    if form.kind != "block":
        return 0.0
    total = 0.0
    for at, role in enumerate("ab"):
        width, lanes = plan.read(role), form.warp[at] // form.micro[at]
        clocks = 1.0 if width < 4 else 2.0 if lanes <= 8 else 4.0
        total += form.tile[2] * form.micro[at] / width * clocks
        total += form.tile[at] * form.tile[2] / form.threads * _conflicts(plan, role)
    return total


def _conflicts(plan: SettledForm, role: str) -> float:
    """Bank conflicts of a warp's stores: rows of a transposed tile are 4 banks apart, so 8 adjacent
    elements along k fill all 32."""
    return max(1.0, min(WARP, plan.form.tile[2]) / 8) if plan.transposed(role) else 1.0
