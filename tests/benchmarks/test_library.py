"""``benchmarks/library.py``: what it adds to a product's file compiles, and the shapes it takes."""

from __future__ import annotations

import ctypes
import random
import shutil
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from gemmgen.library.chosen_kernels import kernels_of
from gemmgen.library.library_files import files_of
from gemmgen.library.library_spec import parse_spec

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

# not by its name, which is that of tests/library
FILE = ROOT / "benchmarks" / "library.py"
FOUND = spec_from_file_location("library_benchmark", FILE)
assert FOUND is not None and FOUND.loader is not None
library = module_from_spec(FOUND)
sys.modules["library_benchmark"] = library  # its dataclasses look for it
FOUND.loader.exec_module(library)

SPEC = """\
name = "mini"

[product.linear]
gemm = "C[m, n] = A[m, k] * B[n, k]"
dtype = "bf16"
epilogue = "acc + bias[n]"
shapes = ["16x256x512", "1..300x256x512"]
"""
RUNTIME = """\
#pragma once
typedef int cudaError_t;
typedef void *cudaStream_t;
enum { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMisalignedAddress = 716 };
"""


@pytest.mark.skipif(not shutil.which("g++"), reason="there is no g++")
def test_a_product_says_which_kernel_it_takes(tmp_path: Path) -> None:
    spec = parse_spec(SPEC.replace(', "1..300x256x512"', ', "300x256x512"'), "mini.toml")
    files = files_of(spec, list(kernels_of(spec)))
    text = files["linear.cu"]
    (tmp_path / "linear.cpp").write_text(text + library.functions_for(text, "mini_linear"))
    (tmp_path / "mini.h").write_text(files["mini.h"])
    (tmp_path / "cuda_runtime_api.h").write_text(RUNTIME)
    command = ["g++", "-std=c++17", "-Wall", "-Werror", "-shared", "-fPIC", "-I.", "linear.cpp"]
    subprocess.run([*command, "-o", "linear.so"], cwd=tmp_path, check=True)
    loaded = ctypes.CDLL(str(tmp_path / "linear.so"), mode=getattr(ctypes, "RTLD_LAZY", 1))
    assert loaded.mini_linear_nearest(16, 256, 512) == 0
    assert all(hasattr(loaded, f"mini_linear_{name}") for name in ("bytes", "by", "host_us"))


def test_shapes_are_those_of_the_spec_and_others_in_its_ranges() -> None:
    product = parse_spec(SPEC, "mini.toml").products[0]
    found = library.shapes_of(product, 30, random.Random(1))
    assert found[0] == (16, 256, 512) and {(1, 256, 512), (300, 256, 512)} <= set(found)
    assert len(found) > 15 and all(1 <= m <= 300 and (n, k) == (256, 512) for m, n, k in found)
