"""The calls of cuBLAS and cublasLt for the same matrices as a kernel's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gemmgen.base.record import record
from gemmgen.gpu import cublas, cublaslt
from gemmgen.gpu.device import DeviceArray
from gemmgen.ir.gemm_roles import contraction
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param


def run_cublas(
    interface: Interface,
    arrays: Mapping[str, DeviceArray],
    alpha: float = 1.0,
    beta: float = 0.0,
    *,
    reduced: bool = True,
) -> Callable[[], None]:
    """cuBLAS's call for the matrices ``arrays`` of ``interface``, in any storage order.

    Of batches it is one strided-batched call if the matrices of each tensor are evenly apart,
    else one for each index of all batch letters but the longest.
    """
    batches = contraction(interface).batch
    c = contraction(interface).c
    sizes = tuple(arrays[c.name].shape[c.indices.index(letter)] for letter in batches)
    operands = _operands(interface, arrays)
    call = cublas.gemm_batches(*operands, sizes, alpha=alpha, beta=beta, reduced=reduced)
    return PackedCall(call, tuple(arrays.values()))


def lt_calls(
    interface: Interface, arrays: Mapping[str, DeviceArray]
) -> tuple[Callable[[], None], ...]:
    """The same product by each algorithm that cublasLt's heuristics propose, the first one first;
    none of batches, and of types that it does not multiply."""
    product = contraction(interface)
    if not is_matrices(interface) or product.batch:
        return ()
    a, b, c = (batch.matrix for batch in _operands(interface, arrays))
    found = cublaslt.calls(a, b, c, fast=in_few_bits(interface))
    return tuple(PackedCall(call, tuple(arrays.values())) for call in found)


def in_few_bits(interface: Interface) -> bool:
    """Whether accumulators keep fewer bits than f32 for all of K, as cublasLt's do by its fast
    mode."""
    arithmetic = interface.arithmetic
    return arithmetic.fraction is not None and arithmetic.terms is None


def _operands(
    interface: Interface, arrays: Mapping[str, DeviceArray]
) -> tuple[cublas.Batch, cublas.Batch, cublas.Batch]:
    """A, B and C in their roles."""
    product = contraction(interface)
    first = {product.a.name: product.m, product.b.name: product.k, product.c.name: product.m}

    def operand(param: Param) -> cublas.Batch:
        outer = next(i for i in param.indices if i not in product.batch)
        return _batch(arrays[param.name], param, product.batch, outer != first[param.name])

    return operand(product.a), operand(product.b), operand(product.c)


@record
class PackedCall:
    """A call that knows addresses alone, and the arrays there, which live as long as it does."""

    call: Callable[[], None]
    arrays: tuple[DeviceArray, ...]

    def __call__(self) -> None:
        self.call()


def is_plain(interface: Interface) -> bool:
    """Whether cuBLAS has a call for it: matrices of its types, or batches of them."""
    product = contraction(interface)
    types = product.a.dtype, product.b.dtype, product.c.dtype
    return cublas.multiplies(*types) and is_matrices(interface)


def is_matrices(interface: Interface) -> bool:
    """Whether A, B and C are matrices, or batches of them, and nothing else is a factor."""
    product = contraction(interface)
    if product.scales:
        return False
    operands = (product.a, product.b, product.c)
    return all(len(set(p.indices) - set(product.batch)) == 2 for p in operands)


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
