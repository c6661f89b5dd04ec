"""The clock and the versions beside measured times."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from gemmgen.base.errors import CannotCheck
from gemmgen.gpu import nvml, setup
from gemmgen.gpu.bench_row import BenchRow, as_json, measured_on
from gemmgen.gpu.setup import Setup, described, from_json

FULL = Setup(1980, "580.95.05", "13.0", "13.1.0")


def row(about: Setup = FULL) -> BenchRow:
    shape = (("M", 64), ("N", 64), ("K", 64))
    return BenchRow("x", shape, 1.0, 1.0, 1.0, 1.0, None, None, 0.1, True, "GPU", "", about)


@pytest.mark.parametrize(("number", "text"), [(13000, "13.0"), (12080, "12.8"), (11040, "11.4")])
def test_a_number_of_the_runtime_is_a_version_of_cuda(number: int, text: str) -> None:
    assert setup.cuda_version(number) == text


@pytest.mark.parametrize(("number", "text"), [(130101, "13.1.1"), (120803, "12.8.3")])
def test_a_number_of_cublas_is_its_version(number: int, text: str) -> None:
    assert setup.library_version(number) == text


def test_rows_as_json_have_clock_and_versions_as_fields_of_their_own() -> None:
    (found,) = as_json([row()])
    assert (found["clock"], found["driver"]) == (1980, "580.95.05")
    assert (found["cuda"], found["cublas"]) == ("13.0", "13.1.0") and "setup" not in found
    assert from_json(found) == FULL


def test_rows_of_older_files_have_no_setup() -> None:
    assert from_json({"name": "x", "gpu": "GPU"}) == Setup()
    assert described([Setup(), Setup()]) == described([]) == ""


def test_rows_measured_together_are_described_once() -> None:
    slower = Setup(1755, "580.95.05", "13.0", "13.1.0")
    said = "SM clock 1755-1980 MHz, driver 580.95.05, CUDA 13.0, cuBLAS 13.1.0"
    assert described([FULL, slower, Setup()]) == said
    assert measured_on([row(), row(slower)]) == f"GPU ({said})"
    assert measured_on([row(Setup())]) == "GPU"


def test_what_cannot_be_found_out_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A driver without its management library, and no cuBLAS."""

    def no_cublas() -> int:
        raise CannotCheck("cuBLAS is not installed")

    runtime = SimpleNamespace(
        runtimeGetVersion=lambda: 13000, deviceGetPCIBusId=lambda _: "0000:01:00.0"
    )
    stub = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(setup, "cupy", lambda: stub)
    monkeypatch.setattr(nvml, "LIBRARY", "libnot-there.so")
    monkeypatch.setattr(nvml, "cupy", lambda: stub)
    monkeypatch.setattr(setup.cublas, "version", no_cublas)
    assert setup.setup(0) == Setup(cuda="13.0")
