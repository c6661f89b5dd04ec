"""The dispatcher on the CPU: its launchers are stubs, which say what they were called with."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from gemmgen.library.chosen_kernels import kernels_of
from gemmgen.library.library_files import files_of
from gemmgen.library.library_spec import parse_spec

from .specs import SMALL

RUNTIME = """\
#pragma once
typedef int cudaError_t;
typedef void *cudaStream_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMisalignedAddress = 716 };
"""
STUBS = """\
#include "mini.h"
#include <cstdio>
#include <cstdlib>

static int refusing;  // a bit for each kernel

#define STUB(number, name, ...) \\
    cudaError_t launch_mini_linear_##name(int M, int N, int K, const unsigned short *A, int lda, \\
        const unsigned short *B, int ldb, unsigned short *C, int ldc, const unsigned short *bias, \\
        ##__VA_ARGS__, cudaStream_t)
#define SAY(number) \\
    if (refusing >> number & 1) \\
        return number % 2 ? cudaErrorInvalidValue : cudaErrorMisalignedAddress; \\
    std::printf("%d", number); \\
    return M < 0 ? cudaErrorInvalidValue : cudaSuccess;

STUB(0, 1) { SAY(0) }
STUB(1, 2, float *partials, unsigned *counters)
{
    const char *const first = reinterpret_cast<char *>(counters);
    const long apart = reinterpret_cast<char *>(partials) - first;
    if (!(refusing >> 1 & 1)) std::printf("%ld@", apart);
    SAY(1)
}
STUB(2, plain) { SAY(2) }

int main(int, char **argv)
{
    refusing = std::atoi(argv[1]);
    const int M = std::atoi(argv[2]), N = std::atoi(argv[3]), K = std::atoi(argv[4]);
    const size_t needed = mini_linear_workspace(M, N, K);
    std::printf("%zu ", needed);
    const size_t bytes = argv[5][0] == '=' ? needed : std::atol(argv[5]);
    static char workspace[16];
    const cudaError_t error = mini_linear(M, N, K, nullptr, K, nullptr, K, nullptr, N, nullptr,
        workspace, bytes, nullptr);
    std::printf(" %d\\n", error);
}
"""
PARTIALS = 65536
"""Where partial results begin in a workspace."""

needs_gcc = pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")


@cache
def written() -> dict[str, str]:
    spec = parse_spec(SMALL, "mini.toml")
    return files_of(spec, list(kernels_of(spec)))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    files = {name: written()[name] for name in ("linear.cu", "mini.h")}
    files |= {"cuda_runtime_api.h": RUNTIME, "stubs.cpp": STUBS}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter", "-I."]
    sources = ["-x", "c++", "linear.cu", "stubs.cpp"]
    subprocess.run([*command, *sources, "-o", "program"], cwd=folder, check=True)
    return folder / "program"


def called(program: Path, *arguments: int | str) -> str:
    command = [str(program), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@needs_gcc
def test_the_nearest_known_shape_decides(program: Path) -> None:
    assert called(program, 0, 16, 256, 512, "=") == "0 0 0"
    assert called(program, 0, 1, 300, 700, "=") == "0 0 0"
    needed, kernel, error = called(program, 0, 290, 210, 4096, "=").split()
    assert int(needed) > PARTIALS and kernel == f"{PARTIALS}@1" and error == "0"


@needs_gcc
def test_a_workspace_that_is_too_small_leaves_other_kernels(program: Path) -> None:
    needed = int(called(program, 0, 300, 200, 5000, "=").split()[0])
    assert called(program, 0, 300, 200, 5000, needed - 1).split()[1] == "0"
    assert called(program, 0, 300, 200, 5000, needed).split()[1] == f"{PARTIALS}@1"


@needs_gcc
def test_a_kernel_that_refuses_is_followed_by_the_next_nearest(program: Path) -> None:
    for refusing, kernel in ((1, f"{PARTIALS}@1"), (3, "2"), (2, "0")):
        shape = (16, 256, 512) if refusing != 2 else (300, 200, 5000)
        assert called(program, refusing, *shape, 10**9).split()[1:] == [kernel, "0"]


@needs_gcc
def test_what_no_kernel_takes_is_an_error(program: Path) -> None:
    assert called(program, 7, 16, 256, 512, 0).split()[1:] == ["716"]
    assert called(program, 0, -1, 256, 512, 0).split()[-1] == "1"
    assert called(program, 0, 0, 0, 0, "=").split()[-1] == "0"


@needs_gcc
def test_counters_beyond_their_place_exclude_a_kernel(program: Path) -> None:
    """64 KiB of counters are 16,384 tiles: of more the split kernel is not launched."""
    shape = (64 * 300, 56 * 300, 500_000)
    assert called(program, 1, *shape, 10**15).split()[1] == "2"


def test_the_manifest_and_the_builds_name_every_kernel() -> None:
    files = written()
    manifest = json.loads(files["manifest.json"])
    kernels = [
        kernel["file"] for product in manifest["products"].values() for kernel in product["kernels"]
    ]
    assert sorted(kernels) == sorted(name for name in files if name.startswith("kernels/"))
    for name in (*kernels, "linear.cu", "single.cu"):
        assert f"    {name}\n" in files["CMakeLists.txt"]
        assert name.replace(".cu", ".o") in files["Makefile"]
    assert manifest["arch"] == "90a"
    assert all(len(line) <= 100 for line in files["linear.cu"].splitlines())
