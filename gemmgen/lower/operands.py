"""A thread's fragments: its elements of one operand, for one k, read into registers."""

from __future__ import annotations

from gemmgen.ir import names
from gemmgen.ir.buffers import Space
from gemmgen.ir.control import Assign, Define, For
from gemmgen.ir.expanded import Fetch
from gemmgen.ir.expr import Element, Expr, Int, Var
from gemmgen.ir.nodes import Copy
from gemmgen.ir.simplify import add, all_of, choose
from gemmgen.ir.thread_code import Move, Node, RegisterArray, scoped
from gemmgen.lower import addresses, bounds
from gemmgen.lower.context import Context
from gemmgen.lower.guarded import Run, Target, call, each, is_function, read
from gemmgen.lower.types import computable, number


def fetch(context: Context, node: Fetch) -> tuple[Node, ...]:
    """A fragment: the thread's elements of one operand, for one k."""
    copy = node.copy
    (letter,) = context.buffer(copy.dst).letters
    source, axis = context.buffer(copy.src), context.axis(letter)
    register: Expr = Var(f"reg_{letter}") if axis.registers > copy.width else Int(0)
    own = addresses.own(context, letter, register, copy.width)
    k = context.problem.k

    def target(e: Expr) -> Element:
        return addresses.fragment_at(node.slot, copy.dst, add(register, e))

    body: tuple[Node, ...]
    if source.space is Space.SHARED:
        steps = {register.name: copy.width} if isinstance(register, Var) else None
        element = addresses.in_shared(
            context, source, node.stage, {letter: own, k: node.k}, steps=steps
        )
        value = computable(element, source.dtype, context.problem.accumulate)
        body = (Assign(target(Int(0)), value),)
        if copy.width > 1:
            raw, into, convert = _converted(context, copy, target)
            body = (*raw, Move(into(Int(0)), element, copy.width, source.dtype), *convert)
    else:
        step = node.k if node.origin is None else add(node.origin, node.k)
        index = {letter: Var(letter), k: step}
        body = (
            Define(letter, add(names.tile_origin(letter), own)),
            *_from_global(context, copy, index, node.origin is not None, target),
        )
    if isinstance(register, Int):
        return scoped(body)
    stop, by = names.registers(letter), context.width(copy.dst)
    return (For(register.name, Int(0), stop, by, body, unroll=True),)


def _from_global(
    context: Context, copy: Copy, index: dict[str, Expr], ragged_k: bool, target: Target
) -> tuple[Node, ...]:
    """The elements from global memory; k needs a guard only inside a tile."""
    if copy.width > 1:
        raw, into, convert = _converted(context, copy, target)
        run = Run(context, copy, index)
        elements = (call(run, into),) if is_function(run) else read(run, into)
        return (*raw, *elements, *convert)
    guard = all_of(
        *(
            bounds.inside(context, letter, at)
            for letter, at in index.items()
            if ragged_k or letter != context.problem.k
        )
    )
    element = addresses.in_global(context, copy.src, index)
    acc_type = context.problem.accumulate
    value = computable(element, context.buffer(copy.src).dtype, acc_type)
    return (Assign(target(Int(0)), choose(guard, value, number(0, acc_type))),)


def _converted(
    context: Context, copy: Copy, target: Target
) -> tuple[tuple[RegisterArray, ...], Target, tuple[For[Node], ...]]:
    """Where a wide read of a fragment goes: straight to ``target``, or, where the fragment is of
    another type, to raw registers (declared first) whose elements are converted after it."""
    dtype, width = context.buffer(copy.src).dtype, copy.width
    if dtype == context.buffer(copy.dst).dtype:
        return (), target, ()
    name = f"{context.buffer(copy.dst).tensor}_raw"
    value = computable(Element(name, (context.element,)), dtype, context.problem.accumulate)
    raw = RegisterArray(name, dtype, (context.width(copy.dst),), (width,), wide=True)
    return (
        (raw,),
        lambda e: Element(name, (e,)),
        (each(context, context.width(copy.dst), Assign(target(context.element), value)),),
    )
