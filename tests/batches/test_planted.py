"""Mistakes with batches, planted in emitted text and in lowering, are found on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gemmgen.base.source import Source
from gemmgen.ir.control import Define
from gemmgen.ir.expr import Binary, Expr, Int, Var, transform
from gemmgen.ir.thread_code import Advance, Node
from gemmgen.lower import batches, bounds
from gemmgen.lower.context import Context
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import cpu, meaning
from gemmgen.proof.outcome import Subject
from gemmgen.sim.unit import BEGIN

from .schedules import SCHEDULES

TEXT = {
    "decodes by columns": ("b = blockIdx.x / matrix_tiles", "b = blockIdx.x / blocks_n"),
    "decodes by the wrong remainder": ("/ matrix_tiles % size_h", "/ matrix_tiles % size_b"),
    "drops the outer letter": ("/ matrix_tiles / size_h", "/ matrix_tiles % size_b"),
    "swaps two letters": ("stride_Q_b * b + stride_Q_h * h", "stride_Q_b * h + stride_Q_h * b"),
    "takes the stride of another tensor": ("Q += stride_Q_b * b", "Q += stride_K_b * b"),
    "takes the stride of another letter": ("stride_S_h * h", "stride_S_b * h"),
    "does not move an input": ("    K += stride_K_b * b + stride_K_h * h;\n", ""),
    "does not move the output": ("    S += stride_S_b * b + stride_S_h * h;\n", ""),
    "moves an input twice": ("K += stride_K_b", "K += 2 * stride_K_b"),
    "does not move a vector": ("    mask += stride_mask_b * b;\n", ""),
    "takes the same number of all": ("    slope += h;\n", ""),
    "counts all tiles as one matrix's": ("tile = blockIdx.x % matrix_tiles", "tile = blockIdx.x"),
    "moves by rows": ("S += stride_S_b * b", "S += (long long)I * lds * b"),
}


@pytest.mark.by_default("decodes by columns")
@pytest.mark.parametrize("bug", TEXT)
def test_a_run_of_the_text_shows_it(bug: str) -> None:
    before, after = TEXT[bug]
    name = "naive" if before == "b = blockIdx.x / matrix_tiles" else "attention_scores"
    right = compile_source(Source(SCHEDULES[name]))
    head, begin, kernel = right.text.partition(BEGIN)
    assert before in kernel, f"the emitted text has no {before!r} any more: mend this test"
    wrong = replace(right, text=head + begin + kernel.replace(before, after, 1))
    assert cpu.check(Subject(wrong)).status == "failed"


def numbered_wrongly(context: Context, number: Expr) -> tuple[Define, ...]:
    """The second letter's extent where the first one's belongs."""
    first, second = context.kernel.work.batch
    each = Binary("/", number, batches.EACH)
    size = bounds.extent(context, first)
    return Define(first, Binary("/", each, size)), Define(second, Binary("%", each, size))


def unmoved(context: Context) -> tuple[Advance, ...]:
    """The last tensor of the first two that move stays where it is."""
    return tuple(MOVES(context))[:1] + tuple(MOVES(context))[2:]


def of_the_other_input(context: Context) -> tuple[Node, ...]:
    """Each pointer moves by A's strides."""

    def rule(expr: Expr) -> Expr | None:
        return Var(expr.name.replace("_B_", "_A_")) if isinstance(expr, Var) else None

    return tuple(replace(move, by=transform(move.by, rule)) for move in MOVES(context))


def one_further(context: Context) -> tuple[Node, ...]:
    return tuple(replace(move, by=Binary("+", move.by, Int(1))) for move in MOVES(context))


MOVES = batches._moves
LOWERING: dict[str, tuple[str, Callable[..., object]]] = {
    "numbers": ("_numbers", numbered_wrongly),
    "a pointer that is not moved": ("_moves", unmoved),
    "strides of the other input": ("_moves", of_the_other_input),
    "an element too far": ("_moves", one_further),
}
SCHEDULE = """\
gemm C[b, c, m, n] = A[b, c, m, k] * B[b, c, k, n]
tile m=16 n=16 k=8
cache_shared A B
"""


def built() -> Emitted:
    return compile_source(Source(SCHEDULE))


@pytest.mark.by_default("an element too far")
@pytest.mark.parametrize("bug", LOWERING)
def test_the_programs_meaning_shows_it(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Subject(built(), ((5, 9, 7, 3, 2),))
    assert meaning.check(right).status == "passed"
    name, wrong = LOWERING[bug]
    monkeypatch.setattr(batches, name, wrong)
    outcome = meaning.check(right)
    assert outcome.status == "failed" and outcome.detail.startswith("after gemm: 5x9x7 in 3x2")
    assert cpu.check(Subject(built(), ((5, 9, 7, 3, 2),))).status == "failed"
