"""CuPy arrays, with a module like CuPy over host memory, whose kernels g++ compiles."""

from __future__ import annotations

import numpy as np
import pytest

import gemmgen
from gemmgen.functions import cupy_calls, direct

from .fakes import FakeArray, FakeCupy
from .samples import SHAPES, drawn, orders

ml_dtypes = pytest.importorskip("ml_dtypes")


def equal(found: FakeArray, wanted: np.ndarray) -> None:
    assert type(found) is FakeArray and found.shape == wanted.shape
    np.testing.assert_array_equal(found.host.astype(np.float64), wanted.astype(np.float64))


@pytest.mark.by_default(but=("((2, 2, *", "((2, 3, 2, *", "((6, *", "((3, 4), (4,))"))
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_the_second_call_of_a_shape_only_launches(cupy: FakeCupy, shapes: tuple) -> None:
    for seed in range(3):
        a, b = (drawn(shape, seed=seed) for shape in shapes)
        equal(gemmgen.matmul(cupy.on(a), cupy.on(b)), np.asarray(a @ b))
    assert cupy.calls == ["call", "launch", "launch"]


@pytest.mark.by_default("float64")
@pytest.mark.parametrize("name", ("float16", "float64", "int8", "bfloat16", "float8_e4m3fn"))
def test_launches_of_every_type(cupy: FakeCupy, name: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, name, name))
    for seed in range(2):
        a, b = (drawn(shape, kind, seed) for shape in ((5, 16), (16, 8)))
        found = gemmgen.matmul(cupy.on(a), cupy.on(b))
        wanted = {"int8": "int32", "float8_e4m3fn": "float32"}.get(name, name)
        assert found.dtype == np.dtype(getattr(ml_dtypes, wanted, wanted))
        equal(found, a.astype(np.float64) @ b.astype(np.float64))
    assert cupy.calls == ["call", "launch"]


@pytest.mark.parametrize("left", orders(drawn((8, 8))))
@pytest.mark.parametrize("right", ("rows", "columns", "apart"))
def test_any_storage_order_is_taken(cupy: FakeCupy, left: str, right: str) -> None:
    for seed in range(2):
        a, b = orders(drawn((8, 8), seed=seed))[left], orders(drawn((8, 12), seed=seed))[right]
        given = [FakeArray(of=x) for x in (a, b)]
        equal(gemmgen.matmul(*given), a @ b)


def test_a_copy_is_made_in_each_call(cupy: FakeCupy) -> None:
    for seed in range(2):
        whole = cupy.on(drawn((8, 32), seed=seed))
        a, b = FakeArray(of=whole.host[:, ::2]), cupy.on(drawn((16, 12), seed=seed))
        equal(gemmgen.matmul(a, b), a.host @ b.host)
    assert cupy.calls == ["call", "call"]


def test_bias_and_epilogue_are_part_of_a_launch(cupy: FakeCupy) -> None:
    for seed in range(2):
        a, b, bias = (drawn(x, seed=seed) for x in ((3, 4), (4, 5), (5,)))
        given = [cupy.on(x) for x in (a, b, bias)]
        equal(gemmgen.matmul(*given[:2], bias=given[2]), a @ b + bias)
        text = "relu(acc + bias[n])"
        found = gemmgen.matmul(*given[:2], bias=given[2], epilogue=text)
        equal(found, np.maximum(a @ b + bias, 0))
        equal(gemmgen.matmul(*given[:2], epilogue="acc * 2"), 2 * (a @ b))
        weight = cupy.on(np.ascontiguousarray(b.T))
        equal(gemmgen.linear(given[0], weight, given[2]), a @ b + bias)
        number = {"scale": float(seed)}
        equal(gemmgen.matmul(*given[:2], epilogue=("acc * scale", number)), seed * (a @ b))
        out = cupy.on(np.zeros((3, 5), np.float32))
        assert gemmgen.matmul(*given[:2], out=out) is out
        equal(out, a @ b)
    assert cupy.calls == ["call"] * 6 + ["launch"] * 4 + ["call", "launch"]


def test_square_weights_are_not_mistaken_for_factors(cupy: FakeCupy) -> None:
    a, b = drawn((4, 4)), drawn((4, 4), seed=1)
    for _ in range(2):
        equal(gemmgen.matmul(cupy.on(a), cupy.on(b)), a @ b)
        equal(gemmgen.linear(cupy.on(a), cupy.on(b)), a @ b.T)
        equal(gemmgen.matmul(cupy.on(a), cupy.on(b), fast=True), a @ b)


def test_a_less_aligned_array_takes_another_look(cupy: FakeCupy) -> None:
    a, b = drawn((8, 16)), drawn((16, 12))
    equal(gemmgen.matmul(cupy.on(a), cupy.on(b)), a @ b)
    whole = cupy.on(np.zeros(a.size + 1, np.float32))
    whole.host[1:] = a.ravel()
    shifted = FakeArray(of=whole.host[1:].reshape(a.shape))
    equal(gemmgen.matmul(shifted, cupy.on(b)), a @ b)
    equal(gemmgen.matmul(cupy.on(a), cupy.on(b)), a @ b)
    assert cupy.calls == ["call", "call", "launch"]


def test_another_current_gpu_is_left_to_the_slow_path(cupy: FakeCupy) -> None:
    a, b = cupy.on(drawn((3, 4))), cupy.on(drawn((4, 5)))
    gemmgen.matmul(a, b)
    cupy.current = 1
    gemmgen.matmul(a, b)
    assert cupy.calls == ["call", "call"]


