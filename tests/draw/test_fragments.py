"""Registers as drawn, and the order of the multiply-adds, are those of the emitted text."""

from __future__ import annotations

import re

import numpy as np
import pytest

from gemmgen.draw import fragments, multiply_adds
from gemmgen.draw.marks import Drawing
from gemmgen.draw.scene import Scene
from gemmgen.numerics.operators import Ints
from tests.draw.reading import described, drawn, scene_of, scene_of_text
from tests.draw.running import ACC_BEGINS, run_text

ADD = re.compile(r"(acc(?:\[\w+\])+) =\s+fma\w*\([^;]*;")
MULTIPLY = re.compile(r"gg_wmma_multiply\w*\((acc\[\w+\]\[\w+\]),[^;]*;")
ZIGZAG = """\
tile            m=64 n=64 k=8
cache_shared    A[k, m] B[k, n]
register_block  m=8 n=4 order=zigzag
"""


def counted(text: str) -> str:
    """The text with accumulators that become the number of their last multiply-add."""
    text, begins = ACC_BEGINS.subn(r"\1 = {}; int count = 0;", text)
    text, adds = ADD.subn(r"\1 = count++;", text)
    text, products = MULTIPLY.subn(r"{ for (auto &x : \1) x = count; ++count; }", text)
    assert begins == 1 and adds + products >= 1
    return text


def check(scene: Scene, drawing: Drawing, numbers: Ints) -> None:
    """``numbers``: of the last multiply-add of each element of the tile."""
    places = [
        (int(number), ranges) for (number, _), ranges in described(drawing, r"multiply-add (\d+)")
    ]
    assert [number for number, _ in places] == list(range(len(places)))
    last = np.unique(numbers).size
    assert last == len(places)
    begin = numbers.min()
    for number, ranges in places:
        here = np.ix_(ranges[scene.problem.m], ranges[scene.problem.n])
        assert (numbers[here] == begin + number).all()


@pytest.mark.by_default("best/odd_mk_kn")
@pytest.mark.parametrize(
    "name",
    ["register_blocked", "warp_tiled", "best/odd_mk_kn", "swizzled", "best/batched", "tensor_core"],
)
def test_numbers_are_the_order_of_the_multiply_adds(name: str) -> None:
    scene = scene_of(name)
    check(scene, drawn(name, "fragments"), run_text(scene, counted))


def test_a_zigzag_is_drawn_as_it_runs() -> None:
    scene = scene_of_text(ZIGZAG)
    drawing = fragments.draw(scene)
    check(scene, drawing, run_text(scene, counted))
    assert "(zigzag)" in drawing.description
    path = [ranges["m"].start for _, ranges in described(drawing, r"multiply-add \d+")]
    assert path[:6] == [0, 1, 1, 0, 0, 1]


@pytest.mark.parametrize(
    "name, reads",
    [
        ("naive", "1 element of A and 1 element of B"),
        ("tiled", "1 element of A_shared and 1 element of B_shared"),
        ("register_blocked", "8 elements of A_shared and 8 elements of B_shared"),
        (
            "vectorized",
            "8 elements of A_shared in 2 accesses of 4 and "
            "8 elements of B_shared in 2 accesses of 4",
        ),
        ("best/vector", "1 element of A and 4 elements of B_shared in 1 access of 4"),
        ("matvec", "1 element of A, of 4 that an access reads along k"),
    ],
)
def test_reads_of_a_k_are_reported(name: str, reads: str) -> None:
    assert f"For each k a thread reads {reads}" in drawn(name, "fragments").description


@pytest.mark.by_default("swizzled", "types/f16_fast")
@pytest.mark.parametrize("name", ["warp_tiled", "swizzled", "async_row_major", "types/f16_fast"])
def test_registers_come_from_the_first_k(name: str) -> None:
    drawing = drawn(name, "fragments")
    for operand, letter in (("A", "m"), ("B", "n")):
        found = list(described(drawing, rf"{operand}_frag((?:\[\d+\])+)"))
        assert [array for (_, array), _ in found] == [f"{operand}_shared"] * len(found)
        assert all(ranges["k"] == range(1) for _, ranges in found)
        sums = {r[letter].start for _, r in described(drawing, r"multiply-add \d+")}
        assert {ranges[letter].start for _, ranges in found} == sums


def test_a_wrong_order_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, right = scene_of("register_blocked"), multiply_adds._followed

    def wrong(*given: object) -> object:
        words, pairs = right(*given)
        return words, [pairs[1], pairs[0], *pairs[2:]]

    numbers = run_text(scene, counted)
    check(scene, drawn("register_blocked", "fragments"), numbers)
    monkeypatch.setattr(multiply_adds, "_followed", wrong)
    with pytest.raises(AssertionError):
        check(scene, drawn("register_blocked", "fragments"), numbers)


def test_the_row_of_a_shared_tile_has_what_the_thread_reads() -> None:
    drawing = drawn("register_blocked", "fragments")
    rows = [cell for cell in drawing.cells if cell.about.startswith("row k of ")]
    assert [cell.about for cell in rows] == [
        "row k of A_shared: 128 elements",
        "row k of B_shared: 128 elements",
    ]
    (read,) = (cell for cell in drawing.cells if cell.about == "B_shared: n 0..7")
    assert read.width == pytest.approx(rows[1].width * 8 / 128)


def test_nothing_is_shared_where_no_tile_is() -> None:
    assert not [c for c in drawn("naive", "fragments").cells if c.about.startswith("row k of ")]
