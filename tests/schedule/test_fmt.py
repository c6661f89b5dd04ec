"""``fmt`` moves statements with their comments, and changes nothing else."""

from __future__ import annotations

import pytest

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.language import fmt_source

from .helpers import SEVEN, schedule

BEFORE = """\
# conflicts.sched
# what padding does

# four more columns
pad A by=4   # 16 bytes

fuse_epilogue relu( # the sum
    acc +
    bias[ n ]  # and the bias
)
# the block
# of threads
tile   m=128 n={64,128}\tk=8
kernel x
require threads<=256
let t = 3
gemm C[m,n] = A[m,k]*B[k,n]

# the end
"""
AFTER = """\
# conflicts.sched
# what padding does
gemm            C[m,n] = A[m,k]*B[k,n]
kernel          x
require         threads<=256
let             t = 3
# the block
# of threads
tile            m=128 n={64,128} k=8
# four more columns
pad             A by=4  # 16 bytes
# the sum
fuse_epilogue   relu(acc + bias[n])  # and the bias
# the end
"""


def formatted(text: str) -> str:
    return fmt_source(Source(text))


def test_order_alignment_and_comments() -> None:
    assert formatted(BEFORE) == AFTER


@pytest.mark.parametrize("text", [BEFORE, SEVEN, "# alone\n", "", "pad A by=4 # x\n# y"])
def test_formatting_twice_is_formatting_once(text: str) -> None:
    assert formatted(formatted(text)) == formatted(text)


def test_a_comment_above_the_first_statement_goes_with_it() -> None:
    text = "# of the pad\npad A by=4\ntile m=8 n=8"
    assert formatted(text) == "tile            m=8 n=8\n# of the pad\npad             A by=4\n"


def test_statements_of_one_word_keep_their_order() -> None:
    text = "pad B by=4\npad A by=8\n"
    assert formatted(text).split() == text.split()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("tile k=8 n=64 m=64", "tile m=64 n=64 k=8"),
        ("tile k = 8 n={64,  128} m=64", "tile m=64 n={64, 128} k = 8"),
        ("vectorize width=4 B A.global", "vectorize B A.global width=4"),
        ("split_k groups=2 reduce=ordered parts=4", "split_k parts=4 reduce=ordered groups=2"),
        ("tile k=8 depth=3 n=64 width=2 m=64", "tile m=64 n=64 k=8 depth=3 width=2"),
        ("tile k=8 n=64 n=32 m=64", "tile m=64 n=64 n=32 k=8"),
        ("gemm S[i, j] = Q[i, d] * K[j, d]\ntile d=8 j=64 i=32", "tile i=32 j=64 d=8"),
        ("gemm S[i, i] = Q[i, d] * K[j, d]\ntile d=8 j=64 i=32", "tile d=8 j=64 i=32"),
    ],
)
def test_arguments_are_in_the_order_of_the_reference(before: str, after: str) -> None:
    assert formatted(before).splitlines()[-1].split() == after.split()
    assert formatted(formatted(before)) == formatted(before)


def test_arguments_take_their_comments_along() -> None:
    text = "tile k=8 n={64, # wide\n128} m=64 # high\n"
    assert formatted(text) == "# wide\ntile            m=64 n={64, 128} k=8  # high\n"


def test_the_meaning_stays() -> None:
    assert schedule(formatted("\r\n".join(reversed(SEVEN.splitlines())))) == schedule(SEVEN)


def test_what_cannot_be_read_is_not_formatted() -> None:
    with pytest.raises(ScheduleError) as caught:
        formatted("tile m=\ncache_read A")
    assert len(caught.value.mistakes) == 2
