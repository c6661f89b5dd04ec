"""A product of two arrays as a gemm line: a letter for each dimension, and the shape it needs.

    (8, 1, 64, 32) times (3, 32, 16)   ==>   C[b1, b2, m, n] = A[b1, m, k] * B[b2, k, n]

An operand that is broadcast lacks that letter, so nothing is expanded.  Dimensions that are
adjacent in memory become one: the batches of A with its rows, if B has none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemmgen.base.errors import CallError
from gemmgen.base.record import record

MOST_BATCHES = 4
"""Batch letters that a gemm line takes."""
Sizes = tuple[int, ...]
Letters = tuple[str, ...]
Assigned = tuple[Letters, Letters, Letters, Sizes, Sizes, Sizes]
"""The letters of A, B and C, and the sizes of these."""


@record
class Arrangement:
    """The letters of A, B and C; the shapes to reshape the arrays to; the result's shape."""

    letters: tuple[Letters, Letters, Letters]
    shapes: tuple[Sizes, Sizes, Sizes]
    result: Sizes


def check_shapes(a: Sizes, b: Sizes, names: tuple[str, str] = ("a", "b")) -> None:
    """Raises ``CallError`` unless arrays of these shapes can be multiplied."""
    first, second = names
    for name, shape in ((first, a), (second, b)):
        if not shape:
            raise CallError(f"{name} has no dimension: multiply by a number with *")
    depth, other = a[-1], b[-2:][0]
    if depth != other:
        fits = len(b) > 1 and b[-1] == depth
        hint = f"; {second} transposed would fit: pass {second}.T" if fits and len(b) == 2 else ""
        raise CallError(
            f"{first} has shape {tuple(a)} and {second} has shape {tuple(b)}: {depth} columns of "
            f"{first} meet {other} rows of {second}{hint}"
        )
    for x, y in zip(reversed(a[:-2]), reversed(b[:-2]), strict=False):
        if 1 != x != y != 1:
            raise CallError(
                f"{first} has shape {tuple(a)} and {second} has shape {tuple(b)}: batch dimensions "
                f"of {x} and {y} don't broadcast, which takes equal ones or 1"
            )


def check_weight(x: Sizes, weight: Sizes) -> None:
    """Raises ``CallError`` unless ``weight`` is that of a linear layer for ``x``."""
    if len(weight) not in (1, 2):
        raise CallError(f"weight has {len(weight)} dimensions; it has shape (N, K), or (K,)")
    columns, depth = (shape[-1] if shape else None for shape in (x, weight))
    if columns is not None and columns != depth:
        raise CallError(
            f"x has shape {tuple(x)} and weight has shape {tuple(weight)}: rows of {columns} and "
            f"of {depth} elements are multiplied, which takes equal numbers"
        )


def assigned(a: Sizes, b: Sizes, used: frozenset[str]) -> Assigned:
    """Letters for shapes that ``check_shapes`` takes; ``used`` are those that an epilogue reads.

    Batches are ``b1``, ``b2``, ... from the left of the result; one of size 1 is left out, unless
    it is used.  A single column is a row: ``B[n, k]``.
    """
    count = max(len(a), len(b), 2) - 2
    left = (1,) * (count - len(a[:-2])) + tuple(a[:-2])
    right = (1,) * (count - len(b[:-2])) + tuple(b[:-2])
    letters: list[list[str]] = [[], [], []]
    sizes: list[list[int]] = [[], [], []]
    for at, (x, y) in enumerate(zip(left, right, strict=True)):
        letter, size = f"b{at + 1}", y if x == 1 else x
        if size == 1 and letter not in used:
            continue
        for role, there in enumerate((x == size, y == size, True)):
            if there:
                letters[role].append(letter)
                sizes[role].append(size)
    k = a[-1]
    m, n = a[-2] if len(a) > 1 else 1, b[-1] if len(b) > 1 else 1
    second = (("n", n), ("k", k)) if n == 1 else (("k", k), ("n", n))
    inner = ((("m", m), ("k", k)), second, (("m", m), ("n", n)))
    for role, pairs in enumerate(inner):
        letters[role] += [letter for letter, _ in pairs]
        sizes[role] += [size for _, size in pairs]
    (la, lb, lc), (sa, sb, sc) = map(tuple, letters), map(tuple, sizes)
    return la, lb, lc, sa, sb, sc


