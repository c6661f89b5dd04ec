"""What a kernel's statements are run on.

``checked`` computes values and refuses what a thread may not do; a machine that only counts
accesses is in ``gemmgen.analyze``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from gemmgen.base.record import record
from gemmgen.interpreter.memory import Memory
from gemmgen.interpreter.scope import Closure, MatrixInTile, Scope
from gemmgen.interpreter.simt import Index, Lanes, Mask
from gemmgen.ir.atoms import Atom
from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.control import Block, For
from gemmgen.ir.dtypes import DType
from gemmgen.ir.lane_matrices import OperandArray
from gemmgen.ir.lowered import SharedArray
from gemmgen.ir.param import Param
from gemmgen.ir.thread_code import Node, RegisterArray
from gemmgen.ir.warp_matrices import FragmentArray, LoadFragment, StoreFragment
from gemmgen.numerics.operators import Bools, Value
from gemmgen.numerics.tensor_core_additions import TensorCoreAdditions

Step = Callable[[Mask], object]
"""A statement, compiled."""
Trip = Callable[[int], bool]
"""Makes a loop's trip of a number, if a lane takes part in it; whether one does."""
Trips = Callable[[Trip, Value, Value, Value, Mask], None]
"""Makes the trips of a loop, given its start, stop and step."""


class Copies(Protocol):
    """Asynchronous copies, by groups."""

    def issue(self, target: Memory, index: Index, values: Sequence[Value], mask: Mask) -> None:
        """Begins the copy of neighbours to ``index`` on."""
        ...

    def commit(self, mask: Mask) -> None: ...

    def wait(self, pending: int, mask: Mask) -> None: ...


@record
class Boxes:
    """The boxes of a ``tensor``: sizes, strides in elements and a box's sides, innermost first;
    and its map's ``swizzle``."""

    tensor: Memory
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    sides: tuple[int, ...]
    swizzle: int = 0


class Barriers(Protocol):
    """Barriers in shared memory by name and number, and the copies that they count."""

    def declare(self, array: BarrierArray) -> None: ...

    def init(self, name: str, index: Index, arrivals: int, mask: Mask) -> None: ...

    def fence(self, mask: Mask) -> None: ...

    def expect(self, name: str, index: Index, count: int, mask: Mask) -> None:
        """One arrival of each lane, and this many bytes more."""
        ...

    def arrive(self, name: str, index: Index, mask: Mask, block: Value | None = None) -> None:
        """One arrival of each lane; at the barrier of the ``block`` of its cluster with this
        rank."""
        ...

    def wait(self, name: str, index: Index, parity: Value, mask: Mask) -> None: ...

    def test(self, name: str, index: Index, parity: Value, mask: Mask) -> Bools: ...

    def load(
        self,
        boxes: Boxes,
        at: Sequence[Index],
        target: Memory,
        to: Index,
        barrier: tuple[str, Index],
        mask: Mask,
        blocks: Value | None = None,
    ) -> None:
        """Begins the copy of a box that begins with the element ``at`` to ``to`` on, for each lane;
        with ``blocks``, bits of ranks, in each of these blocks of its cluster."""
        ...


class Stores(Protocol):
    """Boxes that TMA stores from shared memory, by groups of the lane that asks."""

    def store(
        self, boxes: Boxes, at: Sequence[Index], source: Memory, first: Index, mask: Mask
    ) -> None:
        """Begins the store of a box that lies from ``first`` on and begins with the element ``at``
        of the tensor, for each lane."""
        ...

    def commit(self, mask: Mask) -> None: ...

    def wait(self, pending: int, mask: Mask) -> None: ...


@record
class Lines:
    """A fragment in memory: its lines begin at ``first``, and this many elements apart."""

    memory: Memory
    first: Index
    apart: int


@record
class MatrixRows:
    """``count`` matrices of 8 rows of 16 bytes, whose elements are of ``dtype``; whether a lane
    gets them with rows and columns exchanged."""

    count: int
    dtype: DType
    transposed: bool = False


