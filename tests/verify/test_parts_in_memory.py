"""f32 from bf16 terms in global memory (wgmma): right kernels pass, and mistakes of the
pre-pass, of the launcher and of the products are detected on a CPU."""

from __future__ import annotations

import numpy as np
import pytest
from part_of_calls import is_right, keeps_its_meaning

from gemmgen.base.errors import CallError
from gemmgen.calling.launches import Case
from gemmgen.expand import inner_loop
from gemmgen.ir.decompositions import PARTS, products_of
from gemmgen.ir.planes import pitch_of
from gemmgen.proof import cpu, meaning
from gemmgen.proof.calls import Caller
from gemmgen.sim.failures import CompileFailure
from gemmgen.sim.run import compile_kernel

from .subjects import subject

PLAIN = """\
target sm_90a
gemm C[m, n] = A[m, k] * B[n, k]
tile m=64 n=32 k=32
cache_shared A B
decompose into=bf16
tensor_core via=wgmma promote=64
vectorize C width=2
swizzle A B
double_buffer A B
async_copy A B via=tma
"""
PRODUCER = f"{PLAIN}persistent\nwarp_specialize producers=1 consumers=1\n"
TRANSPOSED = PLAIN.replace("A[m, k] * B[n, k]", "A[k, m] * B[k, n]").replace(" n=32", " n=64")
MIXED = PLAIN.replace("B[n, k]", "B[k, n]").replace("bf16", "bf16 products=9")
TRANSPOSED_A = PLAIN.replace("A[m, k]", "A[k, m]").replace("promote=64", "promote=128")
CLUSTER = f"{PRODUCER}cluster m=2 n=2\nraster group=2\n"
IN_FLIGHT = (
    PLAIN.replace("m=64 n=32 k=32", "m=128 n=8 k=128")
    .replace("into=bf16", "into=bf16 products=9")
    .replace("promote=64", "promote=128")
    .replace("async_copy", "warp_tile m=128 n=8\nasync_copy")
)
"""A step begins 2 x 8 x 9 = 144 multiplications before it waits for one."""
PARTS_OF_K = f"{PLAIN}split_k parts=2\nfuse_epilogue relu(acc + bias[n])\n"
RIGHT = {
    "plain": PLAIN,
    "producer": PRODUCER,
    "transposed": TRANSPOSED,
    "mixed": MIXED,
    "one transposed": TRANSPOSED_A,
    "cluster": CLUSTER,
    "parts of k": PARTS_OF_K,
    "144 in flight": IN_FLIGHT,
}
DATA = ("normal", "wide integers", "NaN in A", "infinity in B")
CASES = tuple(Case((65, 34, 70), data, 0.75, 1.0) for data in DATA)

Patch = pytest.MonkeyPatch
Products = tuple[tuple[int, int], ...]


@pytest.mark.proof
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_hold(name: str) -> None:
    kernel = subject(RIGHT[name])
    keeps_its_meaning(kernel, name, RIGHT)
    is_right(kernel, name, RIGHT)


@pytest.mark.proof
@pytest.mark.parametrize("name", RIGHT)
def test_sums_of_wide_integers_are_right(name: str) -> None:
    """The one kind of data that C2 does not draw; C1 does."""
    right = subject(RIGHT[name])
    assert cpu.first_complaint(Caller(right.emitted), right.emitted.text, CASES[1:2]) is None


def complaint_of(text: str) -> str | None:
    """What runs of ``text``, which is that of ``PLAIN`` or nearly so, show."""
    emitted = subject(PLAIN).emitted
    return cpu.first_complaint(Caller(emitted), text, CASES, warn=False)


SIX = products_of(PARTS, 6)
WRONG: dict[str, Products] = {
    "one left out": SIX[1:],
    "one twice": (SIX[0], *SIX),
    "parts exchanged": ((2, 1), *SIX[1:]),
}