def test_mixed_kinds_of_arrays_are_refused(cupy: FakeCupy) -> None:
    a, b = drawn((3, 4)), drawn((4, 5))
    for left, right, message in (
        (cupy.on(a), b, r"a is a CuPy array and b is a NumPy array: .* cupy.asarray\(b\) say"),
        (a, cupy.on(b), r"a is a NumPy array and b is a CuPy array: .* numpy.asarray\(b\) say"),
    ):
        for _ in range(2):
            with pytest.raises(gemmgen.CallError, match=message):
                gemmgen.matmul(left, right)
    gemmgen.matmul(cupy.on(a), cupy.on(b))
    with pytest.raises(gemmgen.CallError, match="a is a CuPy array and bias is a NumPy array"):
        gemmgen.matmul(cupy.on(a), cupy.on(b), bias=drawn((5,)))
    with pytest.raises(gemmgen.CallError, match="a is a CuPy array and out is a NumPy array"):
        gemmgen.matmul(cupy.on(a), cupy.on(b), out=a @ b)


def test_launches_and_kernels_are_bounded(cupy: FakeCupy) -> None:
    for m in range(1, 100):
        a, b = drawn((m, 4)), drawn((4, 5))
        equal(gemmgen.matmul(cupy.on(a), cupy.on(b)), a @ b)
    assert len(cupy_calls._ready) == 64
    # All of these shapes are small, and share one plain kernel.
    assert all(len(kernels) <= direct._KERNELS for kernels in direct._kernels._entries.values())


@pytest.mark.by_default(but=("float16-slice", "float16-columns"))
@pytest.mark.parametrize("order", ("rows", "columns", "slice", "columns of a slice"))
@pytest.mark.parametrize("name", ("float32", "float16"))
def test_out_is_written_in_place(cupy: FakeCupy, order: str, name: str) -> None:
    for seed in range(2):
        a, b = (cupy.on(drawn(shape, name, seed)) for shape in ((16, 8), (8, 24)))
        whole = orders(np.full((16, 24), 5, name))[order]
        out = FakeArray(of=whole)
        assert gemmgen.matmul(a, b, out=out) is out
        equal(out, a.host.astype(np.float64) @ b.host)
        whole[...] = 5
        assert set(np.unique(whole if whole.base is None else whole.base)) <= {0, 5}


def test_an_out_that_overlaps_is_refused(cupy: FakeCupy) -> None:
    a, b, out = (cupy.on(drawn((4, 4), seed=seed)) for seed in range(3))
    for _ in range(2):
        with pytest.raises(gemmgen.CallError, match=r"C overlaps A .*\(A is a, B is b, C is out\)"):
            gemmgen.matmul(a, b, out=a)
        equal(gemmgen.matmul(a, b, out=out), a.host @ b.host)  # a call like it is known then
    with pytest.raises(gemmgen.CallError, match="C overlaps B"):
        gemmgen.matmul(a, b, out=b)


def test_an_out_between_the_columns_of_an_operand_is_checked_in_full(cupy: FakeCupy) -> None:
    for seed in range(3):
        whole = np.zeros((4, 12), np.float32)
        whole[:, :4] = drawn((4, 4), seed=seed)
        a, b, out = (FakeArray(of=whole[:, at : at + 4]) for at in (0, 4, 8))
        b.host[...] = drawn((4, 4), seed=seed + 9)
        equal(gemmgen.matmul(a, b, out=out), a.host @ b.host)
    assert cupy.calls == ["call"] * 3


def test_an_old_value_is_read_in_a_launch(cupy: FakeCupy) -> None:
    for seed in range(3):
        a, b, c = (drawn(x, seed=seed) for x in ((3, 4), (4, 5), (3, 5)))
        out = cupy.on(c)
        given = cupy.on(a), cupy.on(b)
        equal(gemmgen.matmul(*given, epilogue="acc + 2 * C[m, n]", out=out), a @ b + 2 * c)
    assert cupy.calls == ["call", "launch", "launch"]


def test_a_less_aligned_out_is_checked_in_full(cupy: FakeCupy) -> None:
    a, b = cupy.on(drawn((3, 4))), cupy.on(drawn((4, 5)))
    room = np.zeros(64, np.float32)
    start = -room.ctypes.data % 64 // 4
    for at, calls in ((0, ["call"]), (0, ["launch"]), (1, ["call"]), (4, ["launch"])):
        cupy.calls.clear()
        out = FakeArray(of=room[start + at : start + at + 15].reshape(3, 5))
        equal(gemmgen.matmul(a, b, out=out), a.host @ b.host)
        assert cupy.calls == calls


@pytest.mark.proof
def test_strides_types_and_the_bias_tell_calls_apart(cupy: FakeCupy) -> None:
    """All of these have the same shapes, alternately."""
    for seed in range(2):
        for name in ("float32", "float16"):
            a, b = (orders(drawn((8, 8), name, seed + at)) for at in range(2))
            for x, y in ((x, y) for x in a for y in b if "rows" in (x, y)):
                bias = drawn((16,), name, seed)
                for own in (bias[:8], bias[::2]):
                    given = FakeArray(of=a[x]), FakeArray(of=b[y]), FakeArray(of=own)
                    wanted = a["rows"].astype(np.float64) @ b["rows"]
                    equal(gemmgen.matmul(*given[:2]), wanted)
                    equal(gemmgen.matmul(*given[:2], bias=given[2]), wanted + own)
    assert "launch" in cupy.calls
