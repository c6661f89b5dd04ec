"""Statements that a schedule could have next, each a step of the ladder or a change of a size.

Whether a candidate is legal the compiler says, and whether it helps the models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from gemmgen.analyze.explain import Explanation
from gemmgen.base.record import record
from gemmgen.ir.dtypes import HALVES, widest
from gemmgen.ir.edit import pipeline_of
from gemmgen.ir.target import SINCE, has
from gemmgen.schedule.formatting import format_schedule

TILES = {(2, 2): (32, 32, 16), (4, 4): (64, 64, 16), (8, 8): (128, 128, 8), (8, 16): (128, 256, 16)}
"""Elements of a thread, rows and columns, and the tile of a block that has enough threads then."""
FEWEST = 64
"""Threads of a block below which a larger tile is tried with more elements a thread."""
WARPS = ((64, 32), (32, 64), (64, 64))
"""Rows and columns of a warp's share."""
LARGEST = 256
"""The side of a tile that is not doubled any more."""
STAGES = 4
STEPS = 2
"""The fewest steps of a block that has a part of K."""


@record
class Variant:
    """``statements`` that are new or changed, and the whole schedule's ``text``."""

    statements: tuple[str, ...]
    text: str


def candidates(e: Explanation) -> Iterator[Variant]:
    """Those for the schedule that ``e`` explains; not all of them compile."""
    return (found for found in _Candidates(e).all() if found.statements)


