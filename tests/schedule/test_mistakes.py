"""What a user reads: every mistake with its position, arithmetic and hint, word for word.

``mistakes.txt`` holds the cases: a name, the schedule, and all that is said about it;
``{directives}`` means all of them, in the ladder's order.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gemmgen.passes.ladder import LADDER
from gemmgen.schedule.words import LATER

from .helpers import refused

_CASES = Path(__file__).with_name("mistakes.txt").read_text(encoding="utf-8")
_DIRECTIVES = ", ".join((*(rung.SPEC.name for rung in LADDER), "fuse_epilogue"))


def _cases() -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for case in _CASES.split("=== ")[1:]:
        name, body = case.split("\n", 1)
        text, said = body.split("\n---\n")
        assert name not in found
        found[name] = (text, said.strip("\n").replace("{directives}", _DIRECTIVES))
    return found


@pytest.mark.parametrize(("text", "said"), _cases().values(), ids=_cases().keys())
def test_what_is_said(text: str, said: str) -> None:
    error = refused(text)
    assert error.render() == said
    assert error.exit_code == 2
    assert all(mistake.message and mistake.hint for mistake in error.mistakes)


def test_a_directive_of_a_later_version_is_answered() -> None:
    for word, later in LATER.items():
        (mistake,) = refused(f"{word}\n").mistakes
        assert mistake.message == f"{word} is not in this version" and mistake.hint == later.hint


def test_all_mistakes_are_reported_in_the_order_of_the_text() -> None:
    error = refused(
        "tile m=0 n=1.5\n"
        "kernel int\n"
        "cache_read A\n"
        "pad A,B by=4\n"
        "pad A\n"
        "fuse_epilogue bias[q] + foo(acc) + A[m, k]\n"
        "gemm C[m, n] = A[m, k] * B[k n]\n"
        "raster group={1, 2}\n"
    )
    places = [error.source.position(m.span.start) for m in error.mistakes if m.span]
    assert places == sorted(places)
    # Mistakes that depend on the names of a wrong gemm line are not reported.
    assert [line for line, _ in places] == [1, 1, 2, 3, 4, 5, 6, 7, 8]
    assert (error.line, error.column) == (1, 8)


def test_a_wrong_gemm_line_makes_no_further_mistakes() -> None:
    error = refused(
        "gemm S[b, i, j] = Q[b, i, d, f] * R[b, j, d, f]\n"
        "tile i=64 j=64 d=8\ncache_shared Q[d, i] R\nvectorize S width=4\n"
        "dtype Q=f32\nassume J % 4 == 0\nassume ldq == D\nbind x=i\n"
        "fuse_epilogue S[b, i, j] + bias[j] * i\n"
    )
    assert len(error.mistakes) == 1


def test_a_file_of_mistakes_is_reported_in_part() -> None:
    error = refused("oops\n" * 200)
    assert error.render().count("unknown directive") == 50
    assert error.render().endswith("150 more mistakes")
