"""Instruction tiles as drawn are those of the emitted text, and banks those of TMA's swizzle."""

from __future__ import annotations

import re

import pytest

from gemmgen.draw.wgmma import instruction_of
from tests.draw.reading import drawn, scene_of


@pytest.mark.by_default("hopper/wgmma-shape0-4")
@pytest.mark.parametrize(
    ("name", "shape", "count"),
    [
        ("hopper/wgmma", (64, 256, 16), 4),
        ("hopper/fp8", (64, 256, 32), 4),
        ("hopper/split_f32", (64, 128, 16), 4),
        ("hopper/few_rows", (64, 16, 16), 4),
    ],
)
def test_a_step_is_cut_into_the_instructions_of_the_text(
    name: str, shape: tuple[int, int, int], count: int
) -> None:
    scene = scene_of(name)
    tile = instruction_of(scene)
    assert (tile.m, tile.n, tile.k) == shape
    drawing = drawn(name, "fragments")
    work, problem = scene.main.work, scene.problem
    form = rf"wgmma \d+: {problem.a.name}, "
    of_a = [cell for cell in drawing.cells if re.match(form, cell.about)]
    assert len(of_a) * tile.m * tile.k == work.size(problem.m) * (scene.step or 0)
    groups = [cell for cell in drawing.cells if cell.about.startswith("warpgroup ")]
    area = work.size(problem.m) * work.size(problem.n)
    assert len(groups) * tile.m * tile.n == area
    assert f"is {count} wgmma m{tile.m}n{tile.n}k{tile.k} per warpgroup" in drawing.description


def test_the_swizzle_spreads_the_rows_of_a_core_matrix() -> None:
    drawing = drawn("hopper/wgmma", "banks")
    assert "A_shared: 8-way conflict without swizzle, no conflict with it." in drawing.description
    rows = [cell.about for cell in drawing.cells if cell.about.startswith("row ")]
    assert rows[:8] == [f"row {row}: banks 0 to 3" for row in range(8)]
    assert rows[8:16] == [f"row {row}: banks {4 * row} to {4 * row + 3}" for row in range(8)]
