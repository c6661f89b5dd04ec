"""Operands exchanged (``tensor_core rows=n``), and split K beside a producer and in clusters: right
kernels pass, and mistakes in their texts are detected on a CPU."""

from __future__ import annotations

import pytest
from part_of_calls import is_right, keeps_its_meaning

from gemmgen.calling.launches import Case
from gemmgen.proof import cpu
from gemmgen.proof.calls import Caller
from gemmgen.sim.failures import CompileFailure

from .subjects import subject

FEW = """\
target sm_90a
gemm C[m, n] = A[m, k] * B[n, k]
dtype A=bf16 B=bf16 C=bf16
tile m=32 n=128 k=64
cache_shared A B C
warp_tile m=32 n=64
tensor_core via=wgmma rows=n
swizzle A B C
double_buffer A B stages=3
async_copy A B C via=tma
warp_specialize producers=1 consumers=2
"""


def wide(text: str) -> str:
    """C stored by threads or unswizzled, as its type or the tile needs it."""
    return text.replace("swizzle A B C", "swizzle A B")


SIDES = "m=32 n=128 k=64"
ONE_PIECE = FEW.replace(SIDES, "m=8 n=128 k=64").replace("warp_tile m=32", "warp_tile m=8")
ODD = FEW.replace(SIDES, "m=24 n=128 k=64").replace("warp_tile m=32", "warp_tile m=24")
F32 = wide(FEW).replace("C=bf16", "C=f32")
WARPS = wide(FEW).replace("warp_tile m=32 n=64", "warp_tile m=16 n=128") + "cluster m=2\n"
ALTERNATE = FEW.replace("n=64\n", "n=128\n").replace(
    "warp_specialize producers=1 consumers=2",
    "persistent\nwarp_specialize producers=1 consumers=2 order=pingpong\nraster group=2",
)
MN_MAJOR = FEW.replace("A[m, k] * B[n, k]", "A[k, m] * B[k, n]").replace("n=64\n", "n=128\n")
MN_MAJOR = MN_MAJOR.replace("consumers=2", "consumers=1\ncluster n=2")
BY_THREADS = FEW.replace("async_copy A B C", "async_copy A B").replace(
    "swizzle A B C", "swizzle A B"
)
EPILOGUE = f"{FEW}fuse_epilogue relu(alpha * acc + bias[n] + gate[m])\n"
MMA = """\
target sm_80
gemm C[m, n] = A[m, k] * B[k, n]
dtype A=f16 B=f16 C=f16
tile m=16 n=64 k=32
cache_shared A B[n, k]
tensor_core via=mma rows=n
double_buffer A B
"""
TERMS = """\
gemm C[m, n] = A[m, k] * B[k, n]
tile m=8 n=16 k=16
cache_shared A B[n, k]
decompose into=bf16
tensor_core via=mma rows=n promote=16
"""
TERMS_IN_PLACE = """\
gemm C[m, n] = A[m, k] * B[k, n]
target sm_90a
tile m=64 n=64 k=32
cache_shared A B
decompose into=bf16
tensor_core via=wgmma rows=n promote=32
swizzle A B
double_buffer A B
async_copy A B via=tma
"""
SPLIT = """\
target sm_90a
gemm C[m, n] = A[m, k] * B[n, k]
dtype A=bf16 B=bf16 C=bf16
tile m=128 n=64 k=64
cache_shared A B
warp_tile m=64 n=64
tensor_core via=wgmma
vectorize C width=2
swizzle A B
double_buffer A B stages=3
async_copy A B via=tma
split_k parts=3
warp_specialize producers=1 consumers=2
"""
CLUSTER = f"{SPLIT}cluster m=2\noverlap_launch\n"
GROUPS = CLUSTER.replace("parts=3", "parts=4 groups=2").replace("cluster m=2", "cluster m=2 n=2")
ATOMIC = CLUSTER.replace("parts=3", "parts=3 reduce=atomic")
BOTH = f"{FEW}split_k parts=2\ncluster n=2\n"
RIGHT = {
    "few rows": FEW,
    "one piece": ONE_PIECE,
    "an odd number of pieces": ODD,
    "f32": F32,
    "warps along m": WARPS,
    "ping-pong": ALTERNATE,
    "MN-major": MN_MAJOR,
    "stored by threads": BY_THREADS,
    "an epilogue": EPILOGUE,
    "mma.sync": MMA,
    "terms": TERMS,
    "terms in place": TERMS_IN_PLACE,
    "split K": SPLIT,
    "split K in clusters": CLUSTER,
    "groups of parts": GROUPS,
    "atomic": ATOMIC,
    "few rows and split K": BOTH,
}


