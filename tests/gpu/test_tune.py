"""``gemmgen tune`` on a GPU: what it finds is right and fast, and a wrong kernel does not win."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from gemmgen.base.source import Source
from gemmgen.cli import main
from gemmgen.explore.autotune.first_candidates import seeds
from gemmgen.explore.autotune.judged_candidates import judge
from gemmgen.explore.request import Request
from gemmgen.explore.results.measured_result import ProblemKey
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.tune.gpu_measuring import GpuRunner
from gemmgen.explore.tune.measuring import Candidate, Screen
from gemmgen.explore.tune.remote import RemoteRunner
from gemmgen.gpu import compiler, device
from gemmgen.gpu.bench import Entry, bench
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.store import Stored
from gemmgen.pipeline import compile_source
from gemmgen.schedule.formatting import format_schedule

TEXT = "tile m=64 n=64 k=8\ncache_shared A[k, m] B\nregister_block m=4 n=4\n"
SHAPES = ((200, 136, 72), (512, 512, 512))
SPACE = """
tile            m={64, 128} n={64, 128} k={8, 16}
cache_shared    A[k, m] B[k, n]
register_block  m={4, 8} n=8
vectorize       A B C width={1, 4}
pad             A by=4
double_buffer   A B stages={1, 2}
"""


def candidate(folder: Path, number: int, change: tuple[str, str] = ("", "")) -> Candidate:
    """The kernel of ``TEXT`` with a text in it replaced."""
    emitted = compile_source(Source(TEXT))
    text = emitted.text.replace(*change, 1) if change[0] else emitted.text
    assert (text != emitted.text) == bool(change[0])
    arch = f"sm_{''.join(map(str, _capability()))}"
    files = Stored(folder / f"{number}.cubin", folder / f"{number}.cu")
    files.cubin.write_bytes(compiler.compile_text(text, arch, strict=False).cubin)
    files.source.write_text(text)
    return Candidate(number, emitted.interface, emitted.target, files)


def _capability() -> tuple[int, int]:
    return device.capability(0)


def test_a_lab_checks_times_and_proves(tmp_path: Path) -> None:
    right = candidate(tmp_path, 1)
    wrong = candidate(tmp_path, 2, ("fmaf(", "1.001f * fmaf("))
    runner = GpuRunner(TEXT, SHAPES)
    found = runner.check([right, wrong])
    assert found[0] is None
    assert found[1] is not None and found[1].status == "wrong"
    assert "200x136x72: C[0, 0] = " in found[1].reason
    for screen in (None, Screen(50.0), Screen(0.0)):
        (reading,) = runner.time([right], 3, screen)
        assert reading.finding is None and reading.rival is not None
        assert all(0 < ms < 10 for ms in (*reading.ms, *reading.rival))
    assert runner.prove(right, TEXT) is None
    proof = runner.prove(wrong, TEXT)
    assert proof is not None and proof.status == "wrong"


def test_a_kernel_that_writes_anywhere_costs_no_other_its_result(tmp_path: Path) -> None:
    right = candidate(tmp_path, 1)
    wild = candidate(tmp_path, 2, ("ldc + n] = ", "ldc + n + (1ll << 44)] = "))
    runner = RemoteRunner(partial(GpuRunner, TEXT, SHAPES))
    try:
        first, second = runner.check([wild, right])
        assert first is not None and first.status == "crashed"
        assert second is None
        (reading,) = runner.time([right], 3)
        assert reading.finding is None and len(reading.ms) == 2
    finally:
        runner.end()


@pytest.mark.timing
def test_the_best_point_is_found_written_and_as_fast_as_documented(tmp_path: Path) -> None:
    space, best = tmp_path / "space.sched", tmp_path / "best.sched"
    space.write_text(SPACE)
    arguments = ["tune", str(space), "--shape", "1024", "--seconds", "25", "-o", str(best)]
    trials = tmp_path / "t.jsonl"
    done = CliRunner().invoke(main, [*arguments, "--trials", str(trials), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["tried"] >= 32 and set(found["statuses"]) == {"timed"}
    assert len(trials.read_text().splitlines()) == found["tried"] + 1
    emitted = compile_source(Source(best.read_text()))
    shape = {"M": 1024, "N": 1024, "K": 1024}
    rows = bench([Entry("best", Kernel.of(emitted))], [shape], warmup=0.3, rounds=10)
    (row,) = (row for row in rows if row.name == "best")
    assert row.checked and row.ms == pytest.approx(found["winner"]["ms"][0], rel=0.03)


GEMM = "C[m, n] = A[m, k] * B[n, k]"


@pytest.mark.timing
def test_a_product_is_tuned_without_a_space() -> None:
    """In 20 seconds: a winner that passed all checks, as fast as suggest's first, and stored."""
    shape = (2048, 2304, 768)
    request = Request.of(GEMM, shape, dtype="bf16", gpu=device.figures(0))
    first = seeds(request, (), lambda several: tuple(judge(x, request) for x in several))[0]
    arguments = ["tune", "--gemm", GEMM, "--dtype", "bf16", "--shape", "2048x2304x768"]
    begin = time.monotonic()
    done = CliRunner().invoke(main, [*arguments, "--budget", "20", "--json"])
    assert done.exit_code == 0, done.output
    assert time.monotonic() - begin < 35
    (found,) = json.loads(done.stdout)["shapes"]
    assert found["outcome"] == "proved" and found["tried"] >= 14 and found["share"] is not None
    assert "an error of gemmgen" not in done.stderr
    winner = compile_source(Source(found["schedule"]))
    entries = [
        Entry("suggested", Kernel.of(compile_source(Source(first.text)))),
        Entry("winner", Kernel.of(winner)),
    ]
    sizes = dict(zip("MNK", shape, strict=True))
    rows = {row.name: row for row in bench(entries, [sizes], warmup=0.5, rounds=20)}
    assert rows["winner"].checked and rows["winner"].ms is not None
    assert rows["suggested"].ms is not None
    assert rows["winner"].ms <= 1.03 * rows["suggested"].ms
    stored = Results.open().exact(ProblemKey.of_request(request), device.name(0))
    assert format_schedule(winner.schedule) in {result.schedule for result in stored}
    again = CliRunner().invoke(main, [*arguments, "--budget", "5", "--json"])
    (second,) = json.loads(again.stdout)["shapes"]
    assert again.exit_code == 0 and second["ms"] <= 1.05 * found["ms"], again.output


