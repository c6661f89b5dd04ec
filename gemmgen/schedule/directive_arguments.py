"""The directives of the ladder: each statement checked against its specification."""

from __future__ import annotations

from gemmgen.base.errors import Mistakes, Refusal
from gemmgen.base.record import record
from gemmgen.base.source import Span, indexed, shown
from gemmgen.schedule.gemm_line import GemmScope
from gemmgen.schedule.model import Argument, Operand
from gemmgen.schedule.numbers import integer
from gemmgen.schedule.raw import RawArgument, RawDirective, RawOperand, RawSet, Word
from gemmgen.schedule.roles import batches, letters, matrix, spelt, tensors
from gemmgen.schedule.sets import Values
from gemmgen.schedule.spec import ArgumentSpec, DirectiveSpec, Role
from gemmgen.schedule.words import argument_meant, close


@record
class Checked:
    """A checked statement: its operands by role, its arguments in the spec's order."""

    spec: DirectiveSpec
    operands: tuple[tuple[Role, Operand], ...]
    arguments: tuple[Argument, ...]
    letters: tuple[tuple[str, str], ...]
    span: Span

    def written(self, name: str) -> str:
        """An argument's name in this schedule, if the spec names a role."""
        return spelt(name, dict(self.letters))

    def value(self, usual: int | str | None) -> int | str | None:
        """A value of the spec in this schedule: a role is a letter."""
        return self.written(usual) if isinstance(usual, str) else usual


def check_directive(
    raw: RawDirective, spec: DirectiveSpec, scope: GemmScope, values: Values, mistakes: Mistakes
) -> Checked:
    """Checks ``raw`` by ``spec``; records every mistake, and returns the correct parts."""
    checker = _DirectiveChecker(raw, spec, scope, values)
    arguments = checker.arguments(mistakes)
    first = arguments[0].span if arguments else None
    operands: list[tuple[Role, Operand]] = []
    for operand in raw.operands if scope.sure or not spec.operands else ():
        with mistakes.caught():
            operands.append(checker.operand(operand, first or operand.span))
    with mistakes.caught():
        checker.check_named()
    return Checked(spec, tuple(operands), arguments, tuple(checker.letters.items()), raw.span)


