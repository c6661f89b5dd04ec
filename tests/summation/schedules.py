"""Schedules of one product that sum in different orders, by what they do."""

from __future__ import annotations

from functools import cache

from gemmgen.base.source import Source
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.summation import SummationOrder, summation_order

F32 = "gemm C[m, n] = A[m, k] * B[n, k]\n"
BF16 = f"{F32}dtype A=bf16 B=bf16 C=f32\n"
TILED = "cache_shared A[k, m] B[k, n]\nregister_block m=2 n=2\n"
LANES = "cache_shared A B\nwarp_tile m=16 n=16\ntensor_core via=mma"
GROUPS = """\
target sm_90a
cache_shared A B
tensor_core via=wgmma{}
swizzle A B
double_buffer A B stages=3
async_copy A B via=tma
"""


def tiled(tile: str, more: str = "") -> str:
    return f"{F32}tile {tile}\n{TILED}{more}"


def lanes(tile: str, more: str = "", how: str = "") -> str:
    return f"{BF16}tile {tile}\n{LANES}{how}\n{more}"


def groups(tile: str, more: str = "", how: str = "", head: str = BF16) -> str:
    _, (m, n, _) = "tile", tile.split()
    return f"{head}tile {tile}\nwarp_tile {m} {n}\n{GROUPS.format(how)}{more}"


AHEAD = "double_buffer A B\n"
RAGGED = (
    "vectorize A.global B.global width=8\nswizzle A B\ndouble_buffer A B stages=3\n"
    "async_copy A B via=cp_async\nassume K % 8 == 0\nresidue k=first\n"
)
EQUAL = {
    "one fmaf per k": (
        F32,
        f"{F32}tile m=4 n=8\n",
        tiled("m=16 n=16 k=8"),
        tiled("m=32 n=16 k=16", f"{AHEAD}residue k=first\n"),
        tiled("m=16 n=32 k=4", f"{AHEAD}unroll tile_k=2\nraster group=2\npersistent\n"),
        tiled("m=16 n=16 k=8").replace("n=2\n", "n=2 order=serpentine\n"),
    ),
    "slices of 8": (
        tiled("m=16 n=16 k=8", "split_k parts=3\n"),
        tiled("m=32 n=16 k=8", f"{AHEAD}split_k parts=3\n"),
        tiled("m=16 n=16 k=8", "split_k parts=3 groups=3\n"),
    ),
    "two slices": (
        tiled("m=16 n=16 k=8", "split_k parts=2\n"),
        tiled("m=16 n=16 k=8", "split_k parts=2 reduce=atomic\n"),
        tiled("m=16 n=16 k=8", "split_k parts=2 groups=2\n"),
    ),
    "slices in groups": (
        tiled("m=16 n=16 k=8", "split_k parts=6 groups=2\n"),
        tiled("m=32 n=32 k=8", "split_k parts=6 groups=2\n"),
    ),
    "lanes of pairs": (
        f"{F32}tile m=4 n=1 k=64\nvectorize A.global B.global width=2\nsplit_k within=warp\n",
        f"{F32}tile m=2 n=2 k=128\nvectorize A.global B.global width=2\nsplit_k within=warp\n",
    ),
    "mma.sync": (
        lanes("m=16 n=16 k=16"),
        lanes("m=32 n=16 k=32", AHEAD),
        lanes("m=16 n=16 k=16", how=" rows=n"),
    ),
    "mma.sync, promoted": (
        lanes("m=16 n=16 k=16", how=" promote=32"),
        lanes("m=32 n=32 k=32", AHEAD, " promote=32"),
        lanes("m=16 n=16 k=64", how=" promote=32"),
    ),
    "mma.sync, promoted, a ragged first tile": (
        lanes("m=16 n=16 k=32", RAGGED, " promote=64"),
        lanes("m=32 n=16 k=32", RAGGED, " promote=64"),
    ),
    "wgmma": (
        groups("m=64 n=16 k=64"),
        groups("m=64 n=8 k=128", "warp_specialize producers=1\npersistent\n"),
        groups("m=8 n=64 k=64", how=" rows=n").replace("warp_tile m=8 n=64", "warp_tile n=64 m=8"),
    ),
    "wgmma, promoted": (
        groups("m=64 n=16 k=64", how=" promote=128"),
        groups("m=64 n=8 k=128", "warp_specialize producers=1\n", " promote=128"),
    ),
    "split f32": (
        groups("m=64 n=16 k=64", "decompose into=bf16\n", " promote=64", F32),
        groups("m=64 n=8 k=64", "decompose into=bf16\n", " promote=64", F32),
    ),
}
"""Schedules of one summation order."""


@cache
def compiled(text: str) -> Emitted:
    return compile_source(Source(text))


@cache
def order_of(text: str) -> SummationOrder:
    emitted = compiled(text)
    return summation_order(emitted.program, emitted.lowered.kernels[0])
