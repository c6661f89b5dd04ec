"""``gemmgen.matmul`` and ``linear`` of NumPy arrays against NumPy's own product."""

from __future__ import annotations

import doctest
import importlib
from itertools import product

import numpy as np
import pytest

import gemmgen

from .samples import EMPTY, SHAPES, drawn, orders

ml_dtypes = pytest.importorskip("ml_dtypes")

TYPES = ("float16", "float32", "float64", "int8", "bfloat16", "float8_e4m3fn", "float8_e5m2")


def kind(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def equal(found: np.ndarray, wanted: np.ndarray) -> None:
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_array_equal(np.asarray(found, np.float64), np.asarray(wanted, np.float64))


@pytest.mark.by_default(but=("((2, 2, *", "((2, 3, 2, *", "((6, *"))
@pytest.mark.parametrize("shapes", SHAPES + EMPTY, ids=str)
def test_shapes_are_those_of_numpy(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (drawn(shape) for shape in shapes)
    equal(gemmgen.matmul(a, b), a @ b)
    assert type(gemmgen.matmul(a, b)) is type(a @ b)  # a scalar for two vectors


@pytest.mark.parametrize(
    ("left", "right"), [*product(orders(drawn((6, 8))), orders(drawn((8, 10))))]
)
def test_any_storage_order_is_taken(left: str, right: str) -> None:
    a, b = orders(drawn((6, 8)))[left], orders(drawn((8, 10)))[right]
    before = a.copy(), b.copy()
    equal(gemmgen.matmul(a, b), before[0] @ before[1])
    assert (a == before[0]).all() and (b == before[1]).all()


def test_batches_of_any_strides_are_taken() -> None:
    heads = drawn((2, 5, 3, 4))  # batch, position, head, channel
    q = heads.transpose(0, 2, 1, 3)
    equal(gemmgen.matmul(q, q.swapaxes(-1, -2)), q @ q.swapaxes(-1, -2))
    one = np.broadcast_to(drawn((5, 4)), (2, 3, 5, 4))
    equal(gemmgen.matmul(one, q.swapaxes(-1, -2)), one @ q.swapaxes(-1, -2))
    equal(gemmgen.matmul(heads[::-1], drawn((4, 6))), heads[::-1] @ drawn((4, 6)))


@pytest.mark.by_default("float16", "float32", "int8", "bfloat16")
@pytest.mark.parametrize("name", TYPES)
def test_the_result_has_the_type_of_the_inputs(name: str) -> None:
    a, b = drawn((5, 16), kind(name)), drawn((16, 8), kind(name))
    found = gemmgen.matmul(a, b)
    wanted = {"int8": "int32", "float8_e4m3fn": "float32", "float8_e5m2": "float32"}
    assert found.dtype == kind(wanted.get(name, name))
    equal(found, a.astype(np.float64) @ b.astype(np.float64))


def test_the_types_of_fp8_are_mixed() -> None:
    a, b = drawn((5, 16), kind("float8_e4m3fn")), drawn((16, 8), kind("float8_e5m2"))
    found = gemmgen.matmul(a, b)
    assert found.dtype == np.float32
    equal(found, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.by_default(
    "float16-float32", "float32-float16", "bfloat16-float8_e5m2", "int32-*", "float64-*"
)
@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("stored", ("float32", "float16", "bfloat16", "int32", "float64"))
def test_an_out_of_another_type(name: str, stored: str) -> None:
    a, b = drawn((5, 16), kind(name)), drawn((16, 8), kind(name))
    out = np.full((5, 8), 77, kind(stored))
    allowed = {"int8": ("int32", "float32"), "float64": ("float64",)}
    if stored not in allowed.get(name, ("float32", "float16", "bfloat16")):
        with pytest.raises(gemmgen.CallError, match=f"out is {stored}, and a product of {name}"):
            gemmgen.matmul(a, b, out=out)
        assert (out == 77).all()
        return
    assert gemmgen.matmul(a, b, out=out) is out
    equal(out, a.astype(np.float64) @ b.astype(np.float64))


@pytest.mark.parametrize("order", ("rows", "columns", "slice", "columns of a slice"))
def test_out_is_written_in_place(order: str) -> None:
    a, b = drawn((6, 8)), drawn((8, 10))
    out = orders(np.full((6, 10), 5, np.float32))[order]
    base = out if out.base is None else out.base
    around = base.copy()
    assert gemmgen.matmul(a, b, out=out) is out
    equal(out, a @ b)
    out[...] = 5
    equal(base, around)  # nothing beside it was written


@pytest.mark.parametrize("shapes", [*SHAPES, *EMPTY], ids=str)
def test_out_of_every_shape(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (drawn(shape) for shape in shapes)
    out = np.full(np.shape(a @ b), 5, np.float32)
    assert gemmgen.matmul(a, b, out=out) is out
    equal(out, a @ b)


def test_batches_of_an_out_may_lie_apart() -> None:
    a, b = drawn((2, 3, 4)), drawn((4, 5))
    whole = np.zeros((4, 3, 5), np.float32)
    gemmgen.matmul(a, b, out=whole[::2])
    equal(whole[::2], a @ b)
    assert not whole[1::2].any()
    rows = np.zeros((3, 2, 5), np.float32)
    gemmgen.matmul(a, b, out=rows.transpose(1, 0, 2))
    equal(rows.transpose(1, 0, 2), a @ b)


def test_bias_is_added_along_n() -> None:
    bias = drawn((5,), seed=1)
    for shapes in SHAPES:
        a, b = (drawn(shape) for shape in shapes)
        own = bias[: b.shape[-1] if b.ndim > 1 else 1]
        wanted = a @ b + (own if b.ndim > 1 else own[0])
        equal(gemmgen.matmul(a, b, bias=own), wanted)


def test_an_epilogue_has_values_by_name() -> None:
    a, b, r = drawn((3, 4)), drawn((4, 5)), drawn((3, 5), seed=2)
    bias = drawn((5,), seed=1)
    text = "relu(scale * acc + bias[n]) + r[m, n]"
    given = {"scale": 2.0, "r": r, "bias": bias}
    wanted = np.maximum(2 * (a @ b) + bias, 0) + r
    equal(gemmgen.matmul(a, b, epilogue=(text, given)), wanted)
    del given["bias"]
    equal(gemmgen.matmul(a, b, bias=bias, epilogue=(text, given)), wanted)
    equal(gemmgen.matmul(a, b, epilogue=("alpha * acc", {"alpha": np.float64(3)})), 3 * (a @ b))
    equal(gemmgen.matmul(a, b, epilogue="where(n <= m, acc, 0)"), np.tril(a @ b))


def test_a_number_by_name_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = drawn((3, 4)), drawn((4, 5))
    text = "acc * own_scale"
    gemmgen.matmul(a, b, epilogue=(text, {"own_scale": 1.0}))

    def chosen(*_: object) -> None:
        raise AssertionError("a kernel is chosen again")

    monkeypatch.setattr("gemmgen.functions.direct.choose", chosen)
    equal(gemmgen.matmul(a, b, epilogue=(text, {"own_scale": 3.0})), 3 * (a @ b))


@pytest.mark.proof
def test_letters_of_batches_keep_their_meaning() -> None:
    """Dimensions that an epilogue names are not merged, and rows are those of one matrix."""
    a, b = drawn((2, 3, 4)), drawn((4, 5))
    scale, r = drawn((2,), seed=1), drawn((2, 3, 5), seed=2)
    wanted = (a @ b) * scale[:, None, None] + r
    given = {"scale": scale, "r": r}
    equal(gemmgen.matmul(a, b, epilogue=("acc * scale[b1] + r[b1, m, n]", given)), wanted)
    rows = gemmgen.matmul(a, b, epilogue="acc + m")
    equal(rows, a @ b + np.arange(3)[:, None])
    one = gemmgen.matmul(drawn((1, 3, 4)), b, epilogue=("acc * s[b1]", {"s": scale[:1]}))
    equal(one, (drawn((1, 3, 4)) @ b) * scale[0])


def test_an_epilogue_reads_the_old_result() -> None:
    a, b = drawn((3, 4)), drawn((4, 5))
    for text in ("acc + beta * C[m, n]", "acc + C[m, n] * 2"):
        out = drawn((3, 5), seed=3)
        wanted = a @ b + out * (2 if "2" in text else 1)
        given = (text, {"beta": 1.0}) if "beta" in text else text
        assert gemmgen.matmul(a, b, epilogue=given, out=out) is out
        equal(out, wanted)
    with pytest.raises(gemmgen.CallError, match="reads C, the old result: pass it as out="):
        gemmgen.matmul(a, b, epilogue="acc + C[m, n]")


def test_epilogues_of_integers() -> None:
    a, b = drawn((3, 4), np.int8), drawn((4, 5), np.int8)
    bias = np.arange(5, dtype=np.int32)
    found = gemmgen.matmul(a, b, bias=bias)
    assert found.dtype == np.int32
    equal(found, a.astype(np.int32) @ b + bias)


@pytest.mark.parametrize("name", ("float32", "bfloat16"))
def test_the_bias_has_a_type_of_its_own(name: str) -> None:
    a, b = drawn((3, 16), kind("bfloat16")), drawn((16, 8), kind("bfloat16"))
    bias = np.arange(8).astype(kind(name))
    found = gemmgen.matmul(a, b, bias=bias)
    assert found.dtype == kind("bfloat16")
    wanted = a.astype(np.float32) @ b.astype(np.float32) + bias.astype(np.float32)
    equal(found, wanted.astype(kind("bfloat16")))


def test_linear_takes_a_weight_of_rows() -> None:
    for shape in ((4,), (3, 4), (2, 3, 4), (0, 4)):
        for weight in (drawn((5, 4)), drawn((1, 4)), drawn((4, 5)).T, drawn((4,))):
            x, bias = drawn(shape), drawn(weight.shape[:-1] or (1,), seed=1)
            wanted = x @ weight.T
            equal(gemmgen.linear(x, weight), wanted)
            equal(gemmgen.linear(x, weight, bias), wanted + (bias if weight.ndim > 1 else bias[0]))
    x, weight, bias = drawn((3, 4)), drawn((5, 4)), drawn((5,), seed=1)
    wanted = np.maximum(x @ weight.T + bias, 0)
    equal(gemmgen.linear(x, weight, bias, epilogue="relu(acc + bias[n])"), wanted)
    out = np.zeros((3, 5), np.float32)
    assert gemmgen.linear(x, weight, bias, epilogue="relu(acc + bias[n])", out=out) is out
    equal(out, wanted)


def test_fast_has_no_effect_on_the_cpu() -> None:
    a, b = drawn((3, 4)), drawn((4, 5))
    equal(gemmgen.matmul(a, b, fast=True), a @ b)
    equal(gemmgen.matmul(a.astype(np.float16), b.astype(np.float16), fast=True), a @ b)


@pytest.mark.proof
def test_the_examples_of_docstrings_run() -> None:
    for name in ("product", "explanation"):
        module = importlib.import_module(f"gemmgen.functions.{name}")
        found = doctest.testmod(module)
        assert found.attempted and not found.failed
