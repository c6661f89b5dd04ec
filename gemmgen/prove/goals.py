"""What the walk collects: claims for the solver, and what it has refuted by itself."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import field
from typing import Literal

from gemmgen.base.record import record
from gemmgen.ir.buffers import Origins
from gemmgen.ir.text import print_ir
from gemmgen.numerics.operators import Bools
from gemmgen.prove import conditions, polynomials
from gemmgen.prove.conditions import Condition
from gemmgen.prove.polynomials import Polynomial

Fact = Literal[
    "global bounds",
    "alignment",
    "int32",
    "shared bounds",
    "register bounds",
    "barriers",
    "races",
    "products",
    "formula",
    "coverage",
]

FACTS: dict[Fact, str] = {
    "global bounds": "every access of global memory is inside its tensor, row by row",
    "alignment": "every vector access is aligned to its width",
    "int32": "no 32-bit integer overflows",
    "shared bounds": "every access of shared memory is inside its array",
    "register bounds": "every access of a register array is inside it",
    "barriers": "every barrier is reached by all threads of the block, and no wait is endless",
    "races": "no two threads conflict in shared memory, and no copy is read before it has landed",
    "products": "each element of C is the sum of its own products, each accumulated once",
    "formula": "what is stored is the schedule's formula of that sum, rounding aside",
    "coverage": "each element of C is written exactly once, and nothing else is",
}
"""The facts, in the order of a report."""


class Where:
    """A statement, and the directives that it came from."""

    def __init__(self, node: object = None, origins: Origins = ()):
        self.node, self.origins = node, origins

    @property
    def statement(self) -> str:
        """Its text in the lowered program, in one line."""
        return "" if self.node is None else " ".join(print_ir(self.node).split())


@record
class Goal:
    """``claim`` must hold wherever ``path`` does, in the threads of ``mask``.

    ``address`` is what the statement accesses there.  If it is not ``certain`` that a violation
    does harm, it refutes nothing.
    """

    fact: Fact
    claim: Condition
    path: tuple[Condition, ...]
    mask: Bools | None
    where: Where
    about: str
    address: tuple[str, tuple[Polynomial, ...]] = ("", ())
    certain: bool = True


@record
class KnownViolation:
    """A violation that needs no solver, in ``thread`` wherever ``path`` can hold; if not
    ``certain``, it may be the walk that knows too little.  Where ``assumed`` holds, it is certain:
    what the state of mbarriers assumes."""

    fact: Fact
    about: str
    path: tuple[Condition, ...]
    thread: int
    where: Where
    certain: bool = True
    assumed: tuple[Condition, ...] = ()


@record
class Range:
    """A 32-bit result."""

    form: Polynomial
    path: tuple[Condition, ...]
    mask: Bools | None
    where: Where


MOST = 20
"""Violations of a fact that are kept."""


@record
class Ledger:
    """Goals and violations, each once; nothing is added while it is ``quiet``."""

    goals: dict[object, Goal] = field(default_factory=dict[object, Goal])
    violations: list[KnownViolation] = field(default_factory=list[KnownViolation])
    ranges: dict[object, Range] = field(default_factory=dict[object, Range])
    quiet: list[bool] = field(default_factory=list[bool])
    counted: dict[Fact, int] = field(default_factory=dict[Fact, int])

    @contextmanager
    def silent(self) -> Generator[None]:
        """While nothing is added."""
        self.quiet.append(True)
        try:
            yield
        finally:
            self.quiet.pop()

    def mark(self) -> Ledger:
        """A copy, for ``reset``."""
        return Ledger(
            dict(self.goals),
            list(self.violations),
            dict(self.ranges),
            self.quiet,
            dict(self.counted),
        )

    def reset(self, mark: Ledger) -> None:
        """Removes what was added since ``mark``."""
        for own, old in (
            (self.goals, mark.goals),
            (self.ranges, mark.ranges),
            (self.counted, mark.counted),
        ):
            own.clear()
            own.update(old)  # type: ignore[arg-type]  # the same field of both
        self.violations[:] = mark.violations

    def goal(self, goal: Goal) -> None:
        if self.quiet:
            return
        self.counted[goal.fact] = self.counted.get(goal.fact, 0) + 1
        if isinstance(goal.claim, conditions.Truth) and goal.claim.value is True:
            return
        path = frozenset(conditions.signature(one) for one in goal.path)
        mask = None if goal.mask is None else goal.mask.tobytes()
        self.goals.setdefault((goal.fact, conditions.signature(goal.claim), path, mask), goal)

    def add(self, other: Ledger) -> None:
        """Adds all that another one has."""
        for violation in other.violations:
            self.violated(violation)
        if not self.quiet:
            for key, goal in other.goals.items():
                self.goals.setdefault(key, goal)
            for key, one in other.ranges.items():
                self.ranges.setdefault(key, one)
            for fact, count in other.counted.items():
                self.counted[fact] = self.counted.get(fact, 0) + count

    def count(self, fact: Fact) -> None:
        """One more check of a fact that was decided without the solver."""
        if not self.quiet:
            self.counted[fact] = self.counted.get(fact, 0) + 1

    def violated(self, violation: KnownViolation) -> None:
        if not self.quiet and len(self.of(violation.fact)) < MOST:
            self.violations.append(violation)

    def of(self, fact: Fact) -> list[KnownViolation]:
        return [one for one in self.violations if one.fact == fact]

    def ranged(self, one: Range) -> None:
        if self.quiet:
            return
        constant = one.form.constant
        ends = constant if isinstance(constant, int) else (int(constant.min()), int(constant.max()))
        own = tuple(part for part in polynomials.signature(one.form) if part[0] != polynomials.ONE)  # type: ignore[index]  # pairs
        self.ranges.setdefault((own, ends), one)
