"""The expanded IR: a block's program with time made explicit.

Operations are still the block's, but each now says when it runs (loops, prologues, barriers) and on
which stage.  ``expand`` makes it from the declared IR; ``lower`` turns each operation into one
thread's code.
"""

from __future__ import annotations

from typing import Literal

from gemmgen.base.record import record
from gemmgen.ir.expr import Expr
from gemmgen.ir.nodes import Contract, Copy, Init, Kernel, Map, Origins, Program


@record
class Stage:
    """Which of a buffer's stages an operation uses; None where there is only one."""

    index: Expr | None = None


Edge = Literal["stop", "both", "tile"]
"""How a tile may be ragged along k: terms behind the last one are missing, or also terms before the
first one, or the tile as a whole."""


@record
class Load:
    """Load the tile at ``origin`` (the global index of its first k) into staging registers."""

    copy: Copy
    origin: Expr
    edge: Edge = "stop"


@record
class Store:
    """Store the staging registers of ``copy`` to a stage of its shared tile."""

    copy: Copy
    stage: Stage


@record
class Transfer:
    """Load and store at once: the tile at ``origin`` to a stage of its shared tile.

    ``staged``: wide pieces go through the registers in which later tiles wait.
    """

    copy: Copy
    origin: Expr
    stage: Stage
    edge: Edge = "stop"
    staged: bool = False


@record
class Issue:
    """Begin the asynchronous copy of the tile at ``origin`` to a stage of its shared tile."""

    copy: Copy
    origin: Expr
    stage: Stage
    edge: Edge = "stop"


@record
class Close:
    """End the group of the copies issued since the last one."""


@record
class Await:
    """Until at most ``pending`` groups are under way."""

    pending: int


@record
class Fetch:
    """Read the fragment for step ``k`` (of the tile, if ``copy`` reads shared memory) into
    ``slot``.

    ``origin`` is the tile's first k, needed where the fragment comes from global memory.
    """

    copy: Copy
    k: Expr
    origin: Expr | None
    stage: Stage
    slot: Stage


@record
class Multiply:
    """The contraction of one ``k``; stages and slots of both operands."""

    contract: Contract
    k: Expr
    origin: Expr | None
    a_stage: Stage
    b_stage: Stage


@record
class Repeat:
    """``for variable from start below stop by step``; ``bound`` is a second bound, for a ragged
    tail."""

    variable: str
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Timed, ...]
    unroll: bool | int = False


@record
class When:
    """``if (condition)``, the same for all threads of the block."""

    condition: Expr
    body: tuple[Timed, ...]
    otherwise: tuple[Timed, ...] = ()


@record
class Quit:
    """Leave the loop that it stands in where the condition, the same for the whole block, holds."""

    condition: Expr


@record
class Set:
    """``const int name = value`` (``fresh``), ``int name = value`` (``variable``) or ``name =
    value``."""

    name: str
    value: Expr
    kind: str = "fresh"


@record
class Sync:
    """A barrier of the block: what was written before it is seen by all threads after it."""


Sharers = Literal["parts", "group", "groups"]
"""Whose sums meet: all parts of a tile, the parts of one group, or the groups of a tile."""


@record
class HandOver:
    """Put the block's sums into the workspace, for the other ``sharers``; ``atomic``: add them to
    the tile's."""

    sharers: Sharers
    atomic: bool = False


@record
class CountIn:
    """Count the block among its ``sharers``; all of them but the last one to come leave the kernel.

    Between the two barriers around it what the block handed over is published, and what the blocks
    before it did becomes visible.
    """

    sharers: Sharers


@record
class Gather:
    """The sums of all ``sharers``, added in their order; ``atomic``: added already, and the
    workspace is left zero."""

    sharers: Sharers
    atomic: bool = False


@record
class Take:
    """Each lane reads its own terms of the step at ``origin`` into registers."""

    copies: tuple[Copy, ...]
    origin: Expr


@record
class Combine:
    """The sums of a warp's lanes, added in one order; every lane has the result."""


@record
class Phase:
    """Operations under one heading of the emitted text."""

    note: str
    origins: Origins
    body: tuple[Timed, ...]


Timed = (
    Init
    | Map
    | Load
    | Store
    | Transfer
    | Issue
    | Close
    | Await
    | Fetch
    | Multiply
    | Repeat
    | When
    | Quit
    | Set
    | Sync
    | Take
    | Combine
    | HandOver
    | CountIn
    | Gather
    | Phase
)


@record
class ExpandedKernel:
    """A declared kernel and its body in time."""

    kernel: Kernel
    body: tuple[Timed, ...]
    staged: tuple[Copy, ...]
    """The copies that travel through staging registers."""


@record
class ExpandedProgram:
    program: Program
    kernels: tuple[ExpandedKernel, ...]
