"""cuBLAS's call for the same matrices as a kernel's."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gemmgen.base.record import record
from gemmgen.calling.gemm_roles import contraction
from gemmgen.gpu import cublas
from gemmgen.gpu.device import DeviceArray
from gemmgen.ir.interface import Interface, Param


def run_cublas(
    interface: Interface,
    arrays: Mapping[str, DeviceArray],
    alpha: float = 1.0,
    beta: float = 0.0,
) -> Callable[[], None]:
    """cuBLAS's call for the matrices ``arrays`` of ``interface``, in any storage order.

    Of batches it is one strided-batched call if the matrices of each tensor are evenly apart,
    else one for each index of all batch letters but the longest.
    """
    product = contraction(interface)
    batches, rows = product.batch, product.m
    first = {product.a.name: rows, product.b.name: product.k, product.c.name: rows}
    operands: list[cublas.Batch] = []
    for param in (product.a, product.b, product.c):
        outer = next(i for i in param.indices if i not in batches)
        turned = outer != first[param.name]
        operands.append(_batch(arrays[param.name], param, batches, turned))
    sizes = tuple(
        arrays[product.c.name].shape[product.c.indices.index(letter)] for letter in batches
    )
    call = cublas.gemm_batches(operands[0], operands[1], operands[2], sizes, alpha=alpha, beta=beta)
    return _Packed(call, tuple(arrays.values()))


@record
class _Packed:
    """A call that knows addresses alone, and the arrays there, which live as long as it does."""

    call: Callable[[], None]
    arrays: tuple[DeviceArray, ...]

    def __call__(self) -> None:
        self.call()


def is_plain(interface: Interface) -> bool:
    """Whether cuBLAS has a call for it: matrices of its types, or batches of them."""
    product = contraction(interface)
    if not cublas.multiplies(product.a.dtype, product.b.dtype, product.c.dtype):
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
