"""Tensor cores whose lanes know their elements: every storage order is right, and wrong code is
seen on a CPU."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
from chosen import is_even
from part_of_calls import is_right, keeps_its_meaning

from gemmgen.expand import inner_loop
from gemmgen.ir.atoms import ATOMS
from gemmgen.ir.buffers import Swizzle
from gemmgen.ir.control import For
from gemmgen.ir.expanded import Fetch, Multiply, Timed
from gemmgen.ir.expr import Element, Expr, Int
from gemmgen.ir.instruction import Instruction, is_instruction
from gemmgen.ir.nodes import Kernel, Loop
from gemmgen.ir.thread_code import Node
from gemmgen.lower import mma
from gemmgen.lower.context import Context
from gemmgen.proof import cpu, meaning
from gemmgen.proof.outcome import Subject

from .subjects import mutant, subject

PLAIN = """\
dtype A=f16 B=f16
tile m=32 n=64 k=32
cache_shared A B
warp_tile m=16 n=32
tensor_core via=mma
"""
TURING = f"target sm_75\n{PLAIN}vectorize A B width=2\n"
AHEAD = """\
dtype A=bf16 B=bf16 C=bf16
tile m=64 n=64 k=64
cache_shared A B
warp_tile m=32 n=16
tensor_core via=mma
vectorize A.global B.global width=8
vectorize C width=2
swizzle A by=8 every=1 chunk=8
swizzle B by=4 every=1 chunk=8
double_buffer A B stages=3
double_buffer A.register B.register
async_copy A B via=cp_async
raster group=2
"""
BIAS = """\
dtype A=bf16 B=bf16 C=bf16
tile m=48 n=40 k=64
cache_shared A B C
warp_tile m=48 n=8
tensor_core via=mma
vectorize A B width=4
vectorize C width=8
pad A B by=8
double_buffer A B
double_buffer A.register B.register
unroll k=32 tile_k=2
fuse_epilogue relu(acc + bias[n]) + row[m] * residual[m, n]
"""
PARTS = f"{AHEAD}split_k parts=3\n"
WALK = f"{AHEAD.replace('tile m=64 n=64', 'tile m=32 n=32')}persistent\n"
RIGHT = {
    "plain": PLAIN,
    "turing": TURING,
    "ahead": AHEAD,
    "bias": BIAS,
    "parts": PARTS,
    "walk": WALK,
}
ORDERS = tuple(itertools.product(("m, k", "k, m"), ("k, n", "n, k"), ("m, n", "n, m")))
STORED = ("plain", "turing", "ahead")
"""The last in all orders; the others, whose copies are simpler, in half of them."""


Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


@pytest.mark.proof
@pytest.mark.in_proof(share=2)
@pytest.mark.parametrize("name", RIGHT)
def test_right_kernels_hold(name: str) -> None:
    kernel = subject(RIGHT[name])
    keeps_its_meaning(kernel, name, RIGHT)
    is_right(kernel, name, RIGHT)


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize(
    ("name", "order"),
    [(name, order) for name in STORED for order in ORDERS if name == "ahead" or is_even(order)],
    ids=lambda each: each if isinstance(each, str) else "_".join(each).replace(", ", ""),
)
def test_every_storage_order_is_right(name: str, order: tuple[str, str, str]) -> None:
    a, b, c = order
    lines = RIGHT[name]
    if c == "n, m":
        lines = lines.replace("vectorize C width=2\n", "")
    target, _, rest = lines.rpartition("target sm_75\n")
    kernel = subject(f"gemm C[{c}] = A[{a}] * B[{b}]\n{target}{rest}")
    is_right(kernel, f"{name} {order}")


@pytest.mark.proof
@pytest.mark.parametrize("layout", ("A[k, m] B", "A B[n, k]", "A[k, m] B[n, k]"))
def test_tiles_that_are_transposed_on_the_way_in_are_right(layout: str) -> None:
    kernel = subject(PLAIN.replace("cache_shared A B", f"cache_shared {layout}"))
    for outcome in (meaning.check(kernel), cpu.check(kernel)):
        assert outcome.status == "passed", outcome


# Mistakes of the lowering, which the program's meaning shows as well as a run of the text.


def changed(rule: Callable[[Node], Node]) -> Callable[[tuple[Node, ...]], tuple[Node, ...]]:
    """``rule`` at each statement, also in loops."""

    def everywhere(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(
            replace(node, body=everywhere(node.body)) if isinstance(node, For) else rule(node)
            for node in nodes
        )

    return everywhere


def _loads(patch: Patch, rule: Callable[[Instruction], Instruction]) -> None:
    fetch = mma.fetch
    every = changed(lambda node: rule(node) if is_instruction(node, "ldmatrix") else node)
    patch.setitem(
        mma.LOWER, Fetch, lambda context, node: every(fetch(context, node))  # type: ignore[arg-type]
    )


def not_transposed(patch: Patch) -> None:
    """``.trans`` is missing."""
    _loads(patch, lambda node: replace(node, modifiers=node.modifiers[:2]))


def rows_exchanged(patch: Patch) -> None:
    """The digits of a register's number stand in the wrong order: rows 8 apart for k 8 apart."""
    traits = ATOMS["m16n8k16"]
    assert traits.a
    pair, row, column = traits.a.register
    wrong = replace(traits.a, register=(pair, column, row))
    operand = mma.operand

    def exchanged(context: Context, fragment: str) -> mma.Operand:
        own = operand(context, fragment)
        return replace(own, layout=wrong) if own.layout == traits.a else own

    patch.setattr(mma, "operand", exchanged)


