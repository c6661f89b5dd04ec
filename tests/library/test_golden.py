"""The texts beside the kernels, kept for two schedules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gemmgen.base.source import Source
from gemmgen.gpu.gpu_names import gpu_named
from gemmgen.library.chosen_kernels import LibraryKernel, ProductKernels
from gemmgen.library.library_files import files_of
from gemmgen.library.library_spec import LibrarySpec, ProductSpec
from gemmgen.pipeline import compile_source

GEMM = "C[m, n] = A[m, k] * B[k, n]"
TILED = """\
tile m=64 n=64 k=16
cache_shared A B
register_block m=4 n=4
"""
KERNELS = {
    "mini_product_1": (TILED, ((512, 512, 512),)),
    "mini_product_2": (f"{TILED}split_k parts=4\n", ((64, 64, 8192), (128, 64, 8192))),
    "mini_product_plain": ("", ()),
}


def library() -> dict[str, str]:
    kernels = tuple(
        LibraryKernel(
            name,
            compile_source(Source(f"gemm {GEMM}\nkernel {name}\n{lines}")),
            shapes,
            ("estimated, 10 us",) * len(shapes),
        )
        for name, (lines, shapes) in KERNELS.items()
    )
    spec = ProductSpec(
        "product", GEMM, "f32", None, tuple(s for _, x in KERNELS.values() for s in x)
    )
    product = ProductKernels(spec, kernels)
    return files_of(LibrarySpec("mini", gpu_named("H200"), (product,)), [product])


@pytest.mark.parametrize(
    "file",
    (
        *("product.cu", "mini.h", "selftest.cu", "CMakeLists.txt", "Makefile", "pyproject.toml"),
        *("python/mini/__init__.py", "python/bindings.cpp"),
    ),
)
def test_a_file_is_what_is_kept(file: str, golden: Callable[[str, str], str]) -> None:
    text, kept = library()[file], file.replace("python/mini/__init__.py", "package.txt")
    assert text == golden(f"../library/goldens/{kept.removeprefix('python/')}", text)
