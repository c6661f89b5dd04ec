"""36 random legal schedules, each at four shapes and in two orders of threads.

``gemmgen fuzz`` draws as many as there is time for."""

from __future__ import annotations

import shutil

import pytest

from gemmgen.fuzz import campaign, report
from gemmgen.fuzz.campaign import Limits, Tally
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.fuzz.trial import compile_text

SEED, SCHEDULES, PART = 1, 36, 6
DRAWN = 60
"""Schedules: enough for a share to mean something."""

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="runs kernels, with g++")


@pytest.mark.proof
@pytest.mark.parametrize("first", range(0, SCHEDULES, PART))
def test_none_fails(first: int) -> None:
    tally = Tally()
    for index in range(first, first + PART):
        campaign.count(tally, campaign.trial_at(SEED, index))
    assert not tally.found, report.summary(tally, SEED)
    legal = tally.schedules - tally.refused.total()
    assert 8 * legal < tally.runs <= 9 * legal  # eight, and one that reaches farther


@pytest.mark.proof
def test_few_are_refused() -> None:
    texts = [schedule_at(SEED, index) for index in range(DRAWN)]
    assert sum(compile_text(text) is None for text in texts) < 0.2 * DRAWN


@pytest.mark.proof
def test_processes_share_a_campaign() -> None:
    one, two = (campaign.run(SEED, Limits(schedules=2), jobs) for jobs in (1, 2))
    assert (one.schedules, one.runs) == (two.schedules, two.runs)
    assert one.unseen == two.unseen


@pytest.mark.proof
def test_a_replay_is_the_trial_of_the_campaign() -> None:
    trial = campaign.trial_at(SEED, 11)
    assert trial == campaign.trial_at(SEED, 11)
    assert campaign.replay(SEED, 11).runs == trial.verdict.runs
