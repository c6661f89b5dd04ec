"""Expected results, their error bounds, and comparisons with a kernel's results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import numpy as np

from gemmgen.base.record import record
from gemmgen.calling.arguments import tensors
from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.gpu.elements import elements, held, nan, numbers, storage
from gemmgen.ir.dtypes import HALVES, DType
from gemmgen.ir.interface import Interface, MultipleOf, Param
from gemmgen.numerics.formats import TINY, UNIT

GUARD = 128  # poisoned elements before and after each tensor: 256 bytes, which keeps its alignment

Data = Literal["integers", "normal", "positive", "selection", "nan"]
Layout = Literal["behind", "within", "shared"]
"""Of a batch's matrices: one after another, rows interleaved, or, of inputs, one for all."""


@record
class Contraction:
    """The product of an interface: its two inputs, its output, and its einsum."""

    a: Param
    b: Param
    c: Param

    @property
    def subscripts(self) -> str:
        letters = dict.fromkeys((*self.a.indices, *self.b.indices))
        short = {letter: chr(ord("a") + at) for at, letter in enumerate(letters)}
        spelled = ["".join(short[i] for i in p.indices) for p in (self.a, self.b, self.c)]
        return f"{spelled[0]},{spelled[1]}->{spelled[2]}"

    @property
    def contracted(self) -> tuple[str, ...]:
        return tuple(i for i in self.a.indices if i in self.b.indices and i not in self.c.indices)


def contraction(interface: Interface) -> Contraction:
    """The first two inputs, which are multiplied, and the output."""
    found = tensors(interface)
    a, b = [param for param in found if not param.written][:2]
    (c,) = [param for param in found if param.written]
    return Contraction(a, b, c)


@record
class Placed:
    """A tensor within a poisoned buffer: padding between its rows, a guard before and after it."""

    array: DeviceArray
    buffer: DeviceArray
    dtype: DType = "f32"

    def put(self, values: DeviceArray) -> None:
        """Writes numbers into the tensor."""
        self.array[...] = elements(values, self.dtype)

    def poison(self) -> None:
        self.array[...] = nan(self.dtype)


def place(
    param: Param, interface: Interface, values: DeviceArray, pad: int = 0, layout: Layout = "behind"
) -> Placed:
    """``values`` in a buffer of NaN, with ``pad`` elements between its rows.

    ``layout`` is that of the matrices of a batch; if the leading dimension is no parameter of its
    own, they are one after another.
    """
    cp, dtype = cupy(), param.dtype
    pitch = pitch_of(param, interface, values.shape[-1], pad)
    batches = _batch_axes(interface, param)
    stored = values[_firsts(interface, param, layout)]
    others = [axis for axis in range(len(stored.shape) - 1) if axis not in batches]
    ld = dict(interface.pitch).get(param.name)
    within = layout == "within" and ld is not None and ld not in interface.extent_names()
    order = (*others, *batches) if within else (*batches, *others)
    lengths = [stored.shape[axis] for axis in order]
    count = int(np.prod(lengths, dtype=np.int64)) * pitch
    buffer = cp.full((GUARD + count + GUARD,), nan(dtype), storage(dtype))
    body = buffer[GUARD : GUARD + count].reshape(*lengths, pitch)
    back = [order.index(axis) for axis in range(len(order))]
    array = body[..., : stored.shape[-1]].transpose(*back, len(order))
    placed = Placed(array, buffer, dtype)
    placed.put(stored)
    if array.shape == values.shape:
        return placed
    return replace(placed, array=cp.broadcast_to(array, values.shape))


def _batch_axes(interface: Interface, param: Param) -> tuple[int, ...]:
    """The axes of a tensor along which its matrices have a stride."""
    batches = dict(interface.batches)
    return tuple(at for at, letter in enumerate(param.indices[:-1]) if letter in batches)


def _firsts(interface: Interface, param: Param, layout: Layout) -> tuple[slice, ...]:
    """Slices that take the first matrix along letters whose matrices share memory."""
    shared = _batch_axes(interface, param) if layout == "shared" and not param.written else ()
    return tuple(slice(1) if at in shared else slice(None) for at in range(len(param.indices)))


