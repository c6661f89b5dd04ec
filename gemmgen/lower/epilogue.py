"""The store: each thread computes its elements of C from its accumulators and writes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gemmgen.base.record import record
from gemmgen.ir import names
from gemmgen.ir.control import Assign, Define, For
from gemmgen.ir.dtypes import DType
from gemmgen.ir.epilogue_arithmetic import Spelling, reads, reads_unscaled
from gemmgen.ir.expr import Binary, Call, Element, Expr, Int, Select, Var, transform, walk
from gemmgen.ir.nodes import Map
from gemmgen.ir.simplify import add, all_of, choose
from gemmgen.ir.thread_code import Move, Node, RegisterArray
from gemmgen.ir.traversal import names_in
from gemmgen.lower import addresses, bounds, output_runs
from gemmgen.lower.context import Context
from gemmgen.lower.types import computable, kind, number, storable
from gemmgen.lower.vectors import store_width

OUT, OLD = "out", "old"
NOTE = "the epilogue"
ByElement = Callable[[Expr], Expr]
"""What belongs to number ``e`` of a run of neighbours."""


@record
class Own:
    """What a thread keeps for each of a run: its sum, the number of the register that holds its
    element of a vector, where those were read ahead of the rows, and its place in shared memory,
    where it does not go to C from here, or else its number in ``out``, where it stays."""

    total: ByElement
    register: ByElement = lambda e: e
    place: Callable[[Expr], Element] | None = None
    kept: Expr | None = None


def store(context: Context, node: Map) -> tuple[Node, ...]:
    """``dst = value`` over the thread's micro-tile, ``node.width`` elements at a time."""
    return alone(context, node, ALONE) if context.scalar_accumulator else _micro_tile(context, node)


def alone(context: Context, node: Map, own: Own) -> tuple[Node, ...]:
    """A thread's only element."""
    at: dict[str, Expr] = {letter: Var(letter) for letter in context.letters}
    body = element(context, node, own, at)
    if context.leaves_early:
        return body
    inside = all_of(*(bounds.inside(context, x, Var(x)) for x in context.letters))
    return with_indices(indices(context, {}, context.letters), bounds.guarded(inside, body))


ALONE = Own(lambda _: Var("acc"))
"""A thread with one sum."""


def _micro_tile(context: Context, node: Map) -> tuple[Node, ...]:
    """Rows of the micro-tile outside, runs along C's contiguous letter inside."""
    inner = context.problem.c.contiguous
    (outer,) = (letter for letter in context.letters if letter != inner)
    registers: dict[str, Expr] = {outer: Var(f"reg_{outer}"), inner: Var(f"reg_{inner}")}
    along_inner, node = _ahead_of_rows(context, node, inner, outer)

    body = row(context, node, registers)
    return (*along_inner, _loop(registers[outer], outer, Int(1), body))


def row(
    context: Context,
    node: Map,
    registers: dict[str, Expr],
    place: Callable[[Expr], Element] | None = None,
    index: Define | None = None,
) -> tuple[Node, ...]:
    """A row of the micro-tile: a run after another from the registers of these numbers; ``index``
    is its own along C's other letter, if it does not follow from its register."""
    inner = context.problem.c.contiguous
    (outer,) = (letter for letter in context.letters if letter != inner)

    def register(e: Expr) -> Expr:
        return add(registers[inner], e)

    def total(e: Expr) -> Expr:
        return addresses.sum_at(context, registers | {inner: register(e)})

    own, width = Own(total, register, place), store_width(context.kernel, node)
    along = indices(context, registers, (inner,), width)
    by = context.width(node.dst)
    run = with_indices(along, neighbours(context, node, own))
    columns = _loop(registers[inner], inner, by, run)
    rows = bounds.guarded(bounds.inside(context, outer, Var(outer)), (columns,))
    return with_indices((index,) if index else indices(context, registers, (outer,)), rows)


