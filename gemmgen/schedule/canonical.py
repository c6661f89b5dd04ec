"""The canonical sequence of directives for checked statements."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.base.errors import Mistakes
from gemmgen.base.record import record
from gemmgen.schedule.directive_arguments import Checked
from gemmgen.schedule.model import Argument, Directive, Operand
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Role

_ROLES: tuple[Role, ...] = ("a", "b", "c")


@record
class _Fact:
    """A statement's arguments for one hop of one operand."""

    operand: Operand
    arguments: tuple[Argument, ...]
    statement: Checked


def canonical(
    statements: list[Checked], spec: DirectiveSpec, mistakes: Mistakes
) -> tuple[Directive, ...]:
    """The directives of one name; ``statements`` are all of that name, in the file's order."""
    if spec.operands:
        return _grouped(_facts(statements, spec, mistakes), spec)
    for again in statements[1:]:
        message, hint = f"{spec.name} is given twice", f"keep one {spec.name} line"
        mistakes.repeated(message, again.span, hint, statements[0].span)
    return tuple(
        Directive(spec.name, (), _stated(first), first.span)
        for first in statements[:1]
        if not _is_identity(first)
    )


def _is_identity(statement: Checked) -> bool:
    """Whether every argument, given or by default, has the value that equals its absence."""
    given = {a.name: a.value for a in statement.arguments}
    values = [
        (
            given.get(statement.written(spec.name), statement.value(spec.default)),
            _usual(statement, spec) if spec.follows else statement.value(spec.identity),
        )
        for spec in statement.spec.arguments
    ]
    stated = [(value, identity) for value, identity in values if value is not None]
    return bool(stated) and all(value == identity for value, identity in stated)


def _stated(statement: Checked) -> tuple[Argument, ...]:
    """The arguments without those that equal their absence."""
    absent = {
        statement.written(spec.name): (
            _usual(statement, spec)
            if spec.follows
            else statement.value(spec.identity if spec.default is None else spec.default)
        )
        for spec in statement.spec.arguments
        if not spec.required
    }
    return tuple(a for a in statement.arguments if a.value != absent.get(a.name))


def _usual(statement: Checked, spec: ArgumentSpec) -> int | None:
    """What equals the absence of an argument that follows another one."""
    word = next((a.value for a in statement.arguments if a.name == spec.follows), None)
    return dict(spec.usual).get(str(word))


def _facts(
    statements: list[Checked], spec: DirectiveSpec, mistakes: Mistakes
) -> dict[tuple[Role, str], _Fact]:
    """One fact per operand and hop ("" without hops); records operands that are given twice."""
    found: dict[tuple[Role, str], _Fact] = {}
    for statement in statements:
        for role, operand in statement.operands:
            fact = _Fact(operand, _stated(statement), statement)
            again = [hop for hop in _hops(spec, role, operand) if (role, hop) in found]
            if again:
                first = found[role, again[0]]
                both = {operand.hop, first.operand.hop} == {None}
                name = operand.tensor if both else f"{operand.tensor}.{again[0]}"
                hint = f"keep one of them: {spec.name} is given at most once per operand"
                message, where = f"{spec.name} names {name} twice", first.statement.span
                mistakes.repeated(message, operand.span, hint, first.operand.span, where)
                continue
            found |= {(role, hop): fact for hop in _hops(spec, role, operand)}
    return {key: fact for key, fact in found.items() if not _is_identity(fact.statement)}


def _hops(spec: DirectiveSpec, role: Role, operand: Operand) -> tuple[str, ...]:
    """The hops that an operand names."""
    every = dict(spec.hops).get(role, ())
    if operand.hop is not None:
        return (operand.hop,)
    if spec.bare is not None:
        return (spec.bare,)
    return every or ("",)


def _grouped(facts: dict[tuple[Role, str], _Fact], spec: DirectiveSpec) -> tuple[Directive, ...]:
    """The facts as directives: operands with equal arguments together, in the order a, b, c."""
    groups: dict[tuple[Argument, ...], list[tuple[Operand, _Fact]]] = {}
    for role in _ROLES:
        for hop, fact in _merged(facts, spec, role):
            operand = replace(fact.operand, hop=hop)
            groups.setdefault(fact.arguments, []).append((operand, fact))
    return tuple(
        Directive(
            spec.name,
            tuple(operand for operand, _ in group),
            group[0][1].arguments,
            group[0][1].statement.span,
        )
        for group in groups.values()
    )


def _merged(
    facts: dict[tuple[Role, str], _Fact], spec: DirectiveSpec, role: Role
) -> list[tuple[str | None, _Fact]]:
    """The facts of one operand by hop; None if an operand without a hop is equivalent."""
    every = dict(spec.hops).get(role, ()) or ("",)
    there = [(hop, facts[role, hop]) for hop in every if (role, hop) in facts]
    said = {(fact.arguments, fact.operand.indices) for _, fact in there}
    if spec.bare is None and len(there) == len(every) and len(said) == 1:
        return [(None, there[0][1])]
    return [(None if hop in ("", spec.bare) else hop, fact) for hop, fact in there]
