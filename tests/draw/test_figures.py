"""The numbers in drawings of a launch are those that ``explain --json`` gives."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from math import isclose
from pathlib import Path

import pytest

from gemmgen.draw.marks import Label
from tests.cli.running import gemmgen
from tests.draw.reading import drawn

pytestmark = pytest.mark.usefixtures("uncompiled")
SHAPE = 512, 768, 256
WRITTEN = "x".join(map(str, SHAPE))


def explained(name: str) -> dict:
    return json.loads(gemmgen("explain", name, "--shape", WRITTEN, "--json").stdout)


def elements(figures: dict, buffer: str, *, write: bool = False) -> int:
    found = (
        t["elements"] for t in figures["traffic"] if (t["buffer"], t["write"]) == (buffer, write)
    )
    return next(found, 0)


@pytest.mark.proof
@pytest.mark.parametrize("name", ["naive", "tiled", "vectorized", "warp_tiled", "split_k"])
def test_arrows_have_the_elements_that_explain_counts(name: str) -> None:
    figures, drawing = explained(name), drawn(name, "hierarchy", SHAPE)
    words = [mark.text for mark in drawing.marks if isinstance(mark, Label)]
    m, n, k = SHAPE
    for tensor, whole in (("A", m * k), ("B", k * n)):
        moved = [int(w[3:].replace(",", "")) for w in words if w.startswith(f"{tensor}: ")]
        far, near = elements(figures, tensor), elements(figures, f"{tensor}_shared")
        assert moved == [far, *([near] if near else []), figures["multiply_adds"]]
        levels = [whole, *moved]
        each = [b / a for a, b in pairwise(levels)]
        if near:  # an element comes to shared memory once for each time that it is loaded
            each[1] = near / far
        uses = [float(line.split()[-1].replace(",", "")) for line in lines(drawing.text, tensor)]
        assert all(isclose(x, y, rel_tol=1e-3) for x, y in zip(uses, each, strict=True))
    writes = elements(figures, "C", write=True)
    assert f"C: {writes:,}" in words and writes == m * n


def lines(text: str, tensor: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(f"{tensor} ")]


def test_reuse_is_that_of_the_tiles() -> None:
    """vectorized: tiles of 128 x 128; a thread computes 8 x 8."""
    text = drawn("vectorized", "hierarchy", (1024, 1024, 1024)).text
    assert [line.split()[-1] for line in lines(text, "A")] == ["8", "16", "8"]
    assert [line.split()[-1] for line in lines(text, "B")] == ["8", "16", "8"]


@pytest.mark.proof
def test_an_epilogue_is_compared_with_kernels_of_its_own() -> None:
    """relu(acc + bias[n]): the product writes C, then two kernels read and write it."""
    drawing = drawn("fused", "hierarchy", SHAPE)
    m, n, _ = SHAPE
    texts = [cell.text for cell in drawing.cells if cell.text]
    assert texts == ["writes C", "reads C", "writes C", "reads C", "writes C", "writes C"]
    assert f"separate kernels: 5 passes over C, {5 * m * n:,} elements" in drawing.text
    assert f"fused: 1 pass over C, {m * n:,} elements" in drawing.text
    figures = explained("fused")
    assert figures["unfused"]["elements"] == 4 * m * n
    assert "passes" not in drawn("tiled", "hierarchy", SHAPE).text


@pytest.mark.proof
@pytest.mark.parametrize("name", ["naive", "vectorized", "tensor_core"])
def test_the_roofline_is_that_of_explain(name: str) -> None:
    shown, drawing = explained(name)["roofline"], drawn(name, "roofline", SHAPE)
    labels = {series.name for axes in drawing.plot for series in axes.series}
    flops = explained(name)["flops"]
    for bound in shown["bounds"]:
        if bound["name"] != "device memory":
            assert f"{bound['name']}: {flops / bound['seconds'] / 1e12:.1f}" in labels
    assert f"peak: {shown['peak_flops'] / 1e12:.1f}" in labels
    assert f"at most {shown['attainable_flops'] / 1e12:.1f} TFLOP/s, by {shown['binding']}." in (
        drawing.description
    )


@pytest.mark.proof
def test_the_point_lies_where_its_numbers_are() -> None:
    shown, drawing = explained("vectorized")["roofline"], drawn("vectorized", "roofline", SHAPE)
    (axes,), peak = drawing.plot, shown["peak_flops"] / 1e12
    (point,) = (series for series in axes.series if series.style == "point")
    ((across, up),) = point.points
    assert isclose(across, shown["intensity"]) and isclose(up, shown["attainable_flops"] / 1e12)
    roof = next(series for series in axes.series if series.style == "reference")
    (left, low), (ridge, top), (_, end) = roof.points
    assert isclose(ridge, shown["ridge"]) and isclose(top, peak) and isclose(end, peak)
    assert isclose(low / left, top / ridge)  # memory's slope goes through the origin
    assert axes.logarithmic


def test_a_shape_that_was_not_chosen_is_one_that_the_kernel_takes(tmp_path: Path) -> None:
    path = tmp_path / "own.sched"
    path.write_text("assume K % 7 == 0\nassume M == N\n")
    message = gemmgen("draw", path, "--what", "roofline").stdout
    assert "roofline at 4096 x 4096 x 4102" in message


def test_several_kernels_are_in_one_roofline() -> None:
    message = gemmgen("draw", "naive", "vectorized", "--what", "roofline", "--format", "svg").stdout
    assert message.count("<svg ") == 1
    assert re.search(r">naive: [0-9.]+, shared memory and L1<", message)
    assert re.search(r">vectorized: [0-9.]+, [a-zA-Z1 ]+<", message)
