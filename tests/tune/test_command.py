"""``gemmgen tune``: what it prints, what it writes, and its exit codes."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gemmgen.base.source import Source
from gemmgen.cli import main
from gemmgen.explore.results.measured_result import ProblemKey
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.tune import cubins as build
from gemmgen.explore.tune import remote
from gemmgen.gpu import device
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_source

from . import fakes

TEXT = "tile m={64, 128} n=64 k=8\ncache_shared A B\nregister_block m={4, 7} n=4\n"


def tune(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(main, ["tune", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def space(tmp_path: Path) -> Path:
    path = tmp_path / "space.sched"
    path.write_text(TEXT)
    return path


class OnFakes:
    """The command with a fake runner and a fake builder in place of the real ones."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, text: str, **measuring: object):
        _, census = fakes.points(text)
        by_number = {point.number: point for point in census.legal}
        clock = fakes.Clock()
        self.runner = fakes.FakeRunner(clock, by_number, **measuring)
        self.runner.end = lambda: None  # type: ignore[attr-defined]
        monkeypatch.setattr(remote, "RemoteRunner", lambda make: self.runner)
        builder = fakes.FakeBuilder(clock)
        monkeypatch.setattr(build, "CompilingBuilder", lambda *_: builder)


@pytest.mark.skipif(device.missing() is None, reason="a GPU is here")
def test_without_a_gpu_a_large_space_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "space.sched"
    sets = "{" + ", ".join(map(str, range(1, 65))) + "}"
    path.write_text(f"tile m={sets} n={sets} k={sets}\n")
    done = tune(path, "--shape", "512")
    (why,) = done.stderr.splitlines()
    assert done.exit_code == 3 and "no kernel can be launched" in why


@pytest.fixture
def larger(tmp_path: Path) -> Path:
    path = tmp_path / "space.sched"
    path.write_text(fakes.SMALL)
    return path


@pytest.mark.proof
@pytest.mark.skipif(device.missing() is None, reason="a GPU is here")
def test_without_a_gpu_the_points_are_counted_and_that_is_reported(
    space: Path, tmp_path: Path
) -> None:
    done = tune(space, "--shape", "512", "-o", tmp_path / "best.sched")
    assert done.exit_code == 3
    counted, why = done.stderr.splitlines()
    assert counted == "4 points: 2 legal schedules, 2 refused"
    assert why.startswith("gemmgen: ") and "no kernel can be launched" in why
    assert not (tmp_path / "best.sched").exists() and done.stdout == ""


def test_without_optuna_that_is_reported(monkeypatch: pytest.MonkeyPatch, space: Path) -> None:
    OnFakes(monkeypatch, TEXT)
    monkeypatch.setitem(sys.modules, "optuna", None)
    done = tune(space, "--shape", "512")
    assert done.exit_code == 3
    assert (
        "Optuna, which is not installed: pip install '.[tune]' in a clone of gemmgen" in done.stderr
    )


def test_the_list_needs_no_gpu(space: Path) -> None:
    for option in ("--list", "--dry-run"):
        done = tune(space, "--shape", "512", option)
        assert done.exit_code == 0
        assert done.stdout.startswith("2 legal schedules of 4 points, ranked for H200\n")
        assert "register_block m=7 does not divide the tile" in done.stdout


def test_the_list_for_scripts(space: Path) -> None:
    found = json.loads(tune(space, "--shape", "512", "--list", "--json").stdout)
    assert (found["points"], found["legal"]) == (4, 2)
    assert found["ranked"][0]["settings"].keys() == {"tile.m", "register_block.m"}
    assert sum(found["refused"].values()) == 2


def test_sets_may_be_settled_beforehand(space: Path) -> None:
    done = tune(space, "--shape", "512", "--list", "--set", "tile.m=64")
    assert done.stdout.startswith("1 legal schedules of 2 points")


def test_tma_and_a_producer_are_candidates() -> None:
    """What the compiler refuses of a space is counted, with the reason."""
    fixed = ("tile.m=128", "tile.n=256", "tile.k=16", "warp_tile.m=64", "register_block.n=16")
    fixed += ("register_block.order=rows", "double_buffer.stages=4", "raster.group=8")
    path = Path(__file__).parents[2] / "examples" / "spaces" / "hopper.sched"
    sets = [word for one in fixed for word in ("--set", one)]
    found = json.loads(tune(path, "--shape", "4096", "--list", "--json", *sets).stdout)
    assert (found["points"], found["legal"]) == (4, 3)
    (reason,) = found["refused"]
    assert reason.startswith("warp_specialize needs copies that complete an mbarrier")
    assert found["refused"][reason] == 1
    tried = {
        (p["settings"]["async_copy.via"], p["settings"]["warp_specialize.producers"])
        for p in found["ranked"]
    }
    assert tried == {("cp_async", 0), ("tma", 0), ("tma", 1)}


@pytest.mark.proof
def test_the_winner_is_printed(monkeypatch: pytest.MonkeyPatch, larger: Path) -> None:
    OnFakes(monkeypatch, fakes.SMALL)
    done = tune(larger, "--shape", "2048", "--jobs", "1")
    assert done.exit_code == 0
    assert done.stdout.startswith("# Tuned by gemmgen on an Fake GPU")
    assert compile_source(Source(done.stdout)).text
    assert "the best on an Fake GPU, seed 0" in done.stderr


