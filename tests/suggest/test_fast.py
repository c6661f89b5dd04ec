"""``suggest --fast``: f32 from bf16 products, if faster and allowed."""

from __future__ import annotations

import random

import numpy as np
import pytest

from gemmgen import explain_matmul, matmul
from gemmgen.base.errors import CallError, UsageError
from gemmgen.base.source import Source
from gemmgen.explore.request import Request
from gemmgen.explore.suggest import suggest
from gemmgen.explore.suggest.acceptance import accepts
from gemmgen.explore.suggest.warpgroup_plans import warpgroup_plans
from gemmgen.pipeline import compile_source
from tests.cli.running import gemmgen

from .test_warpgroups import BATCHES, NN, NT, TN, TT


def is_split(shape: tuple[int, ...], gemm: str = NT, **options: str) -> bool:
    found = suggest(gemm, shape, fast=True, **options)  # pyright: ignore[reportArgumentType]
    return "decompose" in found.text


@pytest.mark.proof
def test_large_products_are_split_and_small_ones_of_f32() -> None:
    assert is_split((2048, 2048, 2048)) and is_split((4096, 4096, 14336))
    assert not is_split((256, 256, 256)) and not is_split((2, 4096, 4096))
    assert "decompose" not in suggest(NT, (2048, 2048, 2048)).text


def test_the_reasons_state_the_error() -> None:
    found = suggest(NN, (4096, 4096, 4096), fast=True)
    (said,) = (reason for reason in found.reasons if reason.startswith("decompose:"))
    assert "3 bf16 terms" in said and "6 of their products" in said and "up to 4 times" in said
    assert "overlap_launch" not in found.text and "promote=64" in found.text


@pytest.mark.by_default("*A?m, k? * B?k, n?", "*A?k, m? * B?n, k?")
@pytest.mark.parametrize("gemm", [NN, NT, TN, TT])
def test_rows_of_any_length_have_a_schedule(gemm: str) -> None:
    """TMA loads the parts, whose rows are padded."""
    assert is_split((4097, 3001, 2999), gemm, epilogue="relu(acc + bias[n])")


def test_batches_stay_whole() -> None:
    assert not is_split((2048, 2048, 2048, 3), BATCHES)


@pytest.mark.parametrize("count", [6, pytest.param(60, marks=pytest.mark.proof)])
def test_the_plans_of_drawn_shapes_compile(count: int) -> None:
    draw = random.Random(count)
    for _ in range(count):
        gemm = draw.choice((NN, NT, TN, TT))
        shape = tuple(int(2 ** draw.uniform(6, 13)) for _ in range(3))
        request = Request.of(gemm, shape, fast=True)
        plan = draw.choice([*warpgroup_plans(request)])
        assert accepts(compile_source(Source(plan.text)), request), plan.text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--dtype", "bf16"), "A is bf16"),
        (("--dtype", "A=f32 B=f32 C=f16"), "C is f16"),
        (("--gpu", "A100"), "A100 is sm_80"),
    ],
)
def test_what_has_no_parts_is_refused(options: tuple[str, ...], said: str) -> None:
    result = gemmgen("suggest", "--shape", "64x64x64", "--fast", *options)
    assert result.exit_code == 2 and said in result.stderr and not result.stdout


def test_the_command_takes_the_flag() -> None:
    result = gemmgen("suggest", "--shape", "2048x2048x2048", "--fast")
    assert result.exit_code == 0 and "\ndecompose" in result.stdout


def test_f16_terms_are_asked_for_by_name() -> None:
    """By ``suggest``, by the command, and by a call on arrays."""
    found = suggest(NT, (4096, 4096, 4096), fast="f16")
    assert "into=f16" in found.text and "(f16x3)" in " ".join(found.reasons)
    assert "into=bf16" in suggest(NT, (4096, 4096, 4096), fast=True).text
    result = gemmgen("suggest", "--shape", "2048x2048x2048", "--fast=f16")
    assert result.exit_code == 0 and "into=f16" in result.stdout
    a = np.zeros((2048, 2048), np.float32)
    assert "(f16x3)" in explain_matmul(a, a.T, gpu="H200", fast="f16")
    assert "(bf16x3)" in explain_matmul(a, a.T, gpu="H200", fast=True)


def test_other_terms_are_refused() -> None:
    a = np.zeros((64, 64), np.float32)
    with pytest.raises(UsageError, match='it is True, False, "bf16" or "f16"'):
        suggest(NT, (64, 64, 64), fast="f8")  # pyright: ignore[reportArgumentType]
    with pytest.raises(CallError, match='it is True, False, "bf16" or "f16"'):
        matmul(a, a, fast="f8")
    result = gemmgen("suggest", "--shape", "64x64x64", "--fast=f8")
    assert result.exit_code == 2 and "f8" in result.stderr and not result.stdout
