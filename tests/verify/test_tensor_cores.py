"""Tensor cores: every storage order is right, and wrong code is seen on a CPU."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
from chosen import is_even
from part_of_calls import is_right, keeps_its_meaning

from gemmgen.expand import inner_loop
from gemmgen.ir.buffers import Buffer
from gemmgen.ir.expanded import Fetch, Multiply, Timed
from gemmgen.ir.expr import Expr, Int
from gemmgen.ir.instruction import is_instruction
from gemmgen.ir.nodes import Kernel, Loop, Map
from gemmgen.ir.thread_code import Node
from gemmgen.lower import shared_arrays, wmma
from gemmgen.lower.context import Context
from gemmgen.proof import cpu, meaning
from gemmgen.proof.outcome import Subject

from .subjects import mutant, subject

PLAIN = """\
dtype A=f16 B=f16
tile m=32 n=64 k=32
cache_shared A B
warp_tile m=16 n=32
tensor_core via=wmma
"""
WIDE = f"""\
{PLAIN.replace("A=f16 B=f16", "A=f16 B=f16 C=f16")}vectorize A.global B.global C width=8
pad A by=8
pad B by=16
double_buffer A B stages=3
async_copy A B via=cp_async
raster group=2
"""
AHEAD = f"{WIDE}double_buffer A.register B.register\n"
BIAS = """\
dtype A=bf16 B=bf16 C=bf16
tile m=48 n=32 k=64
cache_shared A B
tensor_core via=wmma
vectorize A B width=4
vectorize C width=2
double_buffer A B
double_buffer A.register B.register
unroll k=32 tile_k=2
fuse_epilogue relu(acc + bias[n])
"""
PARTS = f"{WIDE}split_k parts=3\n"
RIGHT = {"plain": PLAIN, "wide": WIDE, "ahead": AHEAD, "bias": BIAS, "parts": PARTS}

ORDERS = tuple(itertools.product(("m, k", "k, m"), ("k, n", "n, k"), ("m, n", "n, m")))


Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


def in_order(schedule: str, order: tuple[str, str, str]) -> str:
    a, b, c = order
    return f"gemm C[{c}] = A[{a}] * B[{b}]\n{schedule}"


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
    [("wide", each) for each in ORDERS] + [("bias", each) for each in ORDERS if is_even(each)],
    ids=lambda each: each if isinstance(each, str) else "_".join(each).replace(", ", ""),
)
def test_every_storage_order_is_right(name: str, order: tuple[str, str, str]) -> None:
    kernel = subject(in_order(RIGHT[name], order))
    is_right(kernel, f"{name} {order}")


@pytest.mark.proof
@pytest.mark.parametrize("layout", ("A[k, m] B", "A B[n, k]", "A[k, m] B[n, k]"))
def test_tiles_that_are_transposed_on_the_way_in_are_right(layout: str) -> None:
    kernel = subject(PLAIN.replace("cache_shared A B", f"cache_shared {layout}"))
    for outcome in (meaning.check(kernel), cpu.check(kernel)):
        assert outcome.status == "passed", outcome


def lines_without_their_pad(patch: Patch) -> None:
    """The wrong leading dimension."""

    def short(context: Context, tile: Buffer) -> Expr:
        return shared_arrays.row(context, replace(tile, pad=0))

    patch.setattr(wmma, "shared_arrays", SimpleNamespace(row=short))


def columns_for_rows(patch: Patch) -> None:
    """Fragments of B are loaded as if its tile lay the other way."""
    line = wmma._line

    def transposed(context: Context, tile: Buffer) -> str:
        found = line(context, tile)
        if tile.name != "B_shared":
            return found
        return "row" if found == "col" else "col"

    patch.setattr(wmma, "_line", transposed)


def fragment_of_the_wrong_step(patch: Patch) -> None:
    """The first step's fragments for every step."""
    fetch = wmma.fetch

    def stuck(context: Context, node: inner_loop.Fetch) -> tuple[Node, ...]:
        return fetch(context, replace(node, k=Int(0)))

    patch.setitem(wmma.LOWER, Fetch, stuck)


def slots_mixed_up(patch: Patch) -> None:
    """What is read ahead is multiplied already."""
    multiply = inner_loop.multiply

    def early(
        kernel: Kernel, loop: Loop, k: Expr, origin: Expr | None, stage: inner_loop.StageOf
    ) -> tuple[Timed, ...]:
        following = inner_loop.plus(k, inner_loop.step_of(loop))
        right, *others = multiply(kernel, loop, following, origin, stage)
        assert isinstance(right, Multiply)
        return (replace(right, k=k), *others)

    patch.setattr(inner_loop, "multiply", early)


