"""The last line of ``explain``: the statement that the models expect most of."""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path

import pytest

from gemmgen.analyze import explain as module
from gemmgen.analyze import resources
from gemmgen.analyze.explain import Explanation, explain
from gemmgen.base.errors import CannotCheck
from gemmgen.base.source import Source
from gemmgen.explore.next_step import wording
from gemmgen.explore.next_step.candidates import candidates
from gemmgen.explore.next_step.trying import GAIN, NextStep, next_step
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule
from tests.cli.running import gemmgen

PROOF = pytest.mark.proof
EXAMPLES = Path(__file__).parents[2] / "examples"
MOST = 1.5
"""Seconds of CPU that looking for a step may take."""


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here depends on machine code."""

    def refuse(*_: object) -> None:
        raise CannotCheck("nothing is compiled here")

    monkeypatch.setattr(resources, "compile_text", refuse)


@cache
def explained(name: str, size: int = 4096, text: str = "") -> Explanation:
    text = text or (EXAMPLES / f"{name}.sched").read_text(encoding="utf-8")
    return explain(parse_schedule(Source(text)), (size, size, size), GPUS["H200"])


@cache
def step_of(name: str, size: int = 4096) -> NextStep | None:
    return next_step(explained(name, size))


@pytest.mark.by_default("transposed-*")
@pytest.mark.parametrize(
    ("name", "statements"),
    [
        ("uncoalesced", ("bind x=n y=m",)),
        ("tiled", ("register_block m=4 n=4",)),
        ("transposed", ("tile m=128 n=128 k=8", "register_block m=8 n=8")),
        pytest.param("register_blocked", ("vectorize A B C width=4",), marks=PROOF),
    ],
)
def test_the_step_is_the_ladders_next_one(name: str, statements: tuple[str, ...]) -> None:
    found = step_of(name)
    assert found is not None and found.statements == statements
    assert found.expected * (1 - GAIN) > found.now and found.attainable >= found.expected


@pytest.mark.by_default("mma/ahead")
@pytest.mark.parametrize("name", ["mma/ahead", "types/f16_fast", "mma/fp8"])
def test_the_step_after_mma_is_wgmma(name: str) -> None:
    """A schedule of ``suggest`` takes the place of this one, where the GPU has wgmma."""
    found = step_of(name)
    assert found is not None and found.rewrite
    assert found.statements[0] == "tensor_core via=wgmma"
    assert found.expected > 1.5 * found.now
    said = wording.sentence(explained(name), found)
    assert "`gemmgen suggest` writes a schedule with `tensor_core via=wgmma`" in said
    assert wording.as_json(found)["rewrite"] is True


@PROOF
def test_the_step_of_halves_without_wgmma_is_mma() -> None:
    text = (EXAMPLES / "types" / "f16_fast.sched").read_text(encoding="utf-8")
    schedule = parse_schedule(Source(text))
    found = next_step(explain(schedule, (4096, 4096, 4096), GPUS["A100"]))
    assert found is not None and found.statements == ("tensor_core via=mma",)


@pytest.mark.parametrize("name", ["hopper/wgmma", "vectorized"])
def test_wgmma_is_no_step_of_its_own_kernels_or_of_f32(name: str) -> None:
    found = step_of(name)
    assert found is None or not found.rewrite


def test_few_blocks_share_their_tiles() -> None:
    found = step_of("vectorized", 512)
    assert found is not None and found.statements == ("split_k parts=8",)
    said = wording.sentence(explained("vectorized", 512), found)
    assert "`split_k parts=8` would lower the time for it 7.9x" in said


@pytest.mark.parametrize(
    "name",
    [
        "warp_tiled",
        pytest.param("sizes/medium", marks=PROOF),
        pytest.param("best/bias_relu", marks=PROOF),
    ],
)
def test_a_schedule_as_good_as_the_models_know_is_told(name: str) -> None:
    assert step_of(name) is None
    assert "as good as the models know" in wording.sentence(explained(name), None)
    assert wording.as_json(None) is None


def test_a_step_says_what_falls_and_what_is_expected() -> None:
    said = wording.sentence(explained("transposed"), step_of("transposed"))
    assert said.startswith(
        "limited by shared memory and L1: `tile m=128 n=128 k=8`, `register_block m=8 n=8` would "
        "lower the time for it 7.1x: at most 38.3 TFLOP/s; the models expect "
    )


def test_letters_and_tensors_are_the_schedules_own() -> None:
    text = "gemm Y[i, j] = X[i, p] * W[p, j]\ntile i=32 j=32 p=32\ncache_shared X[p, i] W\n"
    e = explained("", 1024, text)
    tried = {statement for candidate in candidates(e) for statement in candidate.statements}
    assert "vectorize X W Y width=4" in tried and "register_block i=4 j=4" in tried
    assert any(statement.startswith("pad X by=") for statement in tried)


def test_a_pad_leaves_the_other_tiles_as_they_are() -> None:
    text = (EXAMPLES / "transposed.sched").read_text(encoding="utf-8") + "pad B by=4\n"
    (pad,) = (c for c in candidates(explained("", 1024, text)) if "pad A" in c.statements[0])
    assert "pad B by=4\n" in pad.text and f"{pad.statements[0]}\n" in pad.text


@PROOF
def test_step_by_step_a_naive_kernel_becomes_a_fast_one() -> None:
    e, speeds = explained("naive"), [0.0]
    while found := next_step(e):
        assert found.expected > speeds[-1]
        speeds.append(found.expected)
        (text,) = (c.text for c in candidates(e) if c.statements == found.statements)
        e = explained("", text=text)
        assert e.attainable == pytest.approx(found.attainable)
    assert 4 <= len(speeds) <= 12 and e.attainable > 0.9 * GPUS["H200"].flops


@PROOF
@pytest.mark.parametrize("name", ["tiled", "versions/v5", "vectorized", "best/large_mk_kn"])
def test_a_step_is_found_soon(name: str) -> None:
    e = explained(name)
    start = time.process_time()
    next_step(e)
    assert time.process_time() - start < MOST


def test_explain_ends_with_it() -> None:
    naive = EXAMPLES / "naive.sched", "--shape", "1024"
    *_, title, line = gemmgen("explain", *naive).stdout.splitlines()
    assert title == "next step" and line.startswith("    limited by shared memory and L1: `")
    assert "next step" not in gemmgen("explain", *naive, "--no-next").stdout
    figures = json.loads(gemmgen("explain", *naive, "--json").stdout)
    assert figures["next_step"]["binding"] == "shared memory and L1"
    assert figures["next_step"]["expected_flops"] > figures["next_step"]["expected_flops_now"]


def test_counting_a_candidate_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    e = explained("warp_tiled", 512)
    monkeypatch.setattr(module, "resources_of", None)
    assert next_step(e) is not None
