"""The plot of rounding errors: the model is within the bound, and shows what promotion is for."""

from __future__ import annotations

import re

import pytest

from gemmgen.draw import error
from gemmgen.draw.error import DEPTHS, Errors, errors_of
from gemmgen.draw.kinds import draw_scene
from gemmgen.draw.svg import svg_of
from gemmgen.schedule import examples
from tests.cli.running import gemmgen
from tests.draw.reading import drawn, scene_of, scene_of_text

NAMES = (
    "vectorized",
    "mma/mma",
    "hopper/wgmma",
    "hopper/fp8",
    "hopper/promote",
    "hopper/split_f32",
)


def found(name: str) -> Errors:
    return errors_of(scene_of(name))


@pytest.mark.by_default("hopper/wgmma", "hopper/fp8")
@pytest.mark.parametrize("name", NAMES)
def test_the_model_stays_within_the_bound(name: str) -> None:
    errors = found(name)
    assert len(errors.found) == len(errors.bound) == len(DEPTHS)
    assert all(x <= most for x, most in zip(errors.found, errors.bound, strict=True))
    assert errors.found[-1] > errors.bound[-1] / 1e3, "the bound has nothing to do with the model"


def test_fewer_bits_go_beyond_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(error, "BYTES", (32, 0, 9))
    errors = found("hopper/fp8")
    assert any(x > most for x, most in zip(errors.found, errors.bound, strict=True))


def test_promotion_keeps_the_error_from_growing() -> None:
    plain, promoted = found("hopper/wgmma").found, found("hopper/promote").found
    assert promoted[-1] < plain[-1] / 50 and promoted[-1] < 10 * promoted[1]
    assert plain[-1] > 10 * plain[2]


@pytest.mark.proof
def test_split_f32_is_as_exact_as_multiply_adds() -> None:
    """``vectorized`` adds one product at a time, in the order of k."""
    assert found("hopper/split_f32").found[-1] < found("vectorized").found[-1]


@pytest.mark.proof
def test_the_plot_has_a_line_and_a_dotted_bound_for_each_kernel() -> None:
    drawing = drawn("hopper/fp8", "error")
    (axes,) = drawing.plot
    line, bound = axes.series
    errors = found("hopper/fp8")
    assert line.points == tuple(zip(map(float, DEPTHS), errors.found, strict=True))
    assert bound.points == tuple(zip(map(float, DEPTHS), errors.bound, strict=True))
    assert (line.style, bound.style) == ("line", "bound") and axes.logarithmic
    text = svg_of(drawing)
    assert "stroke-dasharray" in text and ">10⁻²<" in text
    assert ">gemm<" in text and "gemm, bound<" not in text  # in the legend


@pytest.mark.proof
def test_exact_sums_have_a_bound_alone() -> None:
    """``mma`` of sm_90 keeps 24 bits of products of FP8, which have 8; that of sm_89 keeps 13."""
    text = examples.path_of("mma/fp8").read_text(encoding="utf-8").replace("sm_89", "sm_90")
    drawing = draw_scene("error", scene_of_text(text))
    assert len(drawn("mma/fp8", "error").plot[0].series) == 2
    (series,) = drawing.plot[0].series
    assert series.style == "limit" and "gemm at K = 4096: exact" in drawing.description
    assert ">gemm: exact, bound<" in svg_of(drawing)


def test_several_kernels_are_one_plot_and_one_table() -> None:
    message = gemmgen("draw", "hopper/fp8", "hopper/wgmma", "--what", "error").stdout
    rows = re.findall(r"^(\w+(?:, bound)?)  +\d", message, re.MULTILINE)
    assert rows == ["fp8", "fp8, bound", "wgmma", "wgmma, bound"]
    assert "Modeled, not measured" in message


@pytest.mark.parametrize(("name", "accumulator"), [("hopper/int8", "i32"), ("mma/f64", "f64")])
def test_accumulators_of_another_type_are_refused(name: str, accumulator: str) -> None:
    result = gemmgen("draw", name, "--what", "error")
    assert result.exit_code == 2 and not result.stdout
    assert f"accumulators of gemm are {accumulator}; the plot is of f32" in result.stderr
