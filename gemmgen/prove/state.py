"""The state of all threads of a block at one point of their code."""

from __future__ import annotations

from dataclasses import dataclass, field

from gemmgen.base.record import record
from gemmgen.ir.param import Param
from gemmgen.numerics.operators import Bools, Ints
from gemmgen.prove.conditions import All, ChosenInteger, Condition, Integer, Truth
from gemmgen.prove.data import Data
from gemmgen.prove.goals import Where
from gemmgen.prove.mbarriers import BarrierStates
from gemmgen.prove.polynomials import Polynomial
from gemmgen.prove.shared_state import Cells
from gemmgen.prove.warp_clocks import Clocks, LastAccesses

Value = Integer | Condition | Data


@record
class VariableSlot:
    """A variable, by its key in a state."""

    key: str


@record
class GlobalPlace:
    """Global memory from ``offset`` on."""

    param: Param
    offset: Polynomial


@record
class SharedPlace:
    """Shared memory: ``first`` are indices that are given already; ``flat``: the next index is
    added to the last of them."""

    name: str
    first: tuple[Polynomial, ...] = ()
    flat: bool = False


@record
class RegisterPlace:
    """A register array, by its key in a state; the same for ``first`` and ``flat``."""

    key: str
    sizes: tuple[int, ...]
    first: tuple[Polynomial, ...] = ()
    flat: bool = False


@record
class MatrixPlace:
    """A descriptor of wgmma: its tile begins at ``place``; the rest as in ``DescribeMatrix``."""

    place: SharedPlace
    swizzle: int
    stride: int
    mn_major: bool


Binding = Value | VariableSlot | GlobalPlace | SharedPlace | RegisterPlace | MatrixPlace


class WalkScope:
    """Names and what they mean; ``depth`` and the warps' ``role`` make the keys of variables differ
    from others.  ``own``: a variable that has one number in all threads of the role has it in all
    threads, since no other one reads it."""

    def __init__(
        self, names: dict[str, Binding], depth: int = 0, role: str = "", own: bool = False
    ):
        self.names, self.depth, self.role, self.own = names, depth, role, own

    def inner(self) -> WalkScope:
        return WalkScope(dict(self.names), self.depth + 1, self.role, self.own)

    def copy(self) -> WalkScope:
        return WalkScope(dict(self.names), self.depth, self.role, self.own)

    def key(self, name: str) -> str:
        return f"{name}@{self.role}@{self.depth}"

    def has_ended(self, key: str) -> bool:
        """Whether a variable is of a scope within this one, which has ended."""
        _, role, depth = key.rsplit("@", 2)
        return role == self.role and int(depth) > self.depth


@record
class Write:
    """A store to shared memory that waits for the end of a condition."""

    name: str
    at: Ints
    value: Data
    mask: Bools | None
    where: Where


@dataclass
class WalkState:
    """``path`` is what holds here, ``mask`` the threads that are here as far as that is known;
    ``pending`` are stores under a condition; ``broken``: a loop is being left, and ``left``: one
    was left early since the enclosing loop's body began.  ``guard``: the conditions on sizes under
    which this branch is, which end with it.  ``multiplying`` are the arrays of accumulators that
    are not the threads', and how many groups of wgmma were committed since.  ``clocks`` and
    ``barriers`` are there if a kernel has mbarriers.  ``freed`` are symbols of an invariant that
    stand for whatever their variables have; a walk from there takes them for fixed, so no copy has
    them.  ``waiting`` are the threads at a cluster's barrier that other roles have not reached."""

    cells: dict[str, Cells]
    slots: dict[str, Value] = field(default_factory=dict[str, Value])
    registers: dict[tuple[str, int], Data] = field(default_factory=dict[tuple[str, int], Data])
    path: tuple[Condition, ...] = ()
    mask: Bools | None = None
    pending: list[Write] | None = None
    broken: bool = False
    left: bool = False
    guard: tuple[Condition, ...] = ()
    multiplying: dict[str, int] = field(default_factory=dict[str, int])
    clocks: Clocks | None = None
    barriers: BarrierStates | None = None
    freed: dict[str, str] = field(default_factory=dict[str, str])
    waiting: Bools | None = None

    def copy(self) -> WalkState:
        cells = {name: own.copy() for name, own in self.cells.items()}
        found = self._with(cells)
        found.clocks = None if self.clocks is None else self.clocks.copy()
        found.barriers = None if self.barriers is None else self.barriers.copy()
        return found

    def branch(self) -> WalkState:
        """A copy with the same shared memory."""
        return self._with(self.cells)

    def _with(self, cells: dict[str, Cells]) -> WalkState:
        found = WalkState(
            cells,
            dict(self.slots),
            dict(self.registers),
            self.path,
            self.mask,
            None if self.pending is None else list(self.pending),
            self.broken,
            self.left,
            self.guard,
            dict(self.multiplying),
            self.clocks,
            self.barriers,
        )
        found.waiting = self.waiting
        return found

    @property
    def traces(self) -> list[LastAccesses]:
        """The last accesses of each array."""
        return [cells.trace for cells in self.cells.values() if cells.trace is not None]


def is_integer(value: object) -> bool:
    return isinstance(value, Polynomial | ChosenInteger)


def under(state: WalkState, test: Condition) -> WalkState:
    """The state where a condition holds, with the same shared memory."""
    inner = state.branch()
    for part in test.parts if isinstance(test, All) else (test,):
        if not isinstance(part, Truth):
            inner.path = (*inner.path, part)
        elif not isinstance(part.value, bool):
            inner.mask = part.value if inner.mask is None else inner.mask & part.value
    return inner
