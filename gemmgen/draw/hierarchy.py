"""Elements on their way from global memory to the multiply-adds, counted at each level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gemmgen.analyze.explain import Explanation, explain
from gemmgen.analyze.hops import ARITHMETIC, GLOBAL, REGISTERS, SHARED, Hop, hops_of
from gemmgen.base.record import record
from gemmgen.base.units import count as in_units
from gemmgen.base.units import significant, size
from gemmgen.draw.marks import (
    COMPUTE,
    LOAD,
    PLAIN,
    STORE,
    A,
    B,
    C,
    Cell,
    Drawing,
    Label,
    Mark,
    Meaning,
    Stroke,
)
from gemmgen.draw.scene import Scene
from gemmgen.ir.dtypes import BYTES

USUAL = 4096
"""The default extents of a drawing, which are those of ``explain``."""
LEVELS = {GLOBAL: "global memory", SHARED: "shared memory", REGISTERS: "registers"}
_BOX, _BETWEEN, _ROW, _TOP = 80.0, 128.0, 76.0, 8.0
_PASS = 104.0
"""Pixels of a pass over C."""


def draw(scene: Scene) -> Drawing:
    """Boxes for the levels; arrows have the elements of each operand and how often each is used."""
    e = explain(scene.kernel.emitted.schedule, scene.shape(USUAL), scene.gpu, pads=False)
    problem = scene.written
    meanings = {problem.a.name: A, problem.b.name: B, problem.c.name: C}
    hops = hops_of(e)
    levels = [x for x in (*LEVELS, ARITHMETIC) if any(x in (h.source, h.target) for h in hops)]
    rows = _rows(hops)
    places = {level: 8 + at * (_BOX + _BETWEEN) for at, level in enumerate(levels)}
    height = _ROW * len(rows) + 16
    marks: list[Mark] = []
    for level, x in places.items():
        name = LEVELS.get(level, level)
        marks.append(Cell(x, _TOP, _BOX, height, COMPUTE if level == ARITHMETIC else PLAIN))
        words = name.replace("-", "- ").split()
        for line, word in enumerate(words):
            down = 16 * (line - (len(words) - 1) / 2)
            marks.append(Label(x + _BOX / 2, _TOP + height / 2 + down, word, "middle"))
    for at, row in enumerate(rows):
        for hop in row:
            marks += _arrow(hop, meanings[hop.tensor], places, _TOP + 4 + _ROW * (at + 0.5))
    y, width = _TOP + height + 24, places[levels[-1]] + _BOX + 16
    compared = passes_of(e)
    if compared:
        marks += _passes(compared, problem.c.name, y)
        longest = max(len(p.steps) for p in compared)
        y, width = y + 96 * len(compared), max(width, 16 + _PASS * longest)
    m, n, k, *_ = e.shape
    title = f"{e.kernel.emitted.name}: elements moved between levels at {m} x {n} x {k}"
    description = " ".join((*map(_sentence, hops), *_compared(compared, problem.c.name)))
    text = "\n".join((*_table(hops), *_passes_text(compared, problem.c.name)))
    return Drawing(title, description, width, y, tuple(marks), text)


def _rows(hops: Sequence[Hop]) -> list[list[Hop]]:
    """The hops of each operand, and each direction of C."""
    found: dict[tuple[str, str], list[Hop]] = {}
    for hop in hops:
        outwards = hop.target if hop.target == GLOBAL else ""
        found.setdefault((hop.tensor, outwards), []).append(hop)
    return list(found.values())


def _arrow(hop: Hop, meaning: Meaning, places: dict[str, float], y: float) -> Iterator[Mark]:
    begin, end = places[hop.source], places[hop.target]
    inwards = begin < end
    x0, x1 = (begin + _BOX, end) if inwards else (begin, end + _BOX)
    yield Stroke(((x0, y), (x1, y)), meaning, arrow=True, strong=True)
    middle = max(x0, x1) - _BETWEEN / 2 if inwards else min(x0, x1) + _BETWEEN / 2
    yield Label(middle, y - 11, f"{hop.tensor}: {hop.elements:,}", "middle")
    for at, below in enumerate((_bytes(hop), f"each x {significant(hop.reuse, 4)}")):
        yield Label(middle, y + 11 + 15 * at, below, "middle", quiet=True)


def _bytes(hop: Hop) -> str:
    return size(hop.bytes) + (" in sectors" if GLOBAL in (hop.source, hop.target) else "")


def _sentence(hop: Hop) -> str:
    """``A: 68.7 G register reads, each value used once per load.``"""
    count, times = in_units(hop.elements), _times(hop.reuse)
    if hop.target == GLOBAL:
        return f"{hop.tensor}: {count} writes to global memory, each element {times}."
    if hop.source == GLOBAL:
        return f"{hop.tensor}: {count} reads of global memory, each element {times}."
    if hop.source == SHARED:
        return f"{hop.tensor}: {count} shared-memory reads, each staged element {times}."
    return f"{hop.tensor}: {count} register reads, each value used {times} per load."


def _times(reuse: float) -> str:
    number = significant(reuse, 4)
    return "once" if number == "1" else f"{number} times"


def _table(hops: Sequence[Hop]) -> Iterator[str]:
    yield f"{'':<10}{'from':<15}{'to':<15}{'elements':>20}{'bytes':>20}{'uses of each':>14}"
    for hop in hops:
        ends = (LEVELS.get(level, level) for level in (hop.source, hop.target))
        named = "".join(f"{end:<15}" for end in ends)
        uses = significant(hop.reuse, 4)
        yield f"{hop.tensor:<10}{named}{hop.elements:>20,}{_bytes(hop):>20}{uses:>14}"


@record
class Passes:
    """The passes over C of one way to compute it: each a kernel, and whether it writes."""

    name: str
    steps: tuple[tuple[str, bool], ...]
    elements: int
    bytes: int


def passes_of(e: Explanation) -> tuple[Passes, ...]:
    """One kernel for each operation of the epilogue, and the fused kernel; () for a product as BLAS
    has it."""
    if e.unfused is None:
        return ()
    c = e.kernel.program.problem.c
    own = {t.write: t.counts.elements for t in e.traffic if t.buffer == c.name}
    fused = tuple(("fused kernel", write) for write in (False, True) if own.get(write))
    added = tuple((name, write) for name in e.unfused.names for write in (False, True))
    plain, total = own.get(True, 0), sum(own.values())
    size = BYTES[c.dtype]
    apart = plain + e.unfused.elements
    return (
        Passes("separate kernels", (("product", True), *added), apart, apart * size),
        Passes("fused", fused, total, total * size),
    )


def _passes(compared: Sequence[Passes], c: str, y: float) -> Iterator[Mark]:
    for at, passes in enumerate(compared):
        top = y + 96 * at
        said = f"{passes.name}: {_spelled(passes, c)}"
        yield Label(8, top, said, size="large")
        for number, (kernel, write) in enumerate(passes.steps):
            x, verb = 8 + number * _PASS, "writes" if write else "reads"
            meaning = STORE if write else LOAD
            yield Cell(x, top + 16, _PASS, 32, meaning, f"{verb} {c}", f"{kernel} {verb} {c}")
            if write:
                yield Label(x + _PASS / 2, top + 60, kernel, "middle", "small")


def _spelled(passes: Passes, c: str) -> str:
    count = len(passes.steps)
    times = "1 pass" if count == 1 else f"{count} passes"
    return f"{times} over {c}, {passes.elements:,} elements, {size(passes.bytes)}"


def _compared(compared: Sequence[Passes], c: str) -> Iterator[str]:
    for passes in compared:
        yield f"The epilogue by {passes.name}: {_spelled(passes, c)}.".replace("by fused", "fused")


def _passes_text(compared: Sequence[Passes], c: str) -> Iterator[str]:
    for passes in compared:
        yield f"\n{passes.name}: {_spelled(passes, c)}"
        yield "  " + ", ".join(
            f"{kernel} {'writes' if write else 'reads'} {c}" for kernel, write in passes.steps
        )
