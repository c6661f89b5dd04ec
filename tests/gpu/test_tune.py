"""``gemmgen tune`` on a GPU: what it finds is right and fast, and a wrong kernel does not win."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from gemmgen.base.source import Source
from gemmgen.cli import main
from gemmgen.explore.tune.gpu_measuring import GpuRunner
from gemmgen.explore.tune.measuring import Candidate, Screen
from gemmgen.explore.tune.remote import RemoteRunner
from gemmgen.gpu import compiler
from gemmgen.gpu.bench import Entry, bench
from gemmgen.gpu.launch import Kernel
from gemmgen.gpu.store import Stored
from gemmgen.pipeline import compile_source

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
    from gemmgen.gpu import device

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
def test_the_best_point_is_found_written_and_as_fast_as_told(tmp_path: Path) -> None:
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
