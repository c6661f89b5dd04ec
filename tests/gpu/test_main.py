"""``gemmgen emit --main`` on a GPU: every example's program says right, and what bench measures."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from emit.host_programs import NAMES, NVCC, cublas, example, extents, program

from gemmgen.gpu import compiler
from gemmgen.gpu.bench import Entry, bench
from gemmgen.gpu.bench_row import BenchRow
from gemmgen.gpu.launch import Kernel
from gemmgen.ir.gemm_roles import contraction
from gemmgen.proof.gpu import reference_of

pytest.importorskip("cupy")
LIBRARY = cublas()
pytestmark = [
    pytest.mark.skipif(NVCC is None, reason="nvcc is not installed"),
    pytest.mark.skipif(LIBRARY is None, reason="cuBLAS is not installed"),
]
SHAPE = (261, 133, 391)
"""About what programs are checked with: ragged, where the launcher allows it."""
TIMED = ("vectorized", "warp_tiled", "best/large_mk_kn", "mma/ahead")
"""None at the power limit, as types/f64_fast is: there clocks follow what ran before."""
NEAR = 0.03
"""By what share a program's figures may differ from those of bench."""
ALONE = "best/vector"
"""The program whose launcher refuses extents."""


Programs = Callable[[str], Path]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    """An example's program, compiled as its first lines say when it is first asked for."""
    folder = tmp_path_factory.mktemp("programs")

    @functools.cache
    def build(name: str) -> Path:
        source = folder / f"{name.replace('/', '_')}.cu"
        text = program(example(name), *SHAPE)
        source.write_text(text, encoding="utf-8")
        (arch,) = re.findall(r"^//     nvcc .* (-arch=\S+|-gencode=\S+)", text, re.MULTILINE)
        made = source.with_suffix("")
        flags = ["-std=c++17", "-O3", arch, "-Werror", "all-warnings"]
        command = ["nvcc", *flags, "-o", str(made), str(source), *(LIBRARY or ())]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + done.stdout
        return made

    return build


def said(made: Path, *extents: int) -> str:
    done = subprocess.run([made, *map(str, extents)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def benched(name: str, size: int) -> BenchRow:
    """A cube of this size, as ``gemmgen bench`` times it."""
    emitted = example(name)
    letters = contraction(emitted.interface).letters
    shape = {emitted.interface.extent(letter): size for letter in letters}
    rows = bench([Entry(name, Kernel.of(emitted), reference_of(emitted))], [shape])
    return next(row for row in rows if row.name == name)


@pytest.mark.timing
@pytest.mark.parametrize("name", TIMED)
def test_its_figures_are_those_of_bench(
    name: str, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the compiler of the program; once more where a clock changed in between."""
    monkeypatch.setenv(compiler.CHOICE, "nvcc")
    assert compiler.compiler().name.startswith("nvcc ")
    for last in (False, True):
        text, row = said(programs(name), 2048, 2048, 2048), benched(name, 2048)
        found = re.search(r"([\d.]+) ms, [\d.]+ TFLOP/s, ([\d.]+)% of cuBLAS", text)
        assert found is not None, text
        assert row.ms is not None and row.share is not None and row.checked
        apart = max(abs(float(found[1]) / row.ms - 1), abs(float(found[2]) / 100 / row.share - 1))
        if apart <= NEAR:
            return
        assert not last, (text, row.ms, row.share)


@pytest.mark.parametrize("name", NAMES)
def test_an_examples_program_finds_it_right(name: str, programs: Programs) -> None:
    for shape in ((), extents(example(name).interface, (1024, 1024, 1024)).values()):
        assert "\nright: largest error" in said(programs(name), *shape)


def test_extents_that_the_launcher_refuses_are_reported(programs: Programs) -> None:
    done = subprocess.run([programs(ALONE), "1", "100", "512"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "the kernel requires N % 128 == 0\n")
