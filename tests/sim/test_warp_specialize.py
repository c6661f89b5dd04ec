"""A producer and consumers: right in every order, and what goes wrong between them is found."""

from __future__ import annotations

import functools
from itertools import product

import pytest
from emitted_kernels import planted

from gemmgen.base.source import Source
from gemmgen.calling.launches import BOX_LANDINGS, ORDERS, STRICT_ORDERS, Case
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.calls import Caller
from gemmgen.sim.failures import KernelFailure
from gemmgen.sim.run import CompiledKernel

HEAD = """
    gemm C[m, n] = A[k, m] * B[k, n]
    target sm_90a
    tile m=32 n=64 k=8
    cache_shared A B
    register_block m=4 n=4
    async_copy A B via=tma
    warp_specialize producers=1
"""
SCHEDULES = {
    "three stages": HEAD + "double_buffer A B stages=3",
    "two stages": HEAD + "double_buffer A B",
    "reads ahead": HEAD + "double_buffer A B stages=3\ndouble_buffer A.register B.register",
    "unrolled": HEAD + "double_buffer A B stages=3\nunroll tile_k=3",
    "staged output": HEAD.replace("cache_shared A B", "cache_shared A B C") + "double_buffer A B",
    "registers": HEAD + "double_buffer A B\nlaunch_bounds blocks=4",
}


@functools.cache
def emitted(name: str) -> Emitted:
    lines = (line.strip() for line in SCHEDULES[name].strip().splitlines())
    return compile_source(Source("\n".join(lines) + "\n", f"{name}.sched"))


def complaint(name: str, text: str | None = None) -> str | None:
    """What runs find wrong: 2 x 2 tiles of 6 steps, the last one ragged, in every order."""
    known = emitted(name)
    kernel = CompiledKernel(text or known.text, known.interface, checked=True, warn=text is None)
    try:
        for order, landing in product((*ORDERS, *STRICT_ORDERS), BOX_LANDINGS):
            each = Case((35, 67, 43), "normal", 0.7, -1.0, 1, order, landing)
            found = Caller(known).complaint(each, kernel)
            if found is not None:
                return found
    except KernelFailure as failure:
        return str(failure)
    finally:
        kernel.close()
    return None


@pytest.mark.proof
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_order_is_right(name: str) -> None:
    assert complaint(name) is None


def test_registers_are_shared_out_where_consumers_gain_some() -> None:
    text = emitted("registers").text
    assert "__launch_bounds__(THREADS, 4)" in text
    assert "PRODUCER_REGISTERS = 24, CONSUMER_REGISTERS = 104;" in text
    assert "gg_fewer_registers<PRODUCER_REGISTERS>();" in text
    assert "gg_more_registers<CONSUMER_REGISTERS>();" in text


FULL = "while (!gg_try_wait(full[stage], phase)) {}"
EMPTY = "while (!gg_try_wait(empty[stage], phase)) {}"
TURN = "if (++stage == STAGES) { stage = 0; phase ^= 1; }"
NO_TURN = "if (++stage == STAGES) stage = 0;"
ARRIVE = "if (threadIdx.x % 32 == 0) gg_arrive(empty[stage]);"
PLANTS = {
    "no wait for an empty stage": ("three stages", EMPTY, "", 1),
    "no wait for a full stage": ("three stages", FULL, "", 1),
    "the parity of a full stage for that of an empty one": (
        "three stages",
        "int phase = 1;",
        "int phase = 0;",
        1,
    ),
    "the producer's parity does not turn": ("three stages", TURN, NO_TURN, 1),
    "the consumers' parity does not turn": ("three stages", TURN, NO_TURN, 2),
    "an arrival too few is needed": (
        "three stages",
        "gg_init_barrier(empty[stage], CONSUMERS / 32)",
        "gg_init_barrier(empty[stage], CONSUMERS / 32 - 1)",
        1,
    ),
    "an arrival too many is needed": (
        "three stages",
        "gg_init_barrier(empty[stage], CONSUMERS / 32)",
        "gg_init_barrier(empty[stage], CONSUMERS / 32 + 1)",
        1,
    ),
    "each thread arrives": ("three stages", ARRIVE, "gg_arrive(empty[stage]);", 1),
    "no thread arrives": ("three stages", ARRIVE, "", 1),
    "one lane arrives while others read": ("three stages", "__syncwarp();\n", "\n", 1),
    "a stage is released before it is read": (
        "three stages",
        FULL,
        f"{FULL}\n            __syncwarp();\n            {ARRIVE}",
        1,
    ),
    "a stage is released at the step before its last read": (
        "reads ahead",
        "if (k + 1 < BK) {",
        f"if (k + 2 == BK) {{ __syncwarp(); {ARRIVE} }}\nif (k + 1 < BK) {{",
        1,
    ),
    "reads that TMA may overtake": ("three stages", "gg_fence_async();\n", "\n", 1),
    "too few bytes": (
        "three stages",
        "gg_expect_bytes(full[stage], STAGE_BYTES)",
        "gg_expect_bytes(full[stage], STAGE_BYTES / 2)",
        1,
    ),
    "a tile that no thread consumes": (
        "three stages",
        "tile_k < K; tile_k += BK",
        "tile_k < K + BK; tile_k += BK",
        1,
    ),
    "the barriers are not fenced": ("three stages", "gg_fence_barrier_init();", "", 1),
    "no barrier after their initialization": ("three stages", "__syncthreads();", "", 1),
    "the producer keeps its registers": (
        "registers",
        "gg_fewer_registers<PRODUCER_REGISTERS>();",
        "",
        1,
    ),
    "consumers take too many registers": (
        "registers",
        "CONSUMER_REGISTERS = 104",
        "CONSUMER_REGISTERS = 112",
        1,
    ),
}


@pytest.mark.by_default("no wait for an empty stage", "the producer keeps its registers")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("plant", PLANTS)
def test_finds(plant: str) -> None:
    name, old, new, nth = PLANTS[plant]
    changed = planted(emitted(name).text, old, new, nth)
    assert complaint(name, changed) is not None
