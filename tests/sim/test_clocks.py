"""Vector clocks find in emitted kernels what the block's barriers do: the same texts with a
numbered barrier, of all threads, for each ``__syncthreads``."""

from __future__ import annotations

from dataclasses import replace

import pytest
from emitted_kernels import complaint, emitted, planted
from functions import texts_of
from plants import PLANTS, WIDE

from gemmgen.base.source import Source
from gemmgen.calling.launches import LANDINGS, ORDERS, STRICT_ORDERS, Case
from gemmgen.pipeline import compile_source
from gemmgen.proof.calls import Caller, orders_of
from gemmgen.sim.failures import KernelFault
from gemmgen.sim.run import CompiledKernel

ALL_ORDERS = (*ORDERS, *STRICT_ORDERS)
(SYNC,) = texts_of("gg_sync_warps")
SHIFT = 1 + SYNC.count("\n")
"""Lines above the text."""
Found = frozenset[tuple[str, str, tuple[int, ...]]]


def numbered(text: str, threads: int) -> str:
    assert "__syncthreads();" in text
    return f"{SYNC}\n{text.replace('__syncthreads();', f'gg_sync_warps(1, {threads});')}"


def found(example: str, kernel: CompiledKernel, case: Case, shift: int = 0) -> Found:
    """Kinds, arrays and lines of the findings."""
    try:
        assert complaint(example, kernel, case) is None
    except KernelFault as fault:
        each = fault.findings
        return frozenset((f.kind, f.name, tuple(line - shift for line in f.lines)) for f in each)
    return frozenset()


def built(example: str, text: str) -> CompiledKernel:
    return CompiledKernel(text, emitted(example).interface, checked=True, warn=False)


@pytest.mark.proof
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("example", ["transposed", "double_buffered", "warp_tiled", "async_copy"])
def test_a_right_kernel_is_right(example: str) -> None:
    kernel = built(example, numbered(emitted(example).text, emitted(example).interface.threads))
    for order in ALL_ORDERS:
        for landing in LANDINGS:
            case = replace(WIDE, order=order, landing=landing)
            assert not found(example, kernel, case)
    kernel.close()


@pytest.mark.by_default("the barrier in the loop dropped")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize(
    "name",
    [
        "the barrier in the loop dropped",
        "the barrier after the contraction dropped",
        "the barrier among fragments dropped",
        "the wrong stage filled",
        "the zero fill dropped",
        "the barrier after the wait dropped",
        "the barrier before the wait",
        "a stage overwritten while it is read",
    ],
)
def test_finds_the_same(name: str) -> None:
    plant = PLANTS[name]
    text = planted(emitted(plant.example).text, plant.old, plant.new, plant.nth)
    threads = emitted(plant.example).interface.threads
    kernel, other = (built(plant.example, t) for t in (text, numbered(text, threads)))
    for order in ("ascending", "descending"):
        case = replace(plant.case, order=order)
        want = found(plant.example, kernel, case)
        assert want and found(plant.example, other, case, SHIFT) == want
    for order in ("shuffled", *STRICT_ORDERS):
        got = found(plant.example, other, replace(plant.case, order=order), SHIFT)
        assert plant.kind in {kind for kind, _, _ in got}
    kernel.close()
    other.close()


SPLIT = """
tile m=16 n=16 k=4
cache_shared A B
register_block m=2 n=4
split_k parts=3
"""
COUNT_IN = "__syncthreads();\n    const bool is_last"


@pytest.mark.by_default("True")
@pytest.mark.parametrize("is_right", [True, False])
def test_a_count_publishes_what_its_thread_has_seen(is_right: bool) -> None:
    kernel = compile_source(Source(SPLIT))
    text = kernel.text if is_right else planted(kernel.text, COUNT_IN, "const bool is_last")
    caller = Caller(kernel)
    checked = CompiledKernel(
        numbered(text, kernel.interface.threads), kernel.interface, checked=True, warn=False
    )
    for order in ALL_ORDERS:
        case = Case((35, 37, 45), "normal", 0.7, -1.0, 1, order)
        if is_right:
            assert caller.complaint(case, checked) is None
            continue
        with pytest.raises(KernelFault, match=r"^race: .* workspace\["):
            caller.complaint(case, checked)
    checked.close()


def test_strict_orders_are_for_kernels_whose_warps_wait_for_some() -> None:
    kernel = emitted("transposed")
    assert orders_of(kernel) == ORDERS
    assert orders_of(replace(kernel, text=numbered(kernel.text, 64))) == ALL_ORDERS
