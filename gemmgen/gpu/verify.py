"""A kernel against cuBLAS and against exact integers, over shapes, padding, alpha and beta.

``Kernel`` results are compared with a float64 product of the same numbers; for alpha * acc +
beta * C also with cuBLAS.  Everything around the tensors is poisoned and must stay as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Literal, Protocol

import numpy as np

from gemmgen.base.errors import CallError
from gemmgen.base.record import record
from gemmgen.calling.arguments import scalars, tensors
from gemmgen.gpu import cublas
from gemmgen.gpu.compare import (
    Data,
    Expected,
    Layout,
    Placed,
    accumulator,
    contraction,
    expected,
    inputs,
    place,
    product_of,
    storing,
)
from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.gpu.elements import bits, held
from gemmgen.ir.interface import Interface, Param
from gemmgen.numerics.formats import UNIT

OTHER_SCALAR = 0.75  # what the scalars of an epilogue get, beyond alpha and beta

Reference = Callable[[Mapping[str, np.ndarray | float]], np.ndarray]


class Callee(Protocol):
    """What is verified: a ``Kernel``, or anything that is called like one."""

    @property
    def interface(self) -> Interface: ...

    def __call__(self, **arguments: object) -> object: ...


@record
class Case:
    """One call: extents by name, the kind of numbers, alpha, beta, elements between rows; where the
    matrices of a batch lie."""

    extents: tuple[tuple[str, int], ...]
    data: Data = "integers"
    alpha: float = 1.0
    beta: float = 0.0
    pad: int = 0
    layout: Layout = "behind"

    def text(self) -> str:
        shape = " ".join(f"{name}={size}" for name, size in self.extents)
        layout = f" {self.layout}" if self.layout != "behind" else ""
        scaled = f"alpha={self.alpha:g} beta={self.beta:g}"
        return f"{shape} {self.data} {scaled} pad={self.pad}{layout}"


@record
class Outcome:
    """What became of a case; ``detail`` says where it failed, or why it was refused."""

    case: Case
    status: Literal["passed", "failed", "refused"]
    detail: str = ""


def cases(extents: Mapping[str, int], *, batched: bool = False) -> tuple[Case, ...]:
    """The cases of one shape: each kind of numbers, with and without beta and padding, and with
    each layout of matrices where there are several (``batched``)."""
    shape = tuple(extents.items())
    plain = (
        Case(shape),
        Case(shape, alpha=2.0, beta=-3.0, pad=5),
        Case(shape, "normal", alpha=1.25, beta=0.5, pad=4),
        Case(shape, "positive", alpha=1.5),
        Case(shape, "selection", alpha=-2.0, pad=1),
        Case(shape, "nan"),
    )
    if not batched:
        return plain
    layouts: tuple[Layout, ...] = ("behind", "within", "shared")
    return tuple(
        replace(case, layout=layout) for case, layout in zip(plain, cycle(layouts), strict=False)
    )


def verify(
    kernel: Callee,
    wanted: Sequence[Case],
    *,
    reference: Reference | None = None,
    exact: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Outcome, ...]:
    """Runs ``wanted`` one after another.

    ``reference`` gives C from the tensors (C's old values too) and scalars, in float64; without it
    C is alpha * acc + beta * C.  ``exact``: on integers the reference is met bit by bit, which an
    epilogue with exp or division can't promise.
    """
    outcomes: list[Outcome] = []
    for done, case in enumerate(wanted, 1):
        outcomes.append(_outcome(kernel, case, reference, exact))
        if progress is not None:
            progress(done, len(wanted))
    return tuple(outcomes)


def _outcome(kernel: Callee, case: Case, reference: Reference | None, exact: bool) -> Outcome:
    interface = kernel.interface
    values = inputs(interface, dict(case.extents), case.data, case.layout)
    numbers = _numbers(interface, case)
    want = _expected(interface, values, numbers, case, reference, exact)
    placed = {
        param.name: place(param, interface, values[param.name], case.pad, case.layout)
        for param in tensors(interface)
    }
    try:
        complaint = _run(kernel, placed, values, numbers, want)
    except CallError as refusal:
        return Outcome(case, "refused", str(refusal))
    if complaint is None and reference is None:
        complaint = _against_cublas(interface, placed, values, case, want)
    return Outcome(case, "failed" if complaint else "passed", complaint or "")


def _numbers(interface: Interface, case: Case) -> dict[str, float]:
    given = {"alpha": case.alpha, "beta": case.beta}
    return {param.name: given.get(param.name, OTHER_SCALAR) for param in scalars(interface)}


def _run(
    kernel: Callee,
    placed: Mapping[str, Placed],
    values: Mapping[str, DeviceArray],
    numbers: Mapping[str, float],
    want: Expected,
) -> str | None:
    """Launches twice; says what is wrong with results, padding, inputs or repeatability, if any."""
    cp = cupy()
    output = contraction(kernel.interface).c
    array, dtype = placed[output.name].array, output.dtype
    before = {name: bits(item.buffer).copy() for name, item in placed.items()}
    arguments: dict[str, object] = {name: item.array for name, item in placed.items()}
    results: list[DeviceArray] = []
    for _ in range(2):
        hidden = not output.read or numbers.get("beta") == 0
        if hidden:
            placed[output.name].poison()
        else:
            placed[output.name].put(values[output.name])
        kernel(**arguments, **numbers)
        results.append(array.copy())
    complaint = want.difference(results[0], dtype)
    if complaint is not None:
        return complaint
    if 0 not in array.shape:
        placed[output.name].put(values[output.name])
    for name, item in placed.items():
        changed = ~cp.equal(bits(item.buffer), before[name])
        if int(cp.count_nonzero(changed)):
            what = "the padding of C" if name == output.name else f"{name} or its padding"
            return f"{what} was written to, at element {int(cp.argmax(changed))} of its buffer"
    if not kernel.interface.ordered:
        return want.difference(results[1])
    first, second = (bits(result.ravel()) for result in results)
    if int(cp.count_nonzero(~cp.equal(first, second))):
        return "a second launch with the same inputs gave other bits"
    return None


def _expected(
    interface: Interface,
    values: Mapping[str, DeviceArray],
    numbers: Mapping[str, float],
    case: Case,
    reference: Reference | None,
    exact: bool,
) -> Expected:
    alpha, beta = numbers.get("alpha", 1.0), numbers.get("beta", 0.0)
    if reference is None:
        return expected(interface, values, alpha, beta, case.data)
    given: dict[str, np.ndarray | float] = {
        name: value.astype("float64").get() for name, value in values.items()
    }
    want = cupy().asarray(reference({**given, **numbers})).astype("float64")
    if exact and case.data == "integers":
        rounded = held(want, contraction(interface).c.dtype).astype("float64")
        return Expected(rounded, cupy().zeros(want.shape, "float64"))
    size = product_of(interface, values, absolute=True) * abs(alpha) + abs(want)
    bound = size * (16 * UNIT[accumulator(interface)])
    return Expected(want, bound + storing(want, interface))


def _against_cublas(
    interface: Interface,
    placed: Mapping[str, Placed],
    values: Mapping[str, DeviceArray],
    case: Case,
    want: Expected,
) -> str | None:
    """cuBLAS on the same memory, held to the same bound: it says whether the bound is fair."""
    product = contraction(interface)
    if not is_plain(interface):
        return None
    output = placed[product.c.name]
    if case.beta != 0:
        output.put(values[product.c.name])
    else:
        output.poison()
    run_cublas(interface, {name: item.array for name, item in placed.items()}, case)()
    complaint = want.difference(output.array, product.c.dtype)
    return None if complaint is None else f"cuBLAS itself fails here: {complaint}"


class _Scaled(Protocol):
    @property
    def alpha(self) -> float: ...
    @property
    def beta(self) -> float: ...


def run_cublas(
    interface: Interface, arrays: Mapping[str, DeviceArray], scaled: _Scaled
) -> Callable[[], None]:
    """cuBLAS's call for the matrices ``arrays`` of ``interface``, in any storage order.

    Of batches it is one strided-batched call where the matrices of each tensor are evenly apart,
    else one for each index of all batch letters but the longest.
    """
    product = contraction(interface)
    (depth,) = product.contracted
    batches = dict(interface.batches)
    rows = next(i for i in product.a.indices if i != depth and i not in batches)
    first = {product.a.name: rows, product.b.name: depth, product.c.name: rows}
    operands: list[cublas.Batch] = []
    for param in (product.a, product.b, product.c):
        outer = next(i for i in param.indices if i not in batches)
        turned = outer != first[param.name]
        operands.append(_batch(arrays[param.name], param, tuple(batches), turned))
    sizes = tuple(
        arrays[product.c.name].shape[product.c.indices.index(letter)] for letter in batches
    )
    call = cublas.gemm_batches(
        operands[0], operands[1], operands[2], sizes, alpha=scaled.alpha, beta=scaled.beta
    )
    return _Packed(call, tuple(arrays.values()))


@record
class _Packed:
    """A call that knows addresses alone, and the arrays there, which live as long as it does."""

    call: Callable[[], None]
    arrays: tuple[DeviceArray, ...]

    def __call__(self) -> None:
        self.call()


def is_plain(interface: Interface) -> bool:
    """Whether cuBLAS has a call for it: matrices of its types, or batches of them, one letter
    contracted."""
    product, batches = contraction(interface), dict(interface.batches)
    if not cublas.multiplies(product.a.dtype, product.b.dtype, product.c.dtype):
        return False
    tiled = [[i for i in p.indices if i not in batches] for p in (product.a, product.b, product.c)]
    return all(len(letters) == 2 for letters in tiled) and len(product.contracted) == 1


def _batch(
    array: DeviceArray, param: Param, batches: tuple[str, ...], transposed: bool
) -> cublas.Batch:
    """A tensor's first matrix, and how far apart its matrices are along each batch letter."""
    item = array.dtype.itemsize
    one = tuple(0 if letter in batches else slice(None) for letter in param.indices)
    strides = dict(zip(param.indices, array.strides, strict=True))
    steps = tuple(strides.get(letter, 0) // item for letter in batches)
    if any(not size for size, at in zip(array.shape, one, strict=True) if at == 0):
        return cublas.Batch(cublas.Matrix(0, 0, 0, 1, dtype=param.dtype), steps)  # there is none
    return cublas.Batch(cublas.matrix(array[one], param.dtype, transposed=transposed), steps)
