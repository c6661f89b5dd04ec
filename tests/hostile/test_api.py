"""Arguments of ``gemmgen``'s functions that no caller means: one of gemmgen's own errors each."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
import pytest

import gemmgen
from gemmgen.base.errors import CallError, GemmgenError, ScheduleError, UsageError

TILED = gemmgen.Schedule().tile(m=32, n=32, k=8).cache_shared("A", "B")
BIASED = TILED.fuse_epilogue("acc + bias[n]")
ODD: dict[str, object] = {
    **{"None": None, "True": True, "1.5": 1.5, "nan": float("nan"), "10^5000": 10**5000},
    **{"-1": -1, "bytes": b"4x4x4", "empty": "", "a word": "oops", "two lines": "a\nb"},
    **{"no items": (), "nothing": {}, "an object": object(), "a type": np.float32},
    **{"large items": (10**5000, 1, 1), "None in items": [None], "odd keys": {"oops": None, 5: 1}},
    **{"an array": np.ones(2), "a set": {1, "a"}},
}
FUNCTIONS: dict[str, Callable[..., object]] = {
    "emit_cuda": gemmgen.emit_cuda,
    "suggest": gemmgen.suggest,
    "explain": gemmgen.explain,
    "verify": gemmgen.verify,
    "drawing": gemmgen.drawing,
    "compile": gemmgen.compile,
}
RIGHT: dict[str, dict[str, object]] = {
    "suggest": {"shape": 64},
    "explain": {"schedule": TILED, "shape": 64},
    "drawing": {"schedule": TILED, "what": "tiles"},
    "verify": {"schedule": TILED, "shapes": [object()]},
    "compile": {"schedule": TILED, "device": "cpu"},
    "emit_cuda": {"schedule": TILED},
}
"""What the other arguments are; a call of ``verify`` ends with its last one in any case."""


@pytest.mark.by_default(but=("suggest-epilogue", "explain-beta"))
@pytest.mark.parametrize(
    ("function", "argument"),
    [(name, key) for name, each in FUNCTIONS.items() for key in inspect.signature(each).parameters],
)
def test_an_odd_argument_gives_an_error_of_gemmgens_own(function: str, argument: str) -> None:
    for what, value in ODD.items():
        if (function, argument, what) == ("verify", "shapes", "no items"):
            continue  # all of the layers' own shapes
        try:
            FUNCTIONS[function](**(RIGHT[function] | {argument: value}))
        except GemmgenError as error:
            assert str(error) and len(str(error)) < 2000, what
        except Exception as error:
            raise AssertionError(f"{argument} = {what}: {error!r}") from error


@pytest.mark.parametrize("what", ODD)
def test_an_odd_value_in_a_builder_is_a_mistake(what: str) -> None:
    with pytest.raises((ScheduleError, UsageError)):
        gemmgen.emit_cuda(gemmgen.Schedule().tile(m=ODD[what], n=32))


def test_a_large_number_in_a_builder_is_out_of_range() -> None:
    for argument in ({"m": 10**5000}, {"m": -(10**5000)}):
        with pytest.raises(ScheduleError, match=r"tile m is -?[0-9]+|negative"):
            gemmgen.emit_cuda(gemmgen.Schedule().tile(n=8, **argument))


def test_a_shape_may_be_the_text_of_the_command() -> None:
    text = gemmgen.explain(TILED, shape="64x32x16").figures()
    assert text == gemmgen.explain(TILED, shape=(64, 32, 16)).figures()
    assert gemmgen.suggest(shape="512").text == gemmgen.suggest(shape=(512, 512, 512)).text
    with pytest.raises(UsageError, match="the shape lacks k"):
        gemmgen.explain(TILED, shape="m=3,n=4")
    with pytest.raises(UsageError, match=r"pass a shape as shape=\(8, 8, 8\)"):
        gemmgen.suggest((8, 8, 8))  # pyright: ignore[reportArgumentType]


A, B = np.ones((8, 4), np.float32), np.ones((4, 8), np.float32)
MASKED = np.ma.masked_array(A, mask=A > 0)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda k, _: k(MASKED, B), r"A is a masked array.*pass A.filled\(0\), or A.data"),
        (lambda k, _: k(A, B, np.ma.masked_array(np.ones((8, 8), np.float32))), "pass C.data"),
        (lambda k, _: k(A, B, alpha=np.ma.masked), "alpha is masked"),
        (lambda k, _: k(A[::-1], B), "-4 elements apart, each before the last"),
        (lambda k, _: k(np.broadcast_to(A[:1], A.shape), B), "0 elements apart, so they overlap"),
        (lambda _, k: k(A, B, np.ones(8, np.float32)), "the third by position is C, so pass bias"),
        (lambda _, k: k(A, B), "bias is missing: the kernel takes A, B, C, bias$"),
    ],
)
def test_a_call_is_refused_for_its_reason(call: Callable[..., object], said: str) -> None:
    kernels = (gemmgen.compile(each, device="cpu") for each in (TILED, BIASED))
    with pytest.raises(CallError, match=said):
        call(*kernels)


def test_the_module_lists_its_public_names() -> None:
    assert dir(gemmgen) == sorted(gemmgen.__all__)
