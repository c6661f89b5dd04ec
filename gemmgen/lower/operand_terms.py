"""Operands that are split into parts: registers of parts, and accumulators that are not finite."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from gemmgen.ir import names
from gemmgen.ir.control import Assign, Define, For, If
from gemmgen.ir.expanded import Fetch, MultiplyAgain, Unscale
from gemmgen.ir.expr import Binary, Call, Element, Expr, Int, Unary, Var
from gemmgen.ir.lane_matrices import OperandArray, SplitMatrices, packed
from gemmgen.ir.planes import SCALES
from gemmgen.ir.simplify import add, all_of
from gemmgen.ir.thread_code import Node
from gemmgen.lower import addresses, bounds, matrix_rows
from gemmgen.lower.context import Context
from gemmgen.lower.mma_operand import Loading, MmaOperand
from gemmgen.lower.types import multiply_add, number


def load(context: Context, own: MmaOperand, node: Fetch, number: Expr) -> tuple[Node, ...]:
    """A piece's elements, to registers that are declared before them, and its parts."""
    into, loads = own.fragment.dtype, matrix_rows.loads(context, own, node, number)
    raw = f"{own.fragment.tensor}_raw"
    counts = [cast(int, one.get("count")) for one in loads]
    count = sum(counts)
    body: list[Node] = [OperandArray(raw, own.tile.dtype, (Int(count),), (count,))]
    first = 0
    for one, more in zip(loads, counts, strict=True):
        _, row = one.operands
        body.append(replace(one, operands=(Element(raw, (Int(first),)), row)))
        first += more
    pairs, whole = count // packed(into), Element(raw, (Int(0),))
    target, _ = loads[0].operands
    assert isinstance(target, Element)
    return (*body, SplitMatrices(target, whole, pairs, own.fragment.parts, into))


def unscale(context: Context, _node: Unscale) -> tuple[Node, ...]:
    """The accumulators of the thread times the inverses of the scales, which are written if there
    is a product at all."""
    (m, n), problem = context.letters, context.problem
    registers: dict[str, Expr] = {letter: Var(f"reg_{letter}") for letter in (m, n)}
    total = addresses.sum_at(context, registers)
    assert isinstance(total, Element)
    row, column = (SCALES.format(tensor=x.name) for x in (problem.a, problem.b))
    scale = Var("scale")
    scaled = Assign(total, total * scale * Element(column, (Var(n),)))
    each = bounds.guarded(bounds.inside(context, n, Var(n)), (scaled,))
    columns = over_registers(context, n, each)
    rows = (Define(scale.name, Element(row, (Var(m),)), "float"), *columns)
    body = over_registers(context, m, bounds.guarded(bounds.inside(context, m, Var(m)), rows))
    return (If[Node](Binary(">", bounds.extent(context, problem.k), Int(0)), body),)


def over_registers(context: Context, letter: str, body: tuple[Node, ...]) -> tuple[Node, ...]:
    """``body`` for each of a thread's accumulators along a letter, with its index in C."""
    own = addresses.own(context, letter, Var(f"reg_{letter}"))
    place = Define(letter, add(names.tile_origin(letter), own))
    stop = names.registers(letter)
    return (For(f"reg_{letter}", Int(0), stop, Int(1), (place, *body), unroll=True),)


def again(context: Context, node: MultiplyAgain) -> tuple[Node, ...]:
    """The accumulators of the thread that are not finite, one after another, over all of k."""
    (m, n), problem = context.letters, context.problem
    registers: dict[str, Expr] = {letter: Var(f"reg_{letter}") for letter in (m, n)}
    total = addresses.sum_at(context, registers)
    assert isinstance(total, Element)
    at: dict[str, Expr] = {letter: Var(letter) for letter in (m, n, problem.k)}
    a, b = (addresses.in_global(context, x.name, at) for x in (problem.a, problem.b))
    each = Assign(total, multiply_add(a, b, total, problem.accumulate))
    stop = bounds.extent(context, problem.k)
    whole = For[Node](problem.k, Int(0), stop, Int(1), (each,), unroll=1)
    wrong = Unary("!", Call("is_finite", (total,)))
    guard = all_of(bounds.inside(context, n, Var(n)), wrong)
    assert guard is not None
    recomputed = If[Node](guard, (Assign(total, number(0, problem.accumulate)), whole), rare=True)

    columns = over_registers(context, n, (recomputed,))
    inside = bounds.inside(context, m, Var(m))
    return over_registers(context, m, bounds.guarded(inside, columns))


LOADING = Loading(
    array=OperandArray, together=lambda own: 1, load=load, origins=matrix_rows.origins
)