def pitch_of(param: Param, interface: Interface, row: int, pad: int) -> int:
    """``row`` elements and ``pad`` more, rounded up to what the kernel requires of that pitch."""
    name = dict(interface.pitch).get(param.name)
    if name is None or name in interface.extent_names():
        return row
    divisors = [
        requirement.divisor
        for requirement in interface.requirements
        if isinstance(requirement, MultipleOf) and requirement.name == name
    ]
    step = max(divisors, default=1)
    return max(-(-(row + pad) // step) * step, 1)


def inputs(
    interface: Interface, extents: Mapping[str, int], data: Data, layout: Layout = "behind"
) -> dict[str, DeviceArray]:
    """Representable numbers of the kind ``data`` for every tensor, the old C included.

    ``integers``: small and nonzero, so that sums are exact.  ``selection``: B selects columns of A,
    which have full mantissas, so that C is exact.  ``nan``: one NaN in A.
    """
    product = contraction(interface)
    seed = sum(ord(letter) for letter in data) + sum(extents.values())
    found: dict[str, DeviceArray] = {}
    for at, param in enumerate(tensors(interface)):
        shape = tuple(extents[interface.extent(letter)] for letter in param.indices)
        drawn = _values(shape, data, seed + 7919 * at, param.dtype)
        found[param.name] = held(drawn, param.dtype)
    if data == "selection":
        found[product.b.name] = _selection(product, found[product.b.name].shape)
    if data == "nan" and 0 not in found[product.a.name].shape:
        found[product.a.name][tuple(n // 2 for n in found[product.a.name].shape)] = float("nan")
    if layout == "shared":
        for param in tensors(interface):
            values = found[param.name]
            first = values[_firsts(interface, param, layout)]
            found[param.name] = cupy().broadcast_to(first, values.shape)
    return found


def _values(shape: tuple[int, ...], data: Data, seed: int, dtype: DType) -> DeviceArray:
    kind = "float64" if dtype == "f64" else "float32"
    cp = cupy()
    draw = cp.random.default_rng(seed)
    if 0 in shape:
        return cp.zeros(shape, kind)
    if data == "integers":
        found = draw.integers(-4, 4, shape)
        return cp.where(cp.equal(found, 0), 4, found).astype(kind)
    if data == "positive":
        return draw.random(shape, kind)
    return draw.standard_normal(shape, kind)


def _selection(product: Contraction, shape: tuple[int, ...]) -> DeviceArray:
    """B with a single 1 in each of its columns, at k = (7 n + 3) mod K."""
    cp = cupy()
    host = np.zeros(shape, np.float32)
    inner = [at for at, i in enumerate(product.b.indices) if i in product.contracted]
    depth = int(np.prod([shape[at] for at in inner], dtype=np.int64))
    moved = np.moveaxis(host, inner, range(len(inner)))
    flat = np.zeros((depth, host.size // depth if depth else 0), np.float32)
    columns = np.arange(flat.shape[1])
    if depth:
        flat[(columns * 7 + 3) % depth, columns] = 1
    moved[...] = flat.reshape(moved.shape)
    return cp.asarray(host)


def product_of(
    interface: Interface, values: Mapping[str, DeviceArray], *, absolute: bool
) -> DeviceArray:
    """The contraction in float64, of ``values`` or of their absolute values."""
    found = contraction(interface)
    a, b = values[found.a.name].astype("float64"), values[found.b.name].astype("float64")
    if absolute:
        a, b = abs(a), abs(b)
    return cupy().einsum(found.subscripts, a, b)


@record
class Expected:
    """A result in float64 and its error bound, element by element."""

    value: DeviceArray
    bound: DeviceArray

    def difference(self, stored: DeviceArray, dtype: DType = "f32") -> str | None:
        """A sentence with the first wrong element and the number of wrong ones, or None."""
        got = numbers(stored, dtype)
        if got.shape != self.value.shape:
            return f"shape {got.shape} instead of {self.value.shape}"
        if 0 in got.shape:
            return None
        cp = cupy()
        wide = got.astype("float64")
        near = abs(wide - self.value) <= self.bound
        same = cp.equal(wide, self.value) | (cp.isnan(wide) & cp.isnan(self.value))
        wrong = ~(near | same)
        count = int(cp.count_nonzero(wrong))
        if not count:
            return None
        at = tuple(int(i) for i in np.unravel_index(int(cp.argmax(wrong.ravel())), got.shape))
        found, want = float(wide[at]), float(self.value[at])
        return (
            f"C{list(at)} = {found!r} instead of {want!r} (may differ by "
            f"{float(self.bound[at]):.3g}); {count} elements are wrong"
        )


def expected(
    interface: Interface, values: Mapping[str, DeviceArray], alpha: float, beta: float, data: Data
) -> Expected:
    """alpha * A B + beta * C, within 0 (``integers``, ``selection``), 16 eps G, or gamma_K G.

    G = |alpha| |A| |B| + |beta| |C|; gamma_n = n eps / (1 - n eps) is the bound for any order of
    summation (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1), used if all
    products are positive; 16 eps is far above the error of zero-mean products.
    """
    product = contraction(interface)
    value = product_of(interface, values, absolute=False) * alpha
    old = values[product.c.name].astype("float64")
    if beta != 0:
        value = value + old * beta
    if data in ("integers", "selection"):
        rounded = held(value, product.c.dtype).astype("float64")
        return Expected(rounded, cupy().zeros(value.shape, "float64"))
    size = product_of(interface, values, absolute=True) * abs(alpha)
    if beta != 0:
        size = size + abs(old) * abs(beta)
    bound = size * rounding(product, values, data, accumulator(interface))
    return Expected(value, bound + storing(value, interface))


def accumulator(interface: Interface) -> DType:
    """The accumulator's type: f64 if the result is f64, else f32."""
    return "f64" if contraction(interface).c.dtype == "f64" else "f32"


def storing(value: DeviceArray, interface: Interface) -> DeviceArray:
    """The error that rounding a result to C's type may add."""
    dtype = contraction(interface).c.dtype
    if dtype == accumulator(interface):
        return cupy().zeros(value.shape, "float64")
    return abs(value) * (2 * UNIT[dtype]) + TINY[dtype]


def rounding(
    product: Contraction, values: Mapping[str, DeviceArray], data: Data, sums: DType = "f32"
) -> float:
    """The bound of the sums' rounding error, as a share of G.

    Products of both signs, rounded to nearest, lose a few u G for any K: 16 is far above.  Tensor
    cores multiply halves exactly, but add N products at a time (8 on an A100, 16 on an H100): they
    align these and the accumulator to the largest of them, and truncate all at its last bit, or a
    bit or two after it, and then the new sum at its own last bit: always towards zero (Fasi,
    Higham, Mikaitis and Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science
    7, 2021; for the H100 Li et al., FTTN, 2024).  The errors of the products have their signs, and
    stay at a few u G.  The errors of a sum s have its sign, and accumulate: each of K / N steps
    loses about 0.7 u |s|, at most 2 u |s|.  Products of variance 1 give G = 0.64 K, and a sum that
    ends z standard deviations from zero averages about z sqrt(K) / 2.  So it loses
    0.7 z sqrt(K) / (1.3 N) of u G: with N = 8 and z = 5.5, the worst of 10^7 elements, that is
    0.37 sqrt(K), or 24 for K = 4096, for which an NVIDIA H200 loses up to 18 (cuBLAS as well).
    sqrt(K) / 2 is above that and, from K = 1024 on, above 16.
    """
    unit = UNIT[sums]
    shape = dict(zip(product.a.indices, values[product.a.name].shape, strict=True))
    depth = int(np.prod([shape[i] for i in product.contracted], dtype=np.int64)) + 2
    if data != "positive":
        by_tensor_cores = product.a.dtype in HALVES and product.b.dtype in HALVES
        return unit * (max(16.0, depth**0.5 / 2) if by_tensor_cores else 16.0)
    return depth * unit / (1 - depth * unit)
