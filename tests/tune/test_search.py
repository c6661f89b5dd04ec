"""The search, on fakes: what is tried, in which order, and who may win."""

from __future__ import annotations

import pytest

from gemmgen.explore.tune.explore import OPENING
from gemmgen.explore.tune.legal import Legal
from gemmgen.explore.tune.tuner import rank
from gemmgen.explore.tune.winner import as_json, schedule_text, section
from gemmgen.schedule.fmt import fmt_source
from gemmgen.source import Source

from . import fakes

SPACE, CENSUS = fakes.points()
BEST = min(CENSUS.legal, key=fakes.cost)


def test_the_space_is_worth_searching() -> None:
    assert len(CENSUS.legal) == SPACE.size == 192
    ranked = rank(CENSUS.legal, [fakes.SHAPE], fakes.HERE.gpu)
    assert BEST not in ranked[: 2 * OPENING]


def test_given_time_every_point_is_tried_once_and_the_best_wins() -> None:
    done = fakes.run(SPACE, CENSUS)
    tried = [trial.number for trial in done.order]
    assert sorted(tried) == sorted(point.number for point in CENSUS.legal)
    assert done.tuned.finals.winner is not None
    assert done.tuned.finals.winner.number == BEST.number


def test_short_of_time_the_sampler_comes_near_the_best() -> None:
    """Where the model is of no use, a third of the points are enough for one of the best."""
    space, census = fakes.points(fakes.TEXT.replace("k=8", "k={8, 16}"))
    costs = sorted(map(fakes.cost, census.legal))
    for seed in range(3):
        done = fakes.run(space, census, seed=seed, seconds=20, building={"seconds": 1.7})
        assert done.tuned.finals.winner is not None
        assert len(done.order) < 0.4 * len(census.legal)
        won = done.lab.by_number[done.tuned.finals.winner.number]
        assert fakes.cost(won) <= costs[len(costs) // 40]


@pytest.mark.parametrize("seconds", [20.0, 300.0])
def test_one_seed_gives_one_order_and_one_text(seconds: float) -> None:
    one, other, another = (
        fakes.run(SPACE, CENSUS, seed=seed, seconds=seconds, building={"seconds": 1.0})
        for seed in (7, 7, 8)
    )
    assert one.order == other.order
    assert schedule_text(one.tuned) == schedule_text(other.tuned)
    assert [t.number for t in one.order] != [t.number for t in another.order]


def test_nothing_is_timed_before_it_was_found_right() -> None:
    """The fake lab asserts it too, so this is about the order alone."""
    events = fakes.run(SPACE, CENSUS).lab.events
    first = {}
    for what, number in events:
        first.setdefault((what, number), len(first))
    for what, number in events:
        if what == "time":
            assert first["check", number] < first["time", number]


def is_best(point: Legal) -> bool:
    return point.number == BEST.number


def test_a_wrong_kernel_is_never_timed_and_never_the_winner() -> None:
    done = fakes.run(SPACE, CENSUS, wrong=is_best)
    assert ("time", BEST.number) not in done.lab.events
    _not_the_best(done)


def test_a_kernel_that_is_wrong_once_it_was_timed_does_not_win() -> None:
    _not_the_best(fakes.run(SPACE, CENSUS, later=is_best))


def test_a_winner_that_fails_a_proof_gives_way_to_the_next() -> None:
    done = fakes.run(SPACE, CENSUS, unproved=is_best)
    _not_the_best(done)
    assert next(e for e in done.lab.events if e[0] == "prove") == ("prove", BEST.number)


def _not_the_best(done: fakes.Run) -> None:
    winner = done.tuned.finals.winner
    assert winner is not None and winner.number != BEST.number
    assert done.tuned.state.trials[BEST.number].status == "wrong"
    assert [trial.number for trial in done.tuned.wrong] == [BEST.number]
    assert BEST.number not in [r.number for r in done.tuned.finals.readings]
    second = sorted(CENSUS.legal, key=fakes.cost)[1]
    assert fakes.cost(done.lab.by_number[winner.number]) == fakes.cost(second)


def test_where_all_are_wrong_there_is_no_winner() -> None:
    done = fakes.run(SPACE, CENSUS, wrong=lambda point: True)
    assert done.tuned.finals.winner is None
    assert as_json(done.tuned)["winner"] is None
    assert not [e for e in done.lab.events if e[0] == "time"]


def test_a_require_line_gates_what_was_compiled() -> None:
    space, census = fakes.points(fakes.TEXT + "require registers <= 100\n")
    done = fakes.run(space, census)
    gated = [trial for trial in done.order if trial.status == "gated"]
    assert gated and all(trial.registers > 100 for trial in gated if trial.registers)
    assert gated[0].reason.startswith("require registers <= 100: registers = ")
    checked = {number for what, number in done.lab.events if what == "check"}
    assert not checked & {trial.number for trial in gated}


def test_what_does_not_compile_is_told_and_the_search_goes_on() -> None:
    done = fakes.run(
        SPACE, CENSUS, building={"broken": lambda p: "ptxas gave up" if is_best(p) else ""}
    )
    trial = done.tuned.state.trials[BEST.number]
    assert (trial.status, trial.reason) == ("failed", "ptxas gave up")
    assert len(done.order) == len(CENSUS.legal)


def test_points_of_the_same_code_are_measured_once() -> None:
    def code(point: Legal) -> str:
        return " ".join(f"{k}={v}" for k, v in point.settings if k != "raster.group")

    done = fakes.run(SPACE, CENSUS, building={"code": code})
    assert len(done.order) == len(CENSUS.legal)
    checked = {number for what, number in done.lab.events if what == "check"}
    assert len(checked) == len(CENSUS.legal) // 2
    again = [trial for trial in done.order if trial.reason.startswith("the same code as point")]
    assert len(again) == len(CENSUS.legal) // 2
    numbers = [reading.number for reading in done.tuned.finals.readings]
    codes = {done.tuned.state.trials[number].code for number in numbers}
    assert len(codes) == len(numbers)


def test_luck_in_the_first_timing_does_not_win() -> None:
    """A mediocre point that looks 10% faster once is out after the races."""
    lucky = sorted(CENSUS.legal, key=fakes.cost)[20]
    seen: set[int] = set()

    def noise(number: int, times: int) -> float:
        first = number not in seen
        seen.add(number)
        return -0.5 if number == lucky.number and first else 0.0

    done = fakes.run(SPACE, CENSUS, noise=noise)
    assert done.tuned.state.best is not None and done.tuned.finals.winner is not None
    assert done.tuned.state.best.number == lucky.number
    assert done.tuned.finals.winner.number == BEST.number


def test_the_budget_is_kept() -> None:
    done = fakes.run(SPACE, CENSUS, seconds=60, building={"seconds": 4.0})
    assert 40 < done.tuned.seconds < 75


def test_the_result_is_an_ordinary_schedule() -> None:
    done = fakes.run(SPACE, CENSUS)
    text = schedule_text(done.tuned)
    assert fmt_source(Source(text)) == text
    lines = text.splitlines()
    comments = [line for line in lines if line.startswith("#")]
    assert comments == [
        "# Tuned by gemmgen on an Fake GPU, results checked:",
        "#   2048x2048x2048: 0.32 ms, 53.7 TFLOP/s, 106.2% of cuBLAS",
        "# Of 192 legal schedules 192 were tried (seed 0).",
    ]
    assert "{" not in text and max(map(len, lines)) <= 100
    assert "\n".join(lines[3:]) + "\n" == BEST.text


def test_the_table_has_the_finalists() -> None:
    found = section(fakes.run(SPACE, CENSUS).tuned)
    assert len(found.rows) == 6
    assert [row[0] for row in found.rows] == list("123456")
    note, _ = found.notes
    assert note.startswith("192 of 192 legal schedules in ") and note.endswith(": 192 timed")
