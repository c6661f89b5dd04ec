"""The Python package of a library: functions over its shared library, and what is beside them.

A function reads its arrays by ``_arrays.py``, compares their extents, and passes all arguments in
one ``struct``, since a call of ctypes takes longer for each argument.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from gemmgen.base.record import record
from gemmgen.emit.ctypes import STORED
from gemmgen.emit.library_texts import COUNTERS, FIRST_SCALARS, LibraryProduct, text_of
from gemmgen.emit.line_breaks import WIDTH, plain
from gemmgen.emit.views import View
from gemmgen.ir.dtypes import DTYPES
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param

FORMATS = {"int": "i", "float": "f", "double": "d"}
"""Characters of ``struct`` for scalars; extents are ``i``, strides ``q``, pointers ``P``."""
OF = "_of_"
"""Names of the formula have it not: it joins an extent and the array that it is compared in."""
INDICES, GLUE = re.compile(r"\[[^]]*\]"), "\N{NO-BREAK SPACE}"
ABOUT = """\
Functions take arrays in a GPU's memory: tensors of PyTorch, arrays of CuPy or JAX, or anything with
__dlpack__ or __cuda_array_interface__.  They launch a kernel and do not wait.  Tensors of PyTorch
are multiplied on PyTorch's current stream; of other arrays `stream` is a handle or a stream's
object, or None for CuPy's current stream, else the legacy default one.  A call can be captured in a
CUDA graph.  There is no gradient."""


@record
class _Read:
    """An array as it is read: the local variables of its extents and strides.

    ``compared``: pairs of a variable and of the one that it must be equal to.
    """

    param: Param
    extents: tuple[str, ...]
    strides: tuple[str, ...]
    compared: tuple[tuple[str, str], ...]


def python_package(library: str, products: Sequence[LibraryProduct]) -> str:
    """``__init__.py``."""
    about = "\n".join(textwrap.wrap(ABOUT, WIDTH))
    views = [_function(product) for product in products]
    return text_of("python", {"library": library, "about": about, "products": views})


def bindings(library: str, products: Sequence[LibraryProduct]) -> str:
    """What the package calls, in C++."""
    views = [
        {
            "name": product.name,
            "extents": product.extents,
            "members": [_member(param) for param in product.params],
            "names": [param.name for param in product.params],
        }
        for product in products
    ]
    return text_of("bindings", {"library": library, "counters": COUNTERS, "products": views})


def pyproject(library: str, version: str) -> str:
    return text_of("pyproject", {"library": library, "version": version})


def _function(product: LibraryProduct) -> View:
    plain_kernel, output = product.plain, product.output
    inputs = [p for p in product.params if p.kind == "tensor" and p is not output]
    defined: set[str] = set()
    reads = [_read(plain_kernel, param, defined, param.name) for param in inputs]
    result = _read(plain_kernel, output, defined, "out")
    return {
        "name": product.name,
        "arrays": [
            _array(param, "out" if param is output else param.name) for param in (*inputs, output)
        ],
        "format": "i" + "".join(_format(param) for param in product.params) + "P",
        "signature": _signature(product, inputs),
        "docstring": _docstring(product, inputs),
        "inputs": [{"name": x.param.name, "found": (*x.extents, *x.strides)} for x in reads],
        "matched": [rule for read in reads for rule in _rules(read, reads)],
        "needs": _needs(product),
        "output": {
            "name": output.name,
            "shape": _tuple(_extents(plain_kernel, output)),
            "made": (output.name, *result.strides),
            "found": (*result.extents, *result.strides),
            "matched": _rules(result, reads),
        },
        "names": [param.name for param in product.params],
    }


def _read(kernel: Interface, param: Param, defined: set[str], shown: str) -> _Read:
    names: list[str] = []
    compared: list[tuple[str, str]] = []
    for extent in _extents(kernel, param):
        own = f"{extent}{OF}{shown}" if extent in defined else extent
        if own != extent:
            compared.append((own, extent))
        defined.add(extent)
        names.append(own)
    strides = tuple(step or "" for step in kernel.steps(param)[:-1])
    return _Read(param, tuple(names), strides, tuple(compared))


def _extents(kernel: Interface, param: Param) -> tuple[str, ...]:
    return tuple(kernel.extent(letter) for letter in param.indices)


def _rules(read: _Read, reads: Sequence[_Read]) -> list[View]:
    """The check that an array's extents are those of the arrays before it."""
    if not read.compared:
        return []
    wanted = {extent for _, extent in read.compared}
    others = [x for x in reads if x is not read and wanted & {*x.extents}]
    return [
        {
            "condition": " or ".join(f"{own} != {known}" for own, known in read.compared),
            "array": read.param.name,
            "shape": _tuple(read.extents),
            "others": [f"{x.param.name}={_tuple(x.extents)}" for x in others],
        }
    ]


