"""A schedule with the value of one argument replaced, by roles: the letters and tensors of a
schedule may have any names."""

from __future__ import annotations

from dataclasses import replace

from gemmgen.base.record import record
from gemmgen.language import VOCABULARY
from gemmgen.schedule.model import Argument, Directive, Operand, Schedule
from gemmgen.schedule.roles import roles
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec

Value = int | str
SPECS = {spec.name: spec for spec in VOCABULARY.specs}
_LETTERS = ("m", "n", "k")


@record
class Place:
    """An argument of a directive, for some of its operands.

    ``operands``: the roles a, b, c and hops (``A.register``: a, register) that the argument is
    given for; empty for a directive without operands.  ``argument``: its name, m, n and k for the
    letters of rows, columns and the contraction.
    """

    directive: str
    operands: tuple[tuple[str, str | None], ...]
    argument: str


def changed(schedule: Schedule, place: Place, value: Value) -> Schedule:
    """``schedule`` with the argument at ``place`` set to ``value``.

    A directive that is missing is added.  The result is not checked, and not canonical.
    """
    name, spec = _name(schedule, place), SPECS[place.directive]
    if not spec.operands:
        return _with(schedule, place.directive, (), Argument(name, value))
    tensors = {"a": schedule.gemm.a, "b": schedule.gemm.b, "c": schedule.gemm.c}
    wanted = {(tensors[role].tensor, hop or spec.bare) for role, hop in place.operands}
    found: list[Operand] = []
    arguments: tuple[Argument, ...] = ()
    rest: list[Directive] = []
    for directive in schedule.directives:
        mine = tuple(
            x
            for x in directive.operands
            if directive.name == place.directive and (x.tensor, x.hop or spec.bare) in wanted
        )
        if not mine:
            rest.append(directive)
            continue
        found += mine
        arguments = directive.arguments
        others = tuple(x for x in directive.operands if x not in mine)
        if others:
            rest.append(replace(directive, operands=others))
    if not found:
        found = [Operand(tensors[role].tensor, hop) for role, hop in place.operands]
    new = Directive(spec.name, tuple(found), _set(arguments, Argument(name, value), spec))
    return replace(schedule, directives=(*rest, new))


def value_at(schedule: Schedule, place: Place) -> Value | None:
    """The value at ``place``; what equals its absence if it is left out."""
    name, spec = _name(schedule, place), SPECS[place.directive]
    tensors = {"a": schedule.gemm.a, "b": schedule.gemm.b, "c": schedule.gemm.c}
    wanted = {(tensors[role].tensor, hop or spec.bare) for role, hop in place.operands}
    argument = _argument(spec, place.argument)
    for directive in schedule.directives:
        if directive.name != place.directive:
            continue
        if wanted and not any((x.tensor, x.hop or spec.bare) in wanted for x in directive.operands):
            continue
        given = directive.argument(name)
        if given is not None:
            return given.value
        return argument.default if argument.default is not None else argument.identity
    return argument.identity if argument.identity is not None else argument.default


def without(schedule: Schedule, directive: str, argument: str) -> Schedule:
    """``schedule`` without an argument that only checks what follows from the others."""
    directives = tuple(
        (
            replace(x, arguments=tuple(a for a in x.arguments if a.name != argument))
            if x.name == directive
            else x
        )
        for x in schedule.directives
    )
    return replace(schedule, directives=directives)


def _name(schedule: Schedule, place: Place) -> str:
    if place.argument in _LETTERS:
        return dict(zip(_LETTERS, roles(schedule.gemm), strict=True))[place.argument]
    return place.argument


def _argument(spec: DirectiveSpec, name: str) -> ArgumentSpec:
    return next(x for x in spec.arguments if x.name in (name, f"<{name}>"))


def _with(
    schedule: Schedule, directive: str, operands: tuple[Operand, ...], argument: Argument
) -> Schedule:
    spec = SPECS[directive]
    if not any(x.name == directive for x in schedule.directives):
        new = Directive(directive, operands, (argument,))
        return replace(schedule, directives=(*schedule.directives, new))
    directives = tuple(
        replace(x, arguments=_set(x.arguments, argument, spec)) if x.name == directive else x
        for x in schedule.directives
    )
    return replace(schedule, directives=directives)


def _set(
    arguments: tuple[Argument, ...], new: Argument, spec: DirectiveSpec
) -> tuple[Argument, ...]:
    """``arguments`` with ``new`` in the place of the one with its name, else at the end."""
    if not any(x.name == new.name for x in arguments):
        return (*arguments, new)
    return tuple(new if x.name == new.name else x for x in arguments)