def test_a_leading_dimension_is_measured(tmp_path: Path) -> None:
    """Tensors that are not dense: the kernel and cuBLAS get them with their strides."""
    runner = GpuRunner(TEXT, [(200, 136, 72)], {"A": (80, 1), "B": (140, 1), "C": (136, 1)})
    right = candidate(tmp_path, 1)
    wrong = candidate(tmp_path, 2, ("fmaf(", "1.001f * fmaf("))
    found = runner.check([right, wrong])
    assert found[0] is None and found[1] is not None and found[1].status == "wrong"
    (reading,) = runner.time([right], 3)
    assert reading.finding is None and reading.rival is not None and reading.ms[0] > 0


def test_one_process_measures_one_shape_after_the_other(tmp_path: Path) -> None:
    right = candidate(tmp_path, 1)
    runner = RemoteRunner(partial(GpuRunner, TEXT, ()))
    try:
        assert runner.device_info.gpu.arch == runner.device_info.arch
        for shape in SHAPES:
            runner.change(partial(GpuRunner, TEXT, (shape,)))
            assert runner.check([right]) == (None,)
            (reading,) = runner.time([right], 3)
            assert reading.finding is None and len(reading.ms) == 1
    finally:
        runner.end()


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "tf32", "i8", "e4m3", "e5m2"])
def test_first_candidates_of_each_type_are_right(dtype: str, tmp_path: Path) -> None:
    """The naive problem's inputs and results fit every mechanism that suggest proposes."""
    request = Request.of(GEMM, (512, 384, 4096), dtype=dtype, gpu=device.figures(0))
    found = seeds(request, (), lambda several: tuple(judge(x, request) for x in several))[:6]
    candidates: list[Candidate] = []
    for number, seed in enumerate(found):
        emitted = compile_source(Source(seed.text))
        arch = device.arch_for(emitted.target, *_capability())
        files = Stored(tmp_path / f"{number}.cubin", tmp_path / f"{number}.cu")
        files.cubin.write_bytes(compiler.compile_text(emitted.text, arch).cubin)
        files.source.write_text(emitted.text)
        candidates.append(Candidate(number, emitted.interface, emitted.target, files))
    runner = GpuRunner(format_schedule(request.problem), [request.shape])
    assert runner.check(candidates) == (None,) * len(candidates)
    for reading in runner.time(candidates, 3):
        assert reading.finding is None and reading.ms[0] > 0
