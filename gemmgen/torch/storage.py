"""The storage order of a tensor: an order of its letters in which a kernel can read it."""

from __future__ import annotations

Sizes = tuple[int, ...]


def follows(letters: tuple[str, ...], tiled: frozenset[str], shape: Sizes, strides: Sizes) -> bool:
    """Whether a kernel that stores the tensor in the order of ``letters`` can read it in place.

    Its last dimension must be contiguous, and rows of a matrix, which the ``tiled`` letters index,
    must not overlap.  Batches may have any strides, in elements.
    """
    if 0 in shape or not shape:
        return True
    if shape[-1] > 1 and strides[-1] != 1:
        return False
    rows = [i for i, letter in enumerate(letters[:-1]) if letter in tiled]
    return all(shape[i] < 2 or strides[i] >= shape[-1] for i in rows)


def storage_order(
    letters: tuple[str, ...], tiled: frozenset[str], shape: Sizes, strides: Sizes
) -> tuple[int, ...] | None:
    """The permutation of a tensor's dimensions in which a kernel can read it in place.

    The given order is preferred; None if there is no such order, and the tensor must be copied.
    """
    given = tuple(range(len(letters)))
    if follows(letters, tiled, shape, strides):
        return given
    matrix = tuple(i for i in given if letters[i] in tiled)
    batches = tuple(i for i in given if i not in matrix)
    for order in ((*batches, *matrix), (*batches, *reversed(matrix))):
        permuted = [tuple(of[i] for i in order) for of in (shape, strides)]
        if matrix and follows(tuple(letters[i] for i in order), tiled, *permuted):
            return order
    return None