def result_shape(a: Sizes, b: Sizes) -> Sizes:
    """The shape of the product, as ``numpy.matmul`` has it."""
    count = max(len(a), len(b), 2) - 2
    outer = [1] * count
    for shape in (a, b):
        for at, size in enumerate(reversed(shape[:-2])):
            outer[-1 - at] = size if outer[-1 - at] == 1 else outer[-1 - at]
    return (*outer, *(a[-2:-1] if len(a) > 1 else ()), *(b[-1:] if len(b) > 1 else ()))


def arranged(
    a: tuple[Sizes, Sizes],
    b: tuple[Sizes, Sizes],
    out: tuple[Sizes, Sizes] | None,
    used: frozenset[str],
) -> Arrangement:
    """The arrangement of operands (shape, strides in elements), of an ``out`` if there is one.

    Raises ``CallError`` for more batch dimensions than a gemm line takes.
    """
    la, lb, lc, *shapes = assigned(a[0], b[0], used)
    result = result_shape(a[0], b[0])
    steps = [_steps(la, shapes[0], *a), _steps(lb, shapes[1], *b)]
    if out is not None:
        steps.append(_steps(lc, shapes[2], *_whole(out, len(a[0]) == 1, len(b[0]) == 1)))
    sizes = dict(zip(lc, shapes[2], strict=True))
    gone: set[str] = set()
    inner = "m"
    for letter in reversed([x for x in lc if x not in ("m", "n")]):
        if _merges(letter, inner, sizes, steps, used):
            for each in steps:
                if sizes[inner] == 1 and letter in each:
                    each[inner] = each[letter]
            sizes[inner] *= sizes[letter]
            gone.add(letter)
        else:
            inner = letter
    sizes["k"] = a[0][-1]
    letters = [tuple(x for x in each if x not in gone) for each in (la, lb, lc)]
    if len(letters[2]) - 2 > MOST_BATCHES:
        raise CallError(
            f"the product has {len(letters[2]) - 2} batch dimensions that are not adjacent in "
            f"memory, and at most {MOST_BATCHES} are taken: pass contiguous operands, or merge "
            "dimensions by reshape"
        )
    left, right, output = letters
    shaped = [tuple(sizes[x] for x in each) for each in letters]
    return Arrangement((left, right, output), (shaped[0], shaped[1], shaped[2]), result)


def _whole(out: tuple[Sizes, Sizes], no_rows: bool, no_columns: bool) -> tuple[Sizes, Sizes]:
    """``out`` with the dimensions of a vector's only row, or column."""
    found: list[Sizes] = []
    for at, each in enumerate(out):
        one = (1 - at,)  # a size of 1, a stride of 0
        if no_columns:
            each = (*each, *one)
        found.append((*each[:-1], *one, *each[-1:]) if no_rows else each)
    return found[0], found[1]


def _steps(letters: Letters, sizes: Sizes, shape: Sizes, strides: Sizes) -> dict[str, int | None]:
    """The stride of each batch letter, and of the rows; None if there is no element, so that all
    are adjacent."""
    if 0 in sizes:
        return dict.fromkeys(x for x in letters if x not in ("n", "k"))
    kept = [stride for size, stride in zip(shape[:-2], strides[:-2], strict=True) if size != 1]
    outer = [x for x, size in zip(letters[:-2], sizes[:-2], strict=True) if size != 1]
    found: dict[str, int | None] = dict(zip(outer, kept, strict=True))
    if "m" in letters:
        found["m"] = strides[-2] if len(strides) > 1 else 0
    return found


def _merges(
    outer: str,
    inner: str,
    sizes: Mapping[str, int],
    steps: Sequence[Mapping[str, int | None]],
    used: frozenset[str],
) -> bool:
    """Whether the two dimensions are one in each operand, or missing in it."""
    if outer in used or inner in used:
        return False
    if any((outer in each) != (inner in each) for each in steps):
        return False
    pairs = [(each[outer], each[inner]) for each in steps if outer in each]
    return sizes[inner] == 1 or all(
        x is None or y is None or x == sizes[inner] * y for x, y in pairs
    )
