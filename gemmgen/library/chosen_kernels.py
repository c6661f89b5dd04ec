"""The kernels of a library, and the shapes that each is launched near."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from keyword import iskeyword

from gemmgen.base.errors import GemmgenError, UsageError
from gemmgen.base.record import record
from gemmgen.base.source import Source
from gemmgen.emit.library_python import OF
from gemmgen.ir.launch_shape import Shape
from gemmgen.library.dispatch_table import table_of
from gemmgen.library.kernel_times import KernelTimes
from gemmgen.library.library_spec import LibrarySpec, ProductSpec
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.schedule.formatting import format_schedule
from gemmgen.torch.siblings import plain

_NAMES = """
    kernel workspace workspace_bytes stream tried fits error refused known launch nearest distance
    place Place places here COUNT sum log i x y
    ratio found least far one partial counts partial_bytes counter_bytes workspace_of wanted bytes
    right agree check encoded decoded bits_of stored KERNELS PLAIN COUNTERS CHECK
    out device pack packed call wrong error Any
"""
OWN = frozenset(_NAMES.split())
"""Names of the templates of ``emit.library_texts`` and ``emit.library_python``."""
HELPERS = ("error_text", "device_of_pointer", "order_streams")
"""Functions of ``python/bindings.cpp``, after the library's name."""


@record
class LibraryKernel:
    """A kernel of a product, and its shapes in the dispatcher's table."""

    name: str
    emitted: Emitted
    shapes: tuple[Shape, ...]
    whys: tuple[str, ...]
    """Of each shape: measured or estimated, and the time."""


@record
class ProductKernels:
    """A product's kernels; the last one is plain: it requires nothing, and no shape is its own."""

    spec: ProductSpec
    kernels: tuple[LibraryKernel, ...]

    @property
    def plain(self) -> LibraryKernel:
        return self.kernels[-1]


def kernels_of(spec: LibrarySpec) -> Iterator[ProductKernels]:
    """The products' kernels; raises ``GemmgenError`` for a product that has no schedule, or whose
    function has the name of another one, or of a kernel."""
    taken = {f"{spec.name}_{helper}": "a helper of the Python package" for helper in HELPERS}
    for product in spec.products:
        try:
            found = _product(spec, product)
        except UsageError as wrong:
            raise UsageError(f"product.{product.name}: {wrong}") from None
        function = f"{spec.name}_{product.name}"
        own = (function, f"{function}_workspace", f"{function}_packed")
        for name in (*own, *(x.name for x in found.kernels)):
            if name in taken:
                raise UsageError(
                    f"product.{product.name}: {name} is a name of {taken[name]}, too; rename one"
                )
            taken[name] = f"product.{product.name}"
        yield found


def _product(spec: LibrarySpec, product: ProductSpec) -> ProductKernels:
    times = KernelTimes(product, spec.gpu)
    table = table_of(product, spec.gpu, times)
    prefix = f"{spec.name}_{product.name}"
    kernels: list[LibraryKernel] = []
    for at, kernel in enumerate(table.kernels):
        shapes = tuple(entry.shape for entry in table.entries if entry.kernel == at)
        whys = tuple(times.why(kernel, shape) for shape in shapes)
        name = f"{prefix}_{at + 1}"
        kernels.append(LibraryKernel(name, _named(kernel.text, name), shapes, whys))
    _check_names(kernels[0].emitted)
    last = kernels[0].emitted.schedule
    text = plain(replace(last, kernel="gemm"), (1024, 1024, 1024), True)
    kernels.append(LibraryKernel(f"{prefix}_plain", _named(text, f"{prefix}_plain"), (), ()))
    _check_arguments(kernels)
    return ProductKernels(product, tuple(kernels))


def _named(text: str, name: str) -> Emitted:
    schedule = compile_source(Source(text)).schedule
    return compile_source(Source(format_schedule(replace(schedule, kernel=name))))


def _check_names(kernel: Emitted) -> None:
    """Names of the formula are variables of the files beside the kernels."""
    scales = kernel.schedule.gemm.scales
    if scales:
        raise UsageError(f"{scales[0].tensor} scales blocks, which libraries do not offer yet")
    for param in kernel.interface.params:
        if param.name in OWN and not param.is_scratch:
            raise UsageError(f"the dispatcher has a variable {param.name} of its own; rename it")
        if iskeyword(param.name) or (OF in param.name and not param.is_scratch):
            raise UsageError(f"the Python package can't have a variable {param.name}; rename it")


def _check_arguments(kernels: list[LibraryKernel]) -> None:
    """All kernels of a product are called alike."""
    *others, last = kernels
    wanted = [(p.name, p.kind) for p in last.emitted.interface.params if not p.is_scratch]
    for one in others:
        own = [(p.name, p.kind) for p in one.emitted.interface.params if not p.is_scratch]
        if own != wanted or any(p.is_prepared for p in one.emitted.interface.scratch):
            raise GemmgenError(f"{one.name} takes other arguments than {last.name}")
