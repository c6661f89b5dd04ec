"""Operands of small whole numbers, whose products are exact in every type."""

from __future__ import annotations

import numpy as np

SHAPES = (
    ((3, 4), (4, 5)),
    ((4,), (4, 5)),
    ((3, 4), (4,)),
    ((4,), (4,)),
    ((3, 1), (1, 5)),
    ((1, 4), (4, 1)),
    ((2, 3, 4), (4, 5)),
    ((2, 3, 4), (4,)),
    ((4,), (2, 4, 5)),
    ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)),
    ((2, 1, 4), (4, 5)),
    ((1, 3, 4), (2, 4, 5)),
    ((6, 1, 3, 4), (2, 4, 5)),
    ((1, 1, 3, 4), (1, 4, 5)),
    ((2, 3, 2, 3, 4), (2, 3, 1, 4, 5)),
    ((2, 2, 2, 2, 2, 3, 4), (2, 2, 2, 2, 2, 4, 5)),
)
EMPTY = (
    ((0, 4), (4, 5)),
    ((3, 4), (4, 0)),
    ((3, 0), (0, 5)),
    ((0,), (0,)),
    ((3, 0), (0,)),
    ((0, 3, 4), (4, 5)),
    ((2, 0, 4), (4, 5)),
    ((2, 3, 0), (0, 5)),
    ((0, 3, 4), (1, 4, 5)),
)
"""Shapes with an extent of 0."""


def drawn(shape: tuple[int, ...], dtype: object = np.float32, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng((seed, *shape))
    return generator.integers(-2, 3, shape).astype(np.float32).astype(dtype)


def orders(a: np.ndarray) -> dict[str, np.ndarray]:
    """Arrays equal to a matrix, stored in other ways."""
    rows, columns = a.shape
    whole = np.zeros((rows + 3, columns + 5), a.dtype)
    whole[1 : rows + 1, 2 : columns + 2] = a
    transposed = np.zeros((columns + 1, rows + 7), a.dtype)
    transposed[:columns, :rows] = a.T
    apart = np.zeros((2 * rows, 3 * columns), a.dtype)
    apart[::2, ::3] = a
    return {
        "rows": np.ascontiguousarray(a),
        "columns": np.asfortranarray(a),
        "slice": whole[1 : rows + 1, 2 : columns + 2],
        "columns of a slice": transposed[:columns, :rows].T,
        "apart": apart[::2, ::3],
        "backwards": np.ascontiguousarray(a[::-1])[::-1],
        "columns backwards": np.ascontiguousarray(a[:, ::-1])[:, ::-1],
    }
