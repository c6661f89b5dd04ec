"""What ``suggest`` and the operators choose for FP8 with scales of blocks."""

from __future__ import annotations

import pytest

from gemmgen.base.source import Source
from gemmgen.calling.arguments import View, contiguous_strides
from gemmgen.explore.request import Request
from gemmgen.explore.results.canonical_names import canonical
from gemmgen.explore.suggest import suggest
from gemmgen.explore.suggest.warpgroup_plans import warpgroup_plans
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule
from gemmgen.numerics.formats import NAMES
from gemmgen.pipeline import compile_source
from gemmgen.schedule.formatting import format_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.torch.choosing import ChosenKernel, OperatorCall, choose
from gemmgen.torch.schema import Signature

GEMM = "C[m, n] = (A[m, k] * SA[k/128, m]) * (B[n, k] * SB[n/128, k/128])"
ROWS = "C[m, n] = (A[m, k] * SA[m, k/{}]) * B[n, k]"
TYPES = "A=e4m3 B=e4m3 C=bf16"
SHAPES = ((4096, 4096, 4096), (128, 7168, 16384), (64, 2112, 7168), (4096, 32768, 512))


def parsed(gemm: str) -> Schedule:
    return parse_schedule(Source(f"gemm {gemm}\ndtype {TYPES}\n"))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_choice_promotes_after_each_block(shape: tuple[int, int, int]) -> None:
    found = suggest(GEMM, shape, dtype=TYPES, gpu="H200").text
    (line,) = (x for x in found.splitlines() if x.startswith("tensor_core"))
    assert "via=wgmma" in line and "promote=128" in line and "warp_specialize" in found
    assert "decompose" not in found and "within=warp" not in found


@pytest.mark.parametrize("elements", [32, 64, 128, 256])
def test_plans_have_whole_blocks_or_whole_steps_of_one(elements: int) -> None:
    """Where no tile along k divides the block, there is no plan of warpgroups, but a schedule."""
    request = Request.of(ROWS.format(elements), (512, 512, 1024), dtype=TYPES, gpu="H200")
    plans = list(warpgroup_plans(request))
    assert bool(plans) == (elements >= 128)
    assert all(elements % plan.form.tile[2] == 0 for plan in plans)
    text = suggest(ROWS.format(elements), (512, 512, 1024), dtype=TYPES, gpu="H200").text
    assert compile_source(Source(text)).program.problem.scales


@pytest.mark.parametrize("gpu", ["A100", "RTX 4090", "T4"])
def test_other_gpus_have_a_schedule(gpu: str) -> None:
    types = "A=f16 B=f16 C=f16"
    found = suggest(GEMM, (1000, 1100, 1200), dtype=types, gpu=gpu)
    assert compile_source(Source(found.text)).program.problem.scales


def test_a_result_without_scales_is_none_of_a_product_with_scales() -> None:
    """Measured results are found by canonical names, which must keep scales and their blocks."""
    plain, scaled = "C[m, n] = A[m, k] * B[n, k]", "Y[r, o] = (X[r, i] * F[i/128, r]) * W[o, i]"
    names = [canonical(parse_schedule(Source(f"gemm {x}\n"))).gemm for x in (plain, scaled)]
    assert names[0] != names[1]
    (scale,) = names[1].scales
    assert (scale.tensor, scale.indices, scale.of) == ("SA", ("k/128", "m"), "A")


def operator(m: int, n: int, k: int, **strides: tuple[int, ...]) -> ChosenKernel:
    schedule = parsed(GEMM)
    signature = Signature.of(schedule)
    shapes = {"A": (m, k), "B": (n, k), "C": (m, n)}
    shapes |= {"SA": (-(-k // 128), m), "SB": (-(-n // 128), -(-k // 128))}
    views = {
        x.name: View(
            0,
            shapes[x.name],
            strides.get(x.name, contiguous_strides(shapes[x.name])),
            NAMES[x.dtype],
        )
        for x in signature.tensors
    }
    letters = {x.name: x.letters for x in signature.tensors}
    return choose(
        schedule, False, OperatorCall(views, letters, {"m": m, "n": n, "k": k}, GPUS["H200"])
    )


def test_an_operator_takes_scales_in_place_if_tma_can() -> None:
    found = operator(256, 512, 512)
    assert not found.orders and "promote=128" in format_schedule(found.emitted.schedule)


@pytest.mark.parametrize("rows", [1, 3, 130])
def test_an_operator_copies_scales_whose_rows_tma_cannot_take(rows: int) -> None:
    found = operator(rows, 512, 512)
    assert dict(found.orders)["SA"] is None
    pitch, one = found.views["SA"].strides
    assert one == 1 and pitch % 4 == 0 and rows <= pitch < rows + 4


def test_an_operator_copies_scales_in_another_order() -> None:
    found = operator(256, 512, 512, SA=(1, 4))
    assert dict(found.orders)["SA"] is None and found.views["SA"].strides == (256, 1)