def _tuple(names: Sequence[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _needs(product: LibraryProduct) -> list[View]:
    """When ``out`` must be given: where the epilogue reads it."""
    if not product.output.read:
        return []
    if "beta" in {param.name for param in product.plain.scalars}:
        return [{"condition": " and beta != 0", "text": "out is missing, which beta multiplies"}]
    return [{"condition": "", "text": "out is missing, whose elements the result is computed from"}]


def _array(param: Param, shown: str) -> View:
    return {
        "name": param.name,
        "shown": shown,
        "dtype": DTYPES[param.dtype].name,
        "letters": " ".join(param.indices),
        "written": range(param.written),
    }


def _signature(product: LibraryProduct, inputs: Sequence[Param]) -> list[str]:
    """The lines of a function's head."""
    scalars = [
        f"{param.name}: float"
        + (f" = {FIRST_SCALARS[param.name]}" if param.name in FIRST_SCALARS else "")
        for param in product.plain.scalars
    ]
    arrays = [f"{param.name}: Any" for param in inputs]
    texts = ", ".join([*arrays, "*", *scalars, "out: Any = None", "stream: Any = None"])
    line = f"def {product.name}({texts}) -> Any:"
    if len(line) <= WIDTH:
        return [line]
    return [
        f"def {product.name}(",
        *textwrap.wrap(texts, WIDTH, initial_indent="    ", subsequent_indent="    "),
        ") -> Any:",
    ]


def _docstring(product: LibraryProduct, inputs: Sequence[Param]) -> str:
    rows = [(param.name, param) for param in inputs]
    rows.append(("out", product.output))
    wide = max(len(name) for name, _ in rows)
    shapes = [
        f"    {name:{wide}}  [{', '.join(_extents(product.plain, param))}] "
        f"{DTYPES[param.dtype].name}{', a new array if None' if param.written else ''}"
        for name, param in rows
    ]
    head = _wrapped(f"{plain(product.formula)}.", WIDTH - 8)
    end = (
        "Elements along the last index are adjacent; other strides are free.  Returns out, which "
        "must not overlap the other arrays.  Raises TypeError for another element type, ValueError "
        "for extents, strides or devices that do not fit, RuntimeError for an error of CUDA."
    )
    lines = [*head, "", *shapes, "", *textwrap.wrap(end, WIDTH - 4)]
    return "\n".join(f"    {line}".rstrip() for line in lines).strip()


def _wrapped(text: str, width: int) -> list[str]:
    """Lines that are not broken between the indices of an element."""
    glued = INDICES.sub(lambda found: found[0].replace(" ", GLUE), text)
    return [line.replace(GLUE, " ") for line in textwrap.wrap(glued, width)]


def _format(param: Param) -> str:
    if param.kind == "tensor":
        return "P"
    if param.kind == "scalar":
        return FORMATS[STORED[param.dtype]]
    return "q" if param.kind == "stride" else "i"


def _member(param: Param) -> str:
    """A member of the struct of arguments."""
    if param.kind == "tensor":
        return f"{'' if param.written else 'const '}{STORED[param.dtype]} *{param.name}"
    if param.kind == "scalar":
        return f"{STORED[param.dtype]} {param.name}"
    return f"{'long long' if param.kind == 'stride' else 'int'} {param.name}"