@pytest.mark.proof
@pytest.mark.parametrize("name", WRONG)
def test_wrong_products_are_found(name: str, monkeypatch: Patch) -> None:
    right = subject(PLAIN, (65, 34, 70))
    monkeypatch.setattr(inner_loop, "products_of", lambda *_: WRONG[name])
    outcome = meaning.check(right)
    assert outcome.status == "failed", outcome
    said = complaint_of(subject(PLAIN).emitted.text)
    assert said is not None and "C: " in said, said


_SECOND = "A_matrix + BM * BK * 2 / 16"
MUTANTS = {
    "a part rounded twice": ("rest = rest - ", "rest = 1.0078125f * rest - ", "C: "),
    "planes exchanged": ("((long long)part * rows", "((long long)(2 - part) * rows", "C: "),
    "a plane too few": ("part < 3", "part < 2", "not finite"),
    "a plane's rows too near": ("(long long)part * rows", "(long long)part * (rows - 1)", ""),
    "a row's pitch": ("(columns - 1) / 8 + 1", "(columns - 1) / 8", ""),
    "elements left out": ("e < 4", "e < 3 && columns > 2048 || e < 0", "not finite"),
    "wrong plane of a tile": ("A_matrix + 2 * (BM * BK * 2 / 16)", _SECOND, "C: "),
    "wrong plane of a box": ("tile_m, plane)", "tile_m, 2 - plane)", "C: "),
    "the last group": (" || tile_k + BK >= K", "", "C: "),
    "not computed again": ("!gg_is_finite(", "false && !gg_is_finite(", "C: "),
    "the other operand": ("N, K, B, ldb, B_parts", "N, K, A, lda, B_parts", ""),
    "parts of A for B": ("N, K, B, ldb, B_parts", "N, K, B, ldb, A_parts", ""),
    "after the kernel": ("256, 0, stream>>>", "256, 0, nullptr>>>", "another stream"),
    "a row less": ("{K, M, 3}", "{K, M - 1, 3}", "sizes"),
    "a plane less": ("{K, M, 3}", "{K, M, 2}", "sizes"),
    "a plane's distance": ("2LL * A_plane", "2LL * A_pitch", "strides"),
    "no alignment": ("(A_parts) % 16", "(A_parts) % 8", "returns"),
}
"""Text, what replaces it, and what the run says."""


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_of_the_text_are_found(name: str) -> None:
    before, after, said = MUTANTS[name]
    text = subject(PLAIN).emitted.text
    assert before in text, "mend this test"
    found = complaint_of(text.replace(before, after))
    assert found is not None and said in found, found


def test_a_narrow_index_is_found() -> None:
    text = subject(PLAIN).emitted.text
    wide = "(long long)part * rows"
    assert wide in text, "mend this test"
    with pytest.raises(CompileFailure, match="64 bits"):
        complaint_of(text.replace(wide, "part * rows"))


def test_a_workspace_that_is_too_small_is_refused() -> None:
    """Its size is three planes with rows of whole 16 bytes."""
    emitted = subject(PLAIN).emitted
    m, n, k = 5, 6, 20
    sizes = {"M": m, "N": n, "K": k, "lda": k, "ldb": k, "ldc": n}
    a, b = np.ones((m, k), np.float32), np.ones((n, k), np.float32)
    given = {**sizes, "alpha": 1.0, "beta": 0.0, "A": a, "B": b, "C": np.zeros((m, n), np.float32)}
    kernel = compile_kernel(emitted.text, emitted.interface)
    size = PARTS * m * pitch_of(k, "bf16")
    planes, _ = emitted.interface.split
    assert emitted.interface.scratch_elements(planes, sizes) == size == 3 * 5 * 24
    with pytest.raises(CallError, match=rf"A_parts must be uint16 of shape \({size},\)"):
        kernel.run({**given, "A_parts": np.zeros(size - 1, np.uint16)})
    kernel.run(given)
    assert (given["C"] == k).all()
