"""The expanded IR: a block's program with time made explicit.

Operations are still the block's, but each now says when it runs (loops, prologues, barriers) and on
which stage.  ``expand`` makes it from the declared IR; ``lower`` turns each operation into one
thread's code.
"""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record
from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.control import AdvanceRing, Assign, Block, Break, Define, For, If
from gemmgen.ir.expr import Element, Expr, Int
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.nodes import Contract, Copy, Fact, Init, Kernel, Map, Program, Promote, Split
from gemmgen.ir.output_slices import StageSlice, StoreBoxes, StoreSlice
from gemmgen.ir.partial_sums import Arrive, ReducePartials, StorePartial
from gemmgen.ir.problem import Problem
from gemmgen.ir.warp_roles import WarpRoles

Stage = Expr | None
"""Which of a buffer's stages an operation uses; None if there is only one."""


Edge = Literal["stop", "both", "tile"]
"""Which bounds check along k a tile needs: of its elements against the upper bound (``stop``) or
against both (``both``), or one against the upper bound for the whole tile (``tile``)."""


@record
class Load:
    """Load the tile at ``origin`` (the global index of its first k) into staging registers."""

    SYNTAX = "{copy} from {origin}"

    copy: Copy
    origin: Expr
    edge: Edge = "stop"


@record
class Store:
    """Store the staging registers of ``copy`` to a stage of its shared tile."""

    SYNTAX = "{copy}"

    copy: Copy
    stage: Stage = None


@record
class Transfer:
    """Load and store at once: the tile at ``origin`` to a stage of its shared tile.

    ``staged``: wide pieces go through the registers in which later tiles wait.
    """

    SYNTAX = "{copy} from {origin}"

    copy: Copy
    origin: Expr
    stage: Stage = None
    edge: Edge = "stop"
    staged: bool = False


@record
class CopyTileAsync:
    """Begin the asynchronous copy of the tile at ``origin`` to a stage of its shared tile."""

    SYNTAX = "{copy} from {origin}"

    copy: Copy
    origin: Expr
    stage: Stage = None
    edge: Edge = "stop"


@record
class CopyBox:
    """Begin the copy of the tile at ``origin`` to a stage of its shared tile by TMA,
    which writes zeros for elements outside the matrix.

    Once landed its bytes are counted by ``barrier``.  A thread issues it for the whole block.
    """

    SYNTAX = "{copy} from {origin} to {barrier}"

    copy: Copy
    origin: Expr
    barrier: Element
    stage: Stage = None


@record
class OneThread:
    """What one thread does for the whole block, if ``condition`` holds, which is the same for all
    threads of the block; ``thread`` is its number, ``among`` those that share a tile or all."""

    body: tuple[Timed, ...]
    condition: Expr | None = None
    thread: Expr = Int(0)
    among: Literal["block", "tile"] = "block"


@record
class Release:
    """The warp's lanes have come so far: one of them arrives at ``barrier``; in a cluster, if it is
    meant ``everywhere``, one of them arrives at that of each block."""

    SYNTAX = "{barrier}"

    barrier: Element
    everywhere: bool = True


@record
class Fetch:
    """Read the fragment for step ``k`` (of the tile, if ``copy`` reads shared memory) into
    ``slot``.

    ``origin`` is the tile's first k, needed if the fragment comes from global memory.
    """

    SYNTAX = "{copy} at {k}"

    copy: Copy
    k: Expr
    origin: Expr | None = None
    stage: Stage = None
    slot: Stage = None


@record
class Multiply:
    """The contraction of one ``k``; stages and slots of both operands.

    ``accumulate``: whether the old accumulators are added, where that is not always so. Of tiles in
    parts these are multiplied: ``a_part`` of A and ``b_part`` of B.
    """

    SYNTAX = "{contract} at {k}"

    contract: Contract
    k: Expr
    origin: Expr | None = None
    a_stage: Stage = None
    b_stage: Stage = None
    accumulate: Expr | None = None
    a_part: int = 0
    b_part: int = 0


@record
class MultiplyAgain:
    """Computes accumulators that are not finite again, by multiply-adds of whole elements in global
    memory over all of k: of an infinity, or a number that is rounded to one, a part is NaN."""

    SYNTAX = "{contract}"

    contract: Contract


@record
class Unscale:
    """Multiplies the accumulators by the inverses of the scales of A's rows and B's columns."""

    SYNTAX = "{contract}"

    contract: Contract


@record
class DescribeOperands:
    """Where a warpgroup finds its parts of both operands, in these stages of shared memory."""

    SYNTAX = "{contract}"

    contract: Contract
    a_stage: Stage = None
    b_stage: Stage = None


@record
class LoadLaneSlice:
    """Each lane reads its own k elements of the step at ``origin`` into registers."""

    copies: tuple[Copy, ...]
    origin: Expr


@record
class WarpReduce:
    """Add the accumulators of a warp's lanes in one order; every lane has the result."""


@record
class ReadScales:
    """Read the factors of the thread's accumulators for the tile at ``origin`` along k; those in
    shared memory from its ``stage``."""

    SYNTAX = "{scales} at {origin}"

    scales: tuple[str, ...]
    origin: Expr
    stage: Stage = None


@record
class Tiles:
    """For each tile of the block, in the work's order: one, or a loop.

    ``computes``: the threads hold the tile's accumulators; those of a producer have no place in it.
    ``before`` is done once, before the loop: what goes on from tile to tile.  ``pingpong``
    groups of consumers alternate: each begins with the tile of its own number.
    """

    body: tuple[Timed, ...]
    computes: bool = True
    before: tuple[Timed, ...] = ()
    pingpong: int = 1


Timed = (
    Tiles
    | Init
    | Promote
    | ReadScales
    | Map
    | Load
    | Store
    | Transfer
    | CopyTileAsync
    | CopyBox
    | BarrierArray
    | OneThread
    | Release
    | WarpRoles["Timed"]
    | Instruction
    | Fetch
    | Multiply
    | MultiplyAgain
    | Unscale
    | DescribeOperands
    | StageSlice
    | StoreSlice
    | StoreBoxes
    | LoadLaneSlice
    | WarpReduce
    | StorePartial
    | Arrive
    | ReducePartials
    | Define
    | Assign
    | AdvanceRing
    | For["Timed"]
    | If["Timed"]
    | Break
    | Block["Timed"]
)


@record
class ExpandedKernel:
    """A declared kernel and its body in time."""

    kernel: Kernel
    body: tuple[Timed, ...]


@record
class ExpandedProgram:
    """The kernels of a program; ``problem``, ``target``, ``splits`` and ``facts`` are the
    program's."""

    problem: Problem
    target: str
    splits: tuple[Split, ...]
    kernels: tuple[ExpandedKernel, ...]
    facts: tuple[Fact, ...] = ()

    @property
    def program(self) -> Program:
        """The declared program."""
        kernels = tuple(kernel.kernel for kernel in self.kernels)
        return Program(self.problem, self.target, self.splits, kernels, self.facts)
