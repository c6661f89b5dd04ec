"""``fmt`` moves statements with their comments, and changes nothing else."""

from __future__ import annotations

import pytest

from gemmgen.errors import ScheduleError
from gemmgen.schedule.fmt import fmt_source
from gemmgen.source import Source

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


def test_the_meaning_stays() -> None:
    assert schedule(formatted("\r\n".join(reversed(SEVEN.splitlines())))) == schedule(SEVEN)


def test_what_cannot_be_read_is_not_formatted() -> None:
    with pytest.raises(ScheduleError) as caught:
        formatted("tile m=\ncache_read A")
    assert len(caught.value.mistakes) == 2
