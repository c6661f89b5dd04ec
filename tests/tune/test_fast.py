"""f32 from bf16 products is tuned where it is asked for, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import gemmgen
from gemmgen.base.errors import UsageError
from gemmgen.cli import main
from gemmgen.explore.autotune.first_candidates import seeds
from gemmgen.explore.autotune.gpu_tuning import requests_of
from gemmgen.explore.autotune.judged_candidates import judge
from gemmgen.explore.autotune.keeping import StoreKeeper
from gemmgen.explore.request import Request
from gemmgen.explore.results.measured_result import MachineInfo
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.results.shipped_table import shipped
from gemmgen.gpu.gpus import DEFAULT, GPUS

GEMM, SHAPE = "C[m, n] = A[m, k] * B[n, k]", (4096, 4096, 4096)
H200 = MachineInfo("NVIDIA H200", "sm_90", "580", "13.2")


def request(*, fast: bool) -> Request:
    return requests_of(GEMM, [SHAPE], "f32", None, None, GPUS[DEFAULT], fast=fast)[0]


def first_texts(*, fast: bool) -> list[str]:
    wanted = request(fast=fast)
    stored = StoreKeeper(Results(None, shipped()), H200).stored(wanted)
    assert stored
    found = seeds(wanted, stored, lambda several: tuple(judge(each, wanted) for each in several))
    return [seed.text for seed in found]


@pytest.mark.proof
def test_a_stored_schedule_with_less_precision_is_no_candidate_of_f32() -> None:
    assert not any("decompose" in text for text in first_texts(fast=False))


@pytest.mark.proof
def test_fast_starts_from_stored_and_suggested_ones_of_bf16_terms() -> None:
    texts = first_texts(fast=True)
    assert sum("decompose" in text for text in texts) > len(texts) // 2


def test_the_space_is_that_of_the_suggested_schedule() -> None:
    done = CliRunner().invoke(main, ["tune", "--show-space", "--fast", "--shape", "4096"])
    assert done.exit_code == 0, done.output
    assert "decompose" in done.stdout and "via=wgmma" in done.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--gemm", GEMM, "--dtype", "bf16", "--shape", "512"], "fast is for f32"),
        (["examples/spaces/f32.sched", "--shape", "512"], "--fast goes with --gemm"),
    ],
)
def test_it_is_refused_for_other_types_and_with_a_space(given: list[str], said: str) -> None:
    done = CliRunner().invoke(main, ["tune", *given, "--fast"])
    assert done.exit_code == 2 and said in done.stderr, done.output


def test_python_refuses_it_with_a_space(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="fast= go with gemm="):
        gemmgen.tune(str(tmp_path / "space.sched"), [512], fast=True)
