"""The order of the tiles along a Hilbert curve: every tile once in any grid, neighbors in a square,
and what goes wrong in the text is found."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from emitted_kernels import planted
from functions import with_functions
from hypothesis import example, given
from hypothesis import strategies as st

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel, compile_kernel
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.analyze.shared_strips import shared_strips
from gemmgen.analyze.tile_origins import origins_of
from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.language import parse_schedule
from gemmgen.numerics.operators import Ints, hilbert
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof.calls import Caller
from gemmgen.sim.failures import KernelFailure
from gemmgen.sim.run import CompiledKernel
from gemmgen.sim.run import compile_kernel as compile_kernel_text
from gemmgen.sim.unit import BEGIN, END

TILED = """
    gemm C[m, n] = A[m, k] * B[k, n]
    tile m=8 n=4 k=4
    cache_shared A B
"""
BATCHES = TILED.replace("C[m", "C[b, m").replace("A[m", "A[b, m")
SCHEDULES = {
    "a block for each tile": TILED + "raster group=4 order=hilbert",
    "persistent": TILED + "raster group=2 order=hilbert\npersistent",
    "parts": TILED + "raster group=4 order=hilbert\nsplit_k parts=2",
    "batches": BATCHES + "raster group=2 order=hilbert",
    "naive": "tile m=8 n=4\nraster group=4 order=hilbert",
}


def source(text: str) -> Source:
    return Source("\n".join(line.strip() for line in text.strip().splitlines()) + "\n", "x.sched")


@functools.cache
def emitted(name: str) -> Emitted:
    return compile_source(source(SCHEDULES[name]))


@functools.cache
def analyzed(lines: str) -> AnalyzedKernel:
    return compile_kernel(parse_schedule(source(TILED + lines)))


def walk(lines: str, rows: int, columns: int) -> tuple[Ints, Ints]:
    """The row and the column of each block's tile, as the kernel's first lines compute them."""
    kernel = analyzed(lines)
    shape = (8 * rows - 7, 4 * columns - 1, 1)
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, shape)
    found = [origins for _, origins, _, _ in origins_of(kernel.lowered, values)]
    row, column = (np.concatenate(part) for part in zip(*found, strict=True))
    return row // 8, column // 4


@given(st.sampled_from([2, 4, 8, 16, 64]), st.integers(1, 130), st.integers(1, 130))
@example(16, 16, 16)
@example(16, 17, 15)
@example(64, 63, 1)
def test_every_tile_of_any_grid_has_one_block(group: int, rows: int, columns: int) -> None:
    row, column = walk(f"raster group={group} order=hilbert", rows, columns)
    assert row.max() < rows and column.max() < columns
    assert np.unique(row * columns + column).size == row.size == rows * columns


@given(st.sampled_from([2, 4, 8, 16, 64]), st.integers(1, 5))
def test_blocks_that_follow_each_other_are_neighbors(group: int, squares: int) -> None:
    """Within a square, and from its last tile to the first one of the next."""
    row, column = walk(f"raster group={group} order=hilbert", group, squares * group)
    steps = np.abs(np.diff(row)) + np.abs(np.diff(column))
    assert (steps == 1).all()


@pytest.mark.parametrize("side", [2, 4, 8, 32, 1024])
def test_any_quarter_of_a_square_is_a_square(side: int) -> None:
    """And a quarter of that: what concurrent blocks share does not depend on how many they are."""
    column, row = np.divmod(hilbert(np.arange(side * side), side), side)
    part = side * side
    while part > 1:
        part, half = part // 4, int(part**0.5) // 2
        for at in (row, column):
            corners = at.reshape(-1, part)
            assert (corners.max(1) - corners.min(1) == half - 1).all()


def test_concurrent_blocks_read_fewer_strips_than_row_by_row() -> None:
    def strips(lines: str, at_once: int) -> float:
        kernel = analyzed(lines)
        values = arguments_of(kernel.lowered.interface, kernel.program.problem, (512, 256, 4))
        found = shared_strips(kernel.lowered, values, at_once)
        assert found.row_by_row == (at_once + 64 - 1) // 64 + min(at_once, 64)
        return found.a + found.b

    # A square of a power of four is as good as any shape of as many tiles.
    assert [strips("raster group=64 order=hilbert", n) for n in (16, 64, 256)] == [8, 16, 32]
    assert [strips("raster group=64", n) for n in (16, 64, 256)] == [17, 65, 68]
    assert [strips("raster group=8", n) for n in (16, 64, 256)] == [10, 16, 40]


SHAPES = ((81, 37, 9), (41, 33, 5))


def complaint(name: str, text: str | None = None) -> str | None:
    """What a checked run finds wrong, with tiles beside and below whole squares."""
    known = emitted(name)
    kernel = CompiledKernel(text or known.text, known.interface, checked=True, warn=text is None)
    batches = (2,) if name == "batches" else ()
    try:
        for shape in SHAPES:
            case = Case((*shape, *batches), "normal", 0.7, -1.0, 1)
            found = Caller(known).complaint(case, kernel)
            if found:
                return found
        return None
    except KernelFailure as failure:
        return str(failure)
    finally:
        kernel.close()


@pytest.mark.by_default("persistent")
@pytest.mark.parametrize("name", SCHEDULES)
def test_the_text_walks_along_the_curve(name: str) -> None:
    assert "gg_hilbert(tile_in_group, GROUP)" in emitted(name).text
    assert complaint(name) is None


CURVE = """
__global__ void curve(int N, const float *__restrict__ A, float *C) {{
  for (int i = threadIdx.x; i < N; i += 32) C[i] = A[i] * 0 + gg_hilbert(i, {side});
}}
"""
PARAMS = (
    Param("N", "extent"),
    Param("A", "tensor", ("n",)),
    Param("C", "tensor", ("n",), written=True, read=False),
)


def curve(side: int, old: str = "", new: str = "") -> Ints:
    """What ``gg_hilbert`` of the text gives for the numbers of three squares."""
    body = f'{BEGIN}\nextern "C"{CURVE.format(side=side)}{END}'
    text = planted(with_functions(body), old, new) if old else with_functions(body)
    interface = Interface("curve", PARAMS, (32, 1), (("N", 3 * side * side),), (), 0, 0, ())
    found = np.zeros(3 * side * side, np.float32)
    compile_kernel_text(text, interface, checked=True).run(
        {"N": found.size, "A": np.zeros_like(found), "C": found}, order="ascending", seed=1
    )
    return found.astype(np.int64)


@pytest.mark.by_default("8")
@pytest.mark.parametrize("side", [2, 8, 32])
def test_the_texts_curve_is_the_interpreters(side: int) -> None:
    assert (curve(side) == hilbert(np.arange(3 * side * side), side)).all()


TURNS = {
    "quarters that are not transposed": ("if (!lower) {", "if (false) {"),
    "both quarters transposed alike": ("right ? half - 1 - old_row : old_row", "old_row"),
    "quarters in another order": ("rest / 2 % 2", "rest % 2"),
}


@pytest.mark.by_default("quarters that are not transposed")
@pytest.mark.parametrize("turn", TURNS)
def test_finds_another_curve(turn: str) -> None:
    """Which is right for C, and no Hilbert curve."""
    assert (curve(8, *TURNS[turn]) != hilbert(np.arange(192), 8)).any()


PLANTS = {
    "the upper quarters twice": ("lower * half", "right * half"),
    "squares of a shorter group": ("group_rows < GROUP ? 0 : ", ""),
    "squares beyond the last one": (
        "(blocks_n / GROUP) * (GROUP * GROUP)",
        "((blocks_n - 1) / GROUP + 1) * (GROUP * GROUP)",
    ),
    "all squares are the first": ("return square + column", "return column"),
}


@pytest.mark.by_default("the upper quarters twice")
@pytest.mark.parametrize("plant", PLANTS)
def test_finds(plant: str) -> None:
    changed = planted(emitted("a block for each tile").text, *PLANTS[plant])
    assert complaint("a block for each tile", changed)
