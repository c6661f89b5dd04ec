"""``gemmgen emit --main``: programs that compile, run, and know right from wrong.

On this machine a program runs with its launcher as emitted and a definition in place of the kernel,
beside a stand-in for cuBLAS: extents, leading dimensions and comparisons are what is tested here.
``tests/gpu/test_main.py`` runs kernels.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import subprocess
from pathlib import Path

import pytest
from chosen import with_every_word
from cli.running import ROOT, gemmgen
from stated import stated

from gemmgen.base.errors import ScheduleError
from gemmgen.base.source import Source
from gemmgen.emit.main.own_names import VARIABLES
from gemmgen.fuzz.random_schedules import schedule_at
from gemmgen.gpu import device
from gemmgen.gpu.compare import rounding_of
from gemmgen.ir.dtypes import NARROW
from gemmgen.ir.gemm_roles import contraction
from gemmgen.ir.identifiers import EMITTED
from gemmgen.pipeline import Emitted, compile_source

from .host_programs import (
    BEGIN,
    CUBLAS,
    NAMES,
    NVCC,
    cublas,
    example,
    in_namespaces,
    on_cpu,
    program,
    said_on_cpu,
)
from .mapped import MAPPED, emitted_with

STAND_IN = (
    "there is no cuBLAS: programs are compiled with a stand-in for its header, and not linked"
)

AT_ONCE = 24
"""Programs of one unit: most of a compiler's time for a program is that for the headers."""
SCALED = "alpha * acc + beta * C_at"
FORMULAS: dict[str, str] = stated("formula")
"""What the examples compute, but for those that scale."""


@functools.cache
def of(text: str) -> Emitted:
    return compile_source(Source(text, "x.sched"))


