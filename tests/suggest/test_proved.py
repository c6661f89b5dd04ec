"""What ``suggest`` writes is proved: C2 runs its text, one schedule of each class of shapes, at a
third of the calls.  Kernels of tensor cores and of TMA run at all of them in tests/verify."""

from __future__ import annotations

import re

import pytest
from part_of_calls import is_right

from gemmgen.explore.suggest import suggest
from gemmgen.proof.outcome import Subject

NN, NT, TN, TT = (
    "C[m, n] = A[m, k] * B[k, n]",
    "C[m, n] = A[m, k] * B[n, k]",
    "C[m, n] = A[k, m] * B[k, n]",
    "C[m, n] = A[k, m] * B[n, k]",
)
HEADS = "S[h, i, j] = Q[h, i, d] * K[h, j, d]"

CLASSES: dict[str, tuple[str, tuple[int, ...], str, str]] = {
    "a small result": (NN, (30, 200, 5), "f32", r"^tile"),
    "odd rows and a short sum": (NN, (1221, 3319, 95), "f32", r"interleave=1"),
    "odd rows of every matrix": (NT, (1221, 3319, 951), "f32", r"residue"),
    "wide rows": (TN, (2000, 2000, 2000), "f32", r"vectorize .*\bC"),
    "transposed and wide": (NT, (1000, 1000, 1000), "f32", r"pad .*A.*B"),
    "a row of C": (TN, (1, 5726, 1731), "f32", r"split_k"),
    "few columns": (NN, (5955, 2, 7937), "f32", r"within=warp"),
    "few rows": (NN, (4, 955, 3616), "f32", r"split_k"),
    "a long sum": (NN, (64, 64, 16384), "f32", r"parts=\d+ groups=\d+"),
    "a tall result": (TT, (7001, 20, 300), "f32", r"^tile"),
    "batches, with an epilogue": (HEADS, (500, 500, 64, 24), "f32", r"^fuse_epilogue"),
    "f64": (NN, (500, 300, 200), "f64", r"^dtype"),
    "halves": (NN, (512, 512, 512), "f16", r"via=wgmma"),
    "bytes": (NN, (512, 512, 512), "i8", r"via=mma"),
    "bytes along k": (NT, (512, 512, 512), "i8", r"via=wgmma"),
    "ping-pong warpgroups": (NT, (3072, 3072, 512), "bf16", r"order=pingpong"),
    "rows of C as columns": (NT, (8, 7168, 2048), "bf16", r"rows=n"),
    "a cluster of warpgroups": (NT, (1000, 2000, 4096), "f16", r"^cluster"),
    "warpgroups that split K": (NT, (64, 200, 8192), "bf16", r"^split_k"),
    "rows too short for TMA": (NT, (512, 512, 511), "bf16", r"via=mma"),
    "f64 on tensor cores": (TN, (1024, 1024, 1024), "f64", r"^tensor_core"),
}
"""The storage order, the shape, the type, and what the schedule has in this class."""


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", CLASSES)
def test_the_text_of_a_suggestion_is_right(name: str) -> None:
    gemm, shape, dtype, has = CLASSES[name]
    epilogue = "relu(scale * acc + mask[i, j])" if gemm == HEADS else None
    found = suggest(gemm, shape, dtype=dtype, epilogue=epilogue)
    assert re.search(has, found.text, re.M), found.text
    is_right(Subject(found.emitted), name)
