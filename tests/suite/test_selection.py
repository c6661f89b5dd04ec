"""What the default suite leaves out, and what it may cost."""

from __future__ import annotations

import pytest
import skips
from budget import TEST, TESTS, UNSEEN, Budget


def test_what_is_taken_by_default_is_there(idle: list[str]) -> None:
    assert idle == [], "a mark by_default names parameters that no test has"


@pytest.mark.proof
def test_the_proof_is_not_run_by_default(proof: bool) -> None:
    assert proof


def test_a_default_run_has_no_test_of_the_proof(
    request: pytest.FixtureRequest, proof: bool
) -> None:
    marked = [item.nodeid for item in request.session.items if item.get_closest_marker("proof")]
    assert bool(marked) == proof, marked[:5]


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
