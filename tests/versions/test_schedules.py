"""examples/versions and examples/sizes: right at ragged shapes, and refused where they must be."""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.language import fmt_source
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import cpu, meaning
from gemmgen.proof.outcome import Subject

EXAMPLES = Path(__file__).parents[2] / "examples"
RIGHT = sorted(
    f"{folder}/{path.stem}"
    for folder in ("versions", "sizes")
    for path in (EXAMPLES / folder).glob("*.sched")
)
RAGGED = ((1, 1, 1), (33, 35, 37), (31, 66, 15), (67, 129, 49), (5, 7, 0))
"""K no multiple of a step, N no multiple of a thread's run, M past the last whole tile."""


def source(name: str) -> Source:
    return Source((EXAMPLES / f"{name}.sched").read_text(encoding="utf-8"), f"{name}.sched")


def emitted(name: str) -> Emitted:
    return compile_source(source(name))


def test_every_version_and_size_of_the_documents_is_here() -> None:
    found = set(RIGHT)
    versions = {f"versions/v{i}" for i in range(1, 7)} | {"versions/v6_corrected"}
    assert found == versions | {"sizes/small", "sizes/medium", "sizes/large"}


@pytest.mark.proof
@pytest.mark.parametrize("name", RIGHT)
def test_is_right_on_the_cpu_at_ragged_shapes(name: str) -> None:
    outcome = cpu.check(Subject(emitted(name), RAGGED))
    assert outcome.status == "passed", outcome.detail or outcome.reason


@pytest.mark.by_default("sizes/small")
@pytest.mark.parametrize("name", RIGHT)
def test_means_the_same_after_every_pass(name: str) -> None:
    outcome = meaning.check(Subject(emitted(name), ((33, 35, 37),)))
    assert outcome.status == "passed", outcome.detail


@pytest.mark.parametrize("name", RIGHT)
def test_is_written_in_the_one_form(name: str) -> None:
    assert fmt_source(source(name)) == source(name).text


def test_refuses_a_pad_of_one_under_wide_reads_and_says_what_would_do() -> None:
    wide = source("versions/v6").text.replace("B.global width=2", "B width=2")
    with pytest.raises(ScheduleError) as caught:
        compile_source(Source(wide, "wide.sched"))
    assert str(caught.value) == """\
wide.sched:10:21: error: pad B by=1 breaks the 2-wide accesses of B_shared
   10 | pad             A B by=1
      |                     ^^^^
  note: a row is 32 + 1 = 33 elements along n, and 33 % 2 = 1
  hint: by=2, the nearest that keeps every row aligned, or vectorize B.global width=2"""


def test_version_six_loads_vectors_and_accesses_shared_memory_by_elements() -> None:
    text = emitted("versions/v6").text
    assert "copy2(target, &B[(long long)k * ldb + n])" in text
    assert "for (int e = 0; e < VEC; ++e) B_shared[next_stage][B_k][B_n + e] = B_next[e];" in text
    assert "copy2(&B_shared" not in text
    assert "copy2(B_frag" not in text


def test_the_correction_differs_in_the_pad_and_the_accesses_of_shared_memory() -> None:
    def lines(name: str) -> list[str]:
        taken = ("#", "pad", "vectorize")
        return [x for x in source(name).text.splitlines() if not x.startswith(taken)]

    assert lines("versions/v6_corrected") == lines("versions/v6")


@pytest.mark.proof
def test_the_corrected_pad_removes_the_conflicts_that_version_five_has() -> None:
    explain = pytest.importorskip("gemmgen.analyze.explain")
    gpus = pytest.importorskip("gemmgen.gpu.gpus")

    def ways(name: str) -> dict[str, int]:
        schedule = emitted(name).schedule
        message = explain.explain(schedule, (256, 256, 256), gpus.GPUS[gpus.DEFAULT])
        return {t.name: t.counts.ways for t in message.traffic if t.counts.phases}

    assert ways("versions/v5")["A_shared read"] == 2
    assert ways("versions/v5")["B_shared read"] == 1
    assert ways("versions/v6_corrected")["A_shared read"] == 1


def test_one_buffer_for_small_matrices_and_two_for_the_others() -> None:
    stages = {
        name: "double_buffer" in source(f"sizes/{name}").text
        for name in ("small", "medium", "large")
    }
    assert stages == {"small": False, "medium": True, "large": True}


@pytest.mark.parametrize(
    ("name", "tile"), [("small", (64, 64)), ("medium", (128, 128)), ("large", (128, 256))]
)
def test_the_tile_is_the_one_that_the_document_names(name: str, tile: tuple[int, int]) -> None:
    assert tuple(size for _, size in emitted(f"sizes/{name}").interface.tiles) == tile
