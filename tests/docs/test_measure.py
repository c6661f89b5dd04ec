"""What the pages say of measuring: counters, calls of cuBLAS, the documents' figures."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from gemmgen_docs import groups, measured, profiled, quoted
from gemmgen_docs.cublas import shares
from numpy.typing import NDArray

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "measure.md").read_text(encoding="utf-8")
M, N, K = 3, 4, 5
A = np.arange(M * K, dtype=float)
B = np.arange(K * N, dtype=float) ** 2 + 7
PRODUCT = A.reshape(M, K) @ B.reshape(K, N)


def stored(memory: NDArray[np.float64], ld: int, rows: int, columns: int) -> NDArray[np.float64]:
    """A matrix by columns, ``ld`` elements apart."""
    assert ld >= rows and len(memory) >= ld * (columns - 1) + rows
    return np.lib.stride_tricks.as_strided(memory, (rows, columns), (8, 8 * ld))


def sgemm(arguments: list[str], names: dict[str, object]) -> NDArray[np.float64]:
    """What ``cublasSgemm`` leaves in C, by its manual: all matrices by columns."""
    _, ta, tb, m, n, k, _, a, lda, b, ldb, _, _, ldc = (
        names.get(x.lstrip("&"), x) for x in arguments
    )
    assert isinstance(m, int) and isinstance(n, int) and isinstance(k, int)
    a = stored(a, lda, *((m, k) if ta == "CUBLAS_OP_N" else (k, m)))  # type: ignore[arg-type]
    b = stored(b, ldb, *((k, n) if tb == "CUBLAS_OP_N" else (n, k)))  # type: ignore[arg-type]
    c = np.zeros(m * n)
    left = a if ta == "CUBLAS_OP_N" else a.T
    right = b if tb == "CUBLAS_OP_N" else b.T
    stored(c, ldc, m, n)[:] = left @ right  # type: ignore[arg-type]
    return c


def calls() -> list[list[str]]:
    """The calls of cuBLAS on the page, after the one that names its arguments."""
    found = re.findall(r"^cublasSgemm\((.*)\);$", PAGE, re.M)
    return [call.split(", ") for call in found][1:]


def test_the_calls_of_cublas_are_what_the_page_says() -> None:
    swapped, by_transposes, wrong = calls()
    names = {"A": A, "B": B, "M": M, "N": N, "K": K}
    assert np.array_equal(sgemm(swapped, names).reshape(M, N), PRODUCT)
    assert np.array_equal(sgemm(by_transposes, names).reshape(N, M).T, PRODUCT)
    with pytest.raises(AssertionError):
        sgemm(wrong, {**names, "M": 5, "K": 3, "A": A})
    square = {"A": A[:9], "B": B[:9], "M": 3, "N": 3, "K": 3}
    a, b = A[:9].reshape(3, 3), B[:9].reshape(3, 3)
    assert np.array_equal(sgemm(swapped, square).reshape(3, 3), a @ b)
    assert np.array_equal(sgemm(wrong, square).reshape(3, 3), b @ a)


@pytest.mark.parametrize("extents", ["2048", "4096"])
def test_one_storage_order_is_the_fastest_of_both(extents: str) -> None:
    (row,) = (
        [line for line in row if line]
        for row in shares.grid(shares.read()).rows
        if next(line for line in row if line).spelled() == extents
    )
    for speed in (shares.Line.tflops, shares.Line.rival):
        assert max(row, key=speed).storage() == "A[k, m] B[k, n]"


@pytest.mark.proof
def test_a_gpu_counts_what_the_page_compares_with_it() -> None:
    for name in profiled.VERSIONS:
        theirs = profiled.measured()["kernels"][f"versions/{name}"]
        for key, ours in profiled.explained(f"versions/{name}").items():
            assert ours == pytest.approx(theirs[key], rel=0.1), (name, key)


def test_what_is_said_of_the_six_versions_is_what_was_counted() -> None:
    found = {name: profiled.measured()["kernels"][f"versions/{name}"] for name in profiled.VERSIONS}
    sectors, reads = "global read sectors", "shared read wavefronts"
    assert found["v1"][sectors] == 20 * found["v2"][sectors]
    for one, next_one in (("v2", "v3"), ("v3", "v4")):
        assert found[one][reads] == pytest.approx(2 * found[next_one][reads], rel=0.01)
    for other in ("v3", "v6_corrected"):
        assert found["v5"][reads] == pytest.approx(found[other][reads], rel=0.01)
    stores = "shared write wavefronts"
    assert found["v6_corrected"][stores] == pytest.approx(1.5 * found["v5"][stores], rel=0.02)


def test_the_pad_of_version_six_gains_nothing() -> None:
    ms = {row["name"]: row["ms"] for row in groups.rows(groups.VERSIONS) if "error" not in row}
    assert ms["v6_corrected"] >= 0.99 * ms["v5"]
    assert ms["v4"] < ms["v5"] < ms["v3"] < ms["v2"] < ms["v1"]


def test_the_command_asks_for_every_counter() -> None:
    for metric in profiled.measured()["metrics"].values():
        assert metric in profiled.command("naive") and metric in profiled.metrics()


def test_times_and_speeds_of_a_document_agree() -> None:
    for one in quoted.figures():
        if one.gflops is not None and one.size is not None:
            assert 2 * one.size**3 / one.ms / 1e6 == pytest.approx(one.gflops, rel=0.01), one


def test_the_peak_that_the_errata_name_is_that_of_the_gpu() -> None:
    one = next(x for x in quoted.figures() if x.gflops == 6920)
    assert f"{one.of_peak():.0%}" == "23%"


def test_a_group_is_shown_as_far_as_it_was_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "DATA", tmp_path)
    assert groups.timed(groups.VERSIONS) == groups.timed(groups.SIZES) == ""
    row = {"shape": {"M": 2048, "N": 2048, "K": 2048}, "ms": 0.5, "tflops": 4.25, "share": 0.125}
    row |= {"name": "v1", "gpu": "NVIDIA H200", "checked": True}
    library = {**row, "name": "cuBLAS A[m,k] B[k,n] C[m,n]", "share": 1.0}
    refused = {"name": "v7", "error": "pad B by=1"}
    (tmp_path / "versions.json").write_text(json.dumps([library, row, refused]))
    small = {**row, "name": "small"}
    other = {**small, "shape": {"M": 256, "N": 256, "K": 256}, "share": 0.5}
    left_out = {**small, "name": "large", "ms": None}
    (tmp_path / "sizes.json").write_text(json.dumps([small, other, left_out]))
    assert "| v1 | 0.500 | 4.25 | 12.5% |" in groups.timed(groups.VERSIONS)
    assert "| cuBLAS A[m,k] B[k,n] C[m,n] | 0.500 | 4.25 | 100.0% |" in groups.timed(
        groups.VERSIONS
    )
    assert "Refused: v7 (pad B by=1)." in groups.timed(groups.VERSIONS)
    assert "| v6 | not measured yet |" in groups.timed(groups.VERSIONS)
    table = groups.timed(groups.SIZES)
    assert "of cuBLAS, 256 | of cuBLAS, 2048" in table and "| small | 50.0% | 12.5% |" in table
    assert "| large | not measured yet |" in table
