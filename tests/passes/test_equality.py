"""What the comparison of two programs sees, and which rewrites may change bits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gemmgen.ir.edit import edit_main
from gemmgen.ir.expr import Binary, Expr
from gemmgen.ir.nodes import Kernel, Map, Pipeline, Program
from gemmgen.pipeline import make_concrete
from passes.equality import difference, order_of, other_bits, shapes_of
from passes.test_cases import rewritten

TILED = ["tile m=16 n=16 k=8", "cache_shared A[k, m] B"]


def with_value(program: Program, change: Callable[[Binary], Expr]) -> Program:
    """``program`` with another epilogue than ``alpha * acc + beta * C``."""

    def edit(kernel: Kernel) -> Kernel:
        *body, last = kernel.body
        assert isinstance(last, Map) and isinstance(last.value, Binary)
        return replace(kernel, body=(*body, replace(last, value=change(last.value))))

    return edit_main(program, edit)


def with_pipeline(program: Program, change: Callable[[Pipeline], Pipeline]) -> Program:
    def edit(kernel: Kernel) -> Kernel:
        parts = (change(s) if isinstance(s, Pipeline) else s for s in kernel.body)
        return replace(kernel, body=tuple(parts))

    return edit_main(program, edit)


WRONG: dict[str, tuple[Callable[[Program], Program], str]] = {
    "a scalar lost": (
        lambda p: with_value(p, lambda value: value.left),
        "after, 17x19x17: takes no beta",
    ),
    "a sign lost": (
        lambda p: with_value(p, lambda value: Binary("-", value.left, value.right)),
        "after, 17x19x17: C[0, 0] is ",
    ),
    "a tile that is never loaded": (
        lambda p: with_pipeline(p, lambda q: replace(q, produce=q.produce[:1])),
        "after, 17x19x17: C[0, 0] is nan",
    ),
    "another rounding": (
        lambda p: with_value(p, lambda value: Binary("+", value.right, value.left)),
        "17x19x17: before and after: wrong bits: ",
    ),
}


@pytest.mark.parametrize("mistake", WRONG)
def test_a_wrong_rewrite_is_seen(mistake: str) -> None:
    before, after = rewritten(TILED, "cache_shared")
    change, said = WRONG[mistake]
    assert difference(before, after) is None
    found = difference(before, change(after))
    assert found is not None and found.startswith(said), found


@pytest.mark.by_default("split_k parts=2", "pad A by=4")
@pytest.mark.parametrize(
    "line", ["split_k parts=2", "split_k parts=4 groups=2", "tensor_core via=wmma", "pad A by=4"]
)
def test_bits_are_left_aside_where_terms_are_added_in_another_order(line: str) -> None:
    halves = ["dtype A=f16 B=f16 C=f32", "tile m=32 n=32 k=16", "cache_shared A B"]
    before, after = rewritten([*halves, line], line.split()[0])
    lowered = make_concrete(before), make_concrete(after)
    same = other_bits(lowered, after.problem, shapes_of(after, lowered)[0]) is None
    assert same == (order_of(before) == order_of(after)) == (line == "pad A by=4")