class _Candidates:
    def __init__(self, e: Explanation) -> None:
        self.e, self.schedule = e, e.kernel.emitted.schedule
        self.program = e.kernel.program
        problem, main = self.program.problem, self.program.main
        self.letters = (problem.m, problem.n, problem.k)
        self.names = [problem.a.name, problem.b.name, problem.c.name]
        self.words = {directive.name for directive in self.schedule.directives}
        pipeline = pipeline_of(main)
        sides = [main.work.size(letter) for letter in self.letters[:2]]
        self.tile = (sides[0], sides[1], pipeline.step if pipeline else 1)
        rows, columns = (main.spread.axis(letter).registers for letter in self.letters[:2])
        self.micro = rows, columns

    def all(self) -> Iterator[Variant]:
        if "cache_shared" not in self.words:
            yield from self._staged()
            return
        yield from self._larger_micro_tiles()
        yield from self._accesses()
        yield from self._stages()
        yield from self._warps()
        yield from self._tiles()
        yield from self._grid()

    def _staged(self) -> Iterator[Variant]:
        """A kernel whose threads read global memory."""
        m, n, _ = self.letters
        a, b, _ = self.names
        yield self._with(f"bind x={n} y={m}")
        yield self._with(f"bind x={m} y={n}")
        staged = f"cache_shared {a} {b}"
        yield self._with(self._tile(32, 32, 32), staged)
        for micro in ((2, 2), (4, 4), (8, 8)):
            yield self._with(self._tile(*TILES[micro]), staged, self._register_block(micro))

    def _larger_micro_tiles(self) -> Iterator[Variant]:
        if "tensor_core" in self.words:
            return
        for micro, tile in TILES.items():
            if micro[0] * micro[1] <= self.micro[0] * self.micro[1]:
                continue
            block = self._register_block(micro)
            threads = self.tile[0] // micro[0] * (self.tile[1] // micro[1])
            if threads >= FEWEST:
                yield self._with(block)
            elif tile != self.tile:
                yield self._with(self._tile(*tile), block)
        a, b = (self.program.problem.operand(role).dtype for role in ("a", "b"))
        if a == b and a in HALVES and has(self.schedule.target, 75):
            text = self._without("register_block", "vectorize", "swizzle")
            yield self._with("warp_tile m=64 n=64", "tensor_core via=mma", text=text)

    def _accesses(self) -> Iterator[Variant]:
        """Wide accesses, and the pad or the swizzle that removes most bank conflicts."""
        wide = min(widest(self.program.problem.operand(role).dtype) for role in ("a", "b", "c"))
        yield self._with(f"vectorize {' '.join(self.names)} width={wide}")
        yield self._with(f"vectorize {' '.join(self.names[1:])} width={wide}")
        for choice in self.e.pads:
            name = self.program.main.buffer(choice.buffer).tensor
            if choice.best.excess < choice.now.excess:
                yield self._laid_out(name, f"pad {name} by={choice.best.pad}")
            if choice.swizzled and choice.swizzled.excess < choice.best.excess:
                yield self._laid_out(name, f"swizzle {name}")

    def _stages(self) -> Iterator[Variant]:
        a, b, _ = self.names
        tiles, fragments = f"double_buffer {a} {b}", f"double_buffer {a}.register {b}.register"
        both = "double_buffer" in self.words
        held = [line for line in self._lines() if line.startswith("double_buffer")]
        has_fragments = any(".register" in line for line in held)
        yield self._with(tiles, *([fragments] if has_fragments else []))
        if both and not has_fragments:
            yield self._added(fragments)
        if "async_copy" in self.words:
            more = (fragments,) if has_fragments else ()
            for stages in range(2, STAGES + 1):
                yield self._with(f"{tiles} stages={stages}", *more)
        elif both and has(self.schedule.target, SINCE["cp_async"]):
            yield self._with(f"async_copy {a} {b} via=cp_async")
        if "residue" not in self.words and self.e.shape[2] % self.tile[2]:
            yield self._with(f"residue {self.letters[2]}=first")

    def _warps(self) -> Iterator[Variant]:
        m, n, _ = self.letters
        for rows, columns in WARPS:
            yield self._with(f"warp_tile {m}={rows} {n}={columns}")
        if "register_block" in self.words and min(self.micro) > 1:
            yield self._with(self._register_block(self.micro) + " order=serpentine")

    def _tiles(self) -> Iterator[Variant]:
        """A tile twice as large along one letter, or half as large where SMs have no block."""
        for at, size in enumerate(self.tile):
            if 2 * size <= (LARGEST if at < 2 else 32):
                yield self._with(self._resized(at, 2 * size))
            if size > 8 and (at == 2 or self.e.waves.blocks < self.e.gpu.sms):
                yield self._with(self._resized(at, size // 2))

    def _grid(self) -> Iterator[Variant]:
        blocks, sms = self.e.waves.blocks, self.e.gpu.sms
        if "split_k" not in self.words and 2 * blocks <= sms:
            parts = min(sms // blocks, ceil(self.e.shape[2] / self.tile[2]) // STEPS)
            if parts > 1:
                yield self._with(f"split_k parts={parts}")
        if "raster" not in self.words and blocks > 2 * sms:
            yield self._with("raster group=8")

    def _tile(self, rows: int, columns: int, step: int) -> str:
        m, n, k = self.letters
        return f"tile {m}={rows} {n}={columns} {k}={step}"

    def _resized(self, at: int, size: int) -> str:
        found = list(self.tile)
        found[at] = size
        return self._tile(*found)

    def _register_block(self, micro: tuple[int, int]) -> str:
        m, n, _ = self.letters
        return f"register_block {m}={micro[0]} {n}={micro[1]}"

    def _lines(self) -> list[str]:
        return [" ".join(line.split()) for line in format_schedule(self.schedule).splitlines()]

    def _without(self, *words: str) -> list[str]:
        return [line for line in self._lines() if line.split()[0] not in words]

    def _laid_out(self, tensor: str, statement: str) -> Variant:
        """The statement in place of what pads or permutes the rows of ``tensor``."""
        lines: list[str] = []
        for line in self._lines():
            word, *rest = line.split()
            if word in ("pad", "swizzle"):
                rest = [part for part in rest if part != tensor]
                if all("=" in part for part in rest):
                    continue
            lines.append(" ".join((word, *rest)))
        return self._candidate((*lines, statement), (statement,))

    def _with(self, *statements: str, text: list[str] | None = None) -> Variant:
        """The statements in place of those of the same words."""
        words = {statement.split()[0] for statement in statements}
        lines = [line for line in text or self._lines() if line.split()[0] not in words]
        return self._candidate((*lines, *statements), statements)

    def _added(self, *statements: str) -> Variant:
        return self._candidate((*self._lines(), *statements), statements)

    def _candidate(self, lines: Sequence[str], statements: Sequence[str]) -> Variant:
        known = set(self._lines())
        new = tuple(statement for statement in statements if statement not in known)
        return Variant(new, "".join(f"{line}\n" for line in lines))