def with_indices(defines: tuple[Define, ...], body: tuple[Node, ...]) -> tuple[Node, ...]:
    """``body`` after those of ``indices`` that it uses: of what goes to shared memory not all."""
    used = names_in(body)
    return (*(index for index in defines if index.name in used), *body)


def _ahead_of_rows(
    context: Context, node: Map, inner: str, outer: str
) -> tuple[tuple[Node, ...], Map]:
    """Reads of the vectors along ``inner``, such as ``bias[n]``, once and not again in each row:
    the reads, and the map with registers instead of them."""

    def is_vector(expr: Expr) -> bool:
        """Whether it is read along ``inner``, within the block's matrix."""
        if not isinstance(expr, Element):
            return False
        letters = tuple(i.name for i in expr.indices if isinstance(i, Var))
        return context.problem.matrix(letters) == (inner,)

    tensors = dict.fromkeys(
        e.buffer for e in walk(node.value) if isinstance(e, Element) and is_vector(e)
    )
    if context.axis(outer).registers == 1:
        return (), node
    found: list[Node] = []
    register, count = Var(f"reg_{inner}"), context.axis(inner).registers
    for tensor in tensors:
        fragment, dtype = f"{tensor}_frag", context.numbers
        found.append(RegisterArray(fragment, dtype, (names.registers(inner),), (count,)))
        source = addresses.in_global(context, tensor, {inner: Var(inner)}, (inner,))
        value = computable(source, context.problem.dtype(tensor), dtype)
        guarded = choose(bounds.inside(context, inner, Var(inner)), value, number(0, dtype))
        read = Assign(Element(fragment, (register,)), guarded)
        found.append(
            _loop(register, inner, Int(1), (*indices(context, {inner: register}, (inner,)), read))
        )

    def rule(expr: Expr) -> Expr | None:
        if isinstance(expr, Element) and is_vector(expr):
            return Element(f"{expr.buffer}_frag", (register,))
        return None

    return tuple(found), replace(node, value=transform(node.value, rule))


def neighbours(
    context: Context, node: Map, own: Own, first: tuple[Node, ...] = ()
) -> tuple[Node, ...]:
    """The run of ``store_width`` elements from the index that the variables of C's letters hold, in
    a row of C; ``first`` is done where any of them exists."""
    inner = context.problem.c.contiguous
    at: dict[str, Expr] = {letter: Var(letter) for letter in context.letters}
    width = store_width(context.kernel, node)
    if width == 1:
        guard = bounds.inside(context, inner, Var(inner))
        return bounds.guarded(guard, (*first, *element(context, node, own, at)))
    # Where N is a multiple of the width, a run lies inside C as a whole, or outside.
    whole = bounds.multiple(context, inner, width)
    guard = bounds.inside(context, inner, Var(inner)) if whole else None
    return bounds.guarded(guard, (*first, *_run(context, node, own, at, inner)))


def _loop(register: Expr, letter: str, by: Expr, body: tuple[Node, ...]) -> For[Node]:
    assert isinstance(register, Var)
    stop = names.registers(letter)
    return For(register.name, Int(0), stop, by, body, unroll=True)


def indices(
    context: Context, registers: dict[str, Expr], letters: tuple[str, ...], width: int = 1
) -> tuple[Define, ...]:
    """The global indices of a thread's element: ``const int m = tile_m + ...``."""
    return tuple(
        Define(
            letter,
            add(
                names.tile_origin(letter),
                addresses.own(context, letter, registers.get(letter, Int(0)), width),
            ),
        )
        for letter in letters
    )


def element(context: Context, node: Map, own: Own, at: dict[str, Expr]) -> tuple[Node, ...]:
    """One element: read what the expression needs, compute, store."""
    target = addresses.in_global(context, context.output, at)
    body: list[Node] = []
    value, numbers = node.value, context.numbers
    if _skips_old(context, node):
        old = computable(target, context.buffer(node.dst).dtype, numbers)
        body.append(Define(OLD, _if_beta(old, numbers), kind(numbers)))
        value = _with_old(value, context.output, Var(OLD))
    spelling = Spelling(numbers)
    value = spelling.spell(_bound(context, value, own, Int(0), at, None))
    result = storable(value, context.buffer(node.dst).dtype)
    place = own.place(Int(0)) if own.place else target
    return (*body, *spelling.defines, Assign(place, result))


