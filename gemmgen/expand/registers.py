"""Tiles that travel through registers: loaded, kept in registers, stored to shared memory.

With one stage a tile is filled, a barrier passed, used, and a second barrier passed before it is
filled again.  With N stages the tile N - 1 steps ahead is loaded before the arithmetic and stored
after it, to the stage that the previous step used; one barrier a step then does.  Where both
operands' fragments are read ahead as well, the last step of a tile publishes the next tile and
reads its first fragments, so that no tile begins with a wait.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gemmgen.expand.fragments import (
    NO_STAGE,
    below,
    fetch,
    fetches,
    multiply,
    plus,
    reads_ahead,
    steps_between,
    steps_in_tile,
)
from gemmgen.expand.rings import Ring, rings
from gemmgen.ir import names
from gemmgen.ir.edit import contraction
from gemmgen.ir.expanded import (
    Fetch,
    Load,
    Phase,
    Repeat,
    Set,
    Stage,
    Store,
    Sync,
    Timed,
    Transfer,
    When,
)
from gemmgen.ir.expr import Binary, Expr, Int, Select, Var
from gemmgen.ir.facts import divides
from gemmgen.ir.nodes import Copy, Kernel, Origins, Pipeline, Program


@dataclass(frozen=True)
class RegisterPipeline:
    """The expansion of one pipeline whose copies go through registers."""

    program: Program
    kernel: Kernel
    pipeline: Pipeline

    def expand(self) -> tuple[Timed, ...]:
        letter = self.pipeline.letter
        body = self._body_reading_ahead() if self._crosses_tiles() else self._body()
        steps = Repeat(
            names.tile_origin(letter).name,
            Int(0),
            Var(names.extent(letter)),
            names.block(letter),
            body,
        )
        return (*self._prologue(), steps)

    # What travels how.

    def rings(self) -> tuple[Ring, ...]:
        """Copies with more than one stage, grouped by their number of stages."""
        return rings(self.kernel, self.pipeline)

    def _present(self) -> tuple[Copy, ...]:
        """Copies with one stage: filled in the step that uses them."""
        return tuple(c for c in self.pipeline.produce if self._stages(c) == 1)

    def _stages(self, copy: Copy) -> int:
        return self.kernel.buffer(copy.dst).layout.stages

    def _crosses_tiles(self) -> bool:
        """May the last step of a tile read the first fragments of the next one?

        Only where every fragment of a tile has been read before that step's barrier: all fragments
        are read ahead, from tiles of one ring, and the slots come out even.
        """
        (loop,) = self.pipeline.consume
        copies = fetches(self.kernel, loop)
        tiles = {c.dst for c in self.pipeline.produce}
        return (
            len(self.rings()) == 1
            and not self._present()
            and len(copies) == 2
            and all(reads_ahead(self.kernel, c) and c.src in tiles for c in copies)
            and self.pipeline.step % 2 == 0
        )

    def _stage_of(self, tile: str) -> Stage:
        for ring in self.rings():
            if any(c.dst == tile for c in ring.copies):
                return Stage(ring.stage)
        return NO_STAGE

    def _next(self, ring: Ring) -> Var:
        return Var(ring.next.name + self.pipeline.letter)

    # The parts of the text, in order.

    def _prologue(self) -> tuple[Timed, ...]:
        body: list[Timed] = []
        for ring in self.rings():
            body.append(self._fill_first(ring))
        for ring in self.rings():
            body.append(Set(ring.stage.name, Int(0), "variable"))
        if self.rings() and not self._present():
            body.append(Sync())
        if self._crosses_tiles():
            copies = fetches(self.kernel, self.pipeline.consume[0])
            first = tuple(
                fetch(self.kernel, c, Int(0), None, lambda _: Stage(Int(0))) for c in copies
            )
            cited = _cited(self.kernel, copies, "double_buffer")
            body.append(Phase("the first fragments", cited, self._if_in_range(Int(0), first)))
        return tuple(body)

    def _fill_first(self, ring: Ring) -> Timed:
        """Fill all stages but one before the loop."""
        if ring.stages == 2:
            transfers: tuple[Timed, ...] = tuple(
                Transfer(c, Int(0), Stage(Int(0))) for c in ring.copies
            )
            note = "the first tile"
            filled = self._if_in_range(Int(0), transfers)
        else:
            ahead = Var(f"{ring.prefix}ahead")
            origin = Binary("*", ahead, names.block(self.pipeline.letter))
            transfers = tuple(Transfer(c, origin, Stage(ahead)) for c in ring.copies)
            body = self._if_in_range(origin, transfers)
            if self._crosses_tiles() and self._is_whole():
                body = self._fill_in_any_case(ring, origin)
            last = Binary("-", ring.count, Int(1))
            filled = (Repeat(ahead.name, Int(0), last, Int(1), body),)
            note = "the first tiles"
        return Phase(note, _cited(self.kernel, ring.copies, "cache_shared"), filled)

    def _fill_in_any_case(self, ring: Ring, origin: Expr) -> tuple[Timed, ...]:
        """The last step reads fragments of a tile behind the last one: any tile, but one that has
        been written."""
        size, next_k = Var(names.extent(self.pipeline.letter)), self._next(ring)
        inside = Select(below(origin, size), origin, Int(0))
        transfers = (Transfer(c, next_k, Stage(Var(f"{ring.prefix}ahead"))) for c in ring.copies)
        return self._if_in_range(Int(0), (Set(next_k.name, inside), *transfers))

    def _is_whole(self) -> bool:
        """Is K a multiple of the step, so that no load is guarded along k?"""
        pipeline = self.pipeline
        return divides(self.program, names.extent(pipeline.letter), pipeline.step)

    def _if_in_range(self, origin: Expr, body: tuple[Timed, ...]) -> tuple[Timed, ...]:
        """A tile outside K is read as zeros by its guards; where those are assumed away, not at
        all."""
        size = names.extent(self.pipeline.letter)
        return (When(below(origin, Var(size)), body),) if self._is_whole() else body

    def _body(self) -> tuple[Timed, ...]:
        (loop,) = self.pipeline.consume
        if not self.pipeline.produce:
            return steps_between(self.kernel, loop)
        present = self._present()
        body: list[Timed] = []
        if present:
            origin = names.tile_origin(self.pipeline.letter)
            transfers = tuple(Transfer(c, origin, NO_STAGE) for c in present)
            body.append(
                Phase("this step's tiles", _cited(self.kernel, present, "cache_shared"), transfers)
            )
        for ring in self.rings():
            body.extend(self._load_ahead(ring))
        if present:
            body.append(Sync())
        steps = steps_in_tile(self.kernel, loop, self._stage_of)
        body.append(Phase("multiply the tile", contraction(self.kernel).origins, steps))
        for ring in self.rings():
            body.append(self._store_ahead(ring))
        body.append(Sync())
        for ring in self.rings():
            body.append(_advance(ring))
        return tuple(body)

    def _body_reading_ahead(self) -> tuple[Timed, ...]:
        (loop,) = self.pipeline.consume
        (ring,) = self.rings()
        k, size = Var(loop.letter), names.block(loop.letter)
        following = plus(k, Int(1))
        copies = fetches(self.kernel, loop)

        def read(step: Expr, slot_step: Expr, stage: Stage) -> tuple[Timed, ...]:
            shape = (fetch(self.kernel, c, slot_step, None, lambda _: stage) for c in copies)
            return tuple(_at(f, step) for f in shape)

        within = read(following, following, Stage(ring.stage))
        first = read(Int(0), following, Stage(_after(ring)))
        stores = tuple(Store(c, Stage(ring.fill)) for c in ring.copies)
        cited = _cited(self.kernel, copies, "double_buffer")
        publish = Phase("store it late, and read ahead into it", cited, (*stores, Sync(), *first))
        step = (
            When(below(following, size), within, (publish,)),
            multiply(self.kernel, loop, k, None, self._stage_of),
        )
        steps = Repeat(loop.letter, Int(0), size, Int(1), step, unroll=True)
        return (
            *self._load_ahead(ring),
            Phase("multiply the tile", contraction(self.kernel).origins, (steps,)),
            _advance(ring),
        )

    def _load_ahead(self, ring: Ring) -> tuple[Timed, ...]:
        letter = self.pipeline.letter
        distance: Expr = names.block(letter)
        if ring.stages > 2:
            distance = Binary("*", Binary("-", ring.count, Int(1)), distance)
        next_k = self._next(ring)
        loads = tuple(Load(c, next_k) for c in ring.copies)
        cited = _cited(self.kernel, ring.copies, "double_buffer")
        return (
            Set(next_k.name, self._ahead(plus(names.tile_origin(letter), distance))),
            Set(ring.fill.name, _before(ring)),
            Phase("load the next tile early", cited, loads),
        )

    def _ahead(self, origin: Expr) -> Expr:
        """The tile to load ahead: past the last one there are zeros, or, unguarded, any tile will
        do."""
        size = names.extent(self.pipeline.letter)
        if self._is_whole():
            return Select(below(origin, Var(size)), origin, names.tile_origin(self.pipeline.letter))
        return origin

    def _store_ahead(self, ring: Ring) -> Timed:
        stores = tuple(Store(c, Stage(ring.fill)) for c in ring.copies)
        return Phase("store it late", _cited(self.kernel, ring.copies, "double_buffer"), stores)


def _before(ring: Ring) -> Expr:
    """The stage before the present one, round the ring."""
    if ring.stages == 2:
        return Binary("-", Int(1), ring.stage)
    last = Binary("-", ring.count, Int(1))
    return Select(Binary(">", ring.stage, Int(0)), Binary("-", ring.stage, Int(1)), last)


def _after(ring: Ring) -> Expr:
    """The stage after the present one, round the ring."""
    if ring.stages == 2:
        return ring.fill
    following = plus(ring.stage, Int(1))
    return Select(below(following, ring.count), following, Int(0))


def _advance(ring: Ring) -> Timed:
    return Set(ring.stage.name, _after(ring), "assign")


def _at(timed: Timed, k: Expr) -> Timed:
    """A fetch into the slot of one step, of another step's elements."""
    assert isinstance(timed, Fetch)
    return replace(timed, k=k)


def _cited(kernel: Kernel, copies: tuple[Copy, ...], directive: str) -> Origins:
    """The statements of one directive that made the tiles of these copies what they are."""
    origins = (o for c in copies for o in kernel.buffer(c.dst).origins)
    return tuple(dict.fromkeys(o for o in origins if o.split()[0] == directive))
