"""Which candidates explain what an instruction computed: a search in two grids.

First how normal numbers are added (``CORE`` categories), then what zeros, tiny, huge and infinite
ones do. A candidate is dropped at its first output that differs, so most cost 32 outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import product

import numpy as np
from tensor_core_batches import CORE, Tiles
from tensor_core_kernels import Instruction
from tensor_core_model import Candidate, Operands, Rule, Sequential, evaluate

FIRST, THEN = 32, 1024
"""Outputs that each candidate is compared with, and those who pass."""
Seen = Mapping[str, tuple[Tiles, np.ndarray]]
"""Of each category the operands and what the instruction made of them, as bits."""


@dataclass(frozen=True)
class Outputs:
    """Single outputs: the operands of each, and ``d``, what the instruction made of them."""

    operands: Operands
    d: np.ndarray

    def at(self, which: np.ndarray | slice) -> Outputs:
        return Outputs(self.operands.at(which), self.d[which])


def single(tiles: Tiles, what: Instruction, which: np.ndarray) -> Operands:
    """The operands of single outputs (flat indices) of a batch."""
    a, b, c = tiles
    tile, row, column = np.unravel_index(which, c.shape)
    return Operands(a[tile, row], b[tile, column], c.ravel()[which], (what.a, what.b, what.acc))


def is_nan(bits: np.ndarray, name: str) -> np.ndarray:
    kind = {"f64": np.float64, "f32": np.float32, "f16": np.float16}[name]
    return np.isnan(bits.view(kind))


def equal(got: np.ndarray, want: np.ndarray, name: str) -> np.ndarray:
    """Equal bits; NaN equals NaN."""
    return (got == want) | (is_nan(got, name) & is_nan(want, name))


def agrees(outputs: Outputs, what: Instruction, rule: Candidate) -> np.ndarray:
    return equal(outputs.d, evaluate(outputs.operands, what.k, rule), what.acc)


def _groups(what: Instruction) -> Iterator[tuple[int, str]]:
    yield what.k, "run"
    for parts in (2, 4):
        if what.k // parts >= 2:
            for order in ("run", "pairs", "strides"):
                if order != "pairs" or what.k // parts >= 4:
                    yield what.k // parts, order


def core_grid(what: Instruction) -> Iterator[Candidate]:
    """How many products are added at once, how many bits are kept, and how they are rounded."""
    if what.acc == "f64":
        for order, step in product(("up", "down"), ("fma", "rounded")):
            yield Sequential(order, step)
        return
    fractions = [*range(21, 31)]
    ends = [("zero", 23), ("nearest", 23)]
    if what.acc == "f16":
        ends = [("nearest", 10), ("zero", 10)]
    if what.a in ("e4m3", "e5m2"):
        few, many = [13, 10, 11, 12, 14, 15, 16], [25, 22, 23, 24, 26, 27]
        fractions = [*few, *many[:4]] if what.via == "wgmma" else [*many, *few[:3]]
        if what.acc == "f32":
            ends.insert(0, ("zero", 13))
            ends.append(("nearest", 13))
    for (group, order), accumulator, fraction, cut, exponents, (result, bits) in product(
        _groups(what),
        ("aligned", "added", "late"),
        fractions,
        ("zero", "floor"),
        ("sum", "normalized", *(("f16",) if what.a in ("e4m3", "e5m2") else ())),
        ends,
    ):
        yield Rule(group, order, fraction, accumulator, cut, exponents, result, bits)


def edge_grid(rule: Candidate, what: Instruction) -> Iterator[Candidate]:
    """The same rule with each treatment of zeros and of numbers at the ends of the formats."""
    if isinstance(rule, Sequential):
        yield rule
        return
    leasts = (-126, *range(-130, -136, -1)) if what.acc == "f32" else (-14, *range(-18, -26, -1))
    bounds = ("unbounded", "bounded") if what.a in ("bf16", "tf32") else ("unbounded",)
    for zeros, start, least, overflow, signs, products in product(
        ("ignored", "counted"),
        ("ignored", "counted"),
        (None, *leasts),
        ("infinity", "largest"),
        ("positive", "kept", "ieee"),
        bounds,
    ):
        yield replace(
            rule,
            zeros=zeros,
            start=start,
            least=least,
            overflow=overflow,
            signs=signs,
            products=products,
        )


@dataclass(frozen=True)
class Search:
    """``explain``: candidates that no output contradicts; if there are none, the ``best``."""

    tried: int
    explain: tuple[Candidate, ...]
    best: Candidate
    share: float


def sample(seen: Seen, what: Instruction, categories: Iterable[str], each: int) -> Outputs:
    """Outputs of several categories, mixed."""
    rng = np.random.default_rng(1)
    operands, d = [], []
    for category in categories:
        if category in seen and not category.endswith("chain"):
            tiles, found = seen[category]
            which = rng.permutation(found.size)[:each]
            operands.append(single(tiles, what, which))
            d.append(found.ravel()[which])
    a, b, c = (np.concatenate([getattr(x, name) for x in operands]) for name in "abc")
    every = Outputs(Operands(a, b, c, operands[0].types), np.concatenate(d))
    return every.at(rng.permutation(len(a)))


def select(outputs: Outputs, what: Instruction, grid: Iterable[Candidate]) -> Search:
    """The candidates that explain all outputs."""
    first, then = outputs.at(slice(0, FIRST)), outputs.at(slice(0, THEN))
    tried, best, most = 0, None, -1.0
    passed: list[Candidate] = []
    for rule in grid:
        tried += 1
        share = float(agrees(first, what, rule).mean())
        if share == 1.0:
            passed.append(rule)
        elif share > most:
            best, most = rule, share
    explain: list[Candidate] = []
    kept, most_kept = None, -1.0
    for rule in passed:
        share = float(agrees(then, what, rule).mean())
        if share == 1.0:
            share = float(agrees(outputs, what, rule).mean())
        if share == 1.0:
            explain.append(rule)
        if share > most_kept:
            kept, most_kept = rule, share
    if kept is not None:
        return Search(tried, tuple(explain), kept, most_kept)
    if best is None:
        raise ValueError("an empty grid")
    return Search(tried, (), best, most)


def search(seen: Seen, what: Instruction) -> tuple[Search, Search]:
    """The search among normal numbers, and that among all categories."""
    core = select(sample(seen, what, CORE, 700), what, core_grid(what))
    everything = sample(seen, what, seen, 1000)
    starts = core.explain[:3] or (core.best,)
    grid = (rule for start in starts for rule in edge_grid(start, what))
    return core, select(everything, what, grid)


def undecided(explain: tuple[Candidate, ...]) -> dict[str, list[object]]:
    """Fields in which candidates that explain everything differ, with their values."""
    rows = [asdict(rule) for rule in explain]
    names = rows[0] if rows else {}
    found = {name: list(dict.fromkeys(row.get(name) for row in rows)) for name in names}
    return {name: values for name, values in found.items() if len(values) > 1}


def model_of(rule: Candidate, what: Instruction, tiles: Tiles) -> np.ndarray:
    """What the candidate makes of a batch, as the instruction's bits."""
    every = single(tiles, what, np.arange(tiles[2].size))
    return evaluate(every, what.k, rule).reshape(tiles[2].shape)
