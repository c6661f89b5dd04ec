"""Ping-pong consumers: one runs its main loop while the other runs its epilogue.

Both read the ring that one producer fills, each for the steps of its own tiles: at the end of a
tile it skips the steps of the other's tile.  A consumer begins the steps of a tile when the other
has finished those of the previous tile.  So their multiplications do not compete for the tensor
cores or the FMA units, and a stage's parity is unambiguous: a thread has waited for all of its
phases but the current one, and has arrived at the named barrier since.
"""

from __future__ import annotations

from gemmgen.expand.inner_loop import plus
from gemmgen.expand.ring import Ring
from gemmgen.ir import names
from gemmgen.ir.barriers import BarrierArray
from gemmgen.ir.control import Assign, Block, Define, For
from gemmgen.ir.expanded import Release, Timed
from gemmgen.ir.expr import Binary, Element, Expr, Int, Var
from gemmgen.ir.instruction import instruction
from gemmgen.ir.nodes import Kernel
from gemmgen.ir.target import WARP

TURN, TURN_PHASE, STEPS = "turn", Var("turn_phase"), Var("steps")
"""The barriers by which consumers alternate; the parity that a consumer waits for; the steps of
a tile."""
OTHER = 1 - names.CONSUMER_NUMBER
FIRST_GOES = OTHER
"""The parity of a consumer's first turn: the phase before the first one has ended, so that the
first consumer goes at once, and the second one after it."""


def consumers_of_a_tile(kernel: Kernel) -> Var:
    """The threads that share a tile, by name."""
    return names.CONSUMER if kernel.producers.pingpong > 1 else names.CONSUMERS


def declared(kernel: Kernel) -> tuple[Timed, ...]:
    """A barrier for each consumer's turn."""
    if kernel.producers.pingpong == 1:
        return ()
    return (BarrierArray(TURN, names.CONSUMER_GROUPS, kernel.producers.pingpong),)


def initialized(kernel: Kernel) -> tuple[Timed, ...]:
    """Each warp of a consumer hands the turn on."""
    if kernel.producers.pingpong == 1:
        return ()
    number, warps = names.CONSUMER_NUMBER, names.CONSUMER / WARP
    init = instruction("init_barrier", Element(TURN, (number,)), warps)
    return (For(number.name, Int(0), names.CONSUMER_GROUPS, Int(1), (init,)),)


def begun(kernel: Kernel, ring: Ring, extent: Expr, step: Expr) -> tuple[Timed, ...]:
    """The ring's variables: the second consumer's first tile is after the first one's."""
    number = names.CONSUMER_NUMBER
    steps = (plus(extent, step) - 1) / step
    before = number * STEPS
    rounds = before / ring.number() % 2
    body = (
        Define(STEPS.name, steps),
        Define(ring.stage.name, before % ring.number(), mutable=True),
        Define(ring.phase.name, rounds, mutable=True),
        Define(TURN_PHASE.name, FIRST_GOES, mutable=True),
    )
    note = "the second consumer starts after the steps of the first tile"
    return (Block(note, kernel.producers.origins, body),)


def awaited(kernel: Kernel) -> Timed:
    """Until the other consumer has ended the steps of the tile before."""
    wait = instruction("try_wait", Element(TURN, (names.CONSUMER_NUMBER,)), TURN_PHASE)
    flipped = Assign(TURN_PHASE.name, Binary("^", TURN_PHASE, Int(1)))
    note = "wait until the other consumer has finished its main loop"
    return Block(note, kernel.producers.origins, (wait, flipped))


def release_other(kernel: Kernel, ring: Ring) -> Timed:
    """The other consumer's tile is next, and its steps are not this one's."""
    note = "let the other consumer start, and skip the steps of its tile"
    return Block(note, kernel.producers.origins, (_passed(), *_skipped(ring)))


def release_other_early(kernel: Kernel) -> Timed:
    """The other consumer may begin: what this one multiplies is begun, if not ended."""
    note = "let the other consumer start: the last wgmma is still in flight"
    return Block(note, kernel.producers.origins, (_passed(),))


def skipped(kernel: Kernel, ring: Ring) -> Timed:
    """The steps of the other consumer's tile are not this one's."""
    return Block(
        "skip the steps of the other consumer's tile", kernel.producers.origins, _skipped(ring)
    )


def _passed() -> Timed:
    return Release(Element(TURN, (OTHER,)), everywhere=False)


def _skipped(ring: Ring) -> tuple[Timed, ...]:
    later = plus(ring.stage, STEPS)
    rounds = plus(ring.phase, later / ring.number())
    return (
        Assign(ring.phase.name, rounds % 2),
        Assign(ring.stage.name, later % ring.number()),
    )
