"""Drawings of the ideas of the ladder at one small size: a product of 4 x 4, worked by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gemmgen.draw.marks import LOAD, PLAIN, A, B, C, Cell, Drawing, Label, Mark, Meaning, Stroke
from gemmgen_docs.drawings import figure, translated
from gemmgen_docs.markdown import table
from gemmgen_docs.translation import ENGLISH, said

Matrix = tuple[tuple[int, ...], ...]

A4: Matrix = ((1, 2, 3, 4), (5, 6, 7, 8), (9, 10, 11, 12), (13, 14, 15, 16))
B4: Matrix = ((1, 2, 3, 1), (2, 0, 1, 3), (0, 1, 4, 2), (1, 3, 2, 0))
ROW, COLUMN = 1, 2
"""The element of C that is worked by hand."""
SIDE = 2
"""The sides of a tile, and of a step along k."""
LATENCIES = (
    ("registers", "4", "V100", "[Jia and others](https://arxiv.org/abs/1804.06826)"),
    (
        "shared memory",
        "23",
        "RTX 2070",
        "[gpu-arch-microbenchmark](https://github.com/sjfeng1999/gpu-arch-microbenchmark)",
    ),
    *(
        (level, clocks, "GH200", "[AI_kernels](https://github.com/markdewing/AI_kernels)")
        for level, clocks in (("L1 cache", "40"), ("L2 cache", "281"), ("device memory", "690"))
    ),
)
"""Published measurements: a level, its latency in clocks, the GPU, and the source."""
_CELL, _APART, _TOP = 32.0, 64.0, 40.0


def product(a: Matrix, b: Matrix) -> Matrix:
    """``a`` times ``b``."""
    columns = tuple(zip(*b, strict=True))
    return tuple(
        tuple(sum(x * y for x, y in zip(row, column, strict=True)) for column in columns)
        for row in a
    )


def part(matrix: Matrix, row: int, column: int) -> Matrix:
    """The tile of ``SIDE`` x ``SIDE`` elements from ``row``, ``column`` on."""
    return tuple(line[column : column + SIDE] for line in matrix[row : row + SIDE])


def sum_by_hand() -> str:
    """``C[1, 2] = 5 x 3 + ... = 65``."""
    pairs = [(A4[ROW][k], B4[k][COLUMN]) for k in range(len(B4))]
    terms = " + ".join(f"{x} x {y}" for x, y in pairs)
    values = " + ".join(str(x * y) for x, y in pairs)
    return f"C[{ROW}, {COLUMN}] = {terms} = {values} = {product(A4, B4)[ROW][COLUMN]}"


def row_times_column(lang: str = ENGLISH) -> str:
    """A row of A, a column of B, and the element of C that they give."""
    c = product(A4, B4)
    x = [8.0 + at * (4 * _CELL + _APART) for at in range(3)]
    marks = [
        *_matrix("A", A4, x[0], A, lambda m, k: m == ROW),
        *_matrix("B", B4, x[1], B, lambda k, n: n == COLUMN),
        *_matrix("C", c, x[2], C, lambda m, n: (m, n) == (ROW, COLUMN)),
        Label(x[1] - _APART / 2, _TOP + 2 * _CELL, "x", "middle", "large"),
        Label(x[2] - _APART / 2, _TOP + 2 * _CELL, "=", "middle", "large"),
    ]
    about = f"A row of A times a column of B is an element of C: {sum_by_hand()}."
    return _shown(lang, "a row times a column", about, x[2] + 4 * _CELL, _TOP + 4 * _CELL, marks)


def accumulation(lang: str = ENGLISH) -> str:
    """The accumulators of the block at C[0..1, 2..3] after each step along k."""
    total: Matrix = ((0, 0), (0, 0))
    rows: list[tuple[str, ...]] = []
    for step, k in enumerate(range(0, len(B4), SIDE), 1):
        added = product(part(A4, 0, k), part(B4, k, COLUMN))
        total = tuple(
            tuple(x + y for x, y in zip(*pair, strict=True))
            for pair in zip(total, added, strict=True)
        )
        tiles = (part(A4, 0, k), part(B4, k, COLUMN), added, total)
        rows.append((said(f"after step {step}", lang), *map(_rows_of, tiles)))
    header = ("", "tile of A", "tile of B", "their product", "accumulators")
    return table([said(x, lang) for x in header], rows)


def _rows_of(matrix: Matrix) -> str:
    return "<br>".join(" ".join(map(str, row)) for row in matrix)


def cuts(lang: str = ENGLISH) -> str:
    """Two ways to cut A and B into steps: along n, and along k."""
    marks: list[Mark] = []
    width = 0.0
    for at, (title, along_k) in enumerate((("cut along n", False), ("cut along k", True))):
        y = at * (4 * _CELL + _TOP + 48) + 8
        effect = "each tile is loaded once" if along_k else "A's tile is loaded for each tile of B"
        marks.append(Label(8, y + 12, f"{title}: {effect}", size="large"))
        for number in range(2):
            x = 8 + number * (8 * _CELL + 2 * _APART)
            marks += _cut(x, y + _TOP, number, along_k)
            width = max(width, x + 8 * _CELL + _APART)
    about = (
        "Two steps of a block, above with steps along n, below along k. Along n the same rows of A "
        "are loaded for each tile of B; along k both tiles are new at each step."
    )
    return _shown(lang, "where to cut", about, width, 8 * _CELL + 2 * _TOP + 64, marks)


def _cut(x: float, y: float, step: int, along_k: bool) -> Iterator[Mark]:
    """A and B of one step; loaded elements are marked."""
    yield Label(x, y + 8, f"step {step}")
    top, beside = y + 24, x + 4 * _CELL + _APART / 2
    a = (step, step + 1) if along_k else (0, 2)
    b_rows, b_columns = ((step, step + 1), (0, 1)) if along_k else ((0, 2), (step, step + 1))
    for row in range(2):
        for column in range(2):
            in_a = row == 0 and a[0] <= column < a[1]
            in_b = b_rows[0] <= row < b_rows[1] and b_columns[0] <= column < b_columns[1]
            box = 2 * _CELL, 1.5 * _CELL
            at_a = x + column * box[0], top + row * box[1]
            at_b = beside + column * box[0], top + row * box[1]
            yield Cell(*at_a, *box, A if in_a else PLAIN, "A" if in_a else "", strong=in_a)
            yield Cell(*at_b, *box, B if in_b else PLAIN, "B" if in_b else "", strong=in_b)


def micro_tile(lang: str = ENGLISH) -> str:
    """Two values of A and two of B give four products: what a thread with 2 x 2 elements does."""
    marks: list[Mark] = [Label(8, 12, "one k of a thread with 2 x 2 elements of C", size="large")]
    a, b = (A4[0][0], A4[1][0]), (B4[0][2], B4[0][3])
    x, y = 96.0, 88.0
    for at, value in enumerate(b):
        marks.append(Cell(x + at * 96, y - _CELL - 8, 96, _CELL, B, str(value), strong=True))
    for row, left in enumerate(a):
        marks.append(Cell(x - 64, y + row * _CELL, 56, _CELL, A, str(left), strong=True))
        for column, above in enumerate(b):
            text = f"{left} x {above} = {left * above}"
            marks.append(Cell(x + column * 96, y + row * _CELL, 96, _CELL, C, text))
    about = (
        "A thread reads 2 values of A and 2 of B, and computes 4 products of them: one read for "
        "each multiply-add, where a thread with one element needs two."
    )
    return _shown(lang, "a micro-tile", about, 320, y + 2 * _CELL, marks)


def memory(lang: str = ENGLISH) -> str:
    """The levels of memory, nearest first: boxes whose lines grow with their latency."""
    marks: list[Mark] = []
    longest = max(int(clocks) for _, clocks, _, _ in LATENCIES)
    for at, (level, clocks, gpu, _) in enumerate(LATENCIES):
        y = 8 + at * 40.0
        marks.append(Cell(8, y, 136, 32, PLAIN, level, size="normal"))
        length = 400 * int(clocks) / longest
        marks.append(Stroke(((152, y + 16), (152 + length, y + 16)), LOAD, strong=True))
        marks.append(Label(160 + length, y + 16, f"{clocks} clocks ({gpu})"))
    about = "Clocks from a request until its value is there, as published; not measured here yet."
    return _shown(
        lang, "latencies of the levels of memory", about, 704, 8 + 40.0 * len(LATENCIES), marks
    )


def latencies(lang: str = ENGLISH) -> str:
    """The same as a table, with the sources."""
    header = ("level", "clocks", "on", "measured by")
    rows = [(said(level, lang), *rest) for level, *rest in LATENCIES]
    return table([said(x, lang) for x in header], rows, right=(1,))


def _matrix(
    name: str, values: Matrix, x: float, meaning: Meaning, is_used: Callable[[int, int], bool]
) -> Iterator[Mark]:
    yield Label(x, 16, name, size="large")
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            used = is_used(row, column)
            at = x + column * _CELL, _TOP + row * _CELL
            about = f"{name}[{row}, {column}]"
            box = (*at, _CELL, _CELL)
            yield Cell(
                *box, meaning if used else PLAIN, str(value), about, strong=used, size="normal"
            )


def _shown(
    lang: str, title: str, about: str, width: float, height: float, marks: Sequence[Mark]
) -> str:
    return figure(translated(Drawing(title, about, width + 16, height + 16, tuple(marks)), lang))
