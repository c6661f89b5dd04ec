"""A matrix of numbers as few rectangles: equal adjacent rows and columns are drawn as one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from gemmgen.base.record import record
from gemmgen.numerics.operators import Ints


@record
class Region:
    """A rectangle of equal elements: rows ``m`` and columns ``n``."""

    number: int
    m: range
    n: range

    @property
    def elements(self) -> int:
        return len(self.m) * len(self.n)


@record
class Grid:
    """The first row or column of each run of equal ones; the last entry is the end."""

    numbers: tuple[tuple[int, ...], ...]
    rows: tuple[range, ...]
    columns: tuple[range, ...]

    def regions(self) -> Iterator[Region]:
        """Row by row."""
        for row, numbers in zip(self.rows, self.numbers, strict=True):
            for column, number in zip(self.columns, numbers, strict=True):
                yield Region(number, row, column)


def grid_of(numbers: Ints, m: int = 0, n: int = 0) -> Grid:
    """The grid of a matrix whose first element is (``m``, ``n``)."""
    rows, columns = _alike(numbers), _alike(numbers.T)
    found = numbers[np.ix_([row.start for row in rows], [column.start for column in columns])]
    return Grid(
        tuple(tuple(line) for line in found.tolist()),
        tuple(range(row.start + m, row.stop + m) for row in rows),
        tuple(range(column.start + n, column.stop + n) for column in columns),
    )


def _alike(lines: Ints) -> tuple[range, ...]:
    """The runs of equal lines."""
    changes = np.flatnonzero((lines[1:] != lines[:-1]).any(axis=1)) + 1
    edges = [0, *changes.tolist(), len(lines)]
    return tuple(range(a, b) for a, b in itertools.pairwise(edges))


def within(numbers: Ints, chosen: Ints) -> Grid:
    """The smallest part of ``numbers`` that has all elements where ``chosen`` is not 0."""
    m, n = np.flatnonzero(chosen.any(axis=1)), np.flatnonzero(chosen.any(axis=0))
    return grid_of(numbers[m[0] : m[-1] + 1, n[0] : n[-1] + 1], int(m[0]), int(n[0]))
