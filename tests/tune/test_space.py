"""Points, and which of them are legal."""

from __future__ import annotations

import pytest

from gemmgen.base.errors import ScheduleError, UsageError
from gemmgen.base.source import Source
from gemmgen.explore.tune.legal_points import Legal, census, judge
from gemmgen.explore.tune.space import SearchSpace
from gemmgen.pipeline import compile_source

SHAPE = (512, 512, 512)


def space(text: str, **more: object) -> SearchSpace:
    return SearchSpace(Source(text, "x.sched"), **more)


def test_points_are_numbered_in_the_text_s_order() -> None:
    found = space("tile m={64, 128} n=64 k={8, 16, 32}\n")
    assert found.size == 6
    assert found.settings(0) == (("tile.m", 64), ("tile.k", 8))
    assert found.settings(5) == (("tile.m", 128), ("tile.k", 32))
    for number in range(6):
        assert found.number(found.settings(number)) == number
    assert found.number((("tile.m", 65), ("tile.k", 8))) is None


def test_a_let_ties_two_places() -> None:
    found = space("let t = {32, 64}\ntile m=t n=t\nregister_block m=4 n=4\n")
    assert found.size == 2
    assert "m=64 n=64" in census(found, [SHAPE]).legal[1].text


def test_some_sets_may_be_given() -> None:
    found = space("tile m={64, 128} n=64 k={8, 16}\n", given=(("tile.k", "16"),))
    assert found.size == 2
    assert found.settings(1) == (("tile.m", 128), ("tile.k", 16))


@pytest.mark.proof
def test_legal_is_what_the_compiler_takes() -> None:
    """Every point's verdict is that of a whole compilation, and a legal one's text is the point."""
    text = "tile m={48, 64} n={64, 96, 100} k={6, 8}\ncache_shared A[k, m] B\n"
    text += "register_block m={4, 5} n=4\nvectorize B.global width={1, 4}\nrequire threads <= 256\n"
    found = space(text)
    legal = 0
    for number in range(found.size):
        verdict = judge(found, number, [SHAPE])
        try:
            emitted = compile_source(Source(text), found.settings(number))
        except ScheduleError as error:
            assert verdict == error.message
        else:
            assert isinstance(verdict, Legal)
            assert compile_source(Source(verdict.text)).text == emitted.text
            legal += 1
    assert 0 < legal < found.size


def test_a_shape_that_the_kernel_does_not_take_is_a_reason() -> None:
    text = "tile m=64 n=64 k=8\ncache_shared A B\nregister_block m=4 n=4\n"
    found = census(space(text + "vectorize B width={1, 4}\n"), [(64, 63, 64)])
    assert len(found.legal) == 1
    (reason,) = found.refused
    assert reason == "the kernel does not take the shape 64x63x64: it requires ldb % 4 == 0"


def test_every_refusal_is_counted() -> None:
    found = census(space("tile m={64, 4096} n=64 k=8\ncache_shared A B\n"), [SHAPE])
    assert found.points == sum(found.refused.values()) + len(found.legal)


def test_refuses_a_file_without_sets() -> None:
    with pytest.raises(UsageError, match=r"x\.sched has no set, so there is nothing to tune"):
        space("tile m=64 n=64\n")


def test_refuses_a_space_that_takes_too_long() -> None:
    values = ", ".join(map(str, range(1, 200)))
    with pytest.raises(UsageError, match=r"7,880,599 points .* --set tile\.m=1"):
        space(f"tile m={{{values}}} n={{{values}}} k={{{values}}}\n")


@pytest.mark.parametrize(
    ("key", "value", "output"),
    [("tile.x", "1", "the sets of this file are tile.m"), ("tile.m", "3", "it has 64, 128")],
)
def test_refuses_a_setting_that_is_none(key: str, value: str, output: str) -> None:
    with pytest.raises(UsageError, match=output):
        space("tile m={64, 128} n=64\n", given=((key, value),))


def test_a_mistake_in_the_text_is_the_compiler_s() -> None:
    with pytest.raises(ScheduleError):
        space("tile m={64, 128} n=64\nno_such_word\n")
