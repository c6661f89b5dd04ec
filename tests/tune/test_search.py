"""The search, on fakes: what is tried, in which order, and who may win."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gemmgen.base.source import Source
from gemmgen.explore.tune import sampler
from gemmgen.explore.tune.legal_points import Census, Legal
from gemmgen.explore.tune.space import SearchSpace
from gemmgen.explore.tune.tuner import rank
from gemmgen.explore.tune.winner import as_json, schedule_text, section
from gemmgen.language import fmt_source

from . import fakes


@pytest.fixture
def space() -> SearchSpace:
    """Few points: enough where nothing depends on what the sampler learns."""
    return fakes.points(fakes.SMALL)[0]


@pytest.fixture
def census() -> Census:
    return fakes.points(fakes.SMALL)[1]


@pytest.fixture
def best(census: Census) -> Legal:
    return min(census.legal, key=fakes.cost)


@pytest.mark.proof
def test_the_space_is_worth_searching() -> None:
    space, census = fakes.points()
    assert len(census.legal) == space.size == 192
    ranked = rank(census.legal, [fakes.SHAPE], fakes.HERE.gpu)
    assert min(census.legal, key=fakes.cost) not in ranked[: 2 * sampler.OPENING]


@pytest.mark.proof
def test_given_time_every_point_is_tried_once_and_the_best_wins() -> None:
    _all_are_tried(*fakes.points())


def test_the_sampler_proposes_each_point_once(
    monkeypatch: pytest.MonkeyPatch, space: SearchSpace, census: Census
) -> None:
    """It is asked for most of the points, as it is where there are thousands."""
    monkeypatch.setattr(sampler, "OPENING", 8)
    _all_are_tried(space, census, batch=4)


def _all_are_tried(space: SearchSpace, census: Census, batch: int = 16) -> None:
    done = fakes.run(space, census, batch=batch)
    tried = [trial.number for trial in done.order]
    assert sorted(tried) == sorted(point.number for point in census.legal)
    assert done.tuned.finals.winner is not None
    won = done.runner.by_number[done.tuned.finals.winner.number]
    assert fakes.cost(won) == min(map(fakes.cost, census.legal))


@pytest.mark.proof
def test_short_of_time_the_sampler_comes_near_the_best() -> None:
    """Where the model is of no use, a third of the points are enough for one of the best."""
    space, census = fakes.points(fakes.TEXT.replace("k=8", "k={8, 16}"))
    costs = sorted(map(fakes.cost, census.legal))
    for seed in range(3):
        done = fakes.run(space, census, seed=seed, seconds=20, building={"seconds": 1.7})
        assert done.tuned.finals.winner is not None
        assert len(done.order) < 0.4 * len(census.legal)
        won = done.runner.by_number[done.tuned.finals.winner.number]
        assert fakes.cost(won) <= costs[len(costs) // 40]


@pytest.mark.proof
@pytest.mark.parametrize("seconds", [20.0, 300.0])
def test_one_seed_gives_one_order_and_one_text(seconds: float) -> None:
    space, census = fakes.points()
    one, other, another = (
        fakes.run(space, census, seed=seed, seconds=seconds, building={"seconds": 1.0})
        for seed in (7, 7, 8)
    )
    assert one.order == other.order
    assert schedule_text(one.tuned) == schedule_text(other.tuned)
    assert [t.number for t in one.order] != [t.number for t in another.order]


def test_nothing_is_timed_before_it_was_found_right(space: SearchSpace, census: Census) -> None:
    """The fake runner asserts it too, so this is about the order alone."""
    events = fakes.run(space, census).runner.events
    first = {}
    for what, number in events:
        first.setdefault((what, number), len(first))
    for what, number in events:
        if what == "time":
            assert first["check", number] < first["time", number]


def is_(best: Legal) -> Callable[[Legal], bool]:
    return lambda point: point.number == best.number


def test_a_wrong_kernel_is_never_timed_and_never_the_winner(
    space: SearchSpace, census: Census, best: Legal
) -> None:
    done = fakes.run(space, census, wrong=is_(best))
    assert ("time", best.number) not in done.runner.events
    _not_the_best(census, done)


def test_a_kernel_that_is_wrong_once_it_was_timed_does_not_win(
    space: SearchSpace, census: Census, best: Legal
) -> None:
    _not_the_best(census, fakes.run(space, census, later=is_(best)))


def test_a_winner_that_fails_a_proof_gives_way_to_the_next(
    space: SearchSpace, census: Census, best: Legal
) -> None:
    done = fakes.run(space, census, unproved=is_(best))
    _not_the_best(census, done)
    assert next(e for e in done.runner.events if e[0] == "prove") == ("prove", best.number)


def _not_the_best(census: Census, done: fakes.Run) -> None:
    best, second = sorted(census.legal, key=fakes.cost)[:2]
    winner = done.tuned.finals.winner
    assert winner is not None and winner.number != best.number
    assert done.tuned.state.trials[best.number].status == "wrong"
    assert [trial.number for trial in done.tuned.wrong] == [best.number]
    assert best.number not in [r.number for r in done.tuned.finals.readings]
    assert fakes.cost(done.runner.by_number[winner.number]) == fakes.cost(second)


def test_where_all_are_wrong_there_is_no_winner(space: SearchSpace, census: Census) -> None:
    done = fakes.run(space, census, wrong=lambda point: True)
    assert done.tuned.finals.winner is None
    assert as_json(done.tuned)["winner"] is None
    assert not [e for e in done.runner.events if e[0] == "time"]


@pytest.mark.proof
def test_a_require_line_gates_what_was_compiled() -> None:
    space, census = fakes.points(fakes.TEXT + "require registers <= 100\n")
    done = fakes.run(space, census)
    gated = [trial for trial in done.order if trial.status == "gated"]
    assert gated and all(trial.registers > 100 for trial in gated if trial.registers)
    assert gated[0].reason.startswith("require registers <= 100: registers = ")
    checked = {number for what, number in done.runner.events if what == "check"}
    assert not checked & {trial.number for trial in gated}


def test_what_does_not_compile_is_reported_and_the_search_goes_on(
    space: SearchSpace, census: Census, best: Legal
) -> None:
    done = fakes.run(
        space, census, building={"broken": lambda p: "ptxas gave up" if p is best else ""}
    )
    trial = done.tuned.state.trials[best.number]
    assert (trial.status, trial.reason) == ("failed", "ptxas gave up")
    assert len(done.order) == len(census.legal)


@pytest.mark.proof
def test_points_of_the_same_code_are_measured_once() -> None:
    space, census = fakes.points()

    def code(point: Legal) -> str:
        return " ".join(f"{k}={v}" for k, v in point.settings if k != "raster.group")

    done = fakes.run(space, census, building={"code": code})
    assert len(done.order) == len(census.legal)
    checked = {number for what, number in done.runner.events if what == "check"}
    assert len(checked) == len(census.legal) // 2
    again = [trial for trial in done.order if trial.reason.startswith("the same code as point")]
    assert len(again) == len(census.legal) // 2
    numbers = [reading.number for reading in done.tuned.finals.readings]
    codes = {done.tuned.state.trials[number].code for number in numbers}
    assert len(codes) == len(numbers)


def test_luck_in_the_first_timing_does_not_win(
    space: SearchSpace, census: Census, best: Legal
) -> None:
    """A mediocre point that looks 10% faster once is out after the races."""
    lucky = sorted(census.legal, key=fakes.cost)[20]
    seen: set[int] = set()

    def noise(number: int, times: int) -> float:
        first = number not in seen
        seen.add(number)
        return -0.5 if number == lucky.number and first else 0.0

    done = fakes.run(space, census, noise=noise)
    assert done.tuned.state.best is not None and done.tuned.finals.winner is not None
    assert done.tuned.state.best.number == lucky.number
    assert done.tuned.finals.winner.number == best.number


def test_the_budget_is_kept(space: SearchSpace, census: Census) -> None:
    done = fakes.run(space, census, seconds=60, batch=1, building={"seconds": 4.0})
    assert 40 < done.tuned.seconds < 75


def test_the_result_is_an_ordinary_schedule(
    space: SearchSpace, census: Census, best: Legal
) -> None:
    done = fakes.run(space, census)
    text = schedule_text(done.tuned)
    assert fmt_source(Source(text)) == text
    lines = text.splitlines()
    comments = [line for line in lines if line.startswith("#")]
    assert comments == [
        "# Tuned by gemmgen on an Fake GPU, results checked:",
        "#   2048x2048x2048: 364.8 us, 47.1 TFLOP/s, 93.2% of cuBLAS",
        "# Of 32 legal schedules 32 were tried (seed 0).",
    ]
    assert "{" not in text and max(map(len, lines)) <= 100
    assert "\n".join(lines[3:]) + "\n" == best.text


def test_the_table_has_the_finalists(space: SearchSpace, census: Census) -> None:
    found = section(fakes.run(space, census).tuned)
    assert len(found.rows) == 6
    assert [row[0] for row in found.rows] == list("123456")
    note, _ = found.notes
    assert note.startswith("32 of 32 legal schedules in ") and note.endswith(": 32 timed")