def run(
    emitted: Emitted, formula: str, folder: Path, *arguments: int, planted: str = ""
) -> tuple[int, str]:
    """The exit code of a program with the extents 7, 9, 11, and what it says."""
    flags = [f"-DPLANTED={planted}"] if planted else []
    made = on_cpu(emitted, program(emitted, 7, 9, 11), formula, folder, *flags)
    done = subprocess.run([made, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.proof
@pytest.mark.parametrize("first", range(0, len(NAMES), AT_ONCE))
def test_an_examples_program_finds_it_right(first: int, tmp_path: Path) -> None:
    names = [x for x in NAMES[first : first + AT_ONCE] if not example(x).schedule.gemm.scales]
    programs = {name: (example(name), FORMULAS.get(name, SCALED)) for name in names}
    found = said_on_cpu(programs, tmp_path)
    assert found.keys() == {*names}
    for name, (code, said) in found.items():
        assert code == 0 and "\nright: largest error" in said, f"{name}: {said}"
        operands = example(name).program.problem.a.dtype
        assert ("% of cuBLAS" in said) == (operands not in NARROW), f"{name}: {said}"
        assert "this CPU" in said


@pytest.mark.proof
def test_every_storage_order_is_cublas_own(tmp_path: Path) -> None:
    orders = itertools.product(("m, k", "k, m"), ("k, n", "n, k"), ("m, n", "n, m"))
    texts = [f"gemm C[{c}] = A[{a}] * B[{b}]\n" for a, b, c in orders]
    found = said_on_cpu({text.strip(): (of(text), SCALED) for text in texts}, tmp_path)
    assert len(found) == 8
    assert {name: said for name, (code, said) in found.items() if code != 0} == {}


OTHERS = {
    "batches with one B": ("gemm C[b, m, n] = A[b, m, k] * B[k, n]\n", SCALED),
    "batches in the middle": ("gemm C[h, m, b, n] = A[h, m, b, k] * B[b, k, n]\n", SCALED),
    "batches of rows": ("gemm C[b, h, n, m] = A[h, m, b, k] * B[b, n, k]\n", SCALED),
    "halves without a call": ("dtype A=f16 B=bf16 C=f32\n", SCALED),
    "a narrow result": ("dtype A=f32 B=f32 C=f16\nfuse_epilogue acc + v[m]\n", "acc + v_at"),
    "assumed leading dimensions": ("assume lda == K\nassume N % 4 == 0\n", SCALED),
    "one extent for two": ("assume N == K\n", SCALED),
    "beyond the greatest number": ("fuse_epilogue exp(40 * acc)\n", "std::exp(40.0f * acc)"),
    "no numbers": ("fuse_epilogue sqrt(acc)\n", "std::sqrt(acc)"),
    "C without beta": ("fuse_epilogue max(acc, C[m, n]) / 2\n", "std::fmax(acc, C_at) / 2"),
    "names of the program's types": (
        "gemm C[m, n] = Tensor[m, k] * B[k, n]\nfuse_epilogue acc + v[n] * Comparison\n",
        "acc + v_at * Comparison",
    ),
    "sums of doubles": (
        "dtype A=f64 B=f64 C=f64 acc=f64\nfuse_epilogue 0.1 * acc + clamp(acc, -1, s)\n",
        "0.1 * acc + std::fmin(std::fmax(acc, -1.0), s)",
    ),
}


@pytest.mark.proof
def test_what_no_example_has_is_found_right(tmp_path: Path) -> None:
    programs = {what: (of(text), formula) for what, (text, formula) in OTHERS.items()}
    found = said_on_cpu(programs, tmp_path)
    assert found.keys() == OTHERS.keys()
    for what, (code, said) in found.items():
        assert code == 0, f"{what}: {said}"
        assert ("cuBLAS has no call for A" in said) == (
            what in ("halves without a call", "a narrow result")
        ), f"{what}: {said}"


@pytest.mark.proof
@pytest.mark.parametrize("schedule", MAPPED)
def test_a_kernel_with_tensor_maps_is_called_like_others(schedule: str, tmp_path: Path) -> None:
    code, said = run(emitted_with(MAPPED[schedule]), SCALED, tmp_path)
    assert code == 0, said


@pytest.mark.by_default("NAN")
@pytest.mark.parametrize("planted", ("1e-4", "NAN", "INFINITY"))
def test_one_wrong_element_is_found(planted: str, tmp_path: Path) -> None:
    code, said = run(example("naive"), SCALED, tmp_path, planted=planted)
    assert code == 1 and "\nWRONG: largest error" in said, said


@pytest.mark.proof
@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("types/i8", "1"),
        ("types/i8_scaled", "1"),
        ("hopper/int8", "2"),
        ("types/e4m3", "0.01"),
        ("types/e4m3_scaled", "0.25"),
        ("types/e5m2", "8"),
        ("mma/tf32", "0.001"),
    ],
)
def test_one_wrong_element_of_other_types_is_found(name: str, planted: str, tmp_path: Path) -> None:
    """Without it they are right: a test above."""
    code, said = run(example(name), FORMULAS.get(name, SCALED), tmp_path, planted=planted)
    assert code == 1 and "\nWRONG: largest error" in said, said


