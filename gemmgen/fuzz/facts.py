"""A schedule's directives by slots, each of which can be stated once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gemmgen.base.record import record
from gemmgen.language import VOCABULARY
from gemmgen.schedule.model import Access, Argument, Directive, Gemm, Operand, Schedule, Value
from gemmgen.schedule.roles import letters, matrix, spelt, tensors
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Role


@record
class Slot:
    """A fact that a schedule states at most once: a directive, of an operand and a hop if any."""

    spec: DirectiveSpec
    role: Role | None = None
    hop: str | None = None

    __eq__, __hash__ = object.__eq__, object.__hash__  # each is in ``SLOTS`` once

    @property
    def name(self) -> str:
        operand = f" {self.role.upper()}" if self.role else ""
        return f"{self.spec.name}{operand}" + (f".{self.hop}" if self.hop else "")


Fact = Mapping[str, Value]
"""Arguments by the names of their specification, in their units; ``LAYOUT`` is an operand's."""
Facts = Mapping[Slot, Fact]
LAYOUT = "layout"
KEPT, TRANSPOSED = "kept", "transposed"
"""A tile keeps the order that its operand has in global memory, or not."""


def _slots() -> Iterator[Slot]:
    for spec in VOCABULARY.specs:
        if not spec.operands:
            yield Slot(spec)
        for role in spec.operands:
            for hop in dict(spec.hops).get(role, (None,)):
                yield Slot(spec, role, hop)


SLOTS = tuple(_slots())
"""Of all directives but the epilogue, in the order of the passes."""
_SLOT = {(slot.spec.name, slot.role, slot.hop): slot for slot in SLOTS}


class FactDirectives:
    """Facts as directives of a schedule with one ``gemm`` line."""

    def __init__(self, gemm: Gemm):
        self.gemm, self._spelled = gemm, letters(gemm)
        self._known: dict[object, Directive] = {}

    def of(self, facts: Facts) -> tuple[Directive, ...]:
        """One for each slot, in the order of the passes."""
        return tuple(self._directive(slot, facts) for slot in SLOTS if slot in facts)

    def _directive(self, slot: Slot, facts: Facts) -> Directive:
        fact = facts[slot]
        layout = fact.get(LAYOUT)
        values = tuple(
            (a.name, _written(fact[a.name], a, facts))
            for a in slot.spec.arguments
            if a.name in fact
        )
        key = slot, layout, values
        if key not in self._known:
            spelled = self._spelled
            arguments = (Argument(spelt(n, spelled), spelled.get(str(v), v)) for n, v in values)
            operands = (self._operand(slot, layout),) if slot.role else ()
            self._known[key] = Directive(slot.spec.name, operands, tuple(arguments))
        return self._known[key]

    def _operand(self, slot: Slot, layout: Value | None) -> Operand:
        access = _access(self.gemm, slot.role)
        indices = None
        if slot.spec.layout:
            kept = matrix(access, self.gemm)
            indices = kept if layout == KEPT else kept[::-1]
        return Operand(access.tensor, None if slot.hop == slot.spec.bare else slot.hop, indices)


def _access(gemm: Gemm, role: Role | None) -> Access:
    return {"a": gemm.a, "b": gemm.b}.get(role or "", gemm.c)


def _written(value: Value, argument: ArgumentSpec, facts: Facts) -> Value:
    """A value as it is written, not in units."""
    return value * _unit(argument, facts) if isinstance(value, int) and argument.times else value


def _unit(argument: ArgumentSpec, facts: Facts, *, written: bool = False) -> int:
    """The unit of ``argument``'s values: the same argument of the first of the directives in its
    ``times``; ``written``: the values in ``facts`` are not in units."""
    for name in argument.times:
        for slot, fact in facts.items():
            value = fact.get(argument.name)
            if slot.spec.name == name and isinstance(value, int):
                (own,) = (a for a in slot.spec.arguments if a.name == argument.name)
                return value if written else value * _unit(own, facts)
    return 1


def facts_of(schedule: Schedule) -> dict[Slot, Fact]:
    """The facts of a schedule by slot."""
    found = _stated(schedule)
    return {
        slot: fact
        | {
            a.name: value // _unit(a, found, written=True)
            for a in slot.spec.arguments
            if isinstance(value := fact.get(a.name), int)
        }
        for slot, fact in found.items()
    }


def _stated(schedule: Schedule) -> dict[Slot, dict[str, Value]]:
    gemm, found = schedule.gemm, dict[Slot, dict[str, Value]]()
    role_of: dict[str, Role] = {tensor: role for role, tensor in tensors(gemm).items()}
    spelled = letters(gemm)
    meant = {letter: role for role, letter in spelled.items()}
    for directive in schedule.directives:
        spec = next(s for s in VOCABULARY.specs if s.name == directive.name)
        given = {a.name: meant.get(str(a.value), a.value) for a in directive.arguments}
        fact = {
            a.name: value
            for a in spec.arguments
            if (value := given.get(spelt(a.name, spelled), a.default)) is not None
        }
        if not spec.operands:
            found[_SLOT[spec.name, None, None]] = fact
        for operand in directive.operands:
            role = role_of[operand.tensor]
            own = fact
            if operand.indices is not None:
                kept = operand.indices == matrix(_access(gemm, role), gemm)
                own = fact | {LAYOUT: KEPT if kept else TRANSPOSED}
            for hop in _hops(spec, role, operand):
                found[_SLOT[spec.name, role, hop]] = own
    return found


def _hops(spec: DirectiveSpec, role: Role, operand: Operand) -> tuple[str | None, ...]:
    if operand.hop is not None or spec.bare is not None:
        return (operand.hop or spec.bare,)
    return dict(spec.hops).get(role, (None,))