def swizzled_on_one_side(patch: Patch) -> None:
    """The copy permutes the chunks of A, and what reads them does not know."""

    def plain(own: mma.Operand) -> mma.Operand:
        swizzle = own.tile.swizzle
        assert isinstance(swizzle, Swizzle | None)
        return replace(own, tile=replace(own.tile, swizzle=None))

    operand = mma.operand
    patch.setattr(mma, "operand", lambda context, name: plain(operand(context, name)))


def k_off_by_a_step(patch: Patch) -> None:
    """The first step's fragments for every step."""
    fetch = mma.fetch
    patch.setitem(
        mma.LOWER, Fetch, lambda context, node: fetch(context, replace(node, k=Int(0)))  # type: ignore[misc]
    )


def sums_of_another_row(patch: Patch) -> None:
    """A pair of fragments is added to the accumulators of the next pair."""
    multiply = mma.multiply

    def shift(node: Node) -> Node:
        if not isinstance(node, Instruction) or node.name != "mma":
            return node
        first, *others = node.operands
        assert isinstance(first, Element)
        row, column = first.indices
        wrong = replace(node, operands=(Element("acc", (Int(0), column)), *others))
        return wrong if row != Int(0) else node

    every = changed(shift)
    patch.setitem(
        mma.LOWER, Multiply, lambda context, node: every(multiply(context, node))  # type: ignore[arg-type]
    )


def fragments_a_step_early(patch: Patch) -> None:
    """What is read ahead is multiplied already."""
    multiply = inner_loop.multiply

    def early(
        kernel: Kernel, loop: Loop, k: Expr, origin: Expr | None, stage: inner_loop.StageOf
    ) -> tuple[Timed, ...]:
        following = inner_loop.plus(k, inner_loop.step_of(loop))
        one, *others = multiply(kernel, loop, following, origin, stage)
        assert isinstance(one, Multiply)
        return (replace(one, k=k), *others)

    patch.setattr(inner_loop, "multiply", early)


BY_MEANING: tuple[Plant, ...] = (
    *(not_transposed, rows_exchanged, swizzled_on_one_side, k_off_by_a_step, sums_of_another_row),
)


@pytest.mark.proof
@pytest.mark.parametrize("plant", BY_MEANING, ids=lambda plant: plant.__name__)
def test_the_programs_meaning_shows_it(plant: Plant, monkeypatch: Patch) -> None:
    right = subject(AHEAD)
    plant(monkeypatch)
    outcome = meaning.check(right)
    assert outcome.status == "failed" and "C[" in outcome.detail, outcome.detail


@pytest.mark.by_default("k_off_by_a_step")
@pytest.mark.parametrize(
    "plant", (*BY_MEANING, fragments_a_step_early), ids=lambda plant: plant.__name__
)
def test_a_run_of_the_text_shows_it(plant: Plant, monkeypatch: Patch) -> None:
    plant(monkeypatch)
    outcome = cpu.check(subject(AHEAD))
    assert outcome.status == "failed" and "C: " in outcome.detail, outcome.detail


MUTANTS = {
    "a row of another lane": ("* WM + lane % 16;", "* WM + lane / 2;", "C: "),
    "another warp's rows": (
        "B_row_n = (warp % (BN / WN)) * WN",
        "B_row_n = (warp / (BN / WN)) * WN",
        "C: ",
    ),
    "a row that is not at a multiple of 16 bytes": (
        "A_row_k = (lane / 16) * 8;",
        "A_row_k = (lane / 16) * 4;",
        "misaligned: ",
    ),
    "a stage not yet there": (
        "&A_shared[stage][A_row_m + frag_m * IM][A_row_k ^",
        "&A_shared[write_stage][A_row_m][A_row_k ^",
        "under way: ",
    ),
    "some lanes do not multiply": (
        "gg_mma_m16n8k16_bf16(&acc",
        "if (lane < 31) gg_mma_m16n8k16_bf16(&acc",
        "divergent warp in ",
    ),
    "some lanes do not load": (
        "gg_ldmatrix_x4(&A_frag",
        "if (lane != 5) gg_ldmatrix_x4(&A_frag",
        "divergent warp in ",
    ),
}
"""Of the text: what the lowering does not make, but a hand might."""


FUNCTIONS = {
    "not transposed": ("x4.trans.shared", "x4.shared"),
    "fragments of A exchanged": ('"r"(a[0]), "r"(a[1]),', '"r"(a[1]), "r"(a[0]),'),
    "fragments of B exchanged": ('"r"(b[0]), "r"(b[1])', '"r"(b[1]), "r"(b[0])'),
    "accumulators exchanged": ('"+f"(upper[0]), "+f"(upper[1])', '"+f"(upper[1]), "+f"(upper[0])'),
}
"""Of the functions above it."""


@pytest.mark.proof
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_run_shows_a_mistake_in_a_function(name: str) -> None:
    before, after = FUNCTIONS[name]
    right = subject(AHEAD)
    assert before in right.emitted.text
    wrong = Subject(replace(right.emitted, text=right.emitted.text.replace(before, after)))
    outcome = cpu.check(wrong)
    assert outcome.status == "failed" and "C: " in outcome.detail, outcome.detail


@pytest.mark.proof
@pytest.mark.parametrize("name", MUTANTS)
def test_a_run_of_a_mutant_shows_it(name: str) -> None:
    before, after, message = MUTANTS[name]
    outcome = cpu.check(mutant(AHEAD, before, after))
    assert outcome.status == "failed" and message in outcome.detail, outcome.detail
