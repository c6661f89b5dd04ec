"""The first lines of ``explain``: the speed to expect, what bounds it, and the next step."""

from __future__ import annotations

import json
import re
import shlex
import time
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path

import pytest

from gemmgen.analyze import explain as module
from gemmgen.analyze import resources
from gemmgen.analyze.explain import Explanation, explain
from gemmgen.api import tools as api
from gemmgen.base.errors import CannotCheck
from gemmgen.base.source import Source
from gemmgen.explore.next_step import expected as expecting
from gemmgen.explore.next_step import wording
from gemmgen.explore.next_step.candidates import candidates
from gemmgen.explore.next_step.expected import ExpectedTime, expected
from gemmgen.explore.next_step.trying import GAIN, NextStep, next_step
from gemmgen.explore.results.measured_result import MachineInfo, MeasuredResult
from gemmgen.explore.results.results_store import Results
from gemmgen.gpu.gpus import GPUS
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_source
from gemmgen.schedule.model import Schedule
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
def own_of(name: str, size: int = 4096) -> ExpectedTime:
    return expected(explained(name, size))


@cache
def step_of(name: str, size: int = 4096) -> NextStep | None:
    return next_step(explained(name, size), own_of(name, size))


def sentence_of(name: str, size: int = 4096) -> str:
    step = step_of(name, size)
    return wording.sentence(explained(name, size), own_of(name, size), step)


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


@pytest.mark.proof
@pytest.mark.parametrize("name", ["mma/ahead", "types/f16_fast", "mma/fp8", "mma/int8", "mma/tf32"])
def test_the_step_after_mma_is_wgmma(name: str) -> None:
    """A schedule of ``suggest`` takes the place of this one, where the GPU has wgmma; the command
    that is named writes it."""
    found = step_of(name)
    assert found is not None and found.suggestion is not None
    assert "tensor_core via=wgmma" in found.statements
    assert found.expected > 1.5 * found.now
    said = sentence_of(name)
    assert said.startswith("wgmma and TMA: `gemmgen suggest ") and " writes this schedule, " in said
    own = wording.as_json(explained(name), own_of(name), found)["next_step"]
    assert own["rewrite"] is True
    assert compile_source(Source(own["schedule"])) == found.suggestion.emitted
    (command,) = re.findall(r"`gemmgen (suggest .*)` writes", said)
    written = gemmgen(*shlex.split(command))
    assert written.exit_code == 0, written.output
    lines = [line for line in written.stdout.splitlines() if not line.startswith("#")]
    assert lines == own["schedule"].splitlines()


@PROOF
def test_the_step_of_halves_without_wgmma_is_mma() -> None:
    text = (EXAMPLES / "types" / "f16_fast.sched").read_text(encoding="utf-8")
    schedule = parse_schedule(Source(text))
    e = explain(schedule, (4096, 4096, 4096), GPUS["A100"])
    found = next_step(e, expected(e))
    assert found is not None and found.statements == ("tensor_core via=mma",)


@pytest.mark.by_default("hopper/*")
@pytest.mark.parametrize("name", ["hopper/wgmma", "vectorized", "hopper/promote"])
def test_wgmma_is_no_step_of_its_own_kernels_or_of_f32(name: str) -> None:
    """Nor of a kernel that promotes its accumulators, which ``suggest`` does not."""
    found = step_of(name)
    assert found is None or not found.rewrite


def test_a_slow_kernel_with_wgmma_has_the_fastest_one_as_its_step() -> None:
    found = step_of("best/bf16_128_rows")
    assert found is not None and found.suggestion is not None
    assert sentence_of("best/bf16_128_rows").startswith("`gemmgen suggest ")
    assert any(x.startswith("tile ") for x in found.statements)


@pytest.mark.proof
def test_few_blocks_share_their_tiles() -> None:
    found = step_of("vectorized", 512)
    assert found is not None and found.statements == ("split_k parts=8",)
    assert sentence_of("vectorized", 512).startswith("add `split_k parts=8`: about ")
    assert sentence_of("vectorized", 512).endswith("; the time for issue slots falls 7.9x")
    (bound,) = (row for row in rows_of("vectorized", 512) if row[0] == "bound")
    assert "SMs are idle" in " ".join(text for _, text in rows_of("vectorized", 512)), bound


@pytest.mark.proof
@pytest.mark.parametrize(
    "name",
    [
        "warp_tiled",
        pytest.param("sizes/medium", marks=PROOF),
        pytest.param("best/bias_relu", marks=PROOF),
    ],
)
def test_a_schedule_that_nothing_known_is_faster_than_says_so(name: str) -> None:
    assert step_of(name) is None
    assert sentence_of(name).startswith(
        "nothing known is faster: no single change is predicted to "
    )
    assert wording.as_json(explained(name), own_of(name), None)["next_step"] is None


def test_a_step_says_what_falls_and_what_is_expected() -> None:
    assert re.fullmatch(
        r"write `tile m=128 n=128 k=8` in place of `tile m=32 n=32 k=32`; add `register_block m=8 "
        r"n=8`: about [\d.]+ TFLOP/s, [\d.]+ times as fast; the time for shared memory and L1 "
        r"falls 7\.1x",
        sentence_of("transposed"),
    )


