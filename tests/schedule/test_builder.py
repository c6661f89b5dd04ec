"""The builder says in Python what a file says in text."""

from __future__ import annotations

import copy
import pickle

import pytest

from gemmgen.api.builder import Schedule
from gemmgen.base.errors import ScheduleError, UsageError

from .helpers import SEVEN, schedule

SEVEN_CALLS = (
    Schedule("C[m,n] = A[m,k] * B[k,n]")
    .tile(m=128, n=128, k=8)
    .cache_shared("A[k,m]", "B")
    .register_block(m=8, n=8)
    .vectorize("A", "B", "C", width=4)
    .pad("A", by=4)
    .double_buffer("A", "B")
    .fuse_epilogue("relu(acc + bias[n])")
)


def test_the_text_is_that_of_the_calls() -> None:
    assert str(SEVEN_CALLS) == (
        "gemm            C[m,n] = A[m,k] * B[k,n]\n"
        "tile            m=128 n=128 k=8\n"
        "cache_shared    A[k,m] B\n"
        "register_block  m=8 n=8\n"
        "vectorize       A B C width=4\n"
        "pad             A by=4\n"
        "double_buffer   A B\n"
        "fuse_epilogue   relu(acc + bias[n])\n"
    )


def test_the_schedule_is_that_of_the_file() -> None:
    assert SEVEN_CALLS.build() == schedule(SEVEN)


def test_a_call_leaves_the_builder_as_it_was() -> None:
    first = Schedule().tile(m=8, n=8)
    first.pad("A", by=4)
    assert first.text() == "tile            m=8 n=8\n"


def test_heads_and_sets() -> None:
    built = (
        Schedule()
        .kernel("my_gemm")
        .target("sm_90a")
        .dtype(A="f32")
        .assume("N % 4 == 0")
        .require("shared <= 48KiB")
        .let(t={128, 64})
        .tile(m="t", n="t", k=[16, 8])
    )
    assert built.text().splitlines()[-2:] == [
        "let             t = {64, 128}",
        "tile            m=t n=t k={16, 8}",
    ]
    assert built.build((("t", 64), ("tile.k", 8))) == schedule(
        "kernel my_gemm\ntarget sm_90a\nassume N % 4 == 0\nrequire shared <= 48KiB\n"
        "tile m=64 n=64 k=8"
    )


def test_mistakes_have_places_in_the_printed_text() -> None:
    with pytest.raises(ScheduleError) as caught:
        Schedule().tile(m=8, n=8).vectorize("A", widht=4).build()
    assert (caught.value.line, caught.value.column) == (2, 19)


@pytest.mark.parametrize(
    "call",
    [
        lambda: Schedule("C[m,n] = A[m,k] * B[k,n]\nkernel x"),
        lambda: Schedule().tile("m=8\nkernel x"),
        lambda: Schedule().tile(m="8\rkernel x"),
        lambda: Schedule().tile(m="8\u2028kernel x"),
        lambda: Schedule().pad("A # B", by=4),
        lambda: Schedule().tile(m=True, n=8),
        lambda: Schedule().tile(m=1.5, n=8),
        lambda: Schedule().tile(8),
    ],
)
def test_a_word_stays_on_its_line(call) -> None:
    with pytest.raises(UsageError):
        call()


def test_an_unknown_directive_is_answered() -> None:
    with pytest.raises(AttributeError, match="did you mean `cache_shared`"):
        Schedule().cache_read("A")


def test_builders_are_values() -> None:
    assert copy.deepcopy(SEVEN_CALLS) == SEVEN_CALLS == pickle.loads(pickle.dumps(SEVEN_CALLS))
    assert len({SEVEN_CALLS, SEVEN_CALLS.pad("B", by=4)}) == 2