@pytest.mark.proof
def test_the_winner_is_written(
    monkeypatch: pytest.MonkeyPatch, larger: Path, tmp_path: Path
) -> None:
    OnFakes(monkeypatch, fakes.SMALL)
    out, trials = tmp_path / "best.sched", tmp_path / "t.jsonl"
    done = tune(larger, "--shape", "2048", "-o", out, "--trials", trials, "--json", "--jobs", "1")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    assert out.read_text() == found["schedule"]
    assert found["winner"] == found["finalists"][0]
    assert found["tried"] == len(trials.read_text().splitlines()) - 1
    again = tune(larger, "--shape", "2048", "--trials", trials, "--resume", "--jobs", "1")
    assert again.exit_code == 0 and again.stdout == found["schedule"]


@pytest.mark.proof
def test_the_winner_is_stored(
    monkeypatch: pytest.MonkeyPatch, larger: Path, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    OnFakes(monkeypatch, fakes.SMALL)
    call = (larger, "--shape", "2048", "--jobs", "1")
    assert tune(*call, "--no-store").exit_code == 0 and not (tmp_path / "cache").exists()
    done = tune(*call)
    key = ProblemKey.of(parse_schedule(Source(done.stdout)), (2048, 2048, 2048))
    (result,) = Results.open().exact(key, "Fake GPU")
    assert result.schedule == done.stdout.partition("\n")[2].split("\n", 2)[2]
    assert 0.0001 < result.seconds < 0.001 and result.vendor == fakes.CUBLAS / 1e3


@pytest.mark.proof
def test_nothing_is_written_where_nothing_is_right(
    monkeypatch: pytest.MonkeyPatch, larger: Path, tmp_path: Path
) -> None:
    OnFakes(monkeypatch, fakes.SMALL, wrong=lambda point: True)
    out = tmp_path / "best.sched"
    done = tune(larger, "--shape", "2048", "-o", out, "--jobs", "1")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no schedule of" in done.stderr and not out.exists()


def test_a_wrong_kernel_is_reported_aloud(monkeypatch: pytest.MonkeyPatch, larger: Path) -> None:
    OnFakes(monkeypatch, fakes.SMALL, wrong=lambda point: point.number == 3)
    done = tune(larger, "--shape", "2048", "--jobs", "1")
    assert done.exit_code == 0
    assert "an error of gemmgen, please report it: --set tile.m=64" in done.stderr
    assert "wrong: C[0, 0] = 1.0 instead of 2.0" in done.stderr


@pytest.mark.proof
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"]
)
def test_what_was_tried_outlives_an_interruption(
    number: int, code: int, monkeypatch: pytest.MonkeyPatch, larger: Path, tmp_path: Path
) -> None:
    calls: list[int] = []

    def interrupt(point: int) -> None:
        calls.append(point)
        if len(calls) == 20 and number == signal.SIGINT:
            raise KeyboardInterrupt  # a shell's background jobs ignore the signal
        if len(calls) == 20:
            os.kill(os.getpid(), number)

    OnFakes(monkeypatch, fakes.SMALL, before=interrupt)
    trials, out = tmp_path / "t.jsonl", tmp_path / "best.sched"
    arguments = (larger, "--shape", "2048", "--trials", trials, "-o", out, "--jobs", "1")
    done = tune(*arguments)
    assert done.exit_code == code
    assert f"interrupted; {trials} has the trials, --resume continues" in done.stderr
    assert "the best so far, not yet proved: --set tile.m=" in done.stderr
    assert not out.exists() and len(trials.read_text().splitlines()) == 1 + 16
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    again = tune(*arguments, "--resume")
    assert again.exit_code == 0, again.stderr
    assert len(trials.read_text().splitlines()) == 1 + 32


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("tile m=64 n=64\n", ["--shape", "64"], "has no set, so there is nothing to tune"),
        (TEXT, ["--shape", "64", "--resume"], "name it with --trials"),
        (TEXT, ["--shape", "64", "-o", "{space}"], "is the schedule itself"),
        (TEXT, ["--shape", "64", "--trials", "{space}"], "is the schedule itself"),
        (TEXT, ["--shape", "64", "--trials", "a", "-o", "./a"], "name the same file"),
        (TEXT, ["--shape", "64", "--set", "tile.n=3"], "the sets of this file are tile.m"),
        ("tile m={7, 9} n=5\n", ["--shape", "64"], "no point of {space} is legal; of 2: "),
        (TEXT, [], "Missing option '--shape'"),
        ("tile m={64, 64} n=64\n", ["--shape", "64"], "occurs twice in the set"),
    ],
)
def test_refuses(tmp_path: Path, text: str, arguments: list[str], message: str) -> None:
    space = tmp_path / "space.sched"
    space.write_text(text)
    done = tune(space, *(a.format(space=space) for a in arguments))
    assert done.exit_code == 2
    assert message.format(space=space) in done.stderr
    assert space.read_text() == text and os_listing(tmp_path) == ["space.sched"]


def os_listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
