"""Schedules that between them reach every rewrite and most pairs of rewrites."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pipeline.running import NAMES, Operands, Want, example

from gemmgen.numerics.formats import F32


def relu_bias(acc: F32, c: F32, given: Operands) -> F32:
    total = acc + given["bias"]
    return np.where(total < 0, np.float32(0), total)


def add_residual(acc: F32, c: F32, given: Operands) -> F32:
    return acc + given["residual"]


def add_old(acc: F32, c: F32, given: Operands) -> F32:
    return acc + c


def scale_rows(acc: F32, c: F32, given: Operands) -> F32:
    return given["row"] * acc


def lower_triangle(acc: F32, c: F32, given: Operands) -> F32:
    rows, columns = np.indices(acc.shape)
    return np.where(columns > rows, given["s"], acc).astype(np.float32)


@dataclass(frozen=True)
class Scheduled:
    """A schedule, and what its epilogue computes where it has one of its own."""

    text: str
    want: Want | None = None


def _lines(*lines: str) -> Scheduled:
    return Scheduled("\n".join(lines) + "\n")


def _fused(expression: str, want: Want, *lines: str) -> Scheduled:
    return Scheduled("\n".join((*lines, f"fuse_epilogue {expression}")) + "\n", want)


STAGED = ("tile m=32 n=64 k=8", "cache_shared A[k, m] B[k, n] C", "register_block m=4 n=8")
BLOCKED = ("tile m=32 n=64 k=8", "cache_shared A[k, m] B[k, n]", "register_block m=4 n=8")
"""8 x 8 threads of 4 x 8 elements; and C by way of shared memory."""

ORDERS = tuple(itertools.product(("m, k", "k, m"), ("k, n", "n, k"), ("m, n", "n, m")))
"""Storage orders of A, B and C."""


def gemm_line(order: tuple[str, str, str]) -> str:
    a, b, c = order
    return f"gemm C[{c}] = A[{a}] * B[{b}]"


def in_order(name: str, order: tuple[str, str, str]) -> str:
    """An example with the matrices stored in another order."""
    lines = [line for line in example(name).splitlines() if not line.startswith(("#", "gemm"))]
    return "\n".join((gemm_line(order), *lines)) + "\n"


EXAMPLES = {
    name: Scheduled(example(name), relu_bias if "fuse_epilogue" in example(name) else None)
    for name in NAMES
}

OWN = {
    "other letters": _lines(
        "gemm result[row, col] = left[row, d] * right[d, col]",
        "tile row=32 col=64 d=8",
        "cache_shared left[d, row] right",
        "register_block row=4 col=8",
        "vectorize left right result width=4",
    ),
    "threads along m": _lines("bind x=m", "tile m=32 n=8 k=8", "cache_shared A B"),
    "no step along k": _lines("tile m=16 n=16"),
    "a step along k, nothing staged": _lines("tile m=16 n=16 k=8"),
    "micro-tiles straight from global memory": _lines(
        "tile m=32 n=64 k=8", "register_block m=4 n=8", "vectorize B C width=4"
    ),
    "fragments read ahead from global memory": _lines(
        "tile m=32 n=64 k=8", "register_block m=4 n=8", "double_buffer A.register B.register"
    ),
    "one element per thread, as a micro-tile": _lines(
        "tile m=8 n=12 k=5", "register_block m=1 n=1", "double_buffer B.register"
    ),
    "only A staged": _lines("tile m=32 n=64 k=8", "cache_shared A", "register_block m=4 n=8"),
    "only B staged, ahead": _lines(
        "tile m=32 n=32 k=16", "cache_shared B[n, k]", "pad B by=1", "double_buffer B"
    ),
    "three stages": _lines(*BLOCKED, "double_buffer A B stages=3"),
    "four stages, read ahead": _lines(
        *BLOCKED, "double_buffer A B stages=4", "double_buffer A.register B.register"
    ),
    "two stages, read ahead": _lines(*BLOCKED, "double_buffer A B A.register B.register"),
    "two stages of A alone": _lines(*BLOCKED, "double_buffer A"),
    "stages of A, fragments of B": _lines(*BLOCKED, "double_buffer A B.register"),
    "fragments of A alone": _lines(*BLOCKED, "double_buffer A.register"),
    "fragments of both, one stage": _lines(*BLOCKED, "double_buffer A.register B.register"),
    "an odd step, fragments of both": _lines(
        "tile m=32 n=64 k=5",
        *BLOCKED[1:],
        "double_buffer A B A.register B.register",
    ),
    "a step of one": _lines(
        "tile m=32 n=64 k=1", *BLOCKED[1:], "double_buffer A B A.register B.register"
    ),
    "pairs": _lines(*BLOCKED, "vectorize A B C width=2", "pad A by=2"),
    "pairs along an odd multiple of two": _lines(
        "tile m=24 n=48 k=6",
        "cache_shared A[k, m] B",
        "register_block m=6 n=6",
        "vectorize A B C width=2",
        "double_buffer A B",
    ),
    "pieces of two": _lines(
        "tile m=32 n=64 k=8", "cache_shared A B", "register_block m=4 n=8 " "interleave=2"
    ),
    "pieces of one": _lines(*BLOCKED[:2], "register_block m=4 n=8 interleave=1"),
    "back and forth": _lines(*BLOCKED[:2], "register_block m=4 n=8 order=serpentine"),
    "back and forth, odd rows": _lines(
        "tile m=24 n=40 k=8", "cache_shared A B", "register_block m=3 n=5 order=serpentine"
    ),
    "in pairs of rows, odd columns": _lines(
        "tile m=16 n=40 k=8", "cache_shared A B", "register_block m=2 n=5 order=zigzag"
    ),
    "odd micro-tiles": _lines(
        "tile m=40 n=24 k=7", "cache_shared A[k, m] B", "register_block m=5 n=3", "double_buffer A"
    ),
    "more threads than pieces": _lines(
        "tile m=32 n=32 k=4", "cache_shared A B", "vectorize A B width=4", "double_buffer A B"
    ),
    "warps": _lines(
        "tile m=64 n=64 k=8",
        "cache_shared A[k, m] B",
        "warp_tile m=32 n=16",
        "register_block m=4 n=4",
        "vectorize A B C width=4",
    ),
    "warps whose lanes hold one element": _lines(
        "tile m=16 n=32 k=8", "cache_shared A B", "warp_tile m=8 n=4", "register_block m=1 n=1"
    ),
    "C by way of shared memory, an element a thread": _lines("bind x=m y=n", "cache_shared C"),
    "C by way of shared memory, odd micro-tiles": _lines(
        "tile m=24 n=40 k=8", "cache_shared A B C", "register_block m=3 n=10", "vectorize C width=2"
    ),
    "C by way of shared memory, in warps": _lines(
        "tile m=64 n=64 k=8",
        "cache_shared A[k, m] B C",
        "warp_tile m=32 n=32",
        "register_block m=4 n=8 interleave=2",
        "vectorize C width=4",
    ),
    "C by way of shared memory, along its columns": _lines(
        gemm_line(("m, k", "k, n", "n, m")),
        "tile m=64 n=32 k=8",
        "cache_shared A B C",
        "register_block m=1 n=4 interleave=1",
        "vectorize C width=4",
        "double_buffer A B",
    ),
    "bands": _lines("tile m=16 n=16 k=8", "cache_shared A B", "raster group=3"),
    "a Hilbert curve": _lines(
        "tile m=16 n=16 k=8", "cache_shared A B", "raster group=2 order=hilbert"
    ),
    "bands of the naive kernel": _lines("raster group=2"),
    "asynchronous, two stages": _lines(
        *BLOCKED, "double_buffer A B", "async_copy A B via=cp_async"
    ),
    "asynchronous, fragments ahead": _lines(
        "gemm C[m, n] = A[k, m] * B[k, n]",
        *BLOCKED,
        "vectorize A B width=4",
        "double_buffer A B stages=3",
        "double_buffer A.register B.register",
        "async_copy A B via=cp_async",
    ),
    "asynchronous, whole tiles": _lines(
        "assume M % 32 == 0",
        "assume N % 64 == 0",
        "assume K % 8 == 0",
        *BLOCKED,
        "vectorize B width=4",
        "double_buffer A B stages=4",
        "async_copy A B via=cp_async",
    ),
    "asynchronous, one operand in rounds": _lines(
        "tile m=32 n=32 k=8",
        "cache_shared B",
        "vectorize B.global width=2",
        "pad B by=2",
        "double_buffer B stages=3",
        "async_copy B via=cp_async",
        "unroll tile_k=3",
    ),
    "permuted rows, stored down a column": _lines(
        "tile m=32 n=64 k=16",
        *BLOCKED[1:],
        "vectorize A B C width=4",
        "swizzle A",
        "double_buffer A B",
    ),
    "permuted rows, read down a column": _lines(
        "tile m=64 n=64 k=8",
        "cache_shared A[m, k] B[n, k]",
        "register_block m=4 n=4",
        "vectorize A.global width=4",
        "swizzle A",
        "swizzle B by=8 every=4",
    ),
    "permuted rows, wide and in pieces": _lines(
        *BLOCKED[:2],
        "register_block m=4 n=8 interleave=2",
        "vectorize A.shared B width=2",
        "swizzle A by=2 every=2 chunk=4",
        "swizzle B by=8 chunk=8",
        "double_buffer A B A.register B.register",
    ),
    "permuted rows, an element a thread": _lines(
        "tile m=32 n=32 k=32", "cache_shared A[k, m] B[n, k]", "swizzle A B"
    ),
    "permuted rows, copied while threads go on": _lines(
        *BLOCKED, "swizzle A by=4", "double_buffer A B stages=3", "async_copy A B via=cp_async"
    ),
    "a ragged first tile": _lines(*BLOCKED, "double_buffer A B", "residue k=first"),
    "a ragged first tile of three stages": _lines(
        *BLOCKED,
        "double_buffer A B stages=3",
        "double_buffer A.register B.register",
        "residue k=first",
    ),
    "a ragged first tile, and their own rings": _lines(
        *BLOCKED, "double_buffer A", "double_buffer B stages=3", "residue k=first"
    ),
    "a ragged first tile, wide along k": _lines(
        "assume K % 4 == 0",
        *BLOCKED,
        "vectorize A B C width=4",
        "double_buffer A B",
        "residue k=first",
    ),
    "a ragged first tile, copied while threads go on": _lines(
        *BLOCKED,
        "double_buffer A B stages=3",
        "double_buffer A.register B.register",
        "async_copy A B via=cp_async",
        "residue k=first",
    ),
    "a ragged first tile in rounds": _lines(
        *BLOCKED,
        "double_buffer A B stages=4",
        "double_buffer A.register B.register",
        "async_copy A B via=cp_async",
        "residue k=first",
        "unroll tile_k=4",
    ),
    "several pieces of a row": _lines(
        "gemm C[m, n] = A[k, m] * B[n, k]",
        "tile m=64 n=32 k=32",
        "cache_shared A[k, m] B[k, n]",
        "register_block m=8 n=4",
        "vectorize A.shared B.shared width=4",
        "pad B by=4",
        "double_buffer A B stages=3",
        "async_copy A B via=cp_async",
        "residue k=first",
    ),
    "steps in fours": _lines("tile m=16 n=16 k=8", "cache_shared A B", "unroll k=4"),
    "all of k in threes": _lines("unroll k=3"),
    "a step at a time": _lines(*BLOCKED, "double_buffer A B", "unroll k=1"),
    "two tiles at a time": _lines(
        *BLOCKED,
        "vectorize A B C width=4",
        "double_buffer A B A.register B.register",
        "unroll k=4 tile_k=2",
    ),
    "two rounds of three stages": _lines(*BLOCKED, "double_buffer A stages=3", "unroll tile_k=6"),
    "rounds of two rings": _lines(
        *BLOCKED, "double_buffer A", "double_buffer B stages=3", "unroll tile_k=6"
    ),
    "tiles at a time, one stage": _lines("tile m=16 n=16 k=8", "cache_shared A", "unroll tile_k=3"),
    "tiles at a time, nothing staged": _lines("tile m=16 n=16 k=8", "unroll k=2 tile_k=2"),
    "rounds of whole tiles": _lines(
        "assume K % 8 == 0",
        *BLOCKED,
        "double_buffer A B stages=4",
        "double_buffer A.register B.register",
        "unroll tile_k=4",
    ),
    "four blocks": _lines(*BLOCKED, "launch_bounds blocks=4"),
    "pads of both": _lines(*BLOCKED, "pad A by=3", "pad B by=5", "double_buffer A B"),
    "more than 48 KiB of shared memory": _lines(
        "tile m=64 n=64 k=32",
        "cache_shared A[k, m] B",
        "register_block m=8 n=4",
        "double_buffer A B stages=4",
    ),
    "whole tiles": _lines(
        "assume M % 32 == 0",
        "assume N % 64 == 0",
        "assume K % 8 == 0",
        *BLOCKED,
        "vectorize A B C width=4",
        "double_buffer A B A.register B.register",
    ),
    "whole rows of fours": _lines(
        "assume N % 4 == 0", "assume K % 4 == 0", *BLOCKED, "vectorize A B C width=4"
    ),
    "a tile of one row": _lines("tile m=1 n=32 k=2", "cache_shared B"),
    "leading dimensions assumed": _lines(
        "assume lda == K", "assume ldb == N", "assume ldc == N", *BLOCKED
    ),
    "bias": _fused("relu(acc + bias[n])", relu_bias, *BLOCKED),
    "a bias, C by way of shared memory": _fused(
        "relu(acc + bias[n])", relu_bias, *STAGED, "vectorize C width=4"
    ),
    "the old C added by way of shared memory": _fused("acc + C[m, n]", add_old, *STAGED),
    "a bias, C by TMA": _fused(
        "relu(acc + bias[n])", relu_bias, "target sm_90", *STAGED, "async_copy C via=tma"
    ),
    "a matrix added": _fused("acc + residual[m, n]", add_residual, *BLOCKED),
    "a matrix added, wide": _fused(
        "acc + residual[m, n]", add_residual, *BLOCKED, "vectorize C width=4"
    ),
    "the old C added": _fused("acc + C[m, n]", add_old, *BLOCKED, "vectorize C width=2"),
    "the old C added, naive": _fused("acc + C[m, n]", add_old),
    "rows scaled": _fused("row[m] * acc", scale_rows, *BLOCKED, "vectorize C width=4"),
    "a triangle": _fused("where(n > m, s, acc)", lower_triangle, *BLOCKED, "vectorize C width=4"),
}

SPLIT = {
    "parts": _lines(*BLOCKED, "double_buffer A B", "split_k parts=3"),
    "parts, wide and read ahead": _lines(
        *BLOCKED,
        "vectorize A B C width=4",
        "double_buffer A B stages=3",
        "double_buffer A.register B.register",
        "split_k parts=5",
    ),
    "parts of whole tiles": _lines(
        "assume M % 32 == 0",
        "assume N % 64 == 0",
        "assume K % 8 == 0",
        *BLOCKED,
        "vectorize A B C width=4",
        "double_buffer A B stages=3",
        "double_buffer A.register B.register",
        "split_k parts=4",
    ),
    "parts of whole tiles, two stages": _lines(
        "assume K % 8 == 0", *BLOCKED, "double_buffer A B", "split_k parts=3"
    ),
    "parts by asynchronous copies": _lines(
        "gemm C[m, n] = A[k, m] * B[k, n]",
        "tile m=32 n=64 k=8",
        "cache_shared A B",
        "register_block m=4 n=8",
        "vectorize A B C width=4",
        "double_buffer A B stages=3",
        "async_copy A B via=cp_async",
        "split_k parts=3",
    ),
    "parts by asynchronous copies, read ahead, whole": _lines(
        "gemm C[m, n] = A[k, m] * B[k, n]",
        "assume K % 8 == 0",
        "tile m=32 n=64 k=8",
        "cache_shared A B",
        "register_block m=4 n=8",
        "double_buffer A B stages=4",
        "double_buffer A.register B.register",
        "async_copy A B via=cp_async",
        "split_k parts=3",
    ),
    "groups of parts": _lines(*BLOCKED, "double_buffer A B", "split_k parts=6 groups=3"),
    "groups of parts of single elements": _lines(
        "tile m=16 n=16 k=2", "cache_shared A B", "split_k parts=4 groups=2"
    ),
    "parts, two tiles at a time": _lines(
        *BLOCKED, "double_buffer A B stages=2", "unroll tile_k=2", "split_k parts=3"
    ),
    "parts, C by way of shared memory": _lines(*STAGED, "vectorize C width=4", "split_k parts=3"),
    "parts as they come": _lines(*BLOCKED, "split_k parts=2 reduce=atomic"),
    "parts of single elements": _lines(
        "tile m=16 n=16 k=8", "cache_shared A B", "split_k parts=3", "raster group=2"
    ),
    "parts of single elements, nothing staged": _lines("tile m=8 n=32 k=4", "split_k parts=2"),
    "parts of odd micro-tiles": _lines(
        "tile m=40 n=24 k=7", "cache_shared A[k, m] B", "register_block m=5 n=3", "split_k parts=3"
    ),
    "parts of pairs, in warps": _lines(
        "tile m=32 n=48 k=4",
        "cache_shared A[k, m] B",
        "warp_tile m=16 n=24",
        "register_block m=2 n=6 interleave=2",
        "split_k parts=3",
    ),
    "parts straight from global memory": _lines(
        "tile m=32 n=64 k=8", "register_block m=4 n=8", "vectorize B C width=4", "split_k parts=3"
    ),
    "parts and a bias": _fused("relu(acc + bias[n])", relu_bias, *BLOCKED, "split_k parts=3"),
}

LANES = {
    "lanes": _lines("tile m=8 n=2 k=64", "split_k within=warp"),
    "lanes of wide reads": _lines(
        "gemm y[m, n] = A[m, k] * x[n, k]",
        "tile m=4 n=1 k=256",
        "vectorize A.global x.global width=4",
        "split_k within=warp",
    ),
    "lanes of reads of two widths": _lines(
        "gemm y[m, n] = A[m, k] * x[n, k]",
        "bind x=m",
        "tile m=6 n=4 k=128",
        "register_block m=3 n=2",
        "vectorize A width=4",
        "vectorize x y width=2",
        "raster group=2",
        "split_k within=warp",
    ),
    "lanes of whole steps, in rounds": _lines(
        "gemm y[m, n] = A[m, k] * x[n, k]",
        "assume M % 8 == 0",
        "assume N % 4 == 0",
        "assume K % 64 == 0",
        "tile m=8 n=4 k=64",
        "register_block m=4 n=2 interleave=2 order=serpentine",
        "vectorize A width=2",
        "unroll tile_k=2",
        "split_k within=warp",
    ),
    "lanes and a bias": _fused(
        "relu(acc + bias[n])", relu_bias, "tile m=8 n=4 k=32", "split_k within=warp"
    ),
}
"""Several blocks for each tile."""

TESTS = Path(__file__).parents[1]
WANTED = {"acc + residual[m, n]": add_residual, "relu(acc + bias[n])": relu_bias}
"""What epilogues of schedules in files compute."""


def filed(path: Path) -> tuple[str, Scheduled]:
    """A schedule whose first line, a comment, is its name."""
    name, text = path.read_text(encoding="utf-8").removeprefix("# ").split("\n", 1)
    found = re.search(r"^fuse_epilogue +(.*)", text, re.MULTILINE)
    return name, Scheduled(text, WANTED[found[1]] if found else None)


FILED = dict(map(filed, sorted(TESTS.glob("cases/*/*.sched"))))
"""Those that came with a directive, beside the cases of its pass."""

GOLDEN = {path.stem: filed(path) for path in sorted(TESTS.glob("golden/*.sched"))}
INSTRUCTIVE = dict(GOLDEN.values())
"""Those that show what no example shows, and their goldens' names."""

STORED = {
    f"{c}, {a}, {b}": _lines(gemm_line((a, b, c)), *BLOCKED, "double_buffer A B")
    for a, b, c in ORDERS
}

CASES = EXAMPLES | OWN | SPLIT | LANES | STORED | FILED | INSTRUCTIVE
