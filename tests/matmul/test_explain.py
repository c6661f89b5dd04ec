"""``explain_matmul`` says what is copied, what is chosen, and why TMA is not used."""

from __future__ import annotations

import numpy as np
import pytest

import gemmgen

ml_dtypes = pytest.importorskip("ml_dtypes")


def ones(*shape: int, dtype: object = np.float16) -> np.ndarray:
    return np.ones(shape, dtype)


def test_the_schedule_is_that_of_suggest() -> None:
    bf16 = ml_dtypes.bfloat16
    text = gemmgen.explain_matmul(
        ones(1024, 1024, dtype=bf16), ones(1024, 1024, dtype=bf16), gpu="H200"
    )
    suggested = gemmgen.suggest("C[m, n] = A[m, k] * B[k, n]", 1024, dtype="bf16", gpu="H200")
    lines = text.splitlines()
    assert lines[0] == (
        "C[m, n] = A[m, k] * B[k, n] for m = 1024, k = 1024, n = 1024 of bfloat16 on H200."
    )
    for reason in suggested.reasons:
        assert reason.startswith("assume:") or reason in text
    directives = [x for x in suggested.text.splitlines() if x[:1] not in ("#", "")]
    assert text.split("\n\n")[1].splitlines() == [x for x in directives if "assume" not in x]


@pytest.mark.by_default("a-*")
@pytest.mark.parametrize(
    ("name", "a", "b"),
    [
        ("a", ones(512, 1031)[:, :1024], ones(1024, 512)),
        ("b", ones(512, 1024), ones(1024, 515)[:, :512]),
        ("b", ones(512, 1024), ones(512, 1027).T[:1024]),
    ],
)
def test_rows_that_tma_does_not_take(name: str, a: np.ndarray, b: np.ndarray) -> None:
    text = gemmgen.explain_matmul(a, b, gpu="H200")
    assert f"TMA is not used: rows of {name} begin" in text and "via=tma" not in text
    assert "TMA is not used" not in gemmgen.explain_matmul(a, b, gpu="A100")
    whole = gemmgen.explain_matmul(np.ascontiguousarray(a), np.ascontiguousarray(b), gpu="H200")
    assert "TMA is not used" not in whole and "via=tma" in whole


def test_an_address_that_tma_does_not_take() -> None:
    room = np.ones(512 * 1024 + 64, np.float16)
    start = -room.ctypes.data % 64 // 2 + 1
    a = room[start : start + 512 * 1024].reshape(512, 1024)
    text = gemmgen.explain_matmul(a, ones(1024, 512), gpu="H200")
    assert "TMA is not used: a begins 2 bytes past a multiple of 16." in text
    assert "The suggested kernel can't take these tensors as they are" in text


def test_copies_and_transposes_are_named() -> None:
    a, b = ones(64, 128)[::2, ::2], ones(16, 64).T
    text = gemmgen.explain_matmul(a, b, out=ones(16, 32).T)
    assert "a is copied in each call: with strides (256, 2) neither its rows nor its" in text
    assert "b is read in place, transposed: its strides are (1, 64)." in text
    assert "out is written in place, transposed: its strides are (1, 32)." in text
    assert "The CPU runs the naive kernel, compiled by g++" in text
    assert text.rstrip().endswith("dtype           A=f16 B=f16 C=f16")


@pytest.mark.proof
def test_fast_is_for_f32_on_a_gpu_with_wgmma() -> None:
    a, b = ones(2048, 2048, dtype=np.float32), ones(2048, 2048, dtype=np.float32)
    for gpu, fast, splits in (("H200", True, True), ("H200", False, False), ("A100", True, False)):
        text = gemmgen.explain_matmul(a, b, gpu=gpu, fast=fast)
        assert ("decompose       into=bf16" in text) == splits, (gpu, fast)
    half = gemmgen.explain_matmul(a.astype(np.float16), b.astype(np.float16), gpu="H200", fast=True)
    assert "decompose" not in half


def test_plain_schedules_are_explained() -> None:
    small = gemmgen.explain_matmul(
        ones(8, 8, dtype=np.float32), ones(8, 8, dtype=np.float32), gpu="H200"
    )
    assert "A plain schedule: of f32 and f64 fewer than 131072 multiply-adds" in small
    empty = gemmgen.explain_matmul(ones(8, 0), ones(0, 8), gpu="H200")
    assert "A plain schedule: an extent is 0, so nothing is multiplied." in empty


@pytest.mark.by_default("H200-float16")
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize(
    "dtype", ("float16", "bfloat16", "float32", "float64", "int8", "float8_e4m3fn")
)
@pytest.mark.parametrize("gpu", ("H200", "A100"))
def test_every_type_has_a_schedule(dtype: str, gpu: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    a, b = ones(256, 512, dtype=kind), ones(512, 256, dtype=kind)
    if dtype == "float8_e4m3fn" and gpu == "A100":
        with pytest.raises(gemmgen.ScheduleError, match="sm_80 has no e4m3 conversions"):
            gemmgen.explain_matmul(a, b, gpu=gpu)
        return
    for left, right in ((a, b), (a.reshape(512, 256).T, b.reshape(256, 512).T)):
        text = gemmgen.explain_matmul(left, right, gpu=gpu, epilogue="acc * 2")
        assert "A plain schedule" not in text


@pytest.mark.by_default("float32-A100")
@pytest.mark.parametrize("gpu", ("H200", "A100"))
@pytest.mark.parametrize("dtype", ("float16", "float32", "float64"))
def test_a_transposed_out_has_a_schedule(dtype: str, gpu: str) -> None:
    a, out = ones(256, 256, dtype=dtype), ones(256, 256, dtype=dtype).T
    text = gemmgen.explain_matmul(a, a, out=out, gpu=gpu)
    assert text.startswith("C[n, m] = A[m, k] * B[k, n]") and "A plain schedule" not in text
    small = gemmgen.explain_matmul(a[:8, :8], a[:8, :8], out=out[:8, :8], gpu=gpu)
    assert small.startswith("C[n, m] = A[m, k] * B[k, n]")


@pytest.mark.by_default("float32-8")
@pytest.mark.parametrize("size", (8, 256))
@pytest.mark.parametrize("dtype", ("float16", "float32", "float64", "int8"))
def test_a_gpu_older_than_the_default_target_has_a_schedule(dtype: str, size: int) -> None:
    a = ones(size, size, dtype=dtype)
    text = gemmgen.explain_matmul(a, a, gpu="T4", epilogue="acc * 2")
    assert "target          sm_75\n" in text and "cp_async" not in text


@pytest.mark.by_default("8")
@pytest.mark.parametrize("size", (8, 256))
def test_a_type_that_a_gpu_lacks_is_refused(size: int) -> None:
    bf16 = ones(size, size, dtype=ml_dtypes.bfloat16)
    with pytest.raises(gemmgen.ScheduleError, match="sm_75"):
        gemmgen.explain_matmul(bf16, bf16, gpu="T4")
