"""Sketches that an epoch begins with: the examples, and small schedules of what is rarely reached.

On tensor cores much has to fit together before a pass takes anything: types, the target, pieces of
an atom, tiles in shared memory, for ``wgmma`` swizzled and by TMA.  What an atom asks
is in its row of ``ATOMS``, so each of them has a schedule, a new one too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from textwrap import dedent

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.fuzz import head_classes
from gemmgen.fuzz.climb import resized
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.facts import facts_of
from gemmgen.fuzz.growth import Sketch
from gemmgen.fuzz.head_classes import Plan, threads_class
from gemmgen.fuzz.heads import DrawnHead
from gemmgen.fuzz.legal import Crash, Refused
from gemmgen.ir.atoms import ATOMS, VIA, Atom, Product, Via
from gemmgen.ir.dtypes import DTYPES, HALVES, OLDEST
from gemmgen.ir.target import ONLY, SINCE, WARP
from gemmgen.language import parse_schedule
from gemmgen.schedule import examples
from gemmgen.schedule.model import Schedule

Seed = tuple[Sketch, Plan]

_PINGPONG = """
    gemm C[m, n] = A[k, m] * B[k, n]
    target sm_90a
    tile m=32 n=64 k=8
    cache_shared A B C
    register_block m=4 n=4
    double_buffer A B C
    async_copy A B C via=tma
    persistent
    warp_specialize producers=1 order=pingpong
"""
"""Small enough for an interpreter: sizes that are rarely drawn have a warpgroup's threads."""


def seeds(dice: Dice) -> Iterator[Seed]:
    """Ping-pong consumers and tensor cores unchanged; the examples, with sizes that an interpreter
    can run."""
    yield from _as_it_is(dice, parse_schedule(Source(dedent(_PINGPONG))))
    for text in multiplied():
        yield from _as_it_is(dice, parse_schedule(Source(text)))
    for name in examples.names():
        schedule = _example(name)
        if schedule is not None:
            yield from resized(dice, _sketch(dice, schedule))


_ORDERS = tuple(product(("m, k", "k, m"), ("n, k", "k, n")))
"""Of A and B; those along k come first."""
_SCALED = "(A[m, k] * SA[k/128, m]) * (B[n, k] * SB[n/128, k/128])"


def multiplied() -> Iterator[str]:
    """A small schedule for each atom of tensor cores, and each type that it multiplies; in all
    storage orders where tiles are read in place, as few sizes go with some of them."""
    for via, atoms in VIA.items():
        for atom in atoms:
            for types in ATOMS[atom].products:
                if types[0] != types[1]:
                    continue
                mn_major = ATOMS[atom].in_place and types[0] in ATOMS[atom].mn_major
                many = mn_major and (not ATOMS[atom].splits or types == ATOMS[atom].products[0])
                for a, b in _ORDERS if many else _ORDERS[:1]:
                    yield _multiplied(via, atom, types, f"A[{a}] * B[{b}]")
                if _has_scales(atom, types):
                    yield _multiplied(via, atom, types, _SCALED, promoted=True)


def _has_scales(atom: Atom, types: Product) -> bool:
    """Whether accumulators are registers whose row and column are known, in f32."""
    traits = ATOMS[atom]
    return traits.holding in ("known", "warpgroup") and types[2] == "f32" and not traits.splits


def _multiplied(
    via: Via, atom: Atom, types: Product, factors: str, *, promoted: bool = False
) -> str:
    """Two warps, or warpgroups."""
    traits, (of_parts, _, acc) = ATOMS[atom], types
    promoted |= bool(traits.splits)
    dtype = traits.splits or of_parts
    result = dtype if dtype in HALVES else acc
    n = 2 * traits.n
    lines = [
        f"gemm C[m, n] = {factors}",
        f"dtype A={dtype} B={dtype} C={result}" + (" acc=f64" if acc == "f64" else ""),
        f"target {_target(atom, dtype)}",
        f"tile m={2 * traits.m} n={n} k={traits.k}",
        "cache_shared A B",
        f"warp_tile m={traits.m} n={n}",
        f"tensor_core via={via}" + (f" promote={traits.k}" if promoted else ""),
    ]
    if traits.splits:
        lines.append(f"decompose into={of_parts}")
    if traits.in_place:
        lines += ["swizzle A B", "double_buffer A B", "async_copy A B via=tma"]
    return "".join(f"{line}\n" for line in lines)


def _target(atom: Atom, dtype: str) -> str:
    """The first architecture that has an atom, and its types."""
    since = (SINCE.get(atom, OLDEST), *(t.since for name, t in DTYPES.items() if name == dtype))
    return ONLY.get(atom) or f"sm_{max(since)}"


def _as_it_is(dice: Dice, schedule: Schedule) -> Iterator[Seed]:
    """The schedule with its own names; none if a pass has a bug, which schedules show."""
    sketch = _sketch(dice, schedule)
    try:
        threads = sketch.program.main.threads
    except (Crash, Refused):
        return
    yield sketch, sketch.plan(threads_class(threads))


def _sketch(dice: Dice, schedule: Schedule) -> Sketch:
    empty = Sketch.of(DrawnHead(dice, head_classes.plan_of(schedule, WARP)))
    return replace(empty, facts=facts_of(schedule))


def _example(name: str) -> Schedule | None:
    """One of the plain ones, or of newer targets' own: those in other folders are these with other
    sizes, or a search."""
    if "/" in name and not name.startswith("hopper/"):
        return None
    path = examples.path_of(name)
    try:
        return parse_schedule(Source(path.read_text(encoding="utf-8")))
    except ScheduleError:  # a set of values is not settled
        return None