def test_extents_of_the_command_line_are_checked(tmp_path: Path) -> None:
    kernel = of("assume N % 4 == 0\n")
    assert run(kernel, SCALED, tmp_path, 5, 8, 3)[0] == 0
    made = tmp_path / "run"
    for wrong in (["1"], ["1", "4", "x"], ["0", "4", "4"], ["9999999999", "4", "4"], [""] * 3):
        done = subprocess.run([made, *wrong], capture_output=True, text=True)
        assert done.returncode == 2 and "[M N K]: positive numbers, all or none" in done.stderr
    done = subprocess.run([made, "5", "6", "7"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "the kernel requires N % 4 == 0\n")


# The text.


@pytest.mark.by_default("split_k", "torch/gpt2_means", "types/f16")
@pytest.mark.parametrize("name", NAMES)
def test_it_is_tidy_and_has_no_names_but_those_that_are_kept(name: str) -> None:
    emitted = example(name)
    text = program(emitted, 1024, 1024, 1024)
    assert emitted.text in text and text.isascii() and "\n\n\n" not in text
    assert all(len(line) <= 100 and line == line.rstrip() for line in text.split("\n"))
    ours = text[text.index("int main(") :]
    declared = set(re.findall(r"[\w>*] [*&]?([A-Za-z_]\w*)(?:\(.*\))? ?(?:=|;|\{2)", ours))
    users = {param.name for param in emitted.interface.params}
    users |= {letter for param in emitted.interface.tensors for letter in param.indices}
    assert declared - users - EMITTED <= VARIABLES


@pytest.mark.proof
def test_lines_are_broken_whatever_the_epilogue_is() -> None:
    texts = (schedule_at(1, index) for index in range(50))
    for text in texts:
        try:
            emitted = compile_source(Source(text))
        except ScheduleError:
            continue
        above, _, below = program(emitted, 33, 70, 37).partition(BEGIN)
        assert emitted.text in above and below.isascii()
        assert [line for line in below.split("\n") if len(line) > 100] == []


@pytest.mark.parametrize("name", [*sorted(VARIABLES), "EIO", "LC_ALL", "NV_IS_HOST"])
def test_a_name_of_the_programs_own_is_refused_with_its_place(name: str) -> None:
    text = f"gemm {name}[m, n] = A[m, k] * B[k, n]\n"
    try:
        emitted = of(text)
    except ScheduleError:
        return  # no kernel may have it
    with pytest.raises(
        ScheduleError, match=f"the program around the kernel has its own {name}"
    ) as e:
        program(emitted, 4, 4, 4)
    assert (e.value.line, e.value.column) == (1, 6)


@pytest.mark.parametrize("name", ["host", "check", "timed"])
def test_a_name_of_one_of_its_functions_is_refused(name: str) -> None:
    """Elsewhere the kernel has it."""
    emitted = of(f"fuse_epilogue acc + {name}[n]\n")
    with pytest.raises(ScheduleError, match=f"has its own {name}") as e:
        program(emitted, 4, 4, 4)
    assert (e.value.line, e.value.column) == (1, 21)
    assert e.value.mistakes[0].hint == f"any other name will do, such as `my_{name}`"


def test_the_first_lines_say_how_it_is_compiled_and_called(tmp_path: Path) -> None:
    written = tmp_path / "race.cu"
    assert gemmgen("emit", "vectorized", "--main", "-o", written).exit_code == 0
    text = written.read_text()
    assert "//     nvcc -std=c++17 -O3 -arch=native -o race race.cu -lcublas\n" in text
    assert "//     ./race [M N K]    1024 1024 1024 without numbers\n" in text
    assert gemmgen("emit", "vectorized", "--main", "--check", written).exit_code == 0
    assert gemmgen("emit", "vectorized", "--check", written).exit_code == 1
    named = gemmgen("emit", "naive", "--main", "--name", "mine", "--shape", "256x128x64").stdout
    assert "-o run run.cu" in named and "[M N K]    256 128 64 without" in named
    assert "launch_mine(M, N, K," in named[named.index(BEGIN) :]


def test_default_extents_meet_what_the_schedule_assumes() -> None:
    text = gemmgen("emit", "-", "--main", input="assume N % 768 == 0\n").stdout
    assert "1024 1536 1024 without numbers" in text


def test_a_compiled_form_is_refused() -> None:
    result = gemmgen("emit", "naive", "--main", "--format", "ptx")
    assert result.exit_code == 2 and "--main writes CUDA C, and ptx is none" in result.stderr


# Compiled by nvcc.


def declared(name: str) -> str:
    """The target that the schedule names."""
    if name in MAPPED:
        return emitted_as(name).target
    text = (ROOT / "examples" / f"{name}.sched").read_text(encoding="utf-8")
    stated = re.search(r"^target\s+(\w+)", text, re.MULTILINE)
    return stated[1] if stated else "sm_80"


@pytest.mark.parametrize("name", ["vectorized", "mma/ahead", "hopper/fp8", "hopper/wgmma"])
def test_its_bound_is_that_of_verify(name: str) -> None:
    """Half of the difference between an accumulator and a sum in another order."""
    emitted = example(name)
    found = re.search(r"Comparison compared\{2 \* (.*) \* K / 4\}", program(emitted, 8, 8, 8))
    assert found is not None
    factors = re.sub(r"0x1p-(\d+)", r"2.0**-\1", found[1]).replace("std::", "")
    product = contraction(emitted.interface)
    for terms in (64, 1024, 65536):
        bound = eval(factors, {"max": max, "sqrt": math.sqrt, "K": terms})
        assert bound == pytest.approx(rounding_of(product, terms, "normal"), rel=0.02)


def emitted_as(name: str) -> Emitted:
    return emitted_with(MAPPED[name]) if name in MAPPED else example(name)


def unit_of(names: list[str]) -> str:
    """The programs of ``emit --main`` as one."""
    found = {name: (emitted_as(name), program(emitted_as(name), 64, 64, 64)) for name in names}
    return f"{in_namespaces(found)}int main() {{}}\n"


OWN_HOST_PARTS = ("torch/", "types/", "uses/")
BY_NVCC = (
    *MAPPED,
    *dict.fromkeys((*with_every_word(NAMES), *(n for n in NAMES if n.startswith(OWN_HOST_PARTS)))),
)
"""Examples that have every word of the language, and all with batches, epilogues and types, on
which the program around a kernel depends; g++ compiles all, above, with as many warnings."""


@pytest.mark.proof
@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
@pytest.mark.parametrize("first", range(0, len(BY_NVCC), AT_ONCE))
def test_nvcc_compiles_them_without_a_warning(first: int, tmp_path: Path) -> None:
    """To PTX, with cuBLAS's header where there is one, else with the stand-in; what ptxas says of
    kernels is a test of its own.  A message has the program's name and line."""
    there, by_target = cublas(), dict[str, list[str]]()
    for name in sorted(BY_NVCC, key=declared)[first : first + AT_ONCE]:
        by_target.setdefault(emitted_as(name).target, []).append(name)
    for target, names in by_target.items():
        (tmp_path / "run.cu").write_text(unit_of(names))
        virtual = target.replace("sm", "compute")
        flags = ["-std=c++17", f"-gencode=arch={virtual},code={virtual}", "-G"]
        flags += ["-Werror", "all-warnings"]
        link = ["-o", "run", *there] if there else [f"-I{CUBLAS}", "-c", "-o", "run.o"]
        command = [str(NVCC), *flags, "-Xcompiler", "-Wall", "run.cu", *link]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.proof
@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
def test_a_warning_in_one_of_them_is_found(tmp_path: Path) -> None:
    unit, begin = unit_of(["naive", "tiled"]), "int main(int argc, char **argv)\n{"
    right, _, wrong = unit.rpartition(begin)
    (tmp_path / "run.cu").write_text(f"{right}{begin} int unused;{wrong}")
    command = [str(NVCC), "-std=c++17", "-Werror", "all-warnings", f"-I{CUBLAS}", "-c", "run.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode != 0 and re.search(r"^tiled\.cu.*unused", done.stderr, re.MULTILINE)


@pytest.mark.proof
@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
def test_the_program_of_the_documentation_links_with_an_object(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "use.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```cpp\n(// main.cu.*?)```", page, re.DOTALL)
    (tmp_path / "main.cu").write_text(block)
    gemmgen("emit", "naive", "-o", tmp_path / "gemm.cu")
    missing = device.missing()
    for line in re.findall(r"^    (nvcc .*gemm\.o)$", page, re.MULTILINE):
        command = line.replace("native", "native" if missing is None else "sm_80").split()
        command[1:1] = ["-Werror", "all-warnings"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "main").is_file()
    if missing is None:
        subprocess.run([tmp_path / "main"], check=True)


@pytest.mark.skipif(cublas() is None, reason=STAND_IN)
def test_there_is_a_cublas_to_link_with() -> None:
    """Is skipped, with the reason, where the test above had none."""


def test_a_program_for_scales_of_blocks_is_refused() -> None:
    """cuBLAS's gemm, with which a program compares, has none."""
    done = gemmgen("emit", "hopper/fp8_blocks", "--main")
    assert done.exit_code == 2 and not done.stdout
    assert "the schedule has SA: leave --main out" in " ".join(done.stderr.split())
