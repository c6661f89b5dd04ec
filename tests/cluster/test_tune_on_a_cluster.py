"""``gemmgen tune`` on workers with a GPU, which here are processes that have none."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gemmgen.base.local_gpus import local_gpus
from gemmgen.cli import cluster_option, main
from gemmgen.explore.autotune import gpu_tuning, keeping
from gemmgen.explore.request import Request
from gemmgen.explore.tune import gpu_measuring
from gemmgen.explore.tune.measuring import Candidate, Reading, Rejection, Screen
from gemmgen.gpu import compiler, device
from tests.tune.gemm_fakes import GEMM, HERE, StubRunner

from .local_workers import local_workers

BASE = ("--gemm", GEMM, "--dtype", "bf16")


def tune(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(main, ["tune", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--scheduler", "host"), "--scheduler: host is not an address"),
        (("--scheduler", "a:1", "--gpus", "all"), "name workers, each of its own: leave one out"),
        (("--gpus", "0,0"), "--gpus: 0,0 is not a list of GPUs; write all, or 0,1"),
        (("--gpus", "two"), "--gpus: two is not a list of GPUs"),
        (("--gpus", "0", "--show-space"), "--show-space measures nothing: leave --gpus out"),
    ],
)
def test_a_wrong_option_is_one_error(arguments: tuple[str, ...], said: str) -> None:
    done = tune(*BASE, "--shape", "64", *arguments)
    assert done.exit_code == 2 and said in done.stderr and done.stdout == ""


def test_what_is_listed_is_not_measured(tmp_path: Path) -> None:
    space = tmp_path / "space.sched"
    space.write_text("tile m={64, 128} n=64 k=8\n")
    done = tune(space, "--shape", "64", "--list", "--scheduler", "a:1")
    assert done.exit_code == 2 and "--list measures nothing: leave --scheduler out" in done.stderr


@pytest.mark.parametrize(
    ("visible", "found"), [(None, ("0", "1", "2")), ("5,7,1", ("5", "7", "1"))]
)
def test_all_gpus_are_those_that_are_visible(
    visible: str | None, found: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr(device, "count", lambda: 3)
    assert cluster_option._numbers("all") == tuple(found)


@pytest.mark.skipif(device.missing() is None, reason="a GPU is here")
def test_without_a_gpu_all_of_them_are_none() -> None:
    done = tune(*BASE, "--shape", "64", "--gpus", "all")
    assert done.exit_code == 3 and "no kernel can be launched" in done.stderr


# On a cluster, whose workers import this file.


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("distributed", reason="Dask is not installed")
    with local_workers(tmp_path_factory.mktemp("dask"), resources={"GPU": 1}) as found:
        yield found


def seen(number: int) -> tuple[str, int]:
    import time

    time.sleep(0.5)
    return os.environ["CUDA_VISIBLE_DEVICES"], os.getpid()


@pytest.mark.proof
def test_each_worker_sees_its_own_gpu() -> None:
    from functools import partial

    from gemmgen.base.cluster_tasks import ClusterTask
    from gemmgen.base.dask_client import connected

    pytest.importorskip("distributed", reason="Dask is not installed")
    with local_gpus(("0", "3")) as address, connected(address, gpu=True) as workers:
        assert workers.count() == 2 and address.startswith("tcp://127.0.0.1:")
        tasks = [ClusterTask(str(n), partial(seen, n), 60.0) for n in range(6)]
        found = {outcome.value for outcome in workers.outcomes(tasks)}
    assert {number for number, _ in found} == {"0", "3"} and len(found) == 2


class FragileStub(StubRunner):
    """Ends its worker with one kernel in eight."""

    def check(self, candidates: Sequence[Candidate]) -> tuple[Rejection | None, ...]:
        if any(candidate.number % 8 == 3 for candidate in candidates):
            os._exit(9)
        return super().check(candidates)


@pytest.mark.proof
@pytest.mark.skipif(compiler.available() is not None, reason="compiles")
def test_results_of_workers_are_stored_though_some_end(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(gpu_tuning, "GpuRunner", FragileStub)
    call = (*BASE, "--shape", "256x512x256", "--scheduler", address)
    done = tune(*call, "--budget", "20", "--jobs", "1", "--json")
    assert done.exit_code == 0, done.stderr
    (found,) = json.loads(done.stdout)["shapes"]
    assert found["outcome"] == "proved" and found["tried"] >= 8
    assert "crashed: its workers ended: tcp://" in done.stderr
    wanted = Request.of(GEMM, (256, 512, 256), dtype="bf16", gpu=HERE.gpu)
    texts = keeping.keeper(True)(HERE).stored(wanted)
    assert any(found["schedule"].endswith(text) for text in texts)


class InterruptingStub(StubRunner):
    """Ends the command by SIGTERM, like a batch system, once a batch was timed."""

    def time(
        self, candidates: Sequence[Candidate], rounds: int, screen: Screen | None = None
    ) -> tuple[Reading, ...]:
        if any(candidate.number > 12 for candidate in candidates):
            os.kill(os.getppid(), signal.SIGTERM)
        return super().time(candidates, rounds, screen)


@pytest.mark.proof
@pytest.mark.skipif(compiler.available() is not None, reason="compiles")
def test_an_interruption_keeps_what_was_measured(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The next run starts from it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(gpu_tuning, "GpuRunner", InterruptingStub)
    call = (*BASE, "--shape", "256x512x256", "--scheduler", address, "--jobs", "1", "--json")
    done = tune(*call, "--budget", "120")
    assert done.exit_code == 143 and "interrupted" in done.stderr, done.stderr
    (found,) = json.loads(done.stdout)["shapes"]
    assert found["outcome"] == "so far"
    wanted = Request.of(GEMM, (256, 512, 256), dtype="bf16", gpu=HERE.gpu)
    assert any(found["schedule"].endswith(x) for x in keeping.keeper(True)(HERE).stored(wanted))


@pytest.mark.proof
@pytest.mark.skipif(compiler.available() is not None, reason="compiles")
def test_the_search_of_a_space_is_resumed_without_repeating(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("optuna")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(gpu_measuring, "GpuRunner", StubRunner)
    space, trials = tmp_path / "space.sched", tmp_path / "trials.jsonl"
    space.write_text(
        "tile m=64 n={64, 128} k=8\ncache_shared A[k, m] B\nregister_block m={4, 8} n=8\n"
    )
    call = (space, "--shape", "256", "--scheduler", address, "--trials", trials, "--budget", "20")
    first = tune(*call, "--jobs", "1")
    assert first.exit_code == 0, first.stderr
    before = trials.read_text().splitlines()
    again = tune(*call, "--jobs", "1", "--resume")
    assert again.exit_code == 0, again.stderr
    assert trials.read_text().splitlines()[: len(before)] == before
    numbers = [json.loads(line).get("number") for line in trials.read_text().splitlines()[1:]]
    assert len(numbers) == len(set(numbers)) == 4