class Warps(Protocol):
    """What the lanes of a warp do together."""

    def read(self, node: LoadFragment, lines: Lines, mask: Mask) -> Sequence[Value]:
        """Each lane's elements of a fragment."""
        ...

    def write(
        self, node: StoreFragment, lines: Lines, values: Sequence[Value], mask: Mask
    ) -> None: ...

    def matrices(
        self, matrices: MatrixRows, tile: Memory, rows: Index, mask: Mask
    ) -> Sequence[Value]:
        """Each lane's elements of matrices, whose rows the lanes name."""
        ...

    def store_matrices(
        self, matrices: MatrixRows, tile: Memory, rows: Index, values: Sequence[Value], mask: Mask
    ) -> None:
        """The other way round: each lane's ``values`` to the rows that the lanes name."""
        ...

    def converge(self, mask: Mask) -> None:
        """All lanes of a warp come to a step, or none."""
        ...


@record
class OperandInTile:
    """A matrix from its ``first`` element on, ``further`` bytes on; whether an instruction takes
    its rows as those along m or n, one for each k."""

    matrix: MatrixInTile
    first: Index
    further: int
    mn_major: bool


@record
class WarpgroupProduct:
    """``accumulators = a * b`` of a warpgroup, for ``n`` columns, with the old accumulators where
    it ``keeps`` them; ``first``: a thread's first register in each of its rows."""

    atom: Atom
    n: int
    a: OperandInTile
    b: OperandInTile
    accumulators: Memory
    first: tuple[int, int]
    keeps: Value
    core: TensorCoreAdditions | None = None
    """How products are added; None: those of integers."""


class Multiplies(Protocol):
    """Asynchronous multiplications of warpgroups, by groups."""

    def issue(self, instruction: WarpgroupProduct, mask: Mask) -> None: ...

    def commit(self, mask: Mask) -> None: ...

    def wait(self, pending: int, mask: Mask) -> None: ...

    def end(self, accumulators: Memory, mask: Mask) -> None:
        """Until none is under way; ``accumulators`` are the threads' again."""
        ...


class Machine(Protocol):
    """What a kernel runs on: its lanes, memories and barriers."""

    @property
    def lanes(self) -> Lanes: ...

    @property
    def computes(self) -> bool:
        """Whether floats are computed; else each that changes is ``UNKNOWN``."""
        ...

    @property
    def copies(self) -> Copies: ...

    @property
    def barriers(self) -> Barriers: ...

    @property
    def stores(self) -> Stores: ...

    @property
    def warps(self) -> Warps: ...

    @property
    def multiplies(self) -> Multiplies: ...

    @property
    def role(self) -> str | None:
        """The one whose threads the lanes are; None: they are whole blocks."""
        ...

    def builtins(self) -> Mapping[str, Index]:
        """``threadIdx``, ``blockIdx`` and ``gridDim``."""
        ...

    def parameter(self, param: Param) -> Closure | Memory: ...

    def shared(self, array: SharedArray) -> Memory: ...

    def registers(
        self, array: RegisterArray | FragmentArray | OperandArray, size: int
    ) -> tuple[Memory, Step | None]:
        """A memory of ``size`` elements a lane, and what is done when its declaration is
        reached."""
        ...

    def barrier(self, mask: Mask) -> None:
        """All threads of a block come to it, or none."""
        ...

    def sync(self, number: int, threads: int, mask: Mask) -> None:
        """This many threads of a block come to the named barrier ``number``."""
        ...

    def meet_cluster(self, mask: Mask) -> None:
        """All threads of all blocks of a cluster come to its barrier."""
        ...

    def trips(self, loop: For[Node], scope: Scope) -> Trips:
        """How the trips of ``loop`` are made; ``scope`` is the one that it is written in."""
        ...

    def within(self, block: Block[Node], body: Step) -> Step:
        """``body`` as the statements of ``block``."""
        ...
