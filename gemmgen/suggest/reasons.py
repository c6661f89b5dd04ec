"""A suggestion as a schedule file: ordinary text, and in its comments why."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from math import ceil, prod

from gemmgen.schedule.parse import parse_schedule
from gemmgen.schedule.text import format_schedule
from gemmgen.source import Source
from gemmgen.suggest.choose import Suggestion
from gemmgen.suggest.families import usual
from gemmgen.tune.model import ffma_share, residents

WIDTH = 100
_RANGES = {
    "small": "below 512",
    "medium": "from 512 to 2048",
    "large": "above 2048",
    "few rows": "with up to 16 rows",
    "few columns": "with up to 16 columns",
}


def schedule_text(suggestion: Suggestion) -> str:
    """The schedule in its canonical form; above it a comment for each decision."""
    lines = [line for reason in _reasons(suggestion) for line in _wrapped(reason)]
    schedule = parse_schedule(Source(suggestion.chosen.plan.text))
    return "".join(f"{line}\n" for line in lines) + format_schedule(schedule)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="#   ")


def _reasons(s: Suggestion) -> Iterator[str]:
    m, n, k = s.shape
    plan = s.chosen.plan
    yield (
        f"A guess, not measured: C[{m}, {n}] = A[{m}, {k}] * B[{k}, {n}] in {plan.dtype}, "
        f"for the {s.gpu.sms} multiprocessors of an {s.gpu.name}."
    )
    yield _tile(s)
    yield from _split(s)
    yield _threads(s)
    yield _accesses(s)
    yield _copies(s)
    if plan.residue:
        size = plan.family.tile[2]
        yield (
            f"residue: {k} terms are {k // size} tiles of {size} and {k % size} more; the ragged "
            "tile goes first, so that copies in the loop need no guard along k."
        )
    if plan.family.blocks:
        yield (
            f"launch_bounds: a thread gets registers for {plan.family.blocks} blocks on a "
            "multiprocessor."
        )
    if plan.raster:
        yield "raster: blocks that run together share what they read of A and B in the L2 cache."
    yield (
        f"Estimated: {s.chosen.seconds * 1e3:.3g} ms, "
        f"{2 * prod(s.shape) / s.chosen.seconds / 1e12:.3g} TFLOP/s.  `gemmgen bench` measures it, "
        "`gemmgen tune` searches around it."
    )


def _tile(s: Suggestion) -> str:
    """The tile by size, and the waves of its blocks."""
    family = s.chosen.plan.family
    rows, columns = (ceil(a / b) for a, b in zip(s.shape, s.chosen.tiles, strict=False))
    waves = rows * columns / (s.gpu.sms * residents(s.chosen.facts, s.gpu))
    held = residents(s.chosen.facts, s.gpu)
    each = "1 block" if held == 1 else f"{held} blocks"
    told = (
        f"tile: {rows} x {columns} tiles of {family.name} are {waves:.2f} waves, "
        f"at {each} on each multiprocessor."
    )
    size = usual(s.shape)
    if s.usual is None:
        return f"{told}  The usual size {_RANGES[size]} it is."
    longer = s.usual.seconds / s.chosen.seconds
    instead = ceil(s.shape[0] / s.usual.tiles[0]) * ceil(s.shape[1] / s.usual.tiles[1])
    one = "1 tile" if instead == 1 else f"{instead:,} tiles"
    return (
        f"{told}  The usual size {_RANGES[size]} would be {s.usual.plan.family.name}: {one}, "
        f"estimated {longer:.2f} times as long."
    )


def _split(s: Suggestion) -> Iterator[str]:
    plan = s.chosen.plan
    if plan.parts == 1:
        return
    tiles = s.blocks // plan.parts
    told = (
        f"split_k: {_counted(tiles, 'tile')} would leave most of {s.places} places empty; "
        f"{plan.parts} blocks a tile share its k = {s.shape[2]}, {s.blocks} blocks in all"
    )
    yield told + (
        f", and {plan.groups} groups of parts are added side by side." if plan.groups > 1 else "."
    )


def _threads(s: Suggestion) -> str:
    family, facts = s.chosen.plan.family, s.chosen.facts
    warps = f"{facts.threads // 32} warps of {family.warp[0]} x {family.warp[1]}"
    if family.micro is None:
        return f"tensor_core: {warps}, which multiply 16 x 16 x 16 at a time."
    m, n = family.micro
    return (
        f"register_block: {warps}; a thread's {m} x {n} sums take {m} + {n} reads of shared memory "
        f"for {m * n} multiply-adds, {ffma_share(facts):.0%} of all instructions."
    )


def _accesses(s: Suggestion) -> str:
    plan, (_, n, k) = s.chosen.plan, s.shape
    parts: list[str] = []
    if plan.columns > 1:
        parts.append(f"rows of B and C are {n} elements, which {plan.columns} divides")
    else:
        parts.append(f"rows of B and C are {n} elements, an odd number, so they move one by one")
    if plan.family.micro is not None and plan.asynchronous:
        parts.append("A is turned on its way into shared memory, element by element")
    elif plan.rows > 1:
        parts.append(f"rows of A are {k}, which {plan.rows} divides")
    else:
        parts.append(f"rows of A are {k}, so they move one by one")
    return f"vectorize: {'; '.join(parts)}."


def _copies(s: Suggestion) -> str:
    plan = s.chosen.plan
    how = "by cp.async, past the registers" if plan.asynchronous else "through registers"
    why = ""
    if not plan.asynchronous:
        why = ": this GPU has no cp.async" if plan.arch < 80 else ": single halves are too small"
    return (
        f"double_buffer: {plan.family.stages} tiles of k in shared memory, loaded {how}{why}; "
        "fragments are read a step ahead."
    )


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
