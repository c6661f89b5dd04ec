"""Blocks that share a tile: right in every order of blocks, and mistakes between them are found."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from emitted_kernels import planted

from gemmgen.base.source import Source
from gemmgen.calling.launches import ORDERS, Case
from gemmgen.ir.interface import Interface
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.calls import Caller
from gemmgen.sim.failures import KernelFault
from gemmgen.sim.run import CompiledKernel

SCHEDULE = """
tile m=16 n=16 k=4
cache_shared A B
register_block m=2 n=4
double_buffer A B
split_k parts=3 reduce={}
"""
SHAPE = (35, 37, 45)
"""Nine tiles, and parts of 16, 16 and 13 elements along k."""


def emitted(reduce: str) -> Emitted:
    return compile_source(Source(SCHEDULE.format(reduce)))


def answers(kernel: Emitted, text: str, shape: tuple[int, int, int] = SHAPE) -> dict[str, str]:
    """Per order what is found wrong with ``text``: the finding's kind and line, or the values."""
    compiled = CompiledKernel(text, kernel.interface, checked=True, warn=False)
    found: dict[str, str] = {}
    caller = Caller(kernel)
    for order in ORDERS:
        try:
            message = caller.complaint(Case(shape, "normal", 0.7, -1.0, 1, order), compiled)
        except KernelFault as fault:
            kinds = [f"{each.kind}: {each.name}" for each in fault.findings]
            message = "; ".join(kinds) or str(fault)
        found[order] = message or ""
    compiled.close()
    return found


@pytest.mark.by_default("shape0-ordered")
@pytest.mark.parametrize("reduce", ("ordered", "atomic"))
@pytest.mark.parametrize("shape", (SHAPE, (1, 1, 1), (16, 16, 5), (17, 3, 0), (64, 64, 12)))
def test_every_order_of_blocks_is_right(reduce: str, shape: tuple[int, int, int]) -> None:
    kernel = emitted(reduce)
    assert answers(kernel, kernel.text, shape) == dict.fromkeys(ORDERS, "")


@dataclass(frozen=True)
class Plant:
    """``old`` becomes ``new``; every run (but for those of the order ``but``, where nothing is
    wrong) then finds one of ``finds``, a kind and a name, or what a message contains."""

    old: str
    new: str
    finds: tuple[str, ...]
    reduce: str = "ordered"
    but: str = ""


COUNT = "gg_count_in(&arrived[own_tile], PARTS - 1)"
FLAG = f"""const bool is_last =
        __syncthreads_or(tid == 0 && {COUNT} == PARTS - 1);"""
SHARED_FLAG = f"""__shared__ int is_last;
    if (tid == 0) is_last = {COUNT} == PARTS - 1;"""
FIRST = "workspace[(long long)own_tile * (BM * BN) + part_at]"

PLANTS = {
    "no barrier before a block counts": Plant(
        "__syncthreads();\n    const bool is_last", "const bool is_last", ("race: workspace",)
    ),
    "the count publishes nothing": Plant(
        COUNT, COUNT.replace("gg_count_in", "atomicInc"), ("race: workspace",)
    ),
    "parts are read before the block counts": Plant(
        "if (!is_last) return;", "", ("never written: workspace", "two owners: C")
    ),
    "the first of the blocks goes on": Plant(
        f"{COUNT} == PARTS - 1", f"{COUNT} == 0", ("never written: workspace",)
    ),
    "the last but one goes on too": Plant(
        f"{COUNT} == PARTS - 1", f"{COUNT} >= PARTS - 2", ("never written: workspace",)
    ),
    "the counter is not reset": Plant(
        COUNT, COUNT.replace("PARTS - 1", "PARTS"), ("the kernel leaves 3 in arrived[0]",)
    ),
    "one counter for all tiles": Plant(
        "arrived[own_tile]",
        "arrived[own_tile / 2]",
        ("never written: workspace", "never written, or"),
    ),
    "a counter too far": Plant(
        "arrived[own_tile]", "arrived[own_tile + 1]", ("out of bounds: arrived",)
    ),
    "a part is skipped": Plant("other_part = 1;", "other_part = 2;", ("C: wrong bits",)),
    "a part is counted twice": Plant("other_part = 1;", "other_part = 0;", ("C: wrong bits",)),
    "another order of the parts": Plant(
        "part_tile = own_tile + other_part * tiles",
        "part_tile = own_tile + (PARTS - other_part) * tiles",
        ("C: wrong bits",),
    ),
    "the last to come adds to its own part": Plant(
        FIRST,
        FIRST.replace("own_tile", "blockIdx.x"),
        ("C: wrong bits",),
        but="descending",  # in which part 0 comes last
    ),
    "two parts in one place": Plant(
        "workspace[(long long)blockIdx.x *",
        "workspace[(long long)(blockIdx.x / 2) *",
        ("race: workspace",),
    ),
    "the flag is read without a barrier": Plant(FLAG, SHARED_FLAG, ("race: is_last",)),
    "some threads leave before the barrier": Plant(
        "__syncthreads();\n    const bool is_last",
        "if (tid >= 16) return;\n    __syncthreads();\n    const bool is_last",
        ("divergent barrier: ",),
    ),
    "a range too short by a step": Plant(
        "stop_k = start_k + chunk_k < K ? start_k + chunk_k : K",
        "stop_k = start_k + chunk_k - BK < K ? start_k + chunk_k - BK : K",
        ("C: wrong bits",),
    ),
    "ranges overlap": Plant("own_part * chunk_k", "own_part * (chunk_k - BK)", ("C: wrong bits",)),
    "plain additions": Plant("gg_add(&", "gg_plain(&", ("race: workspace",), "atomic"),
    "no barrier before a block counts, atomic": Plant(
        "__syncthreads();\n    const bool is_last",
        "const bool is_last",
        ("race: workspace",),
        "atomic",
    ),
    "accumulators are not reset": Plant(
        "workspace[(long long)own_tile * (BM * BN) + part_at] = 0.0f;",
        "",
        ("in workspace[0], and the next launch needs 0",),
        "atomic",
    ),
}
PLAIN = "inline void gg_plain(float *target, float value) { *target += value; }\n"


@pytest.mark.by_default("plain additions")
@pytest.mark.parametrize("name", PLANTS)
def test_finds(name: str) -> None:
    plant = PLANTS[name]
    kernel = emitted(plant.reduce)
    text = planted(kernel.text, plant.old, plant.new)
    text = text.replace('extern "C" __global__', f'{PLAIN}extern "C" __global__')
    for order, message in answers(kernel, text).items():
        right = order == plant.but or any(found in message for found in plant.finds)
        assert right, f"{order}: {message}"


def test_memory_given_by_the_caller_is_used_and_checked() -> None:
    kernel = emitted("ordered")
    face: Interface = kernel.interface
    assert [p.name for p in face.scratch] == ["workspace", "arrived"]
    sizes = {"M": 35, "N": 37}
    assert [face.scratch_elements(p, sizes) for p in face.scratch] == [9 * 3 * 256, 9]
    assert face.grid(sizes) == 27
