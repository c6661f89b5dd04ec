"""Schedules that are a little simpler than a given one; many are illegal, and refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from gemmgen.ir.expr import Binary, Call, Expr, Select, Unary, Var, children, rebuild
from gemmgen.ir.parameters import ld_name
from gemmgen.schedule.model import (
    DEFAULT_GEMM,
    Argument,
    Assume,
    Directive,
    Dtypes,
    Gemm,
    Operand,
    Schedule,
)
from gemmgen.schedule.roles import batches, extents, roles

T = TypeVar("T")


def simpler(schedule: Schedule) -> Iterator[Schedule]:
    """The boldest first: whole statements, then operands and arguments, then values and names."""
    yield from _without_statements(schedule)
    yield from _without_parts(schedule)
    yield from _scaled(schedule)
    yield from _smaller_values(schedule)
    yield from _plainer_epilogue(schedule)
    yield from _fewer_batches(schedule)
    yield from _usual_names(schedule)
    yield from _usual_orders(schedule)


def _without_statements(schedule: Schedule) -> Iterator[Schedule]:
    plain = Schedule()
    if schedule.epilogue:
        yield replace(schedule, epilogue=None)
    if schedule.gemm.scales:
        yield replace(schedule, gemm=replace(schedule.gemm, scales=()))
    if schedule.assumes or schedule.requires or schedule.same_bits:
        yield replace(schedule, assumes=(), requires=(), same_bits=None)
    if schedule.directives:
        yield replace(schedule, directives=())
        names = dict.fromkeys(d.name for d in schedule.directives)
        for name in reversed(names):
            kept = tuple(d for d in schedule.directives if d.name != name)
            yield replace(schedule, directives=kept)
    for at in range(len(schedule.assumes)):
        yield replace(schedule, assumes=_but(schedule.assumes, at))
    names = [access.tensor for access in (schedule.gemm.a, schedule.gemm.b, schedule.gemm.c)]
    single: Dtypes = tuple((name, "f32") for name in (*names, "acc"))
    if schedule.dtypes != single:
        yield replace(schedule, dtypes=single)
    if schedule.target != plain.target:
        yield replace(schedule, target=plain.target)
    if schedule.kernel != plain.kernel:
        yield replace(schedule, kernel=plain.kernel)


def _but(items: tuple[T, ...], at: int) -> tuple[T, ...]:
    return items[:at] + items[at + 1 :]


def _without_parts(schedule: Schedule) -> Iterator[Schedule]:
    for at, directive in enumerate(schedule.directives):
        for operand in range(len(directive.operands)):
            if len(directive.operands) > 1:
                less = replace(directive, operands=_but(directive.operands, operand))
                yield _with(schedule, at, less)
        for argument in range(len(directive.arguments)):
            arguments = _but(directive.arguments, argument)
            if arguments or directive.operands:
                yield _with(schedule, at, replace(directive, arguments=arguments))


def _with(schedule: Schedule, at: int, directive: Directive) -> Schedule:
    found = list(schedule.directives)
    found[at] = directive
    return replace(schedule, directives=tuple(found))


def _scaled(schedule: Schedule) -> Iterator[Schedule]:
    """All sizes along a letter divided by one number: the tile, its warps, its micro-tiles."""
    for letter in roles(schedule.gemm):
        for words in (("tile",), ("tile", "warp_tile", "register_block"), ("tile", "warp_tile")):
            for divisor in (4, 2):
                directives = tuple(
                    _divided(d, letter, divisor) if d.name in words else d
                    for d in schedule.directives
                )
                if directives != schedule.directives:
                    yield replace(schedule, directives=directives)


def _divided(directive: Directive, letter: str, divisor: int) -> Directive:
    arguments = (
        (
            replace(a, value=a.value // divisor)
            if a.name == letter and isinstance(a.value, int) and a.value % divisor == 0
            else a
        )
        for a in directive.arguments
    )
    return replace(directive, arguments=tuple(arguments))


def _smaller_values(schedule: Schedule) -> Iterator[Schedule]:
    for at, directive in enumerate(schedule.directives):
        for at_argument, argument in enumerate(directive.arguments):
            if isinstance(argument.value, int):
                for less in _less(argument.value):
                    arguments = list(directive.arguments)
                    arguments[at_argument] = replace(argument, value=less)
                    yield _with(schedule, at, replace(directive, arguments=tuple(arguments)))
    for at, assume in enumerate(schedule.assumes):
        for less in _less(assume.divisor or 0):
            if less > 1:
                assumes = list(schedule.assumes)
                assumes[at] = replace(assume, divisor=less)
                yield replace(schedule, assumes=tuple(assumes))


def _less(value: int) -> Iterator[int]:
    for less in dict.fromkeys((1, 2, 4, 8, 16, 32, value // 2)):
        if 0 < less < value:
            yield less


def _plainer_epilogue(schedule: Schedule) -> Iterator[Schedule]:
    if schedule.epilogue:
        for less in _plainer(schedule.epilogue.expression):
            yield replace(schedule, epilogue=replace(schedule.epilogue, expression=less))


def _plainer(expr: Expr) -> Iterator[Expr]:
    """Each operation replaced by one of its operands, the outermost first."""
    parts = children(expr)
    if isinstance(expr, Select) or (isinstance(expr, Binary) and expr.op in "+-*/"):
        yield from parts[isinstance(expr, Select) :]
    elif isinstance(expr, (Unary, Call)):
        yield from parts
    elif not isinstance(expr, Binary) and expr != Var("acc"):
        yield Var("acc")
    for at, part in enumerate(parts):
        if isinstance(expr, (Binary, Unary, Select, Call)) and (at or not isinstance(expr, Select)):
            for less in _plainer(part):
                yield rebuild(expr, (*parts[:at], less, *parts[at + 1 :]))


def _fewer_batches(schedule: Schedule) -> Iterator[Schedule]:
    """One batch letter less, if the schedule has no epilogue, which may name it."""
    gemm = schedule.gemm
    if schedule.epilogue:
        return
    for letter in batches(gemm):
        c, a, b = (
            replace(x, indices=tuple(i for i in x.indices if i != letter))
            for x in (gemm.c, gemm.a, gemm.b)
        )
        yield replace(schedule, gemm=replace(gemm, c=c, a=a, b=b))


def _usual_names(schedule: Schedule) -> Iterator[Schedule]:
    """The usual letters and tensors, if the schedule has no epilogue, which may name others."""
    gemm, usual = schedule.gemm, DEFAULT_GEMM
    names = dict(zip(roles(gemm), roles(usual), strict=True))
    names |= {gemm.a.tensor: "A", gemm.b.tensor: "B", gemm.c.tensor: "C"}
    if schedule.epilogue or all(old == new for old, new in names.items()):
        return
    counts = zip(extents(gemm).values(), extents(usual).values(), strict=False)
    names |= dict(counts)
    names |= {old: old for old in batches(gemm)}
    accesses = (gemm.a, gemm.b, gemm.c)
    names |= {ld_name(a.tensor): ld_name(names[a.tensor]) for a in accesses}

    def letters(indices: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return indices and tuple(names[letter] for letter in indices)

    def operand(old: Operand) -> Operand:
        return replace(old, tensor=names[old.tensor], indices=letters(old.indices))

    def argument(old: Argument) -> Argument:
        value = names.get(old.value, old.value) if isinstance(old.value, str) else old.value
        return replace(old, name=names.get(old.name, old.name), value=value)

    def assume(old: Assume) -> Assume:
        return replace(old, name=names[old.name], equals=old.equals and names[old.equals])

    c, a, b = (
        replace(x, tensor=names[x.tensor], indices=letters(x.indices) or ())
        for x in (gemm.c, gemm.a, gemm.b)
    )
    directives = tuple(
        replace(
            d,
            operands=tuple(map(operand, d.operands)),
            arguments=tuple(map(argument, d.arguments)),
        )
        for d in schedule.directives
    )
    assumes = tuple(map(assume, schedule.assumes))
    dtypes = tuple((names.get(name, name), dtype) for name, dtype in schedule.dtypes)
    yield replace(
        schedule, gemm=Gemm(c, a, b), directives=directives, assumes=assumes, dtypes=dtypes
    )


def _usual_orders(schedule: Schedule) -> Iterator[Schedule]:
    """One tensor stored as usual."""
    m, n, k = roles(schedule.gemm)
    gemm = schedule.gemm
    for role, usual in (("a", (m, k)), ("b", (k, n)), ("c", (m, n))):
        access = {"a": gemm.a, "b": gemm.b, "c": gemm.c}[role]
        outer = tuple(letter for letter in access.indices if letter in batches(gemm))
        if access.indices != (*outer, *usual):
            transposed = replace(access, indices=(*outer, *usual))
            yield replace(schedule, gemm=replace(gemm, **{role: transposed}))