def rows_of(name: str, size: int = 4096) -> tuple[tuple[str, ...], ...]:
    step = step_of(name, size)
    return wording.conclusion(explained(name, size), name, own_of(name, size), step).rows


@pytest.mark.by_default("mma/ahead-*", "hopper/wgmma-*")
@pytest.mark.parametrize(
    ("name", "rests_on"),
    [
        ("naive", "70% of the bound, as a naive kernel reaches on an NVIDIA H200"),
        ("tiled", "estimated by a model that was fitted to f32 kernels on an NVIDIA H200;"),
        ("mma/ahead", "NVIDIA H200, which may be off by a third for tensor cores"),
        ("hopper/wgmma", "fitted to bf16 kernels with wgmma on an NVIDIA H200"),
    ],
)
def test_the_speed_says_what_it_rests_on(name: str, rests_on: str) -> None:
    rows = rows_of(name)
    assert [row[0] for row in rows if row[0]] == ["speed", "bound", "next"]
    said = " ".join(text for _, text in rows)
    assert said.startswith("about ") and rests_on in said
    own, e = own_of(name), explained(name)
    assert own.basis == "estimated" and e.roofline.flops / own.seconds <= e.attainable
    assert f"at most {wording.speed(e, e.roofline.flops / e.attainable)}" in said
    assert max(len(text) for _, text in rows) <= wording.WIDTH


def test_a_kernel_that_no_model_covers_has_a_bound_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expecting, "estimate", lambda *_: inf)
    e = explained("tiled")
    own = expected(e)
    assert (own.basis, own.seconds) == ("bound", e.roofline.flops / e.attainable)
    rows = wording.conclusion(e, "tiled", own, None).rows
    said = " ".join(text for _, text in rows)
    assert said.startswith("at most 10.2 TFLOP/s, ") and "unknown: no model covers this " in said


def test_another_gpus_figures_are_named() -> None:
    e = replace(explained("tiled"), gpu=GPUS["L4"])
    assert expected(e).source.endswith(" NVIDIA H200, with the figures of L4")


def test_a_measured_schedule_is_said_to_be(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its time is not an estimate, and a faster one that was measured is the next step."""
    monkeypatch.setenv("GEMMGEN_CACHE", str(tmp_path))
    e, other = explained("hopper/wgmma"), explained("best/bf16_4096")

    def record(schedule: Schedule, seconds: float) -> None:
        machine = MachineInfo("NVIDIA H200", "sm_90")
        one = MeasuredResult.of(schedule, (4096, 4096, 4096), machine, seconds)
        assert Results.shared().record(one)

    record(e.kernel.emitted.schedule, 4e-6)
    record(other.kernel.emitted.schedule, 2e-6)
    own = expected(e)
    assert (own.basis, own.seconds) == ("measured", 4e-6)
    assert own.source.startswith("measured on NVIDIA H200, ")
    step = next_step(e, own)
    assert step is not None and step.expected == pytest.approx(2 * step.now)
    assert step.suggestion is not None and "cluster m=2" not in step.suggestion.text
    assert "writes this schedule, measured at" in wording.sentence(e, own, step)
    record(e.kernel.emitted.schedule, 1e-6)
    own = expected(e)
    assert (own.seconds, next_step(e, own)) == (1e-6, None)
    assert wording.sentence(e, own, None).startswith(
        "nothing known is faster: no measured schedule is "
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
    while (found := next_step(e, expected(e))) and not found.rewrite:
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
    next_step(e, expected(e))
    assert time.process_time() - start < MOST


@pytest.mark.proof
def test_explain_starts_with_it() -> None:
    naive = EXAMPLES / "naive.sched", "--shape", "1024"
    title, speed, *lines = gemmgen("explain", *naive).stdout.splitlines()
    assert title.endswith("naive.sched on H200 (sm_90)") and speed.startswith("  speed  about ")
    said = [line.split()[0] for line in lines[: lines.index("")] if line[2] != " "]
    assert said == ["bound", "next"]
    assert "\n  next " not in gemmgen("explain", *naive, "--no-next").stdout
    figures = json.loads(gemmgen("explain", *naive, "--json").stdout)
    assert list(figures)[:2] == ["conclusion", "next_step"]
    assert figures["conclusion"]["basis"] == "estimated"
    assert figures["next_step"]["binding"] == "shared memory and L1"
    assert figures["next_step"]["expected_flops"] > figures["next_step"]["expected_flops_now"]
    assert figures["next_step"]["expected_flops_now"] == figures["conclusion"]["flops"]
    python = str(api.explain(str(naive[0]), 1024)).splitlines()
    assert python[1:6] == [speed, *lines[:4]]


@pytest.mark.proof
def test_counting_a_candidate_compiles_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    e = explained("warp_tiled", 512)
    monkeypatch.setattr(module, "resources_of", None)
    assert next_step(e, expected(e)) is not None