class _DirectiveChecker:
    def __init__(self, raw: RawDirective, spec: DirectiveSpec, scope: GemmScope, values: Values):
        self.raw, self.spec, self.values, self.sure = raw, spec, values, scope.sure
        self.given = {argument.name.text for argument in raw.arguments}
        self.word = spec.name
        self.letters = letters(scope.gemm)
        self.gemm = scope.gemm
        self.tensors: dict[str, Role] = {n: role for role, n in tensors(scope.gemm).items()}
        self.written = {a.name: spelt(a.name, self.letters) for a in spec.arguments}

    @property
    def has_unknown_letters(self) -> bool:
        """Whether arguments are named after letters of a ``gemm`` line that is wrong."""
        return not self.sure and any("<" in spec.name for spec in self.spec.arguments)

    def check_named(self) -> None:
        if self.spec.operands and not self.raw.operands:
            raise Refusal(
                f"{self.word} names no operand",
                at=self.raw.word.span,
                hint=f"name at least one of {self._allowed()}: `{self._example()}`",
            )

    def operand(self, raw: RawOperand, value_span: Span) -> tuple[Role, Operand]:
        name = raw.tensor.text
        if not self.spec.operands:
            raise self._stray(raw)
        role = self.tensors.get(name)
        if role is None:
            raise self._unknown_operand(raw)
        if role not in self.spec.operands:
            raise Refusal(
                f"{self.word} does not take {name}", at=raw.span, hint=f"it takes {self._allowed()}"
            )
        hop = self._hop(raw, role)
        indices = self._layout(raw, role) if self.spec.layout else None
        if raw.indices is not None and not self.spec.layout:
            raise Refusal(
                f"{self.word} takes no layout, only cache_shared does",
                at=raw.span,
                hint=f"write `{name}` alone",
            )
        return role, Operand(name, hop, indices, raw.span, value_span)

    def _allowed(self) -> str:
        return ", ".join(n for n, role in self.tensors.items() if role in self.spec.operands)

    def _stray(self, raw: RawOperand) -> Refusal:
        names = [self.written[a.name] for a in self.spec.arguments]
        if raw.tensor.text in names:
            hint = f"give {raw.tensor.text} a value: {raw.tensor.text}=..."
        else:
            hint = f"write it like `{self.spec.example}`"
        return Refusal(
            f"{self.word} takes no operand, but has {shown(raw.text)}", at=raw.span, hint=hint
        )

    def _unknown_operand(self, raw: RawOperand) -> Refusal:
        name = raw.tensor.text
        if name in self.written.values():
            return Refusal(f"{name} has no value", at=raw.span, hint=f"write it as `{name}=...`")
        near = close(name, self.tensors)
        upper = next((t for t in self.tensors if t.lower() == name.lower()), near)
        return Refusal(
            f"there is no tensor {shown(name)}",
            at=raw.tensor.span,
            hint=f"did you mean {upper}?" if upper else f"{self.word} takes {self._allowed()}",
        )

    def _hop(self, raw: RawOperand, role: Role) -> str | None:
        if raw.hop is None:
            return None
        hops = dict(self.spec.hops).get(role, ())
        if raw.hop.text in hops:
            return raw.hop.text
        name, near = raw.tensor.text, close(raw.hop.text, hops)
        options = [f"{name}.{hop}" for hop in hops]
        if not hops:
            hint = f"write `{name}` alone"
        elif near:
            hint = f"did you mean {name}.{near}?"
        else:
            hint = f"it takes {name}, or {' or '.join(options)}"
        raise Refusal(f"{self.word} does not take {shown(raw.text)}", at=raw.span, hint=hint)

    def _layout(self, raw: RawOperand, role: Role) -> tuple[str, ...]:
        access = {"a": self.gemm.a, "b": self.gemm.b, "c": self.gemm.c}[role]
        tiled = matrix(access, self.gemm)
        if raw.indices is None:
            return tiled
        there = tuple(word.text for word in raw.indices)
        if sorted(there) != sorted(tiled):
            one, other = (indexed(access.tensor, order) for order in (tiled, tiled[::-1]))
            what = f"{access.tensor} has"
            if tiled != access.indices:
                what = f"a tile of {access.tensor} has"
            raise Refusal(
                f"{what} the letters {' and '.join(tiled)}, each once",
                at=raw.span,
                notes=tuple(self._batch_note(x) for x in there if x in batches(self.gemm)),
                hint=f"{one} keeps the order of global memory, {other} transposes",
            )
        return there

    def _batch_note(self, letter: str) -> str:
        output = self.gemm.c.tensor
        return f"{letter} indexes the matrices of {output}: a block computes a tile of one of them"

    def arguments(self, mistakes: Mistakes) -> tuple[Argument, ...]:
        found: dict[str, Argument] = {}
        by_name = {self.written[spec.name]: spec for spec in self.spec.arguments}
        seen: set[str] = set()
        for raw in self.raw.arguments:
            with mistakes.caught():
                name = raw.name.text
                if name in seen:
                    raise Refusal(
                        f"{name} is given twice in {self.word}",
                        at=raw.span,
                        hint="keep one of them",
                    )
                seen.add(name)
                if name not in by_name:
                    self._unknown_argument(raw)
                    continue
                found[by_name[name].name] = self._argument(raw, by_name[name])
        with mistakes.caught():
            self._check_required(seen, found)
        return tuple(found[spec.name] for spec in self.spec.arguments if spec.name in found)

    def _unknown_argument(self, raw: RawArgument) -> None:
        if self.has_unknown_letters:
            return
        name, names = raw.name.text, ", ".join(self.written.values())
        if self.sure and name in batches(self.gemm):
            raise Refusal(
                f"{self.word} has no argument `{name}`",
                at=raw.name.span,
                notes=(self._batch_note(name),),
                hint=f"{self.word} takes {names}" if names else "leave it out",
            )
        near = argument_meant(name, {a: self.written[a.name] for a in self.spec.arguments})
        if near == name or near in self.given:
            near = None
        takes = f"{self.word} takes {names}" if names else "it takes none"
        raise Refusal(
            f"{self.word} has no argument `{shown(name)}`",
            at=raw.name.span,
            hint=f"did you mean `{near}`? {takes}" if near else takes,
        )

    def _says_nothing(self) -> bool:
        """Whether all arguments are left out, and their defaults ask for nothing."""
        idle = (
            spec.default is not None and spec.default == spec.identity
            for spec in self.spec.arguments
        )
        given = self.raw.operands or self.raw.arguments
        return bool(self.spec.arguments) and not given and all(idle)

    def _check_required(self, seen: set[str], found: dict[str, Argument]) -> None:
        missing = [
            self.written[spec.name]
            for spec in self.spec.arguments
            if spec.required and spec.name not in found and self.written[spec.name] not in seen
        ]
        if self._says_nothing() and not self.has_unknown_letters:
            known = " or ".join(self.written[spec.name] for spec in self.spec.arguments)
            raise Refusal(
                f"{self.word} has neither operands nor arguments: it takes {known}",
                at=self.raw.word.span,
                hint=f"write it like `{self._example()}`, or leave the line out",
            )
        unknown = seen - set(self.written.values())
        # A misspelt argument is reported once, not a second time as a missing one.
        if not missing or unknown:
            return
        if self.has_unknown_letters:
            return
        bare = {operand.text for operand in self.raw.operands} & set(missing)
        if not bare:
            given = " ".join(f"{name}=..." for name in missing)
            raise Refusal(
                f"{self.word} lacks {' and '.join(missing)}",
                at=self.raw.span if self.raw.operands or self.raw.arguments else self.raw.word.span,
                hint=f"add {given}, as in `{self._example()}`",
            )

    def _example(self) -> str:
        example = self.spec.example
        for spec in self.spec.arguments:
            if spec.name.startswith("<"):
                example = example.replace(f" {spec.name[1]}=", f" {self.written[spec.name]}=")
        return example

    def _argument(self, raw: RawArgument, spec: ArgumentSpec) -> Argument:
        name = raw.name.text
        # Every value of a set is checked, not only the chosen one; an empty set is reported
        # elsewhere.
        for item in self.values.candidates(raw.value):
            self._value(raw, item, spec)
        value = raw.value
        if isinstance(value, RawSet) and not value.items:
            return Argument(name, 1, raw.span)
        chosen = self.values.chosen(value)
        if spec.kind == "int":
            return Argument(name, int(chosen), raw.span)
        return Argument(name, dict(spec.formerly).get(chosen, chosen), raw.span)

    def _value(self, raw: RawArgument, item: Word, spec: ArgumentSpec) -> None:
        name, notes = raw.name.text, self.values.origin(raw.value)
        inside = isinstance(raw.value, RawSet)
        value = Word(item.text, item.span if inside else raw.value.span)
        if spec.kind == "int":
            integer(value, f"{self.word} {name}", spec.minimum, spec.maximum, notes)
            return
        choices = [self.letters.get(choice, choice) for choice in spec.choices]
        if item.text in dict(spec.formerly):
            return
        if item.text not in choices and (self.sure or spec.choices[0][:1] != "<"):
            near = close(item.text, choices)
            if self.sure and item.text in batches(self.gemm):
                notes = (*notes, self._batch_note(item.text))
            raise Refusal(
                f"{self.word} {name} can't be `{shown(item.text)}`",
                at=value.span,
                notes=notes,
                hint=(f"did you mean {near}? " if near else "") + f"one of {', '.join(choices)}",
            )
