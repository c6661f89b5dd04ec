"""A campaign ends soon after its budget, and Ctrl-C ends it with one line."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gemmgen.fuzz import campaign, trial
from gemmgen.fuzz.campaign import Judged, Limits
from gemmgen.fuzz.dice import Dice
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.fuzz.trial import Failure, Late, Verdict

ROOT = Path(__file__).parents[2]
runs_kernels = pytest.mark.skipif(shutil.which("g++") is None, reason="runs kernels, with g++")


@pytest.mark.proof
def test_a_trial_ends_between_two_runs() -> None:
    with pytest.raises(Late):
        trial.judge(schedule_at(1, 0), Dice(1, 0, "cases"), deadline=time.time() - 1)


@pytest.mark.proof
def test_schedules_in_a_batch_are_left_after_the_deadline() -> None:
    drawn = tuple((index, schedule_at(1, index)) for index in range(4))
    assert campaign.batch(1, drawn, False, (), time.time() - 1) == []


@pytest.mark.proof
def test_a_failure_that_comes_late_is_not_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "shrink", lambda *_: pytest.fail("shrunk after the deadline"))
    tally = campaign.Tally()
    failed = Judged(1, 0, schedule_at(1, 0), Verdict(Failure("C2", "fault", "planted")))
    campaign.count(tally, failed, time.time() - 1)
    assert [found.small for found in tally.found] == [None]


@pytest.mark.proof
@runs_kernels
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_campaign_takes_its_budget(jobs: int) -> None:
    """A compilation that is under way at its end takes a few seconds more."""
    start = time.time()
    assert campaign.run(3, Limits(seconds=6), jobs).seconds < 30
    assert time.time() - start < 30


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
@pytest.mark.parametrize("seconds", [0.03, 0.3, pytest.param(6.0, marks=pytest.mark.proof)])
def test_an_interruption_prints_one_line(seconds: float) -> None:
    """During imports, while processes begin, and while they work.  All of a terminal's processes
    are interrupted together.  One was lost once, on a busy machine, and why is not known (Python
    drops an exception in a callback of its imports): then a second one must end it."""
    # Before `run` is called an interruption is Python's: so it says that it begins.
    # A shell's background jobs ignore interruptions, which their children would inherit.
    hear = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    begin = f"{hear}; from gemmgen.__main__ import run; print(flush=True); run()"
    command = [sys.executable, "-c", begin, "fuzz", "--budget", "60", "--seed", "5"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGINT)
        try:
            _, said = process.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGINT)
            _, said = process.communicate(timeout=15)
    lines = [line for line in said.splitlines() if " schedules, " not in line]
    assert (process.returncode, lines) == (130, ["gemmgen: interrupted"])
