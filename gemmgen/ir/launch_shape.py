"""The shape of a launch: the extents of its problem."""

from __future__ import annotations

Shape = tuple[int, ...]
"""M, N, K, and the number of matrices along each batch letter, in the output's order."""


def spelled(shape: Shape) -> str:
    """``127x131x257``, ``127x131x257 in 2x3 batches``."""
    matrix, batches = ("x".join(map(str, part)) for part in (shape[:3], shape[3:]))
    return f"{matrix} in {batches} batches" if batches else matrix
