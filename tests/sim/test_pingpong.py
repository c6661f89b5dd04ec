"""Ping-pong consumers: right in every order with any number of tiles for a block, and
what goes wrong between them is found."""

from __future__ import annotations

import functools
from dataclasses import replace
from itertools import product

import pytest
from emitted_kernels import planted

from gemmgen.base.source import Source
from gemmgen.calling.launches import BOX_LANDINGS, ORDERS, STRICT_ORDERS, Case
from gemmgen.expand import expand
from gemmgen.lower import lower
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import launcher
from gemmgen.proof.calls import Caller
from gemmgen.proof.equivalence import result_of
from gemmgen.sim.failures import KernelFailure
from gemmgen.sim.run import CompiledKernel

HEAD = """
    gemm C[m, n] = A[k, m] * B[k, n]
    target sm_90a
    tile m=16 n=32 k=8
    cache_shared A B
    register_block m=2 n=2
    double_buffer A B stages=3
    async_copy A B via=tma
    launch_bounds blocks=1
    persistent
    warp_specialize producers=1 consumers=2 order=pingpong
"""
STAGED = (
    ("cache_shared A B", "cache_shared A B C"),
    ("via=tma", "via=tma\n    async_copy C via=tma"),
)
TWO = ("stages=3", "stages=2")
TENSOR_CORES = """
    gemm C[m, n] = A[m, k] * B[n, k]
    dtype A=bf16 B=bf16
    target sm_90a
    tile m=32 n=32 k=64
    cache_shared A B
    warp_tile m=16 n=16
    tensor_core via=mma
    swizzle A B
    double_buffer A B stages=2
    async_copy A B via=tma
    persistent
    warp_specialize producers=1 order=pingpong
"""


def changed(*pairs: tuple[str, str]) -> str:
    return functools.reduce(lambda text, pair: text.replace(*pair), pairs, HEAD)


SCHEDULES = {
    "three stages": HEAD,
    "two stages": changed(TWO),
    "reads ahead": HEAD + "double_buffer A.register B.register",
    "reads ahead in two stages": changed(TWO) + "double_buffer A.register B.register",
    "slices of C by threads": changed(STAGED[0]),
    "slices of C by TMA": changed(*STAGED),
    "two slices of C each": changed(*STAGED) + "double_buffer C",
    "a row of C a thread": changed(
        *STAGED, ("m=2 n=2", "m=1 n=2"), ("m=16", "m=8"), ("consumers=2 ", "")
    ),
    "the ragged step first": HEAD + "residue k=first",
    "batches": changed(("C[m, n] = A[k, m] * B[k, n]", "C[b, m, n] = A[b, k, m] * B[b, k, n]")),
    "bands": HEAD + "raster group=2",
    "clusters": changed(("m=16 n=32", "m=16 n=64"), ("m=2 n=2", "m=2 n=4")) + "cluster m=2",
    "tensor cores": TENSOR_CORES,
    "warps": changed(("register_block m=2 n=2", "warp_tile m=8 n=16\n    register_block m=2 n=2")),
}


@functools.cache
def emitted(name: str) -> Emitted:
    lines = (line.strip() for line in SCHEDULES[name].strip().splitlines())
    return compile_source(Source("\n".join(lines) + "\n", f"{name}.sched"))


def cases(name: str, k: int) -> list[Case]:
    """3 x 2 tiles (of 16 x 32), or a single one, and a sum of ``k``, on 1 to 3 multiprocessors:
    six, three, two tiles or one for a block, in every order."""
    batches = (2,) if name == "batches" else ()
    runs = enumerate(product((*ORDERS, *STRICT_ORDERS), BOX_LANDINGS))
    found = [
        Case((35, 56, k, *batches), "normal", 0.7, -1.0, 4 * (i % 3), order, landing)
        for i, (order, landing) in runs
    ]
    return [*found, replace(found[0], shape=(7, 20, k, *batches))]


def complaint(name: str, k: int, text: str | None = None) -> str | None:
    """What checked runs find wrong."""
    known = emitted(name)
    kernel = CompiledKernel(text or known.text, known.interface, checked=True, warn=text is None)
    try:
        found = launcher.complaint(known, text or known.text, kernel)
        caller = Caller(known)
        for each in cases(name, k):
            found = found or caller.complaint(each, kernel)
        return found
    except KernelFailure as failure:
        return str(failure)
    finally:
        kernel.close()


STEPS = (27, 8, 17, 0, 59)
"""Sums of four, one, three, no and eight steps: a tile is shorter than the ring, or goes round it
more than once."""


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_order_is_right(name: str) -> None:
    known = emitted(name)
    for k in STEPS:
        assert complaint(name, k) is None
        for each in (*cases(name, k)[:3], cases(name, k)[-1]):
            found = result_of(lower(expand(known.program)), known.program.problem, each)
            assert hasattr(found, "c"), (each, found)


