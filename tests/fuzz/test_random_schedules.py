"""500 random legal schedules, each at four shapes and in two orders of threads."""

from __future__ import annotations

import shutil

import pytest

from gemmgen.fuzz import campaign, report
from gemmgen.fuzz.campaign import Limits, Tally, run

SEED, SCHEDULES = 7, 500

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="runs kernels, with g++")


@pytest.fixture(scope="module")
def tally() -> Tally:
    return run(SEED, Limits(SCHEDULES), jobs=2)


def test_none_fails(tally: Tally) -> None:
    assert tally.schedules == SCHEDULES
    assert not tally.found, report.summary(tally, SEED)


def test_every_legal_pair_of_values_is_seen(tally: Tally) -> None:
    assert not tally.unseen, report.coverage(tally)


def test_few_are_refused_and_the_rest_is_run_eightfold(tally: Tally) -> None:
    assert tally.share_refused < 0.1
    assert tally.runs == 8 * (tally.schedules - tally.refused.total())


def test_the_rules_of_what_is_legal_are_the_compilers(tally: Tally) -> None:
    assert not tally.unlike


def test_a_replay_is_the_trial_of_the_campaign() -> None:
    found = campaign.replay(SEED, 11)
    assert found.schedules == 1
    again = campaign.trial_at(SEED, 11)
    assert again == campaign.trial_at(SEED, 11)
    assert found.runs == again.verdict.runs