def _run(
    context: Context,
    node: Map,
    own: Own,
    at: dict[str, Expr],
    inner: str,
) -> tuple[Node, ...]:
    """``width`` neighbours: computed into registers, stored at once if all of them exist."""
    width = store_width(context.kernel, node)
    vector, dtype = context.width(node.dst), context.buffer(node.dst).dtype

    def memory(e: Expr) -> Element:
        return addresses.in_global(context, context.output, at | {inner: add(at[inner], e)})

    body: list[Node] = []
    if own.kept is None:
        body.append(RegisterArray(OUT, dtype, (vector,), (width,), wide=True))
    value, numbers = node.value, context.numbers
    if reads(value, context.output):
        body.append(RegisterArray(OLD, dtype, (vector,), (width,), zero=True, wide=True))
        load = output_runs.moved(context, node, Element(OLD, (Int(0),)), memory(Int(0)))
        needed = Binary("!=", Var("beta"), number(0, numbers))
        body.extend(bounds.guarded(needed if _skips_old(context, node) else None, load))
        old = computable(Element(OLD, (context.element,)), dtype, numbers)
        value = _with_old(value, context.output, old)
    spelling = Spelling(numbers)
    here = at | {inner: add(at[inner], context.element)}
    guard = None
    if not bounds.runs_are_whole(context, inner, width):
        guard = bounds.inside(context, inner, here[inner])
    result = spelling.spell(_bound(context, value, own, context.element, here, guard))
    to = Element(OUT, (add(own.kept or Int(0), context.element),))
    each = (*spelling.defines, Assign(to, storable(result, dtype)))
    body.append(For(context.element.name, Int(0), vector, Int(1), each))
    out = Element(OUT, (Int(0),))
    if own.kept is not None:
        return tuple(body)
    if own.place:
        return (*body, Move(own.place(Int(0)), out, width, dtype))
    return (*body, *output_runs.moved(context, node, memory(Int(0)), out))


def _skips_old(context: Context, node: Map) -> bool:
    """Whether C is read only as ``beta * C``, so that beta = 0 spares the read."""
    output = context.output
    return reads(node.value, output) and not reads_unscaled(node.value, output)


def _if_beta(element: Expr, numbers: DType) -> Expr:
    nothing = number(0, numbers)
    return Select(Binary("!=", Var("beta"), nothing), element, nothing)


def _with_old(value: Expr, tensor: str, old: Expr) -> Expr:
    def rule(expr: Expr) -> Expr | None:
        return old if isinstance(expr, Element) and expr.buffer == tensor else None

    return transform(value, rule)


def _bound(
    context: Context,
    value: Expr,
    own: Own,
    e: Expr,
    at: dict[str, Expr],
    guard: Expr | None,
) -> Expr:
    """The expression at one element: sum, tensors and indices put in; reads guarded if asked."""
    numbers = context.numbers

    def rule(expr: Expr) -> Expr | None:
        match expr:
            case Var("acc"):
                return computable(own.total(e), context.problem.accumulate, numbers)
            case Var(name) if name in context.named:
                index = at.get(name, expr)
                return index if numbers == "i32" else Call("float", (index,))
            case Element(tensor, (Var(name),)) if name == f"reg_{context.problem.c.contiguous}":
                return Element(tensor, (own.register(e),))
            case Element(tensor, indices) if tensor not in (OLD, "acc"):
                letters = tuple(i.name for i in indices if isinstance(i, Var))
                inner = context.problem.c.contiguous
                condition = guard if inner in letters else None
                element = addresses.in_global(context, tensor, at, letters)
                value = computable(element, context.problem.dtype(tensor), numbers)
                return choose(condition, value, number(0, numbers))
            case Element(_, _):
                return expr
            case _:
                return None

    return transform(value, rule)
