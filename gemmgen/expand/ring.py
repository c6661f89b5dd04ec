"""A ring of stages, and the loop over tiles that goes round it."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.expand.inner_loop import plus
from gemmgen.expand.k_range import KRange, k_range_of
from gemmgen.ir import names
from gemmgen.ir.control import AdvanceRing, Assign, Block, Break, Define, For, If
from gemmgen.ir.expanded import Timed
from gemmgen.ir.expr import Binary, Element, Expr, Int, Select, Var
from gemmgen.ir.nodes import Copy, Kernel, Pipeline, Program
from gemmgen.ir.simplify import less


@record
class Ring:
    """Copies whose tiles have the same number of stages, and the names of the ring's variables."""

    copies: tuple[Copy, ...]
    stages: int
    prefix: str
    unrolled: bool
    """Whether the loop over tiles is unrolled in whole rounds, so that stages are constants."""

    @property
    def stage(self) -> Var:
        """The stage that is read now."""
        return Var(f"{self.prefix}stage")

    @property
    def next_stage(self) -> Var:
        """The stage that is read in the next step."""
        return Var(f"{self.prefix}next_stage")

    @property
    def following_stage(self) -> Var:
        """The stage that is read in the next step, by its name at the end of a step that reads the
        next tile's first fragments."""
        return self.stage if self.advances_early else self.next_stage

    @property
    def write_stage(self) -> Var:
        """The stage that is written now: the one read in the step before, which of two stages is
        the one that is read next."""
        return self.next_stage if self.stages == 2 else Var(f"{self.prefix}write_stage")

    @property
    def count(self) -> Var:
        """The constant that counts the stages."""
        return Var(f"{self.prefix}STAGES")

    @property
    def full(self) -> str:
        """The barriers by which tiles are waited for that TMA copies, one a stage."""
        return f"{self.prefix}full"

    @property
    def empty(self) -> str:
        """The barriers by which a producer waits for stages that it may overwrite."""
        return f"{self.prefix}empty"

    @property
    def phase(self) -> Var:
        """The parity of the phase in which a stage that is waited for next is filled."""
        return Var(f"{self.prefix}phase")

    def full_at(self, stage: Expr) -> Element:
        """The barrier of a stage."""
        return Element(self.full, (stage,))

    def empty_at(self, stage: Expr) -> Element:
        """The barrier of a stage that is read."""
        return Element(self.empty, (stage,))

    def turn_phase(self, stage: Expr) -> Timed:
        """After the last stage the ring's next round begins."""
        last = self.count - 1 if self.stages > 2 else Int(1)
        flipped = Assign(self.phase.name, Binary("^", self.phase, Int(1)))
        return If(Binary("==", stage, last), (flipped,))

    def next(self, letter: str) -> Var:
        """The first index of the tile that is loaded now."""
        return Var(f"{self.prefix}next_{letter}")

    def number(self) -> Expr:
        """How many stages there are: only more than two have a constant."""
        return Int(2) if self.stages == 2 else self.count

    def distance(self, letter: str) -> Expr:
        """How far the tile to load now is ahead of the one in use: the prefetched tiles."""
        tile = names.block(letter)
        return tile if self.stages == 2 else (self.count - 1) * tile

    def before(self) -> Expr:
        """The stage before the current one, modulo the number of stages."""
        if self.stages == 2:
            return 1 - self.stage
        last = self.count - 1
        first = Binary(">", self.stage, Int(0))
        return Select(first, self.stage - 1, last)

    def after(self) -> Expr:
        """The stage after the current one, modulo the number of stages."""
        following = plus(self.stage, Int(1))
        return Select(less(following, self.count), following, Int(0))

    def neighbours(self, crosses: bool) -> tuple[Define, ...]:
        """The stage that is written, at the beginning of a step; with ``crosses`` also the one that
        is read in the next step, if no assignment makes it the current one."""
        written = Define(self.write_stage.name, self.before())
        if crosses and self.unrolled and self.stages > 2:
            return (written, Define(self.next_stage.name, self.after()))
        return (written,)

    def begin(self) -> tuple[Timed, ...]:
        """Initializes the stage: the first tile is in the first stage."""
        return () if self.unrolled else (Define(self.stage.name, Int(0), mutable=True),)

    def advance(self) -> tuple[Timed, ...]:
        """Advances to the next stage, after the last read of the current one."""
        if self.unrolled:
            return ()
        following = self.next_stage if self.stages == 2 else self.after()
        return (Assign(self.stage.name, following),)

    def advance_with_phase(self) -> Timed:
        """Advances stage and phase, at the end of a step that has waited for its stage; of an
        unrolled loop's steps each has a constant stage."""
        return self.turn_phase(self.stage) if self.unrolled else self.next_of_both()

    def next_of_both(self) -> Timed:
        """The next stage and its phase, where the stage is a variable in any case."""
        return AdvanceRing(self.stage.name, self.phase.name, self.number())

    @property
    def advances_early(self) -> bool:
        """Whether a step that reads the next tile's first fragments advances before it does so: of
        two stages the next one has a name, as it is also written."""
        return not self.unrolled and self.stages > 2

    def advance_late(self, crosses: bool) -> tuple[Timed, ...]:
        """What is left to advance at the end of a step."""
        return () if crosses and self.advances_early else self.advance()


