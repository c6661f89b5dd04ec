"""``tune --gemm``: candidates, division of the time, results as they arrive, with a fake GPU."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import pytest

from gemmgen.analyze.plain_text import plain
from gemmgen.base.errors import UsageError
from gemmgen.base.source import Source
from gemmgen.explore.autotune import result_table
from gemmgen.explore.autotune.first_candidates import MOST, SAME_TILE, Seed, seeds
from gemmgen.explore.autotune.gpu_tuning import run_until
from gemmgen.explore.autotune.judged_candidates import JudgedCandidate, estimated, judge
from gemmgen.explore.autotune.keeping import NoKeeper
from gemmgen.explore.autotune.neighbors import Alternatives
from gemmgen.explore.autotune.proposals import Proposals
from gemmgen.explore.autotune.shape_tuning import Tuning, tune_shapes
from gemmgen.explore.suggest.choose import choose
from gemmgen.explore.suggest.warpgroup_ranking import fastest
from gemmgen.explore.tune.search import SearchProgress
from gemmgen.language import parse_schedule
from gemmgen.pipeline import compile_source
from gemmgen.schedule.formatting import format_schedule

from .gemm_fakes import HERE, LEAST, RIVAL, FakeLab, MemoryKeeper, cost, request, size

SHAPES = ((2048, 2304, 768), (2048, 768, 768), (4096, 4096, 4096))


def tuned(
    *shapes: tuple[int, ...],
    lab: FakeLab | None = None,
    keeper: MemoryKeeper | None = None,
    seconds: float = 9.0,
) -> tuple[Tuning, FakeLab, MemoryKeeper]:
    lab, keeper = lab or FakeLab(), keeper or MemoryKeeper()
    tuning = Tuning(HERE, tuple(request(shape) for shape in shapes or SHAPES[:1]))
    run_until(tuning, lab, keeper, lab.clock, lab.clock.now + seconds, lambda at, progress: None)
    return tuning, lab, keeper


@pytest.mark.proof
def test_the_first_candidate_is_suggests_and_the_others_differ() -> None:
    wanted = request()
    found = seeds(wanted, (), lambda several: tuple(judge(each, wanted) for each in several))
    assert [seed.origin for seed in found] == [f"suggest #{n}" for n in range(1, MOST + 1)]
    assert found[0].text == format_schedule(choose(wanted, measured=False).schedule)
    tiles = [(size(seed.text, "tile", "m"), size(seed.text, "tile", "n")) for seed in found]
    assert max(tiles.count(tile) for tile in tiles) == SAME_TILE
    assert len({size(seed.text, "cluster", "m") for seed in found}) > 1


def test_an_illegal_suggestion_has_no_rank() -> None:
    wanted = request()
    first = choose(wanted, measured=False).schedule
    refused = format_schedule(first)

    def judged(several):  # type: ignore[no-untyped-def]
        found = (judge(each, wanted) for each in several)
        return tuple(x if x and x.text != refused else None for x in found)

    found = seeds(wanted, (), judged)
    assert found[0].origin == "suggest #1" and found[0].text != refused and len(found) == MOST


def test_stored_schedules_come_first_once_and_only_if_they_are_legal() -> None:
    wanted = request()
    mine = format_schedule(choose(wanted, measured=False).schedule)
    odd = mine.replace("overlap_launch\n", "")
    bad = re.sub(r"stages=\d+", "stages=60", mine)
    assert len({mine, odd, bad}) == 3
    found = seeds(
        wanted, (odd, mine, bad, odd), lambda several: tuple(judge(x, wanted) for x in several)
    )
    assert [seed.origin for seed in found[:3]] == ["stored", "stored", "suggest #2"]
    assert [seed.text for seed in found[:2]] == [odd, mine]


def test_the_estimate_of_a_suggested_schedule_is_suggests() -> None:
    wanted = request()
    for plan in fastest(wanted, 10):
        found = estimated(compile_source(Source(plan.text)), wanted)
        assert found == pytest.approx(plan.seconds, rel=1e-9)


@pytest.mark.proof
def test_neighbors_of_the_best_come_after_the_first_candidates() -> None:
    wanted, lab = request(), FakeLab()
    judged = lab.judge(wanted)
    first = seeds(wanted, (), judged)
    proposals = Proposals(wanted, first, judged)
    asked = proposals.ask(100)
    assert [x.text for x in asked] == [x.text for x in first] and proposals.ask(5) == ()
    for proposal in asked:
        proposals.tell(proposal.number, cost(proposal.text))
    best = min(asked, key=lambda x: cost(x.text))
    proposals.tell(best.number, 0.0)
    (one,) = proposals.ask(1)
    assert one.origin == "search"
    # From here on nothing is asked twice, and there are enough candidates for a long search.
    seen = {x.text for x in (*asked, one)}
    for _ in range(20):
        for proposal in proposals.ask(8):
            assert proposal.text not in seen
            seen.add(proposal.text)
            proposals.tell(proposal.number, cost(proposal.text))
    assert len(seen) > 100


def test_the_search_finds_a_better_schedule_than_any_first_one() -> None:
    tuning, lab, keeper = tuned()
    (result,) = tuning.results
    assert result.outcome == "proved" and result.origin == "search" and result.text is not None
    assert result.ms is not None and result.ms == cost(result.text) < cost(lab.timed[0])
    assert keeper.kept[SHAPES[0], result.text] == result.ms
    assert result.share == pytest.approx(RIVAL / result.ms)


@pytest.mark.proof
def test_the_search_goes_on_if_all_first_candidates_are_one_batch() -> None:
    """No neighbor is known until the first batch was measured."""
    tuning, lab, _ = tuned(lab=FakeLab(batch=32))
    assert tuning.results[0].origin == "search" and len(set(lab.timed)) > 2 * MOST


def test_neighbors_are_ordered_by_the_parents_time_and_the_ratio_of_estimates() -> None:
    wanted = request()
    mine = format_schedule(choose(wanted, measured=False).schedule)
    first = [Seed(mine, "one", 1.0), Seed(mine.replace("stages=7", "stages=6"), "two", 1.0)]
    estimates = iter((3.0, 1 / 1.5))

    def judged(several: Sequence[Alternatives]) -> tuple[JudgedCandidate | None, ...]:
        seconds = next(estimates)
        return tuple(JudgedCandidate(f"{texts[0]}# {seconds}", seconds) for texts in several)

    proposals = Proposals(wanted, first, judged)
    one, two = proposals.ask(2)
    proposals.tell(one.number, 0.0)  # neighbors of the first are expected to take exp(1.1)
    proposals.tell(two.number, 2.0)  # and those of the second exp(2 - 0.4)
    seconds = [proposal.seconds for proposal in proposals.ask(1000)]
    assert seconds == sorted(seconds, reverse=True) and len(set(seconds)) == 2


@pytest.mark.proof
def test_a_search_is_the_same_each_time() -> None:
    assert tuned()[1].timed == tuned()[1].timed


@pytest.mark.proof
def test_the_time_is_divided_among_the_shapes() -> None:
    lab = FakeLab()
    begins: list[float] = []
    tuning = Tuning(HERE, tuple(map(request, SHAPES)))
    seen: set[int] = set()

    def watch(at: int, progress: SearchProgress) -> None:
        if at not in seen:
            seen.add(at)
            begins.append(lab.clock.now)

    tune_shapes(tuning, lab, MemoryKeeper(), lab.clock, 24.0, watch)
    assert tuning.complete and [x.shape for x in lab.runners] == list(SHAPES)
    assert begins[0] < 1.5 and begins[1] == pytest.approx(8, abs=2)
    assert begins[2] == pytest.approx(16, abs=2) and lab.clock.now == pytest.approx(24, abs=2)


@pytest.mark.proof
def test_a_tiny_budget_still_gives_each_shape_a_checked_result() -> None:
    tuning, lab, _ = tuned(*SHAPES, seconds=0.001)
    assert tuning.complete and lab.clock.now < 6


def test_each_new_best_is_kept_as_it_arrives() -> None:
    """A killed process loses nothing: at any moment the best so far has been kept."""
    keeper, lab = MemoryKeeper(), FakeLab()
    tuning = Tuning(HERE, (request(),))
    bests: list[float] = []

    def watch(at: int, progress: SearchProgress) -> None:
        if progress.best is not None:
            bests.append(progress.best.ms[0])
            assert min(keeper.kept.values()) == progress.best.ms[0]
            result = tuning.results[0]
            assert (result.outcome, result.ms) == ("so far", progress.best.ms[0])

    run_until(tuning, lab, keeper, lab.clock, 12.0, watch)
    assert len(set(bests)) > 2 and bests == sorted(bests, reverse=True)


@pytest.mark.proof
def test_what_races_do_not_confirm_is_not_kept() -> None:
    """A brief timing may be lucky, and a kernel may turn out wrong: the store has neither."""

    def lucky(text: str, rounds: int) -> float:
        return -0.5 if rounds < 5 and size(text, "tile", "n") == 144 else 0.0

    tuning, _, keeper = tuned(lab=FakeLab(noise=lucky))
    (result,) = tuning.results
    assert result.ms is not None and all(cost(text) == ms for (_, text), ms in keeper.kept.items())
    assert keeper.dropped and min(keeper.kept.values()) == result.ms


@pytest.mark.proof
def test_a_winner_that_is_not_proved_is_dropped_and_reported() -> None:
    plain_winner = tuned()[0].results[0].text
    lab = FakeLab(unproved=lambda text: text == plain_winner)
    tuning, _, keeper = tuned(lab=lab)
    (result,) = tuning.results
    assert result.outcome == "proved" and result.text != plain_winner
    assert plain_winner not in {text for _, text in keeper.kept}
    assert [(text, trial.reason) for text, trial in tuning.wrong] == [(plain_winner, "ragged edge")]


def test_nothing_right_is_no_result() -> None:
    tuning, lab, keeper = tuned(lab=FakeLab(wrong=lambda text: True), seconds=1.0)
    (result,) = tuning.results
    assert result.outcome == "none" and result.text is None and not tuning.complete
    assert not keeper.kept and not lab.timed and tuning.wrong
    assert "none" in plain(result_table.section(tuning))


@pytest.mark.proof
def test_an_interruption_leaves_the_results_so_far() -> None:
    lab, keeper = FakeLab(), MemoryKeeper()

    second: list[str] = []

    def interrupt(text: str) -> None:
        if len(lab.runners) == 2:
            second.append(text)
        if len(second) > 20:
            raise KeyboardInterrupt

    lab.before = interrupt
    tuning, _, _ = tuned(*SHAPES, lab=lab, keeper=keeper)
    assert isinstance(tuning.cause, KeyboardInterrupt)
    assert [x.outcome for x in tuning.results] == ["proved", "so far", "not reached"]
    text = tuning.results[1].text
    assert text is not None and (SHAPES[1], text) in keeper.kept
    table = plain(result_table.section(tuning))
    assert "so far: the best when the search was interrupted" in table and "not reached" in table


@pytest.mark.proof
def test_a_stored_schedule_may_win() -> None:
    best = tuned(seconds=30.0)[0].results[0].text
    assert best is not None and cost(best) == LEAST
    lab = FakeLab()
    tuning, _, _ = tuned(lab=lab, keeper=MemoryKeeper((best,)), seconds=2.0)
    assert tuning.results[0].origin == "stored" and lab.timed[0] == best


def test_a_stored_schedule_that_is_wrong_now_is_dropped() -> None:
    known = format_schedule(choose(request(), measured=False).schedule)
    lab = FakeLab(wrong=lambda text: text == known)
    tuning, _, keeper = tuned(lab=lab, keeper=MemoryKeeper((known,)), seconds=1.0)
    assert keeper.dropped[0] == known and tuning.results[0].outcome == "proved"
    assert known not in [text for _, text in keeper.kept]


@pytest.mark.proof
def test_the_table_has_time_speed_share_and_origin() -> None:
    tuning, _, _ = tuned(*SHAPES[:2])
    title, header, *rows = plain(result_table.section(tuning)).splitlines()
    assert title == "tuned on an Fake GPU"
    assert header.split() == ["shape", "time", "TFLOP/s", "of", "cuBLAS", "from", "tried"]
    for row, result, shape in zip(rows, tuning.results, SHAPES, strict=False):
        assert result.ms is not None
        assert row.split()[:3] == ["x".join(map(str, shape)), f"{result.ms * 1e3:.4g}", "us"]
        assert f"{RIVAL / result.ms:.1%}" in row and result.origin in row
    found = json.loads(json.dumps(result_table.as_json(tuning)))
    assert [tuple(x["shape"]) for x in found["shapes"]] == list(SHAPES[:2])
    for one in found["shapes"]:
        assert one["outcome"] == "proved" and parse_schedule(Source(one["schedule"])).directives


def test_without_a_store_nothing_is_known_and_nothing_kept() -> None:
    keeper, wanted = NoKeeper(), request()
    keeper.keep(wanted, "text", 1.0, None)
    keeper.drop(wanted, "text", wrong=True)
    assert keeper.stored(wanted) == ()


def test_a_mistake_in_the_problem_is_suggests_error() -> None:
    with pytest.raises(UsageError, match="a leading dimension of 'Q'"):
        request(ld={"Q": 4096})
