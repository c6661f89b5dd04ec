"""Split K beside a producer: consumers reduce, right in every order, and what goes wrong between
them, the producer and the blocks of a cluster is found."""

from __future__ import annotations

import functools
from itertools import product

import pytest
from emitted_kernels import planted

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.calls import Caller, landings_of, orders_of
from gemmgen.proof.cpu import first_complaint

HEAD = """
    gemm C[m, n] = A[k, m] * B[k, n]
    target sm_90a
    tile m=32 n=64 k=8
    cache_shared A B
    register_block m=4 n=8
    vectorize C width=4
    double_buffer A B stages=3
    async_copy A B via=tma
    warp_specialize producers=1
"""
SCHEDULES = {
    "two": HEAD + "split_k parts=2",
    "three": HEAD + "split_k parts=3",
    "groups": HEAD + "split_k parts=4 groups=2",
    "atomic": HEAD + "split_k parts=3 reduce=atomic",
    "staged output": HEAD.replace("A B\n", "A B C\n") + "split_k parts=2",
    "cluster": HEAD + "split_k parts=2\ncluster m=2",
    "atomic cluster": HEAD + "split_k parts=3 reduce=atomic\ncluster n=2",
    "groups of clusters": HEAD + "split_k parts=4 groups=2\ncluster m=2 n=2",
}
SHAPES = ((35, 68, 44), (1, 4, 1), (40, 72, 0))
"""With ragged tiles, and with parts that are empty."""


@functools.cache
def emitted(name: str) -> Emitted:
    lines = (line.strip() for line in SCHEDULES[name].strip().splitlines())
    return compile_source(Source("\n".join(lines) + "\n", f"{name}.sched"))


def complaint(name: str, text: str | None = None) -> str | None:
    """What is first found in runs of a text, which is launched by its launcher."""
    kernel = emitted(name)
    cases = [
        Case(shape, "normal", 0.7, -1.0, 4, order=order, landing=landing)
        for shape in SHAPES
        for landing, order in product(landings_of(kernel), orders_of(kernel))
    ]
    return first_complaint(Caller(kernel), text or kernel.text, cases, warn=False)


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", SCHEDULES)
def test_is_right_in_all_orders_and_landings(name: str) -> None:
    assert complaint(name) is None


WRITTEN = "gg_sync_warps(CONSUMER_BARRIER, CONSUMERS);\n"
ANSWER = "gg_sync_warps_or(CONSUMER_BARRIER, CONSUMERS, counted_last)"
TOGETHER = "gg_sync_cluster();\n"
PLANTS = {
    "counted before all have written": ("two", WRITTEN, "\n"),
    "the thread that counted keeps the answer": ("two", ANSWER, "counted_last"),
    "the producer is awaited": ("two", ANSWER, ANSWER.replace("CONSUMERS,", "THREADS,")),
    "a warp too few answers": ("two", ANSWER, ANSWER.replace("CONSUMERS,", "CONSUMERS - 32,")),
    "the barrier of the block": ("two", ANSWER, "__syncthreads_or(counted_last)"),
    "each thread counts": ("three", "tid == 0 && gg_count_in", "gg_count_in"),
    "a block that is not the last goes on": ("three", "if (!is_last) return;", ""),
    "a part is left out": ("three", "other_part = 1;", "other_part = 2;"),
    "the consumers take the whole of K": ("two", "tile_k = start_k;", "tile_k = 0;", 2),
    "the producer takes the whole of K": ("two", "tile_k = start_k;", "tile_k = 0;", 1),
    "the group's counter for all": ("groups", "+ GROUPS]", "+ own_group]"),
    "zeros are not put back": ("atomic", "part_at] = 0.0f;", "part_at] += 0.0f;"),
    "the consumers leave the cluster": ("cluster", TOGETHER, "\n", 3),
    "parts of one tile in a cluster": (
        "cluster",
        "own_part = blockIdx.x / tiles, own_tile = blockIdx.x % tiles",
        "own_part = blockIdx.x % PARTS, own_tile = blockIdx.x / PARTS",
    ),
}


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", PLANTS)
def test_what_is_wrong_between_roles_is_found(name: str) -> None:
    schedule, old, new, *nth = PLANTS[name]
    assert complaint(schedule, planted(emitted(schedule).text, str(old), str(new), *nth))
