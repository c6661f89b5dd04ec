"""One thread's share of the contraction at one k: a micro-tile of multiply-adds."""

from __future__ import annotations

from collections.abc import Callable

from gemmgen.ir import names
from gemmgen.ir.buffers import Space
from gemmgen.ir.control import Assign, Define, For
from gemmgen.ir.edit import begins_early
from gemmgen.ir.expanded import Multiply, Stage
from gemmgen.ir.expr import Binary, Expr, Int, Select, Var
from gemmgen.ir.nodes import FmaOrder
from gemmgen.ir.simplify import add, all_of, choose, div, mod, sub
from gemmgen.ir.thread_code import Node
from gemmgen.lower import addresses, bounds
from gemmgen.lower.context import Context
from gemmgen.lower.types import computable, multiply_add, number

Body = Callable[[Expr, Expr], tuple[Node, ...]]
"""The multiply-add at a row and a column of the micro-tile."""


def multiply(context: Context, node: Multiply) -> tuple[Node, ...]:
    """``acc += a * b`` over the thread's micro-tile, in the order asked for."""
    m, n = context.letters

    def one(row: Expr, column: Expr) -> tuple[Node, ...]:
        a = _operand(context, node, node.contract.a, node.a_stage, m, row)
        b = _operand(context, node, node.contract.b, node.b_stage, n, column)
        a = _scaled(context, node, a, context.problem.a.name, m, row)
        b = _scaled(context, node, b, context.problem.b.name, n, column)
        total = addresses.sum_at(context, {m: row, n: column})
        target = "acc" if isinstance(total, Var) else total
        return (Assign(target, multiply_add(a, b, total, context.problem.accumulate)),)

    if context.scalar_accumulator:
        return one(Int(0), Int(0))
    return ORDERS[node.contract.order](context, one)


def _operand(
    context: Context, node: Multiply, name: str, stage: Stage, letter: str, register: Expr
) -> Expr:
    """An operand of a multiply-add: a fragment's register, or an element of shared or global
    memory."""
    source = context.buffer(name)
    if source.space is Space.REGISTER:
        return addresses.fragment_at(stage, name, register)
    own, k = addresses.own(context, letter, register), context.problem.k
    acc_type = context.problem.accumulate
    if source.space is Space.SHARED:
        element = addresses.in_shared(context, source, stage, {letter: own, k: node.k})
        return computable(element, source.dtype, acc_type)
    index, guard = _place(context, node, letter, register)
    element = addresses.in_global(context, name, index)
    return choose(guard, computable(element, source.dtype, acc_type), number(0, acc_type))


def _place(
    context: Context, node: Multiply, letter: str, register: Expr
) -> tuple[dict[str, Expr], Expr | None]:
    """The indices of an operand's element along ``letter`` and k, and whether it exists."""
    k, own = context.problem.k, addresses.own(context, letter, register)
    step = node.k if node.origin is None else add(node.origin, node.k)
    index: dict[str, Expr] = {letter: Var(letter), k: step}
    if not context.leaves_early:
        index[letter] = add(names.tile_origin(letter), own)
    return index, all_of(
        bounds.inside(context, letter, index[letter]), _along_k(context, node, step)
    )


def _along_k(context: Context, node: Multiply, k: Expr) -> Expr | None:
    """The condition under which ``k`` is in range; a loop without tiles has no other k."""
    if node.origin is None:
        return None
    if begins_early(context.kernel):
        return Binary(">=", k, Int(0))  # the first tile is partial, and the others are full
    return bounds.inside(context, context.problem.k, k)


def _scaled(
    context: Context, node: Multiply, value: Expr, operand: str, letter: str, register: Expr
) -> Expr:
    """An operand's element times the factor of its block, if its tensor has scales."""
    scaling = next((one for one in context.problem.scales if one.of == operand), None)
    if scaling is None:
        return value
    index, guard = _place(context, node, letter, register)
    factor = addresses.in_blocks(context, scaling.tensor, index)
    return value * choose(guard, factor, number(0, context.problem.accumulate))


def _rows(context: Context, body: Body) -> tuple[Node, ...]:
    m, n = context.letters
    row, column = Var(f"reg_{m}"), Var(f"reg_{n}")
    return (_over(row, m, (_over(column, n, body(row, column)),)),)


def _serpentine(context: Context, body: Body) -> tuple[Node, ...]:
    """Every other row backwards, so that a row begins with the operand the last one ended with."""
    m, n = context.letters
    row, step = Var(f"reg_{m}"), Var(f"step_{n}")
    column = Var(f"reg_{n}")
    turn = _turn(n, mod(row, Int(2)), step)
    return (_over(row, m, (_over(step, n, (Define(column.name, turn), *body(row, column))),)),)


def _zigzag(context: Context, body: Body) -> tuple[Node, ...]:
    """Pairs of rows, down and up again column by column: consecutive FMAs always share an
    operand."""
    m, n = context.letters
    pair, step, half = Var(f"pair_{m}"), Var(f"step_{n}"), Var("half")
    row, column = Var(f"reg_{m}"), Var(f"reg_{n}")
    turn = _turn(n, mod(div(pair, Int(2)), Int(2)), step)
    down = Select(Binary("==", mod(step, Int(2)), Int(0)), half, sub(Int(1), half))
    inner = (Define(row.name, add(pair, down)), *body(row, column))
    halves = For(half.name, Int(0), Int(2), Int(1), inner, unroll=True)
    columns = _over(step, n, (Define(column.name, turn), halves))
    return (For(pair.name, Int(0), names.registers(m), Int(2), (columns,), unroll=True),)


def _turn(letter: str, odd: Expr, step: Expr) -> Expr:
    """``step``, or counted from the other end on odd rows."""
    backwards = sub(sub(names.registers(letter), Int(1)), step)
    return Select(Binary("==", odd, Int(0)), step, backwards)


def _over(variable: Var, letter: str, body: tuple[Node, ...]) -> For[Node]:
    return For(variable.name, Int(0), names.registers(letter), Int(1), body, unroll=True)


ORDERS: dict[FmaOrder, Callable[[Context, Body], tuple[Node, ...]]] = {
    "rows": _rows,
    "serpentine": _serpentine,
    "zigzag": _zigzag,
}
