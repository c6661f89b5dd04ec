"""f32 from bf16 products: right kernels pass, and terms that are omitted, exchanged, rounded twice
or not recomputed are detected on a CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from part_of_calls import is_right, keeps_its_meaning

from gemmgen.calling.inputs import drawn
from gemmgen.calling.launches import Case
from gemmgen.ir.control import For
from gemmgen.ir.decompositions import PARTS, left_out, products_of
from gemmgen.ir.expanded import Fetch
from gemmgen.ir.lane_matrices import SplitMatrices
from gemmgen.ir.thread_code import Node
from gemmgen.lower import mma
from gemmgen.lower.context import Context
from gemmgen.proof import cpu, meaning
from gemmgen.proof.calls import Caller
from gemmgen.proof.decomposed import Decomposed
from gemmgen.sim.run import compile_kernel

from .subjects import subject

PLAIN = """\
tile m=32 n=32 k=32
cache_shared A B[n, k]
warp_tile m=16 n=16
decompose into=bf16
tensor_core via=mma promote=32
"""
AHEAD = """\
gemm C[m, n] = A[m, k] * B[n, k]
tile m=64 n=32 k=32
cache_shared A B
warp_tile m=32 n=16
decompose into=bf16 products=9
tensor_core via=mma promote=32
vectorize A.global B.global width=4
vectorize C width=2
swizzle A B
double_buffer A B stages=3
double_buffer A.register B.register
async_copy A B via=cp_async
raster group=2
"""
PARTS_OF_K = """\
gemm C[b, m, n] = A[b, m, k] * B[n, k]
tile m=32 n=32 k=16
cache_shared A B
decompose into=bf16
tensor_core via=mma promote=32
pad A B by=4
split_k parts=3
"""
WALK = """\
gemm C[m, n] = A[m, k] * B[n, k]
tile m=32 n=32 k=32
cache_shared A B C
decompose into=bf16
tensor_core via=mma promote=32
swizzle A B
double_buffer A B
persistent
fuse_epilogue relu(acc + bias[n]) + residual[m, n]
"""
RIGHT = {"plain": PLAIN, "ahead": AHEAD, "parts": PARTS_OF_K, "walk": WALK}
SMALL = (33, 31, 50)
"""Every mistake shows at one ragged shape."""
CASES = tuple(
    Case(SMALL, data, 0.75, 1.0)
    for data in ("normal", "wide integers", "NaN in A", "infinity in B")
)

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


@pytest.mark.proof
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_hold(name: str) -> None:
    kernel = subject(RIGHT[name])
    keeps_its_meaning(kernel, name, RIGHT)
    is_right(kernel, name, RIGHT)


def test_parts_add_up() -> None:
    """All bits of f32 are in three parts; of numbers near the least some are lost."""
    numbers = np.random.default_rng(1).standard_normal(4096).astype(np.float32)
    numbers *= np.exp2(np.random.default_rng(2).integers(-80, 100, 4096)).astype(np.float32)
    parts = Decomposed("bf16", PARTS, 6, "m16n8k16_f32").split(numbers)
    assert (sum(part.astype(np.float64) for part in parts) == numbers).all()
    for number, bound in enumerate((1 + 2.0**-8, 2.0**-8, 2.0**-17)):
        assert (np.abs(parts[number]) <= bound * np.abs(numbers)).all()


def test_what_is_left_out_is_small() -> None:
    """Of nine products the largest six are multiplied, the smallest first."""
    assert products_of(1, 1) == ((0, 0),)
    six, nine = products_of(PARTS, 6), products_of(PARTS, 9)
    assert six == ((2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0)) and nine[3:] == six
    sizes = (1.0, 2.0**-8, 2.0**-17)
    assert sum(sizes[i] * sizes[j] for i, j in set(nine) - set(six)) <= left_out(6) < 2.0**-23
    assert left_out(9) == 0


@pytest.mark.parametrize("k", (1, 5, 6, 64, 1000))
def test_wide_integers_have_exact_sums(k: int) -> None:
    interface = subject(PLAIN).emitted.interface
    tensors = drawn(interface, Case((9, 7, k), "wide integers"))
    a, b = (np.abs(tensors[name].astype(np.float64)) for name in "AB")
    assert (a @ b).max() < 2.0**23.5
    assert k < 6 or min(a.max(), b.max()) >= 2.0**19


def complaint_of(text: str) -> str | None:
    """What runs of ``text``, which is that of ``PLAIN`` or nearly so, show."""
    emitted = subject(PLAIN).emitted
    return cpu.first_complaint(Caller(emitted), text, CASES, warn=False)


def greatest(text: str) -> np.ndarray:
    """A product of numbers that bf16 rounds to infinity and f32 can sum."""
    interface = subject(PLAIN).emitted.interface
    a, b = np.full((3, 20), 0.5, np.float32), np.full((20, 5), 2.0**-10, np.float32)
    a[1], c = np.finfo(np.float32).max, np.zeros((3, 5), np.float32)
    sizes = {"M": 3, "N": 5, "K": 20, "lda": 20, "ldb": 5, "ldc": 5}
    kernel = compile_kernel(text, interface)
    kernel.run({**sizes, "alpha": 1.0, "beta": 0.0, "A": a, "B": b, "C": c})
    assert (c[0] == a[0] @ b).all()
    return c[1] / np.float32(20 * 2.0**-10)


def test_the_greatest_numbers_have_their_sums() -> None:
    found = greatest(subject(PLAIN).emitted.text)
    assert np.allclose(found, np.finfo(np.float32).max, rtol=2.0**-20)


# Planted mistakes.


def _products(patch: Patch, wrong: tuple[tuple[int, int], ...]) -> None:
    patch.setattr(mma, "products_of", lambda parts, _: wrong if parts > 1 else ((0, 0),))


SIX = products_of(PARTS, 6)


def one_left_out(patch: Patch) -> None:
    _products(patch, SIX[1:])


def one_twice(patch: Patch) -> None:
    _products(patch, (SIX[0], *SIX))


def parts_exchanged(patch: Patch) -> None:
    """Part 2 of A is multiplied by part 1 of B."""
    _products(patch, ((2, 1), *SIX[1:]))


def _splits(patch: Patch, rule: Callable[[SplitMatrices], SplitMatrices]) -> None:
    fetch = mma.fetch

    def everywhere(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(
            (
                replace(node, body=everywhere(node.body))
                if isinstance(node, For)
                else rule(node) if isinstance(node, SplitMatrices) else node
            )
            for node in nodes
        )

    def changed(context: Context, node: Fetch) -> tuple[Node, ...]:
        return everywhere(fetch(context, node))

    patch.setitem(mma.LOWER, Fetch, changed)  # type: ignore[arg-type]


def a_part_is_missing(patch: Patch) -> None:
    """The smallest part is never made."""
    _splits(patch, lambda node: replace(node, parts=PARTS - 1))


def half_a_piece(patch: Patch) -> None:
    _splits(patch, lambda node: replace(node, count=node.count // 2))


BY_MEANING: tuple[Plant, ...] = (
    *(one_left_out, one_twice, parts_exchanged, a_part_is_missing, half_a_piece),
)


@pytest.mark.by_default("one_left_out")
@pytest.mark.parametrize("plant", BY_MEANING, ids=lambda plant: plant.__name__)
def test_the_programs_meaning_shows_it(plant: Plant, monkeypatch: Patch) -> None:
    right = subject(PLAIN, SMALL)
    plant(monkeypatch)
    outcome = meaning.check(right)
    assert outcome.status == "failed", outcome


@pytest.mark.proof
@pytest.mark.parametrize("plant", BY_MEANING[:3], ids=lambda plant: plant.__name__)
def test_a_run_of_the_text_shows_it(plant: Plant, monkeypatch: Patch) -> None:
    plant(monkeypatch)
    said = complaint_of(subject(PLAIN).emitted.text)
    assert said is not None and "C: " in said, said


MUTANTS = {
    "a part rounded twice": (
        "left[0] -= rounded[0], left[1] -= rounded[1];",
        "left[0] -= rounded[0] * 1.0078125f, left[1] -= rounded[1];",
        "C: ",
    ),
    "parts in the other order": ('"f"(left[1]), "f"(left[0])', '"f"(left[0]), "f"(left[1])', "C: "),
    "a pair of other elements": ("numbers[2 * i + 1]", "numbers[2 * i]", "C: "),
    "not computed again": ("!gg_is_finite(", "false && !gg_is_finite(", "C: "),
    "what no thread wrote": ("&A_raw[4]", "A_raw", "not finite"),
}
"""Text, what replaces it, and what the run says."""


@pytest.mark.proof
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_of_the_text_are_found(name: str) -> None:
    before, after, said = MUTANTS[name]
    text = subject(PLAIN).emitted.text
    assert before in text, "mend this test"
    found = complaint_of(text.replace(before, after))
    assert found is not None and said in found, found


@pytest.mark.proof
def test_sums_that_are_computed_again_in_part_are_found() -> None:
    loop = "for (int k = 0; k < K; ++k) {"
    text = subject(PLAIN).emitted.text
    assert loop in text, "mend this test"
    found = greatest(text.replace(loop, loop.replace("0", "1")))
    assert not np.allclose(found, np.finfo(np.float32).max, rtol=2.0**-20)
