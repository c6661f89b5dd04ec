"""Control flow, variables and barriers, which the expanded and the lowered IR have in common.

``expand`` makes these nodes; ``lower`` keeps them and lowers what they contain.  The parameter of a
node with a body is the type of the statements in it.
"""

from __future__ import annotations

from typing import Generic, Literal, TypeVar

from gemmgen.base.record import record
from gemmgen.ir.buffers import Origins
from gemmgen.ir.expr import Binary, Element, Expr, Int, Select, Var

S = TypeVar("S", covariant=True)

DefineKind = Literal["int", "float", "double", "bool", "i32"]
"""What a variable holds: an index, a number, a truth; ``i32``, C's int, is an integer among
numbers, and has arithmetic of its own."""


@record
class Define:
    """``const int m = ...;`` or, ``mutable``, a variable that ``Assign`` changes."""

    SYNTAX = "{name} = {value}"

    name: str
    value: Expr
    kind: DefineKind = "int"
    mutable: bool = False


@record
class Assign:
    """``target = value;`` to an element of an array or a mutable variable."""

    SYNTAX = "{target} = {value}"

    target: Element | str
    value: Expr


@record
class For(Generic[S]):
    """``for (int variable = start; variable < stop; variable += step)``.

    ``start``, ``stop`` and ``step`` are the same for all threads of a block.
    """

    SYNTAX = "{variable} = {start} to {stop} step {step}"

    variable: str
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[S, ...]
    unroll: bool | int = False
    """Wholly, or that many times; a hint to the compiler without its own meaning."""


@record
class If(Generic[S]):
    """``if (condition) body else otherwise``; a barrier inside needs a condition all threads
    share.  What is ``rare`` is not counted where the condition is not known."""

    condition: Expr
    body: tuple[S, ...]
    otherwise: tuple[S, ...] = ()
    rare: bool = False


@record
class Break:
    """``if (condition) break;`` out of the innermost loop; the condition is the same for all
    threads of the block."""

    condition: Expr


@record
class Block(Generic[S]):
    """Statements under one comment, which cites the directives that they come from.

    ``scoped`` puts them in braces, where their names end with them.
    """

    note: str
    origins: Origins
    body: tuple[S, ...]
    scoped: bool = False


@record
class AdvanceRing:
    """``if (++stage == count) { stage = 0; phase ^= 1; }``: advance to the ring's next stage; after
    the last one its next round begins."""

    SYNTAX = "{stage} {phase} of {count}"

    stage: str
    phase: str
    count: Expr

    @property
    def assignments(self) -> tuple[Assign, Assign]:
        """The same as two assignments; the phase, which depends on the old stage, comes first."""
        stage, phase = Var(self.stage), Var(self.phase)
        last = Binary("==", stage, self.count - 1)
        return (
            Assign(self.phase, Select(last, Binary("^", phase, Int(1)), phase)),
            Assign(self.stage, Select(last, Int(0), stage + 1)),
        )
