"""The files of a library, by their paths in its folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from gemmgen import __version__
from gemmgen.emit import library_python, library_texts
from gemmgen.emit.formula import formula_text
from gemmgen.emit.library_texts import KnownShape, LibraryProduct
from gemmgen.ir.target import TARGETS, architecture
from gemmgen.library.chosen_kernels import LibraryKernel, ProductKernels
from gemmgen.library.library_spec import LibrarySpec
from gemmgen.schedule.roles import batches, roles

KERNELS = "kernels"
ARRAYS = Path(__file__).with_name("array_access.py")
"""A module of the Python package, the same for all libraries."""
RAGGED = 3
"""The shape that the self-test runs besides the known ones has this many elements fewer."""


def files_of(spec: LibrarySpec, products: Sequence[ProductKernels]) -> dict[str, str]:
    """The text of each file, by its path."""
    views = [_view(product) for product in products]
    files = {
        f"{KERNELS}/{kernel.name}.cu": kernel.emitted.text
        for product in products
        for kernel in product.kernels
    }
    kernels = [*files]
    for view in views:
        files[f"{view.name}.cu"] = library_texts.product_source(spec.name, view)
    sources = [*(f"{view.name}.cu" for view in views), *kernels]
    arch = architecture_of(products)
    files[f"{spec.name}.h"] = library_texts.library_header(spec.name, views)
    files["selftest.cu"] = library_texts.selftest(spec.name, views)
    files["CMakeLists.txt"] = library_texts.cmake_lists(spec.name, sources, arch)
    files["Makefile"] = library_texts.makefile(spec.name, sources, arch)
    package = f"python/{spec.name}"
    files[f"{package}/__init__.py"] = library_python.python_package(spec.name, views)
    files[f"{package}/_arrays.py"] = ARRAYS.read_text(encoding="utf-8")
    files[f"{package}/py.typed"] = ""
    files["python/bindings.cpp"] = library_python.bindings(spec.name, views)
    files["pyproject.toml"] = library_python.pyproject(spec.name, spec.version)
    files["manifest.json"] = _manifest(spec, products, arch)
    return files


def architecture_of(products: Sequence[ProductKernels]) -> str:
    """The newest target of the kernels, ``90a``: what all of them are compiled for."""
    targets = {kernel.emitted.target for product in products for kernel in product.kernels}
    return architecture(max(targets, key=[*TARGETS].index))


def _view(product: ProductKernels) -> LibraryProduct:
    interfaces = tuple(kernel.emitted.interface for kernel in product.kernels)
    known = sorted(
        (shape, number, why)
        for number, kernel in enumerate(product.kernels)
        for shape, why in zip(kernel.shapes, kernel.whys, strict=True)
    )
    shapes = tuple(
        KnownShape(_extents(product.kernels[number], shape), number, why)
        for shape, number, why in known
    )
    stated = [
        _extents(kernel, shape)
        for kernel in product.kernels
        for shape in kernel.shapes
        if shape in product.spec.shapes or shape == kernel.shapes[0]
    ]
    ragged = tuple(max(1, extent - RAGGED) for extent in stated[0])
    tested = tuple(dict.fromkeys((*stated, ragged)))
    formula = formula_text(product.plain.emitted.program.problem)
    return LibraryProduct(product.spec.name, formula, interfaces, shapes, tested)


def _extents(kernel: LibraryKernel, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape in the order of the launcher's extents."""
    interface, gemm = kernel.emitted.interface, kernel.emitted.schedule.gemm
    by_name = {
        interface.extent(letter): size
        for letter, size in zip((*roles(gemm), *batches(gemm)), shape, strict=True)
    }
    return tuple(by_name[p.name] for p in interface.params if p.kind == "extent")


def _manifest(spec: LibrarySpec, products: Sequence[ProductKernels], arch: str) -> str:
    """What each kernel is, for tools."""
    rows = {
        product.spec.name: {
            "gemm": product.spec.gemm,
            "dtype": product.spec.dtype,
            "epilogue": product.spec.epilogue,
            "kernels": [_row(kernel) for kernel in product.kernels],
        }
        for product in products
    }
    about = {"library": spec.name, "gemmgen": __version__, "gpu": spec.gpu.name, "arch": arch}
    return json.dumps({**about, "products": rows}, indent=1) + "\n"


def _row(kernel: LibraryKernel) -> dict[str, object]:
    return {
        "kernel": kernel.name,
        "file": f"{KERNELS}/{kernel.name}.cu",
        "schedule": kernel.emitted.schedule.text,
        "shapes": {
            "x".join(map(str, shape)): why
            for shape, why in zip(kernel.shapes, kernel.whys, strict=True)
        },
    }
