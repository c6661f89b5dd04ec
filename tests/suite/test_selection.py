"""What the default suite and the proof leave out, and what the default suite may cost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import levels
import pytest
import skips
from budget import TEST, TESTS, UNSEEN, Budget


def test_what_is_taken_by_default_is_there(idle: list[str]) -> None:
    assert idle == [], "a mark names parameters that no test has, or leaves out none"


@pytest.mark.proof
def test_the_proof_is_not_run_by_default(proof: bool) -> None:
    assert proof


def test_a_default_run_has_no_test_of_the_proof(
    request: pytest.FixtureRequest, proof: bool
) -> None:
    marked = [item.nodeid for item in request.session.items if item.get_closest_marker("proof")]
    assert bool(marked) == proof, marked[:5]


def test_a_proof_has_no_exhaustive_test(request: pytest.FixtureRequest, exhaustive: bool) -> None:
    marked = [i.nodeid for i in request.session.items if i.get_closest_marker("exhaustive")]
    assert exhaustive or not marked, marked[:5]


def collected(*names: str, mark: pytest.MarkDecorator) -> list[pytest.Item]:
    """Tests of one function, by their parameters."""

    def closest(name: str) -> pytest.Mark | None:
        return mark.mark if name == mark.mark.name else None

    ids = (f"test_x[{name}]" for name in names)
    found = (SimpleNamespace(name=i, nodeid=i, get_closest_marker=closest) for i in ids)
    return [cast(pytest.Item, each) for each in found]


def test_the_proof_has_the_first_a_share_and_what_is_named() -> None:
    names = tuple(map(str, range(30)))
    items = collected(*names, mark=pytest.mark.in_proof("17", share=3))
    taken = [levels.parameters(i) for i in items if i not in levels.left_over(items)]
    assert {"0", "17"} <= {*taken} and len(taken) in (10, 11)
    assert taken != list(names[: len(taken)])  # neighbors are alike
    first, *_ = items
    assert levels.left_over([first]) == []
    named = collected(*names, mark=pytest.mark.in_proof("1*"))
    assert len(levels.left_over(named)) == 30 - 11
    assert len(levels.left_over(collected(*names, mark=pytest.mark.in_proof(but=("1*",))))) == 11


def test_what_is_skipped_is_reported_by_its_reason() -> None:
    def report(reason: str) -> pytest.TestReport:
        place = ("tests/test_x.py", 7, f"Skipped: {reason}")
        return pytest.TestReport("x", ("x", 7, "x"), {}, "skipped", place, "setup")

    found = [report("no GPU"), report("mkdocs is not installed"), report("no GPU")]
    assert skips.message(found) == ["2 skipped: no GPU", "1 skipped: mkdocs is not installed"]


def budget(**took: float) -> Budget:
    return Budget(samples=[1.0, 3.0], took=took)


def test_what_is_over_budget_is_reported() -> None:
    """Seconds count by the mean of the machine's slowness, 2 here."""
    assert budget(quick=2 * TEST - 0.1).over(whole=True) == []
    (line,) = budget(slow=2 * TEST + 0.4, quick=1.0).over(whole=True)
    assert "slow" in line and "more than" in line
    many = {f"n{i}": 2 * TEST - 1 for i in range(int(UNSEEN * TESTS / TEST) + 20)}
    assert budget(**many).over(whole=True)[0].startswith("too much in all")
    assert budget(**many, slow=1000.0).over(whole=False) == []