@pytest.mark.proof
@pytest.mark.in_proof("few rows", share=3)
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_hold(name: str) -> None:
    kernel = subject(RIGHT[name])
    keeps_its_meaning(kernel, name, RIGHT)
    is_right(kernel, name, RIGHT)


CASES = (Case((35, 136, 72), "integers", 0.75, 1.0), Case((33, 264, 200), "integers"))
DEEP = (Case((130, 72, 520), "integers", 0.75, 1.0), Case((257, 64, 700), "integers"))
ORDERS = tuple(
    Case(case.shape, case.data, order=order)
    for case in DEEP
    for order in ("descending", "shuffled", "by priority", "issuers last")
)


def complaint(schedule: str, text: str, cases: tuple[Case, ...]) -> str | None:
    emitted = subject(schedule).emitted
    try:
        return cpu.first_complaint(Caller(emitted), text, cases, warn=False)
    except CompileFailure as failure:
        return str(failure)


OF_FEW = {
    "pieces in one place": ("slice_m + piece_m * 8", "slice_m"),
    "rows of a matrix": ("const int slice_m = lane % 8;", "const int slice_m = lane / 4;"),
    "matrices exchanged": ("(lane / 8 % 2) * 8", "(1 - lane / 8 % 2) * 8"),
    "a pair exchanged, of several pieces": (
        "out[matrix_n * PM + e]",
        "out[matrix_n * PM + 1 - e]",
    ),
    "not transposed": (".x2.trans.shared", ".x2.shared"),
    "another row of C": ("(reg_m + piece_m * PM) * LM + e", "(reg_m + piece_m * PM) * LM"),
    "another column": ("(reg_n + matrix_n) * LN", "reg_n * LN"),
    "one operand twice": ("B_shared[stage][warpgroup_n]", "A_shared[stage][warpgroup_m]"),
    "the chunk of another row": ("(slice_m % 8) * 8", "(slice_m % 4) * 8"),
    "a slice stored late": ("gg_await_boxes<0>();\n            gg_sync", "\n            gg_sync"),
    "no fence": ("gg_fence_async();", ""),
    "no barrier after staging": (
        "gg_fence_async();\n            gg_sync_warps(CONSUMER_BARRIER, CONSUMERS);",
        "gg_fence_async();",
    ),
}
OF_SPLIT = {
    "partial accumulators before they are written": (
        "gg_sync_warps(CONSUMER_BARRIER, CONSUMERS);\n        const bool counted_last",
        "const bool counted_last",
    ),
    "one thread knows": (
        "gg_sync_warps_or(CONSUMER_BARRIER, CONSUMERS, counted_last)",
        "counted_last",
    ),
    "too few threads meet": (
        "gg_sync_warps_or(CONSUMER_BARRIER, CONSUMERS,",
        "gg_sync_warps_or(CONSUMER_BARRIER, CONSUMERS - 32,",
    ),
    "a value that is never true": ("setp.ne.b32 own, %3, 0", "setp.eq.b32 own, %3, 2"),
    "places of the producer's threads": ("* CONSUMERS + tid", "* THREADS + tid"),
    "a part of another size": ("own_part * chunk_k", "own_part * (chunk_k - BK)"),
    "the last block is another": ("PARTS - 1) == PARTS - 1", "PARTS - 1) == PARTS - 2"),
    "every block stays": ("if (!is_last) return;", ""),
    "a part left out": ("other_part = 1;", "other_part = 2;"),
}
LEAVE = "// a block must not exit while others arrive at its barriers (cluster m=2)"
OF_CLUSTERS = {
    "blocks leave alone": (f"{LEAVE}\n        gg_sync_cluster();", LEAVE),
    "one share by all": ("rank_m * (BN / CLUSTER_M)", "0 * (BN / CLUSTER_M)"),
    "the number of a block, not of its tile": ("own_tile / CLUSTER", "blockIdx.x / CLUSTER"),
    "written before the preceding kernel ends": (
        "gg_wait_grid();\n\n        // write",
        "\n        // write",
    ),
}
PLANTED = {
    **{name: (FEW, *edit, CASES) for name, edit in OF_FEW.items()},
    **{name: (SPLIT, *edit, (*DEEP, *ORDERS)) for name, edit in OF_SPLIT.items()},
    **{name: (CLUSTER, *edit, (*DEEP, *ORDERS)) for name, edit in OF_CLUSTERS.items()},
}


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", PLANTED)
def test_mistakes_in_the_text_are_found(name: str) -> None:
    schedule, before, after, cases = PLANTED[name]
    text = subject(schedule).emitted.text
    assert before in text, "mend this test"
    assert complaint(schedule, text, cases) is None
    assert complaint(schedule, text.replace(before, after), cases) is not None
