"""Tiles as drawn are what a block reads and writes, step by step."""

from __future__ import annotations

import numpy as np
import pytest

from gemmgen.analyze.accesses import Site
from gemmgen.analyze.recorder import record_accesses
from gemmgen.draw import tiles
from gemmgen.draw.marks import Drawing
from gemmgen.draw.recorded import dense, position
from gemmgen.draw.scene import Scene
from gemmgen.interpreter.simt import Index, Lanes, Mask
from gemmgen.ir.problem import Tensor
from tests.draw.reading import described, drawn, scene_of, scene_of_text

STEP = r"(?:step (\d+)|read by the block)"
COLUMN_MAJOR = """\
gemm            C[n, m] = A[k, m] * B[n, k]
tile            m=32 n=16 k=8
cache_shared    A B
double_buffer   A B
residue         k=first
raster          group=2
"""

Place = tuple[int, int]


def accesses(scene: Scene, tensor: Tensor, block: int) -> list[Place]:
    """What a block of the recorded kernel reads (of C: writes), in the order in which it does."""
    problem, kernel = scene.problem, scene.kernel.lowered
    values, lanes = dense(scene, scene.shape()), Lanes(0, 1, *kernel.interface.block)
    sizes = dict(zip(problem.letters, scene.shape(), strict=True))
    letters = problem.matrix(tensor.letters)
    found: dict[Place, None] = {}

    def see(site: Site, index: Index, mask: Mask) -> None:
        if site.buffer == tensor.name and site.write == (tensor == problem.c):
            first = np.broadcast_to(index, lanes.count)
            for start in first[np.ones(lanes.count, bool) if mask is None else mask].tolist():
                for e in range(site.width):
                    at = position(scene, tensor, values, start + e)
                    if all(at[letter] < sizes[letter] for letter in letters):
                        found.setdefault((at[letters[0]], at[letters[1]]))

    record_accesses(kernel, np.array([block]), values, see)
    return list(found)


def blocks(drawing: Drawing) -> tuple[int, dict[str, range]]:
    """The block that is drawn, and its tile of C."""
    (number, _), ranges = next(iter(described(drawing, r"block (\d+)")))
    return int(number), ranges


def check(scene: Scene, drawing: Drawing) -> None:
    problem = scene.problem
    block, tile = blocks(drawing)
    if scene.main.work.parts == 1:
        m, n = problem.matrix(problem.c.letters)
        drawn_tile = {(i, j) for i in tile[m] for j in tile[n]}
        assert set(accesses(scene, problem.c, block)) == drawn_tile
    for tensor in (problem.a, problem.b):
        letters = problem.matrix(tensor.letters)
        steps = {
            (i, j): int(step or 0)
            for (step, name), ranges in described(drawing, STEP)
            if name == tensor.name
            for i in ranges[letters[0]]
            for j in ranges[letters[1]]
        }
        read = accesses(scene, tensor, block)
        assert set(read) == set(steps)
        order = [steps[place] for place in read]
        assert order == sorted(order), "a step is read before the a pre-pass"


@pytest.mark.by_default("naive-*", "split_k-*")
@pytest.mark.parametrize(
    "name, shape",
    [
        ("naive", (20, 70, 12)),
        ("uncoalesced", (70, 20, 12)),
        ("tiled", (70, 80, 100)),
        ("warp_tiled", (132, 260, 52)),
        ("swizzled", (200, 256, 28)),
        ("split_k", (100, 128, 100)),
        ("best/odd_mk_kn", (101, 131, 37)),
        ("best/batched", (132, 132, 36, 1)),
        ("matvec", (20, 1, 1100)),
        ("tensor_core", (136, 264, 72)),
    ],
)
def test_a_block_reads_its_strips_in_the_steps_drawn(name: str, shape: tuple[int, ...]) -> None:
    scene = scene_of(name, shape)
    check(scene, drawn(name, "tiles", shape))


def test_so_it_is_with_other_storage_orders_and_a_ragged_first_step() -> None:
    scene = scene_of_text(COLUMN_MAJOR)
    given = Scene(scene.kernel, (70, 40, 45), scene.gpu)
    drawing = tiles.draw(given)
    check(given, drawing)
    names = {name for (_, name), _ in described(drawing, STEP)}
    assert names == {"A", "B"}


def test_all_steps_of_a_part_are_drawn() -> None:
    """Four blocks share the sum of seven steps; one of them has the first two."""
    found = {
        int(step) for (step, _), _ in described(drawn("split_k", "tiles", (64, 64, 100)), STEP)
    }
    assert found == {0, 1}


def test_reads_are_reported_with_their_sum() -> None:
    description = drawn("tiled", "tiles", (128, 96, 100)).description
    assert "C is 128 x 96, cut into 12 tiles of 32 x 32, each a block's work." in description
    assert "It reads K(BM + BN) = 100 x (32 + 32) = 6400 elements." in description
    naive = drawn("naive", "tiles", (16, 64, 100)).description
    assert "8 x 32 x 2K = 51200 reads for K = 100." in naive


def test_what_does_not_fit_is_left_out() -> None:
    drawing = drawn("tiled", "tiles", (4096, 4096, 4096))
    assert drawing.width < 1200 and drawing.height < 1200
    steps = [int(step) for (step, name), _ in described(drawing, STEP) if name == "A"]
    assert sorted(steps) == [0, 1, 2, 3, 4, 5, 127]


def test_another_block_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, right = scene_of("tiled", (70, 80, 100)), tiles._block
    check(scene, drawn("tiled", "tiles", (70, 80, 100)))

    def wrong(*given: object) -> tuple[int, int, int]:
        block, start, stop = right(*given)
        return block + 1, start, stop

    monkeypatch.setattr(tiles, "_block", wrong)
    with pytest.raises(AssertionError):
        check(scene, drawn("tiled", "tiles", (70, 80, 100)))


def test_exchanged_operands_are_drawn_as_the_gemm_line_has_them() -> None:
    """Tiles are walked over along m first, where the letters of instructions are n and m."""
    drawing = drawn("hopper/few_rows", "tiles", (64, 256, 128))
    block, tile = blocks(drawing)
    assert (block, tile) == (5, {"m": range(16, 32), "n": range(64, 128)})
    steps = {(name, ranges["k"]) for (_, name), ranges in described(drawing, STEP)}
    assert steps == {(name, range(k, k + 64)) for name in "AB" for k in (0, 64)}
    assert drawing.description.startswith("C is 64 x 256, cut into 16 tiles of 16 x 64")
