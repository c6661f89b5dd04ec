"""A ring of stages, and the common parts of the mechanisms that fill one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gemmgen.base.record import record
from gemmgen.expand.inner_loop import (
    below,
    fetch,
    fetches,
    multiply,
    plus,
    reads_ahead,
    step_of,
    unroll_of,
)
from gemmgen.expand.k_range import KRange, k_range_of
from gemmgen.ir import names
from gemmgen.ir.assumptions import divides
from gemmgen.ir.buffers import Origins
from gemmgen.ir.control import Assign, Block, Break, Define, For, If
from gemmgen.ir.edit import contraction
from gemmgen.ir.expanded import Fetch, Stage, Timed
from gemmgen.ir.expr import Binary, Expr, Int, Select, Var
from gemmgen.ir.nodes import Copy, Kernel, Pipeline, Program

CopyTo = Callable[[Expr], tuple[Timed, ...]]
"""The copies of the tile that begins at an index."""


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
    def write_stage(self) -> Var:
        """The stage that is written now: the one read in the step before, which of two stages is
        the one that is read next."""
        return self.next_stage if self.stages == 2 else Var(f"{self.prefix}write_stage")

    @property
    def count(self) -> Var:
        """The constant that counts the stages."""
        return Var(f"{self.prefix}STAGES")

    def next(self, letter: str) -> Var:
        """The first index of the tile that is loaded now."""
        return Var(f"{self.prefix}next_{letter}")

    def number(self) -> Expr:
        """How many stages there are: only more than two have a constant."""
        return Int(2) if self.stages == 2 else self.count

    def before(self) -> Expr:
        """The stage before the current one, modulo the number of stages."""
        if self.stages == 2:
            return Binary("-", Int(1), self.stage)
        last = Binary("-", self.count, Int(1))
        first = Binary(">", self.stage, Int(0))
        return Select(first, Binary("-", self.stage, Int(1)), last)

    def after(self) -> Expr:
        """The stage after the current one, modulo the number of stages."""
        following = plus(self.stage, Int(1))
        return Select(below(following, self.count), following, Int(0))

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
    stages = (Define(r.stage.name, Binary("%", turn, r.number())) for r in found if r.stage != turn)
    one = (
        Define(tile.name, plus(first, Binary("*", turn, step))),
        Break(Binary(">=", tile, k_range.stop)),
        *stages,
        *body,
    )
    tiles = For(turn.name, Int(0), count, Int(1), one, unroll=True)
    return For(first.name, k_range.start, k_range.stop, Binary("*", count, step), (tiles,))


def if_in_range(
    program: Program, pipeline: Pipeline, origin: Expr, body: tuple[Timed, ...]
) -> tuple[Timed, ...]:
    """A tile past the end is read as zeros by its guards; if ``assume`` removes these, it is not
    read."""
    if divides(program, program.problem.extent(pipeline.letter), pipeline.step):
        return (If(below(origin, k_range_of(program, program.main, pipeline.letter).stop), body),)
    return body


def fill_in_any_case(
    program: Program, pipeline: Pipeline, ring: Ring, number: Var, copies: CopyTo
) -> tuple[Timed, ...]:
    """The first tiles, each of which is written even if K has fewer: the last step reads fragments
    of the tile after the last one, which may be any tile that was written."""
    letter = pipeline.letter
    k_range, origin = k_range_of(program, program.main, letter), first_origin(
        program, pipeline, number
    )
    if not divides(program, program.problem.extent(letter), pipeline.step):
        return copies(origin)
    inside = Select(below(origin, k_range.stop), origin, k_range.start)
    here = ring.next(letter)
    return if_in_range(program, pipeline, k_range.start, (Define(here.name, inside), *copies(here)))


def first_origin(program: Program, pipeline: Pipeline, number: Expr) -> Expr:
    """First index of the ``number``-th tile."""
    start = k_range_of(program, program.main, pipeline.letter).start
    distance = Binary("*", number, names.block(pipeline.letter))
    return distance if start == Int(0) else plus(start, distance)


def ahead(program: Program, pipeline: Pipeline, ring: Ring) -> Expr:
    """First index of the tile to load now: past the last one its guards give zeros; without guards
    any tile is correct."""
    letter = pipeline.letter
    tile = names.tile_origin(letter)
    origin = plus(tile, distance_ahead(pipeline, ring))
    if divides(program, program.problem.extent(letter), pipeline.step):
        return Select(below(origin, k_range_of(program, program.main, letter).stop), origin, tile)
    return origin


def distance_ahead(pipeline: Pipeline, ring: Ring) -> Expr:
    """How far the tile to load now is ahead of the one in use: the number of prefetched tiles."""
    distance = names.block(pipeline.letter)
    if ring.stages > 2:
        return Binary("*", Binary("-", ring.count, Int(1)), distance)
    return distance


def crosses_tiles(kernel: Kernel, pipeline: Pipeline) -> bool:
    """Whether the last step of a tile may read the first fragments of the next one.

    Only if every fragment of a tile has been read before that step's barrier: all fragments are
    prefetched, from tiles of one ring, and the number of steps is a multiple of the slots.
    """
    (loop,) = pipeline.consume
    copies = fetches(kernel, loop)
    found = rings(kernel, pipeline)
    return (
        len(found) == 1
        and len(found[0].copies) == len(copies) == 2
        and all(reads_ahead(kernel, c) for c in copies)
        and pipeline.step // loop.step % 2 == 0
    )


def first_fragments(program: Program, kernel: Kernel, pipeline: Pipeline) -> Timed:
    """The fragments of the very first step, read before the loop."""
    (loop,) = pipeline.consume
    copies = fetches(kernel, loop)
    first = tuple(fetch(kernel, loop, c, Int(0), None, lambda _: Int(0)) for c in copies)
    start = k_range_of(program, program.main, pipeline.letter).start
    body = if_in_range(program, pipeline, start, first)
    return Block("load the first fragments", cited(kernel, copies, "double_buffer"), body)


def steps_reading_ahead(
    kernel: Kernel, pipeline: Pipeline, ring: Ring, note: str, publish: tuple[Timed, ...]
) -> For[Timed]:
    """The steps of a tile; at the last one ``publish`` makes the next tile readable, and its first
    fragments are read."""
    (loop,) = pipeline.consume
    k, size = Var(loop.letter), names.block(loop.letter)
    following, copies = plus(k, step_of(loop)), fetches(kernel, loop)

    def read(step: Expr, stage: Stage) -> tuple[Fetch, ...]:
        slots = (fetch(kernel, loop, c, following, None, lambda _: stage) for c in copies)
        return tuple(replace(f, k=step) for f in slots)

    within = read(following, ring.stage)
    first = (*ring.advance(), *publish) if ring.advances_early else publish
    crossing = (*first, *read(Int(0), ring.stage if ring.advances_early else ring.next_stage))
    last = Block(note, cited(kernel, copies, "double_buffer"), crossing)
    step = (
        If(below(following, size), within, (last,)),
        multiply(kernel, loop, k, None, lambda _: ring.stage),
    )
    unroll = unroll_of(kernel, loop, True)
    return For(loop.letter, Int(0), size, step_of(loop), step, unroll=unroll)


def steps_origins(kernel: Kernel, pipeline: Pipeline) -> Origins:
    """The statements that shaped the steps within a tile, and those about their reads of shared
    memory."""
    (loop,) = pipeline.consume
    read = (o for c in fetches(kernel, loop) for o in c.origins if ".shared" in o)
    return tuple(dict.fromkeys((*contraction(kernel).origins, *read, *loop.origins)))


def cited(kernel: Kernel, copies: tuple[Copy, ...], directive: str) -> Origins:
    """The statements of one directive that shaped the tiles of these copies."""
    origins = (o for c in copies for o in kernel.buffer(c.dst).origins)
    return tuple(dict.fromkeys(o for o in origins if o.split()[0] == directive))
