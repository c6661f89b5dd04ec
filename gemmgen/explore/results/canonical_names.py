"""Schedules with canonical names: letters m, n and k, tensors A, B and C.

A result measured for ``Y[r, o] = X[r, i] * W[o, i]`` holds for ``C[m, n] = A[m, k] * B[n, k]``.
Batch letters become ``b``, ``b1``, ... in the output's order; scales become ``SA`` and ``SB``,
tensors of the epilogue ``x0``, ``x1``, ... and its scalars ``s0``, ... in the order of the
expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import count

from gemmgen.base.record import record
from gemmgen.ir.blocked_letters import block, blocked, plain
from gemmgen.ir.expr import Element, Expr, Var, children, rebuild, walk
from gemmgen.ir.parameters import ld_name
from gemmgen.language import VOCABULARY
from gemmgen.schedule.epilogue_names import BUILT_IN
from gemmgen.schedule.model import (
    Access,
    Argument,
    Assume,
    Directive,
    Epilogue,
    Gemm,
    Scale,
    Schedule,
)
from gemmgen.schedule.roles import batches, extents, letters, roles, spelt

KERNEL = "gemm"


@record
class CanonicalNames:
    """Canonical names by a schedule's own: its letters, its tensors, its epilogue's scalars."""

    letters: tuple[tuple[str, str], ...]
    tensors: tuple[tuple[str, str], ...]
    scalars: tuple[tuple[str, str], ...]

    @staticmethod
    def of(schedule: Schedule) -> CanonicalNames:
        gemm = schedule.gemm
        batched = (f"b{at or ''}" for at in count())
        letters = [
            *zip(roles(gemm), "mnk", strict=True),
            *zip(batches(gemm), batched, strict=False),
        ]
        tensors = {gemm.a.tensor: "A", gemm.b.tensor: "B", gemm.c.tensor: "C"}
        tensors |= {scale.tensor: f"S{tensors[scale.of]}" for scale in gemm.scales}
        own, scalars = len(tensors), dict[str, str]()
        known = {letter for letter, _ in letters}.union(BUILT_IN)
        for part in walk(schedule.epilogue.expression) if schedule.epilogue else ():
            if isinstance(part, Element):
                tensors.setdefault(part.buffer, f"x{len(tensors) - own}")
            elif isinstance(part, Var) and part.name not in known:
                scalars.setdefault(part.name, f"s{len(scalars)}")
        return CanonicalNames(tuple(letters), tuple(tensors.items()), tuple(scalars.items()))

    @property
    def canonical(self) -> bool:
        """Whether every name is its own canonical name."""
        return all(x == y for x, y in (*self.letters, *self.tensors, *self.scalars))

    def reversed(self) -> CanonicalNames:
        """The schedule's own names by the canonical ones."""
        pairs = (self.letters, self.tensors, self.scalars)
        return CanonicalNames(*(tuple((y, x) for x, y in each) for each in pairs))


def renamed(schedule: Schedule, names: CanonicalNames) -> Schedule:
    """``schedule`` with the names that ``names`` maps its own to."""
    letter, tensor = dict(names.letters), dict(names.tensors)
    old = schedule.gemm
    c, a, b = (_access(x, letter, tensor) for x in (old.c, old.a, old.b))
    gemm = Gemm(c, a, b, tuple(_scale(x, letter, tensor) for x in old.scales))
    epilogue = schedule.epilogue
    if epilogue is not None:
        variables = letter | dict(names.scalars)
        epilogue = Epilogue(_expression(epilogue.expression, variables, tensor), epilogue.span)
    parameters = _parameters(old, gemm, names)
    same_bits = schedule.same_bits
    if same_bits is not None:
        letters = tuple(letter[x] for x in same_bits.letters)
        same_bits = replace(same_bits, letters=letters)
    return replace(
        schedule,
        gemm=gemm,
        dtypes=tuple((tensor.get(name, name), dtype) for name, dtype in schedule.dtypes),
        assumes=tuple(_assume(x, parameters) for x in schedule.assumes),
        directives=tuple(_directive(x, old, gemm, letter, tensor) for x in schedule.directives),
        epilogue=epilogue,
        same_bits=same_bits,
    )


def canonical(schedule: Schedule) -> Schedule:
    """The schedule with canonical names, as it is stored: without ``require`` lines."""
    found = renamed(replace(schedule, same_bits=None), CanonicalNames.of(schedule))
    return replace(found, kernel=KERNEL, requires=())


def _access(access: Access, letter: Mapping[str, str], tensor: Mapping[str, str]) -> Access:
    return Access(tensor[access.tensor], tuple(letter[x] for x in access.indices))


def _scale(scale: Scale, letter: Mapping[str, str], tensor: Mapping[str, str]) -> Scale:
    indices = tuple(blocked(letter[plain(x)], block(x)) for x in scale.indices)
    return Scale(tensor[scale.tensor], indices, tensor[scale.of])


def _expression(expr: Expr, variables: Mapping[str, str], tensor: Mapping[str, str]) -> Expr:
    if isinstance(expr, Var):
        return Var(variables.get(expr.name, expr.name))
    found = rebuild(expr, tuple(_expression(x, variables, tensor) for x in children(expr)))
    return replace(found, buffer=tensor[found.buffer]) if isinstance(found, Element) else found


def _parameters(old: Gemm, new: Gemm, names: CanonicalNames) -> dict[str, str]:
    """Extents and leading dimensions: the parameters that an assumption may name."""
    letter, its = dict(names.letters), extents(new)
    found = {name: its[letter[x]] for x, name in extents(old).items()}
    return found | {ld_name(x): ld_name(y) for x, y in names.tensors}


def _assume(assume: Assume, parameters: Mapping[str, str]) -> Assume:
    equals = assume.equals and parameters.get(assume.equals, assume.equals)
    return replace(assume, name=parameters.get(assume.name, assume.name), equals=equals)


def _directive(
    directive: Directive,
    old: Gemm,
    new: Gemm,
    letter: Mapping[str, str],
    tensor: Mapping[str, str],
) -> Directive:
    operands = tuple(
        replace(
            x,
            tensor=tensor[x.tensor],
            indices=x.indices and tuple(letter[index] for index in x.indices),
        )
        for x in directive.operands
    )
    spec = next(x for x in VOCABULARY.specs if x.name == directive.name)
    mine, its = letters(old), letters(new)
    names = {spelt(x.name, mine): spelt(x.name, its) for x in spec.arguments}
    words = {
        spelt(x.name, mine): {spelt(word, mine): spelt(word, its) for word in x.choices}
        for x in spec.arguments
    }

    def argument(given: Argument) -> Argument:
        value = given.value
        if isinstance(value, str):
            value = words[given.name].get(value, value)
        return replace(given, name=names[given.name], value=value)

    return replace(
        directive, operands=operands, arguments=tuple(map(argument, directive.arguments))
    )
