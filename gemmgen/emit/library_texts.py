"""The files of a library beside its kernels: dispatchers, a header, builds, a self-test.

A product is a function that launches one of several kernels of the same formula.  All take the same
arguments but for scratch memory, which is laid out in one workspace: counters first, since these
must stay zero, then partial results.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

from gemmgen.base.record import record
from gemmgen.emit.ctypes import STORED
from gemmgen.emit.line_breaks import SOFT, laid_out
from gemmgen.emit.main.layout import elements, scratch_type, steps, tile_count
from gemmgen.emit.parameter_list import parameter_rows
from gemmgen.emit.printing import printed
from gemmgen.emit.views import View
from gemmgen.ir.dtypes import ROUNDED, DType
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param

COUNTERS = 1 << 16
"""Bytes at the beginning of a workspace."""
FORMATS: dict[DType, tuple[int, int]] = {
    "bf16": (8, 7),
    "f16": (5, 10),
    "e4m3": (4, 3),
    "e5m2": (5, 2),
}
"""Bits of the exponent and of the fraction of types that are stored as bits."""
UNITS: dict[DType, str] = {"bf16": "0x1p-8", "f16": "0x1p-11", "e4m3": "0x1p-4", "e5m2": "0x1p-3"}
"""Roundings of results, relative to them."""
FIRST_SCALARS = {"alpha": "1", "beta": "0"}
SCALARS = ("0.75", "1.25", "0.5")


@record
class KnownShape:
    """Extents, in the order of the launchers; the number of its kernel, and why it has that one."""

    extents: tuple[int, ...]
    kernel: int
    why: str


@record
class LibraryProduct:
    """A function of the library.

    ``formula``: of its result.  ``kernels``: how each is called, the plain one last, which takes
    every call.  ``shapes``: those whose kernel is known.  ``tested``: shapes of the self-test.
    """

    name: str
    formula: str
    kernels: tuple[Interface, ...]
    shapes: tuple[KnownShape, ...]
    tested: tuple[tuple[int, ...], ...]

    @property
    def plain(self) -> Interface:
        return self.kernels[-1]

    @property
    def params(self) -> tuple[Param, ...]:
        """The parameters that all kernels have."""
        return tuple(param for param in self.plain.params if not param.is_scratch)

    @property
    def extents(self) -> tuple[str, ...]:
        return tuple(param.name for param in self.params if param.kind == "extent")

    @property
    def output(self) -> Param:
        return next(param for param in self.params if param.written)


def product_source(library: str, product: LibraryProduct) -> str:
    """The file of a product: its dispatcher."""
    view = {
        **_function(product),
        "library": library,
        "kernels": [_kernel(at, kernel) for at, kernel in enumerate(product.kernels)],
        "counters": COUNTERS,
        "names": [param.name for param in product.params],
        "shapes": [
            {"extents": one.extents, "kernel": one.kernel, "why": one.why} for one in product.shapes
        ],
    }
    return text_of("product", view)


def library_header(library: str, products: Sequence[LibraryProduct]) -> str:
    """The C header."""
    view: View = {"library": library, "products": [_function(one) for one in products]}
    return text_of("header", view)


def cmake_lists(library: str, sources: Sequence[str], arch: str) -> str:
    """CMakeLists.txt; ``arch``: ``90a``."""
    return text_of("cmake", {"library": library, "sources": sources, "arch": arch})


def makefile(library: str, sources: Sequence[str], arch: str) -> str:
    return text_of("make", {"library": library, "sources": sources, "arch": arch})


def selftest(library: str, products: Sequence[LibraryProduct]) -> str:
    """A program that compares each product with its plain kernel."""
    view: View = {"library": library, "products": [_tested(one) for one in products]}
    return text_of("selftest", view)


def text_of(template: str, view: View) -> str:
    """A template of ``templates/library``, in lines of at most 100 columns."""
    return laid_out(printed(f"library/{template}.j2", view)) + "\n"


def _function(product: LibraryProduct) -> View:
    """A product's function, as its header declares it."""
    return {
        "name": product.name,
        "formula": product.formula.replace(" (", f" {SOFT}(").replace(", ", f", {SOFT}"),
        "extents": product.extents,
        "integers": ", ".join(f"int {name}" for name in product.extents),
        "parameters": _parameters(product.params),
    }


def _parameters(params: tuple[Param, ...]) -> list[str]:
    return [text for row in parameter_rows(params, 10_000, restrict=False) for text in row]


def _kernel(number: int, kernel: Interface) -> View:
    """A kernel as the dispatcher sees it."""
    partials = [param for param in kernel.scratch if param.kind == "workspace"]
    counters = [param for param in kernel.scratch if param.kind == "counter"]
    places = {"workspace": f" + {COUNTERS}", "counter": ""}
    return {
        "number": number,
        "name": kernel.name,
        "parameters": _parameters(kernel.params),
        "arguments": [
            (
                {"name": param.name, "scratch": [], "offset": ""}
                if not param.is_scratch
                else {"name": "", "scratch": [scratch_type(param)], "offset": places[param.kind]}
            )
            for param in kernel.params
        ],
        "partials": _bytes(kernel, partials),
        "counters": _bytes(kernel, counters),
    }


def _bytes(kernel: Interface, params: list[Param]) -> str:
    """The bytes of scratch memory, as C; empty if there is none.  No kernel has two of a kind."""
    assert len(params) <= 1, params
    return f"{tile_count(kernel)} * {params[0].per_tile * params[0].item}" if params else ""


def _tested(product: LibraryProduct) -> View:
    """A product as the self-test sees it: matrices are packed as the first kernel requires."""
    first, plain, output = product.kernels[0], product.plain, product.output
    own = {param.name: param for param in first.tensors}
    tensors = [param for param in product.params if param.kind == "tensor"]
    others = cycle(SCALARS)
    views = {
        param.name: {
            "name": param.name,
            "type": _element(param),
            "count": elements(first, own[param.name]),
        }
        for param in tensors
    }
    return {
        **_function(product),
        "steps": [step for param in tensors for step in steps(first, own[param.name])],
        "tensors": [*views.values()],
        "output": views[output.name],
        "scalars": [
            {
                "name": param.name,
                "type": STORED[param.dtype],
                "value": FIRST_SCALARS.get(param.name) or next(others),
            }
            for param in plain.scalars
        ],
        "arguments": _arguments(product.params, {}),
        "plain": plain.name,
        "plain_parameters": _parameters(plain.params),
        "plain_arguments": _arguments(plain.params, {output.name: "wanted"}),
        "unit": UNITS.get(output.dtype, "0x1p-24"),
        "depth": next(plain.extent(x) for x in tensors[0].indices if x not in output.indices),
        "tested": product.tested,
    }


def _arguments(params: tuple[Param, ...], renamed: dict[str, str]) -> list[str]:
    return [
        f"{renamed.get(param.name, param.name)}.there" if param.kind == "tensor" else param.name
        for param in params
    ]


def _element(param: Param) -> str:
    """The arguments of the self-test's matrices."""
    if param.dtype in FORMATS and param.dtype not in ROUNDED:
        exponent, fraction = FORMATS[param.dtype]
        return f"{STORED[param.dtype]}, {exponent}, {fraction}"
    return f"{STORED[param.dtype]}, 0, 0"