def rings(kernel: Kernel, pipeline: Pipeline | None) -> tuple[Ring, ...]:
    """Copies with more than one stage, by their number of stages; a single ring needs no prefix."""
    if pipeline is None:
        return ()
    counts: dict[int, list[Copy]] = {}
    for copy in pipeline.produce:
        stages = kernel.buffer(copy.dst).stages
        if stages > 1:
            counts.setdefault(stages, []).append(copy)
    single = len(counts) == 1
    return tuple(
        Ring(tuple(copies), stages, "" if single else f"{copies[0].src}_", pipeline.unroll > 1)
        for stages, copies in counts.items()
    )


def over_tiles(
    program: Program, kernel: Kernel, pipeline: Pipeline, body: tuple[Timed, ...]
) -> Timed:
    """The serial loop over the tiles of the contraction."""
    letter = pipeline.letter
    tile, step = names.tile_origin(letter), names.block(letter)
    k_range = k_range_of(program, kernel, letter)
    note = f"main loop over tiles along {program.problem.extent(letter)}"
    if pipeline.unroll == 1:
        return Block(note, (), (For(tile.name, k_range.start, k_range.stop, step, body),))
    origins = tuple(o for o in pipeline.origins if o.startswith("unroll"))
    rounds = _over_rounds(rings(kernel, pipeline), pipeline, k_range, body)
    return Block(f"{note}, {pipeline.unroll} at a time", origins, (rounds,))


def _over_rounds(
    found: tuple[Ring, ...], pipeline: Pipeline, k_range: KRange, body: tuple[Timed, ...]
) -> For[Timed]:
    """Rounds of several tiles each, so that a tile's stage is a compile-time constant: addresses in
    shared memory are then constant offsets from the thread's own.  The last round may end early."""
    letter = pipeline.letter
    tile, step = names.tile_origin(letter), names.block(letter)
    first, turn, turns = names.round_origin(letter), Var("turn"), Int(pipeline.unroll)
    count: Expr = turns
    if len(found) == 1 and found[0].stages == pipeline.unroll:
        turn, count = found[0].stage, found[0].number()
    stages = (Define(r.stage.name, turn % r.number()) for r in found if r.stage != turn)
    one = (
        Define(tile.name, plus(first, turn * step)),
        Break(Binary(">=", tile, k_range.stop)),
        *stages,
        *body,
    )
    tiles = For(turn.name, Int(0), count, Int(1), one, unroll=True)
    return For(first.name, k_range.start, k_range.stop, count * step, (tiles,))