def half_of_the_steps(patch: Patch) -> None:
    """Every other step of a tile is left out."""
    step_of = inner_loop.step_of

    def twice(loop: Loop) -> Expr:
        step = step_of(loop)
        return step if loop.step == 1 else inner_loop.plus(step, step)

    patch.setattr(inner_loop, "step_of", twice)


def no_warp_barriers(patch: Patch) -> None:
    """Accumulators are read before they are there, and overwritten before they are read."""
    store = wmma.store

    def bare(context: Context, node: object) -> tuple[Node, ...]:
        return tuple(_without(one) for one in store(context, node))

    patch.setitem(wmma.LOWER, Map, bare)


def _without(node: Node) -> Node:
    if not hasattr(node, "body"):
        return node
    body = tuple(_without(one) for one in node.body if not is_instruction(one, "sync_warp"))
    return replace(node, body=body)


BY_MEANING: dict[Plant, str] = {
    lines_without_their_pad: "C[",
    columns_for_rows: "C[",
    fragment_of_the_wrong_step: "C[",
    half_of_the_steps: "C[",
}
BY_RUN: dict[Plant, str] = {
    lines_without_their_pad: "",
    columns_for_rows: "",
    fragment_of_the_wrong_step: "C: ",
    slots_mixed_up: "C: ",
    half_of_the_steps: "C: ",
    no_warp_barriers: "race: ",
}


@pytest.mark.proof
@pytest.mark.parametrize("plant", BY_MEANING, ids=lambda plant: plant.__name__)
def test_the_programs_meaning_shows_it(plant: Plant, monkeypatch: Patch) -> None:
    right = subject(WIDE)
    plant(monkeypatch)
    outcome = meaning.check(right)
    assert outcome.status == "failed"
    after = ("after tensor_core: ", "after pad: ")
    assert outcome.detail.startswith(after) and BY_MEANING[plant] in outcome.detail


@pytest.mark.proof
@pytest.mark.parametrize("plant", BY_RUN, ids=lambda plant: plant.__name__)
def test_a_run_of_the_text_shows_it(plant: Plant, monkeypatch: Patch) -> None:
    plant(monkeypatch)
    outcome = cpu.check(subject(AHEAD))
    assert outcome.status == "failed" and BY_RUN[plant] in outcome.detail, outcome.detail


MUTANTS = {
    "the wrong leading dimension": ("[k], BK + A_PAD);", "[k], BK);", ""),
    "a pitch that breaks lines": ("[k], BK + A_PAD);", "[k], BK + 4);", "misaligned: "),
    "a fragment of the wrong k": ("[warp_m][k], BK", "[warp_m][0], BK", "C: "),
    "a fragment of another warp": ("[k][warp_n + frag_n * IN]", "[k][frag_n * IN]", "C: "),
    "a stage not yet there": (
        "&A_shared[stage][warp_m]",
        "&A_shared[write_stage][warp_m]",
        "under way: ",
    ),
    "no barrier before the accumulators are read": ("__syncwarp();", "", "race: "),
    "acc of the other warps": ("acc_shared[slice_m][warp_n", "acc_shared[slice_m][0", "race: "),
    "lanes in each other's place": ("* 32 + lane;", "* 32 + lane / 2;", "two owners: "),
    "some lanes do not multiply": (
        "gg_wmma_multiply_row", "if (lane < 31) gg_wmma_multiply_row", "divergent warp in ",
    ),
    "some lanes do not load": (
        "gg_wmma_load_a", "if (lane != 5) gg_wmma_load_a", "divergent warp in ",
    ),
    "a guard dropped": ("if (m < M) {", "if (true) {", "out of bounds: "),
}  # fmt: skip


EVERYWHERE = {"the tile's lines not padded": ("[BN + B_PAD]", "[BN]", "under way: ")}
"""Where the tile is declared and where it is a parameter."""


@pytest.mark.proof
@pytest.mark.parametrize("name", (*MUTANTS, *EVERYWHERE))
def test_a_run_of_a_mutant_shows_it(name: str) -> None:
    before, after, message = (MUTANTS | EVERYWHERE)[name]
    outcome = cpu.check(mutant(WIDE, before, after, 2 if name in EVERYWHERE else 1))
    assert outcome.status == "failed" and message in outcome.detail, outcome.detail


@pytest.mark.proof
def test_sums_overwritten_before_they_are_read() -> None:
    """The barrier after a row of fragments, whose addresses the next row reuses."""
    schedule = WIDE.replace("warp_tile m=16", "warp_tile m=32")
    right = subject(schedule)
    first, barrier, last = right.emitted.text.rpartition("__syncwarp();")
    assert barrier
    wrong = Subject(replace(right.emitted, text=first + last))
    outcome = cpu.check(wrong)
    assert outcome.status == "failed" and "race: " in outcome.detail
    assert "acc_shared[" in outcome.detail and "tensor_core via=wmma" in outcome.detail
