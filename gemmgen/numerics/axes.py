"""Arrays in the order of their roles: batches, rows, columns.

A tensor *in its roles* has an axis for each batch letter of the problem, in the output's order, and
two for its matrix: (m, k) for a, (k, n) for b, (m, n) for all others.  The axis of a letter that
the tensor lacks has extent 1, so that tensors broadcast to the output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from gemmgen.ir.blocked_letters import count, plain

Kind = TypeVar("Kind", bound=np.generic)
Letters = tuple[str, ...]


class Named(Protocol):
    @property
    def name(self) -> str: ...


class Roles(Protocol):
    """A problem, or any product of two tensors: the letters in their roles."""

    @property
    def a(self) -> Named: ...
    @property
    def b(self) -> Named: ...
    @property
    def m(self) -> str: ...
    @property
    def n(self) -> str: ...
    @property
    def k(self) -> str: ...
    @property
    def batch(self) -> tuple[str, ...]: ...


def axes_of(problem: Roles, tensor: str, letters: Letters = ()) -> Letters:
    """The letters of a tensor's axes in its roles; ``letters`` are its own, which matter where they
    number blocks of an operand."""
    matrix = {problem.a.name: (problem.m, problem.k), problem.b.name: (problem.k, problem.n)}
    blocks = {plain(letter): letter for letter in letters}
    if problem.k in blocks and tensor not in matrix:
        sides = matrix[problem.a.name if problem.m in blocks else problem.b.name]
        return (*problem.batch, *(blocks[x] for x in sides))
    return (*problem.batch, *matrix.get(tensor, (problem.m, problem.n)))


def sizes_of(axes: Letters, letters: Letters, extents: Mapping[str, int]) -> tuple[int, ...]:
    """The shape in its roles of a tensor that has ``letters``; ``extents`` are by letter."""
    return tuple(count(x, extents[plain(x)]) if x in letters else 1 for x in axes)


def in_roles(values: npt.NDArray[Kind], letters: Letters, axes: Letters) -> npt.NDArray[Kind]:
    """A view in its roles of a tensor stored in the order of ``letters``."""
    transposed = values.transpose(tuple(letters.index(x) for x in axes if x in letters))
    return transposed[tuple(slice(None) if x in letters else None for x in axes)]


def in_storage(values: npt.NDArray[Kind], letters: Letters, axes: Letters) -> npt.NDArray[Kind]:
    """A view in the order of ``letters`` of a tensor in its roles."""
    kept = values[tuple(slice(None) if x in letters else 0 for x in axes)]
    there = [x for x in axes if x in letters]
    return kept.transpose(tuple(there.index(x) for x in letters))


def along(axes: Letters, letter: str, extent: int) -> npt.NDArray[np.float64]:
    """A letter's values along its axis."""
    shape = [1] * len(axes)
    shape[axes.index(letter)] = extent
    return np.arange(extent, dtype=np.float64).reshape(shape)
