"""``emit --types cuda`` and ``emit --header``: what C++ with CUDA's headers includes and calls."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from cli.running import EXAMPLES, gemmgen
from golden.test_golden import GOLDEN
from pipeline.running import emitted

import gemmgen as package
from gemmgen.base.errors import UsageError
from gemmgen.emit.launcher_types import CUDA_TYPES
from gemmgen.gpu import device
from gemmgen.ir.dtypes import DTYPES, RAW
from gemmgen.ir.target import nvcc_flag

from .host_programs import NVCC

CALLER = Path(__file__).parent / "callers" / "with_header.cc"
MIXED = """gemm C[m, n] = A[m, k] * B[k, n]
dtype A={0} B={0} C=bf16 bias=f16
target sm_90a
tile m=16 n=16 k=16
fuse_epilogue acc + bias[n]
"""


def as_bits(text: str) -> str:
    """A text of CUDA's types in those of stored bits."""
    text = re.sub(
        r"#ifndef __CUDACC_RTC__\n(#include <cuda_\w+\.h>\n)+#endif\n\n", "", text, count=1
    )
    text = re.sub(r"reinterpret_cast<(?:const )?unsigned (?:short|char) \*>\((\w+)\)", r"\1", text)
    for dtype in RAW:
        text = text.replace(CUDA_TYPES[dtype][0], DTYPES[dtype].stored)
    return text


def code(text: str) -> str:
    """Without comments and line breaks, which depend on the length of the types' names."""
    return " ".join(re.sub(r"//.*", "", text).replace("(", "( ").replace(",", ", ").split())


@pytest.mark.parametrize("dtype", RAW)
def test_the_launchers_signature_alone_has_other_types(dtype: str) -> None:
    schedule = MIXED.format(dtype)
    bits, cuda = package.emit_cuda(schedule), package.emit_cuda(schedule, types="cuda")
    name, header = CUDA_TYPES[dtype]
    assert f"const {name} *A, int lda" in cuda
    assert f"#include <{header}>" in cuda and "#include" not in bits
    assert bits.split("namespace")[1] == cuda.split("namespace")[1]
    assert code(as_bits(cuda)) == code(bits) and code(cuda) != code(bits)
    assert "(bf16 bits)" in bits and "bits)" not in cuda.split("namespace")[0]


def test_types_without_their_own_name_need_no_header() -> None:
    path = EXAMPLES / "naive.sched"
    assert package.emit_cuda(path, types="cuda") == package.emit_cuda(path)


def test_a_header_declares_what_the_file_defines(tmp_path: Path) -> None:
    for types in ("bits", "cuda"):
        call = ("emit", EXAMPLES / "hopper" / "fp8.sched", "--types", types)
        text, header = gemmgen(*call).stdout, gemmgen(*call, "--header").stdout
        comment = text[: text.index("\nnamespace")].partition("\n#ifndef")[0]
        assert header.startswith(comment.rstrip() + "\n\n#pragma once\n")
        (declared,) = re.findall(r"^cudaError_t launch_gemm\([^;]*\);$", header, re.MULTILINE)
        assert declared.removesuffix(";") in text and header.count("__nv_") == 5 * (types == "cuda")
        path = tmp_path / f"{types}.h"
        assert gemmgen(*call, "--header", "-o", path).exit_code == 0
        assert path.read_text() == header == package.emit_cuda(call[1], types=types, header=True)
        assert gemmgen(*call, "--header", "--check", path).exit_code == 0
        assert gemmgen(*call, "--check", path).exit_code == 1


@pytest.mark.by_default("naive", "async_copy", "split_k", "warpgroups", "clusters")
@pytest.mark.parametrize("name", GOLDEN)
def test_a_header_names_the_errors_that_the_launcher_returns(name: str) -> None:
    text = emitted(GOLDEN[name].text).text
    header = package.emit_cuda(GOLDEN[name].text, header=True)
    returned = re.findall(r"return (cudaError[A-Z]\w+|cudaSuccess)\b", text)
    (listed,) = re.findall(r"^// Returns:\n((?://     .*\n)+)// or another", header, re.MULTILINE)
    assert set(re.findall(r"^//     (\w+) ", listed, re.MULTILINE)) == set(returned)
    assert max(map(len, header.splitlines())) <= 100
    (most,) = re.findall(r"more than (\d+) tiles", listed)
    assert re.search(rf" > {most}\b.*\) return cudaErrorInvalidConfiguration;", text)


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        (("--header", "--main"), "--header is a file of its own: leave --main and --format out"),
        (("--header", "--format", "ptx"), "--header is a file of its own"),
        (("--types", "cuda", "--main"), "--types cuda changes the launcher's signature alone"),
        (("--types", "cuda", "--format", "cubin"), "leave --main and --format out"),
        (("--types", "half"), "'half' is not one of 'bits', 'cuda'"),
    ],
)
def test_what_does_not_go_with_them_is_refused(options: tuple[str, ...], hint: str) -> None:
    result = gemmgen("emit", EXAMPLES / "naive.sched", *options)
    assert result.exit_code == 2 and hint in result.stderr and not result.stdout


def test_python_names_the_choices() -> None:
    with pytest.raises(UsageError, match="types"):
        package.emit_cuda(MIXED.format("bf16"), types="half")  # type: ignore[arg-type]


@pytest.mark.proof
@pytest.mark.skipif(NVCC is None, reason="nvcc is not installed")
def test_a_program_includes_the_header_and_links(tmp_path: Path) -> None:
    """A caller that the compiler of the host compiles; it runs where there is a GPU."""
    schedule = tmp_path / "gemm.sched"
    schedule.write_text(
        (EXAMPLES / "double_buffered.sched").read_text() + "dtype A=f16 B=f16 C=bf16\n"
    )
    call = ("emit", schedule, "--name", "half_gemm", "--types", "cuda")
    assert gemmgen(*call, "-o", tmp_path / "half_gemm.cu").exit_code == 0
    assert gemmgen(*call, "--header", "-o", tmp_path / "half_gemm.h").exit_code == 0
    missing = device.missing()
    flag = "-arch=native" if missing is None else nvcc_flag("sm_80")
    command = [str(NVCC), "-std=c++17", flag, "-Werror", "all-warnings", "-Xcompiler", "-Wall"]
    units = ["half_gemm.cu", str(CALLER)]
    done = subprocess.run(
        [*command, f"-I{tmp_path}", *units, "-o", "caller"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    if missing is None:
        subprocess.run([tmp_path / "caller"], check=True)
