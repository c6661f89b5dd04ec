"""What names and expressions mean while a kernel is compiled to closures."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from gemmgen.base.record import record
from gemmgen.interpreter.memory import Kind, Memory
from gemmgen.interpreter.simt import Mask
from gemmgen.numerics.operators import Value

Run = Callable[[Mask], Value]


class _Unknown:
    """No operator takes it: what depends on it is not computed."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = cast(Value, _Unknown())
"""The value of what a machine does not compute; a constant that absorbs all others."""


@record
class Closure:
    """A closure, its type in C, and its value if that is known before anything runs.

    If it is ``UNKNOWN``, the closure is run for its accesses alone; ``reads`` says if it has any.
    """

    run: Run
    kind: Kind
    known: Value | None = None
    reads: bool = False

    @property
    def accesses(self) -> Run | None:
        """What is left to do if the value is not used; None: nothing."""
        return self.run if self.reads else None


def known(value: Value, kind: Kind) -> Closure:
    """A value that is known before anything runs."""
    return Closure(lambda _: value, kind, value)


def unknown(kind: Kind, *parts: Closure) -> Closure:
    """What depends on a part that is ``UNKNOWN``: the accesses of all parts."""
    runs = [part.run for part in parts if part.reads]

    def run(mask: Mask) -> Value:
        for each in runs:
            each(mask)
        return UNKNOWN

    return Closure(run, kind, UNKNOWN, bool(runs))


@record
class FrameSlot:
    """A variable: its number in the frame and its type."""

    number: int
    kind: Kind


@record
class Array:
    """A memory and the extents by which its indices are flattened, as C does it.

    An index past its own extent lands in a neighbouring row; only the whole array is guarded.
    ``first`` is the element that a pointer points to; None: the memory's first.
    """

    memory: Memory
    sizes: tuple[int, ...] | None
    """None: one index, flat already."""
    first: FrameSlot | None = None


@record
class MatrixInTile:
    """An operand of tensor cores in shared memory, from the element that ``first`` holds on: rows
    of ``row`` bytes, 8 of them adjacent and the next 8 ``stride`` bytes further; ``swizzle``: the
    bytes within which 16-byte chunks are permuted, or 0.  If the operand is MN-major, the next atom
    column is ``leading`` bytes further."""

    tile: Memory
    first: FrameSlot
    swizzle: int
    row: int
    stride: int
    leading: int


Meaning = Closure | FrameSlot | Array | MatrixInTile


class Scope:
    """Names in nested braces, and the frame in which variables live."""

    def __init__(self) -> None:
        self.frame: list[Value] = []
        self.names: list[dict[str, Meaning]] = [{}]

    def enter(self) -> None:
        self.names.append({})

    def leave(self) -> None:
        self.names.pop()

    def bind(self, name: str, meaning: Meaning) -> None:
        self.names[-1][name] = meaning

    def slot_of(self, kind: Kind) -> FrameSlot:
        """A new variable without a name."""
        slot = FrameSlot(len(self.frame), kind)
        self.frame.append(0)
        return slot

    def variable(self, name: str, kind: Kind) -> FrameSlot:
        """A new variable of the innermost braces."""
        slot = self.slot_of(kind)
        self.bind(name, slot)
        return slot

    def find(self, name: str) -> Meaning:
        for names in reversed(self.names):
            if name in names:
                return names[name]
        raise KeyError(f"{name} is not declared here")

    def slot(self, name: str) -> FrameSlot:
        found = self.find(name)
        assert isinstance(found, FrameSlot), f"{name} is not a variable"
        return found

    def matrix(self, name: str) -> MatrixInTile:
        found = self.find(name)
        assert isinstance(found, MatrixInTile), f"{name} is not a descriptor"
        return found

    def array(self, name: str) -> Array:
        found = self.find(name)
        assert isinstance(found, Array), f"{name} is not an array"
        return found
