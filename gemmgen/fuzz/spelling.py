"""One of the texts of the same facts: operands in one statement or several, defaults written or
not."""

from __future__ import annotations

from collections.abc import Iterator

from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.factors import OF_SLOT
from gemmgen.fuzz.facts import SLOTS, Fact, FactDirectives, Facts, Slot
from gemmgen.schedule.formatting import format_directive
from gemmgen.schedule.model import Argument, Directive, Gemm, Operand
from gemmgen.schedule.roles import letters, spelt, tensors
from gemmgen.schedule.spec import ArgumentSpec, Role

_APART, _BARE, _SHORT, _WRITTEN, _IDLE = 0.3, 0.7, 0.6, 0.1, 0.02
"""How likely: its own statement for an operand; an operand without its hop or its layout; a
stated default that is left out; one that is not stated, written; a statement without effect."""


def lines_of(dice: Dice, facts: Facts, directives: FactDirectives) -> list[str]:
    """The statements of ``facts``."""
    gemm, there = directives.gemm, [slot for slot in SLOTS if slot in facts]
    stated = dict(zip(there, directives.of(facts), strict=True))
    lines: list[str] = []
    for name in dict.fromkeys(slot.spec.name for slot in SLOTS):
        own = {slot: stated[slot] for slot in there if slot.spec.name == name}
        lines += _spelled(dice, own, facts, gemm)
        lines += _without_effect(dice, name, gemm) if not own else ()
    return lines


def _spelled(dice: Dice, own: dict[Slot, Directive], facts: Facts, gemm: Gemm) -> Iterator[str]:
    """The statements of one directive: operands with equal arguments in one, or in several."""
    groups: dict[tuple[object, ...], list[Slot]] = {}
    for slot, directive in own.items():
        apart = (slot.role,) if dice.chance(_APART) else ()
        groups.setdefault((directive.arguments, *apart), []).append(slot)
    for slots in groups.values():
        operands = tuple(_operands(dice, slots, own))
        arguments = _arguments(dice, slots[0], facts[slots[0]], own[slots[0]], gemm)
        yield format_directive(Directive(slots[0].spec.name, operands, arguments))


def _operands(dice: Dice, slots: list[Slot], own: dict[Slot, Directive]) -> Iterator[Operand]:
    roles: dict[Role, None] = {slot.role: None for slot in slots if slot.role}
    for role in roles:
        of_role = [slot for slot in slots if slot.role == role]
        spec = of_role[0].spec
        (plain,) = own[of_role[0]].operands
        hops = dict(spec.hops).get(role, ())
        if spec.bare is None and hops and len(of_role) == len(hops) and dice.chance(_BARE):
            yield Operand(plain.tensor)
            continue
        for slot in of_role:
            (operand,) = own[slot].operands
            if slot.hop is not None and operand.hop is None and not dice.chance(_BARE):
                yield Operand(operand.tensor, slot.hop)
            else:
                yield operand


def _arguments(
    dice: Dice, slot: Slot, fact: Fact, directive: Directive, gemm: Gemm
) -> tuple[Argument, ...]:
    """In any order; a default is written or not."""
    given = {a.name: a for a in directive.arguments}
    found: list[Argument] = []
    for spec in slot.spec.arguments:
        argument = given.get(spelt(spec.name, letters(gemm)))
        if argument is not None and dice.chance(_SHORT) and _may_be_left_out(slot, spec, fact):
            continue
        if argument is None and _is_harmless(spec) and dice.chance(_WRITTEN):
            value = spec.identity
            assert value is not None
            value = spelt(value, letters(gemm)) if isinstance(value, str) else value
            argument = Argument(spelt(spec.name, letters(gemm)), value)
        found += [argument] if argument else []
    return tuple(dice.shuffled(found) if dice.chance(_WRITTEN) else found)


def _may_be_left_out(slot: Slot, argument: ArgumentSpec, fact: Fact) -> bool:
    """Whether no factor depends on whether the argument is written."""
    if argument.required or argument.name in {factor.argument for factor in OF_SLOT[slot]}:
        return fact[argument.name] == argument.default
    return True


def _is_harmless(argument: ArgumentSpec) -> bool:
    """Whether the argument's absence and its ``identity`` are the same, whatever else is given."""
    return argument.identity is not None and argument.default == argument.identity


def _without_effect(dice: Dice, name: str, gemm: Gemm) -> Iterator[str]:
    """Sometimes a directive whose arguments all equal its absence."""
    slot = dice.pick([slot for slot in SLOTS if slot.spec.name == name])
    required = [a for a in slot.spec.arguments if a.required]
    if not required or any(a.identity is None for a in required) or not dice.chance(_IDLE):
        return
    operand = (Operand(tensors(gemm)[slot.role], slot.hop),) if slot.role else ()
    spelled = letters(gemm)
    arguments = [Argument(spelt(a.name, spelled), a.identity or 0) for a in required]
    yield format_directive(Directive(name, operand, tuple(arguments)))