WAIT = "while (!gg_try_wait(turn[consumer], turn_phase)) {}"
RELEASE = "if (threadIdx.x % 32 == 0) gg_arrive(turn[1 - consumer]);"
SKIPPED = "phase = (phase + (stage + steps) / STAGES) % 2;"
TURNS = "gg_init_barrier(turn[consumer], CONSUMER / 32)"
ONE, SLICES = "three stages", "two slices of C each"
PLANTS = {
    "no thread waits for the turn": (ONE, WAIT, "", 1),
    "the second consumer does not wait for its turn": (ONE, WAIT, f"if (consumer == 0) {WAIT}", 1),
    "the first consumer does not wait for its turn": (ONE, WAIT, f"if (consumer == 1) {WAIT}", 1),
    "the turn is passed on before the steps": (ONE, WAIT, f"{WAIT}\n{RELEASE}", 1),
    "the turn is passed on at once, and not after the steps": (
        ONE,
        f"{RELEASE}|{WAIT}",
        f"|{WAIT}\n__syncwarp();\n{RELEASE}",
        1,
    ),
    "the turn is never passed on": (ONE, RELEASE, "", 1),
    "the turn is passed on by one warp": (ONE, RELEASE, RELEASE.replace("% 32", "% 128"), 1),
    "the turn is kept": (ONE, RELEASE, RELEASE.replace("1 - consumer", "consumer"), 1),
    "a turn takes a warp too few": (ONE, TURNS, TURNS.replace("/ 32", "/ 32 - 1"), 1),
    "a turn takes a warp too many": (ONE, TURNS, TURNS.replace("/ 32", "/ 32 + 1"), 1),
    "the first consumer waits for a turn before its first": (
        ONE,
        "turn_phase = 1 - consumer;",
        "turn_phase = 0;",
        1,
    ),
    "the second consumer goes first, too": (
        ONE,
        "int turn_phase = 1 - consumer;",
        "int turn_phase = 1;",
        1,
    ),
    "the parity of the turn does not turn": (ONE, "turn_phase ^= 1;", "", 1),
    "both take the same tile": (ONE, "blockIdx.x + consumer * gridDim.x", "blockIdx.x", 1),
    "each takes each tile": (
        ONE,
        "own_tile += CONSUMER_GROUPS * gridDim.x",
        "own_tile += gridDim.x",
        1,
    ),
    "the second consumer's first tile is the third": (
        ONE,
        "blockIdx.x + consumer * gridDim.x",
        "blockIdx.x + 2 * consumer * gridDim.x",
        1,
    ),
    "the phase is not advanced for the other's tile": (ONE, SKIPPED, "", 1),
    "the stage is not advanced for the other's tile": (
        ONE,
        "stage = (stage + steps) % STAGES;",
        "",
        1,
    ),
    "the phase is advanced after the stage": (
        ONE,
        f"{SKIPPED}|stage = (stage + steps) % STAGES;",
        f"|stage = (stage + steps) % STAGES; {SKIPPED}",
        1,
    ),
    "the second consumer begins at the first stage": (
        ONE,
        "stage = consumer * steps % STAGES,",
        "stage = 0,",
        1,
    ),
    "the second consumer begins in the first phase": (
        ONE,
        ", phase = consumer * steps / STAGES % 2;",
        ", phase = 0;",
        1,
    ),
    "a tile has a step too few": (ONE, "steps = (K + BK - 1) / BK", "steps = K / BK", 1),
    "a stage is empty when both consumers have read it": (
        ONE,
        "gg_init_barrier(empty[stage], CONSUMER / 32)",
        "gg_init_barrier(empty[stage], CONSUMERS / 32)",
        1,
    ),
    "a stage is empty when half a consumer has read it": (
        ONE,
        "gg_init_barrier(empty[stage], CONSUMER / 32)",
        "gg_init_barrier(empty[stage], CONSUMER / 64)",
        1,
    ),
    "consumers share a named barrier": (
        SLICES,
        "gg_sync_warps(CONSUMER_BARRIER + consumer,",
        "gg_sync_warps(CONSUMER_BARRIER,",
        2,
    ),
    "consumers wait for each other at a barrier": (
        SLICES,
        "gg_sync_warps(CONSUMER_BARRIER + consumer, CONSUMER)",
        "gg_sync_warps(CONSUMER_BARRIER, CONSUMERS)",
        2,
    ),
    "consumers share their slices": (
        SLICES,
        "C_shared[consumer * 2 + reg_m % 2]|C_shared[consumer * 2 + reg_m % 2]",
        "C_shared[reg_m % 2]|C_shared[reg_m % 2]",
        1,
    ),
    "a consumer stores the other's slice": (
        SLICES,
        "C_map, C_shared[consumer * 2 +",
        "C_map, C_shared[2 - consumer * 2 +",
        1,
    ),
    "a slice of the other consumer is waited for": (
        SLICES,
        "if (tid == 0) gg_await_boxes<1>();",
        "if (threadIdx.x == 0) gg_await_boxes<1>();",
        1,
    ),
    "the second consumer's last stores are not waited for": (
        SLICES,
        "if (tid == 0) gg_await_boxes<0>();",
        "if (threadIdx.x == 0) gg_await_boxes<0>();",
        1,
    ),
    "the first consumer stores for both": (
        SLICES,
        "if (tid == 0) {",
        "if (threadIdx.x == 0) {",
        1,
    ),
    "the producer keeps its registers": (ONE, "gg_fewer_registers<PRODUCER_REGISTERS>();", "", 1),
    "a consumer takes too many registers": (
        ONE,
        "CONSUMER_REGISTERS = 240",
        "CONSUMER_REGISTERS = 248",
        1,
    ),
    "the producer skips the second consumer's tiles": (
        ONE,
        "own_tile < tiles; own_tile += gridDim.x",
        "own_tile < tiles; own_tile += CONSUMER_GROUPS * gridDim.x",
        1,
    ),
}
"""Of several edits ``|`` is between them."""


@pytest.mark.by_default("no thread waits for the turn")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("plant", PLANTS)
def test_finds(plant: str) -> None:
    name, old, new, nth = PLANTS[plant]
    text = emitted(name).text
    for one, other in zip(old.split("|"), new.split("|"), strict=True):
        text = planted(text, one, other, nth)
    assert any(complaint(name, k, text) is not None for k in STEPS)
