"""The table that ships with gemmgen: small, current, and used without a GPU."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path

import pytest

from gemmgen.explore.results import freshness
from gemmgen.explore.results.freshness import stale
from gemmgen.explore.results.results_store import Results
from gemmgen.explore.results.shipped_table import FILE, shipped
from gemmgen.explore.suggest import suggest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from shipped_results import DATA, all_of_them

pytestmark = pytest.mark.usefixtures("shipped_too")

NT = "C[m, n] = A[m, k] * B[n, k]"


def test_it_is_small_and_has_the_shapes_that_were_measured() -> None:
    assert FILE.stat().st_size < 200_000
    shapes = {(x["gemm"], tuple(x["shape"])) for x in json.loads(DATA.read_text())["shapes"]}
    found = shipped().all()
    bf16 = {x.problem.shape for x in found if x.problem.text.endswith("A=bf16 B=bf16 C=bf16\n")}
    assert len(bf16) > 0.9 * len({shape for _, shape in shapes}) > 130
    assert {"f32", "f16", "tf32", "i8", "e4m3", "f64"} <= {
        word
        for x in found
        for word in (
            *re.findall(r"A=(\w+)", x.problem.text),
            "" if "dtype" in x.problem.text else "f32",
        )
    }
    assert {x.machine.gpu for x in found} == {"NVIDIA H200", "NVIDIA H100 80GB HBM3"}
    assert all(
        x.origin == "shipped" and 0.7 / 1.03 <= (x.vendor or 0) / x.seconds < 3 for x in found
    )


def test_a_sample_is_current() -> None:
    for result in shipped().all()[::40]:
        assert stale(result) == "", result.schedule


@pytest.mark.proof
def test_all_of_it_is_current() -> None:
    """Where the emitted text changed on purpose, measure again and write the table again:
    ``benchmarks/shipped_results.py``."""
    found = {x.schedule: x for x in shipped().all()}
    freshness._compiled.cache_clear()
    wrong = {text: why for text, result in found.items() if (why := stale(result))}
    assert len(found) > 190 and not wrong, f"{len(wrong)} of {len(found)}: {wrong}"


@pytest.mark.exhaustive
def test_it_is_what_the_script_writes() -> None:
    assert list(shipped().groups) == all_of_them()


def test_a_suggestion_for_its_gpu_uses_it_without_a_gpu() -> None:
    found = suggest(NT, 2048, dtype="bf16", gpu="H200")
    assert "shipped with gemmgen" in found.reasons[-1]
    own = suggest(NT, 2048, dtype="bf16", gpu="H100").chosen.measured
    assert own is not None and own.exact and "H100" in own.result.machine.gpu
    like = suggest(NT, 4096, dtype="f16", gpu="H100").chosen.measured
    assert like is not None and not like.exact
    assert suggest(NT, 2048, dtype="bf16", gpu="H100-PCIe").chosen.measured is None


def test_looking_up_takes_no_time() -> None:
    problem = shipped().all()[0].problem
    Results.open().nearest(problem, "H200", 3)
    begin = time.process_time()
    for _ in range(10):
        Results.open().nearest(problem, "H200", 3)
    assert (time.process_time() - begin) / 10 < 0.01
