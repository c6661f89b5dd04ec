"""What is drawn of copies is what shared memory holds after them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from chosen import with_every_word

from gemmgen.analyze.analyzed_kernel import AnalyzedKernel
from gemmgen.analyze.copied_boxes import copied_boxes
from gemmgen.analyze.copied_tiles import CopiedTile, Position, copied_tiles
from gemmgen.analyze.launch_arguments import arguments_of
from gemmgen.analyze.whole_tiles import boxed_tiles, staged_tiles, whole_tiles
from gemmgen.draw.copies import is_permuted
from gemmgen.draw.marks import Label
from gemmgen.draw.terminal import text_of
from gemmgen.schedule import examples
from tests.cli.running import gemmgen
from tests.draw.block_zero import compiled, of_text, run
from tests.draw.reading import ALL, drawn

_STAGES = re.compile(r"^cache_shared +(?!C\b)", re.MULTILINE)
_BOXES = re.compile(r"^async_copy +(?!C\b).*via=tma", re.MULTILINE)


def with_line(pattern: re.Pattern[str]) -> list[str]:
    return [n for n in ALL if pattern.search(examples.path_of(n).read_text(encoding="utf-8"))]


_BYTES = re.compile(r"^dtype .*(e4m3|e5m2|i8)", re.MULTILINE)
_OF_BYTES = frozenset(with_line(_BYTES))
STAGED = [name for name in with_line(_STAGES) if name not in _OF_BYTES]
"""Examples with shared tiles of operands, of types with a number for each element.  None is built
only to be listed."""


def images(kernel: AnalyzedKernel) -> dict[str, dict[Position, Position]]:
    """By tensor, where each element of its tile lies after one step along k, in the interpreter."""
    shape = whole_tiles(kernel, 1)
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, shape)
    pitch, log = dict(kernel.lowered.interface.pitch), run(kernel, shape)
    found: dict[str, dict[Position, Position]] = {}
    for tile in copied_tiles(kernel):
        rows, columns = tile.array_shape
        step, stage = int(values[pitch[tile.tensor]]), log.shared[tile.array][: rows * columns]
        covered = {(p.at[0], p.at[1] + e) for p in tile.stores for e in range(p.width)}
        found[tile.tensor] = {
            divmod(int(stage[row * columns + column]), step): (row, column)
            for row, column in sorted(covered)
        }
    return found


@pytest.mark.by_default("vectorized", "swizzled")
@pytest.mark.parametrize("name", dict.fromkeys(("vectorized", *with_every_word(STAGED))))
def test_elements_lie_where_the_interpreter_puts_them(name: str) -> None:
    kernel = compiled(name)
    assert staged_tiles(kernel)
    found = images(kernel)
    for tile in copied_tiles(kernel):
        assert dict(tile.where) == found[tile.tensor]
        rows, columns = tile.shape
        assert dict(tile.where).keys() == {(r, c) for r in range(rows) for c in range(columns)}


@pytest.mark.parametrize("name", ["tiled", "vectorized", "async_copy", "tensor_core"])
def test_a_thread_stores_what_it_loads(name: str) -> None:
    for tile in copied_tiles(compiled(name)):
        where = dict(tile.where)
        loaded = owners(tile, stored=False)
        assert len(loaded) == tile.shape[0] * tile.shape[1] == sum(p.width for p in tile.loads)
        stored = owners(tile, stored=True)
        assert {where[at]: thread for at, thread in loaded.items()} == stored


def owners(tile: CopiedTile, *, stored: bool) -> dict[Position, int]:
    pieces = tile.stores if stored else tile.loads
    return {(p.at[0], p.at[1] + e): p.thread for p in pieces for e in range(p.width)}


def test_a_layout_that_is_not_drawn_is_found(tmp_path: Path) -> None:
    """The comparison above tells two layouts of one tile from each other."""
    text = "tile m=64 n=64 k=8\ncache_shared A[k, m] B\nregister_block m=4 n=4\n"
    plain, swizzled = (of_text(text + more, tmp_path) for more in ("", "swizzle A\n"))
    a = copied_tiles(plain)[0]
    assert not is_permuted(a) and dict(a.where) == images(plain)["A"] != images(swizzled)["A"]
    assert is_permuted(copied_tiles(swizzled)[0])


BOXED = {
    "a box each": "tile m=64 n=128 k=8\ncache_shared A B\nregister_block m=4 n=8\n",
    "boxes of parts of rows": ("tile m=16 n=320 k=4\ncache_shared A B\nregister_block m=4 n=8\n"),
    "boxes of whole rows": "tile m=512 n=32 k=8\ncache_shared A B\nregister_block m=8 n=8\n",
}


@pytest.mark.by_default("boxes of parts of rows", "boxes of whole rows")
@pytest.mark.parametrize("name", [*BOXED, *with_line(_BOXES)])
def test_boxes_land_where_the_interpreter_puts_them(name: str, tmp_path: Path) -> None:
    text = "target sm_90\n{}double_buffer A B\nasync_copy A B via=tma\n"
    kernel = of_text(text.format(BOXED[name]), tmp_path) if name in BOXED else compiled(name)
    assert boxed_tiles(kernel)
    shape = whole_tiles(kernel, 1)
    values = arguments_of(kernel.lowered.interface, kernel.program.problem, shape)
    pitch, log = dict(kernel.lowered.interface.pitch), run(kernel, shape)
    maps = {one.tensor: one.box for one in kernel.lowered.interface.maps}
    for tile in copied_boxes(kernel):
        planes = kernel.lowered.interface.plane_values({x: int(y) for x, y in values.items()})
        step = planes.get(f"{tile.tensor}_pitch") or int(values[pitch[tile.tensor]])
        swizzle = kernel.program.main.buffer(tile.array).swizzle
        rows, columns = tile.shape
        for part in range(tile.parts):
            stage = log.shared[tile.array][part * rows * columns :]
            seen: dict[Position, int] = {}
            for box in tile.boxes:
                assert (box.columns, box.rows) == maps[tile.source][:2]
                for row in range(box.rows):
                    for column in range(box.columns):
                        at = box.at[0] + row, box.at[1] + column
                        own = box.place // box.columns + row
                        there = swizzle.column(own, column) if swizzle else column
                        seen[at] = int(stage[own * box.columns + there])
            first = part * planes.get(f"{tile.tensor}_plane", 0)
            kept = first + np.arange(rows)[:, None] * step + np.arange(columns)
            kept = kept.astype(stage.dtype)
            assert seen == {at: int(value) for at, value in np.ndenumerate(kept)}


def test_boxes_are_drawn_with_their_sizes_and_places() -> None:
    drawing = drawn("hopper/warp_specialized", "copies")
    about = [cell.about for cell in drawing.cells]
    assert "box 0: A[0..15, 0..255]" in about
    assert "box 0: 16384 bytes from byte 0 of the stage on" in about
    assert "the barrier of each of 3 stages expects 24576 bytes" in drawing.description
    lines = text_of(drawing).splitlines()
    assert any("box 0" in line and "byte 0" in line for line in lines)


def test_of_tiles_of_parts_the_first_is_drawn() -> None:
    drawing = drawn("hopper/split_f32", "copies")
    said = [mark.text for mark in drawing.marks if isinstance(mark, Label)]
    assert "A_parts[m, k] in global memory, the plane of part 0" in said
    assert "a stage of A_shared[m, k], the tile of part 0" in said
    assert "box 0: A_parts[0..127, 0..63], the plane of part 0" in [c.about for c in drawing.cells]
    assert "A: 3 parts of 128 x 64 elements" in drawing.description
    assert "the barrier of each of 2 stages expects 98304 bytes" in drawing.description


def test_text_has_the_threads() -> None:
    lines = gemmgen("draw", "vectorized", "--what", "copies").stdout.splitlines()
    at = lines.index("A[m, k] in global memory, thread by thread")
    assert lines[at + 3].split() == ["1", "2", "2", "2", "2", "3", "3", "3", "3"]
    assert any(line.startswith("A_shared[k, m]") for line in lines)
    assert (
        "loaded 4 at a time and stored 1 at a time in A_shared[k, m], transposed, rows padded by 4"
        in (lines[-1])
    )


def test_a_kernel_that_stages_nothing_is_refused() -> None:
    result = gemmgen("draw", "naive", "--what", "copies")
    assert result.exit_code == 2 and not result.stdout
    assert "cache_shared stages tiles there" in result.stderr


def test_each_block_of_a_cluster_requests_its_own_box() -> None:
    drawing = drawn("hopper/wgmma", "copies")
    about = [cell.about for cell in drawing.cells]
    assert "box 0, block 0: B[0..127, 0..63]" in about
    assert "box 1, block 1: B[128..255, 0..63]" in about
    assert "2 blocks of the cluster request one each, multicast" in drawing.description


def test_a_swizzle_is_drawn_as_tma_stores_it() -> None:
    """128-byte rows: chunk c of row r is stored at chunk c ^ (r % 8)."""
    cells = [cell.about for cell in drawn("hopper/wgmma", "copies").cells]
    for row in range(8):
        for chunk in range(8):
            assert f"row {row}, chunk {chunk}: stored as chunk {chunk ^ row}" in cells
    assert not any("stored as" in cell.about for cell in drawn("hopper/cluster", "copies").cells)
