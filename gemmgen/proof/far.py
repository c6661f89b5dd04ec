"""Matrices whose rows lie so far apart that an offset is no int: sparse memory holds them."""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm, prod

from gemmgen.passes.build import problem_of
from gemmgen.pipeline import Emitted
from gemmgen.proof.layouts import divisor, lay_out
from gemmgen.proof.outcome import Shape
from gemmgen.proof.shapes import constraints, fit, ragged_terms, tile_of, with_batches

ROW = 2**30 + 8
"""Elements from row to row, at least: the third one begins beyond 2^31."""
APART = 2**31 + 8
"""Elements between two matrices of a batch, at least."""
SPAN = 2**43
"""Bytes of address space that are enough for one call; almost none of them are touched."""
_MOST_ROWS = 4000
"""Of all tensors: the CPU run sends each one by itself."""


def spread(emitted: Emitted, values: Mapping[str, int]) -> dict[str, int]:
    """``values`` (extents, leading dimensions) with each leading dimension that is free at least
    ``ROW``, and with strides of batches that are at least ``APART``."""
    found = dict(values)
    for number, name in enumerate(_free(emitted)):
        by = lcm(8, divisor(emitted, name))
        wider = found | {name: -(-(ROW + 8 * number) // by) * by}
        if all(rule.holds(wider) for rule in constraints(emitted) if rule.name in wider):
            found = wider
    return lay_out(emitted, found, APART, "behind")


def far_shapes(emitted: Emitted) -> tuple[Shape, ...]:
    """Whole tiles and ragged ones along the columns of C and along k, and less than one tile, of
    more rows than columns; none where neither a leading dimension nor a stride can be chosen."""
    if not _free(emitted) and not emitted.interface.strides:
        return ()
    m, n, k, _ = tile_of(emitted.program)
    terms = ragged_terms(emitted.program, 2)
    large = ((m, n + 3, terms), (m // 2 + 1, n + 3, k + 3), (5, n + 3, 5))
    wanted = (*large, (9, 5, k // 2 + 1))
    shapes = [fit(emitted, with_batches(emitted, each, 2)) for each in wanted]
    light = [shape for shape in shapes if _rows(emitted, shape) <= _MOST_ROWS]
    return tuple(dict.fromkeys((*light[:1], *light[-1:])))


def _free(emitted: Emitted) -> tuple[str, ...]:
    """The leading dimensions that no assumption ties to an extent."""
    tied = {a.name for a in emitted.schedule.assumes if a.equals is not None}
    return tuple(p.name for p in emitted.interface.params if p.kind == "ld" and p.name not in tied)


def _rows(emitted: Emitted, shape: Shape) -> int:
    """Rows of all tensors together."""
    sizes = dict(zip(problem_of(emitted.schedule).letters, shape, strict=True))
    tensors = (p for p in emitted.interface.params if p.kind == "tensor")
    return sum(prod(sizes[letter] for letter in p.indices[:-1]) for p in tensors)
