"""cuBLAS, in float32 and float64 without tensor cores: the reference for results and for speed.

Called through ctypes rather than CuPy's wrapper, which cannot be captured in a CUDA graph, and with
a handle of our own, so that the math mode of other users of cuBLAS does not change.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from pathlib import Path

from gemmgen.base.errors import CannotCheck
from gemmgen.base.record import record
from gemmgen.gpu.device import DeviceArray, cupy
from gemmgen.ir.dtypes import BYTES, DTYPES, HALVES, DType, in_blas

PEDANTIC = 2  # CUBLAS_PEDANTIC_MATH: no TF32, no reduced-precision shortcuts
DEFAULT = 0  # CUBLAS_DEFAULT_MATH
F32_REDUCTIONS = 16  # CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION
_ACCUMULATORS: dict[DType, int] = {"f32": 68, "f64": 70}  # CUBLAS_COMPUTE_32F, _64F
_DEFAULT_ALGORITHM = -1
_WORKSPACE = 32 << 20  # cuBLAS's own default on Hopper


@record
class Matrix:
    """A rows x columns matrix in device memory, stored by rows every ``ld`` elements.

    ``transposed``: stored by columns instead.  ``stride`` is the distance between the matrices of a
    batch, in elements.
    """

    pointer: int
    rows: int
    columns: int
    ld: int
    transposed: bool = False
    stride: int = 0
    dtype: DType = "f32"

    def flipped(self) -> Matrix:
        """The transpose of this matrix, in the same memory."""
        return replace(self, rows=self.columns, columns=self.rows, transposed=not self.transposed)


def matrix(array: DeviceArray, dtype: DType = "f32", *, transposed: bool = False) -> Matrix:
    """``array`` (its last axis contiguous) as a matrix; ``transposed``: as the matrix's columns."""
    rows, columns = array.shape[-2:]
    item = array.dtype.itemsize
    ld = max(array.strides[-2] // item, columns, 1) if rows > 1 else max(columns, 1)
    stride = array.strides[-3] // item if len(array.shape) == 3 else 0
    found = Matrix(array.data.ptr, rows, columns, ld, stride=stride, dtype=dtype)
    return found.flipped() if transposed else found


def multiplies(a: DType, b: DType, c: DType) -> bool:
    """Whether cuBLAS has a call for these types, with accumulators in f32, or in f64 if all are
    f64."""
    return in_blas(a, b, c)


@record
class Batch:
    """The first of several matrices, and the elements between them along each batch letter."""

    matrix: Matrix
    steps: tuple[int, ...]

    def at(self, index: tuple[int, ...], stride: int) -> Matrix:
        """The matrix at an index, ``stride`` elements before the next one of a call."""
        offset = sum(i * step for i, step in zip(index, self.steps, strict=True))
        return replace(
            self.matrix,
            pointer=self.matrix.pointer + BYTES[self.matrix.dtype] * offset,
            stride=stride,
        )


def gemm_batches(
    a: Batch,
    b: Batch,
    c: Batch,
    sizes: tuple[int, ...],
    *,
    alpha: float,
    beta: float,
    reduced: bool = True,
) -> Callable[[], None]:
    """``gemm`` for each index below ``sizes``, packed, in as few calls as strides allow."""
    if 0 in sizes or 0 in (c.matrix.rows, c.matrix.columns):
        return lambda: None
    within = _evenly_apart((a, b, c), sizes)
    count = math.prod(sizes[at] for at in within)
    outer = [range(1 if at in within else size) for at, size in enumerate(sizes)]
    last = within[-1] if within else None
    strides = [0 if last is None else batch.steps[last] for batch in (a, b, c)]
    calls = [
        gemm(
            a.at(index, strides[0]),
            b.at(index, strides[1]),
            c.at(index, strides[2]),
            alpha=alpha,
            beta=beta,
            batch=count,
            reduced=reduced,
        )
        for index in product(*outer)
    ]

    def run() -> None:
        for call in calls:
            call()

    return run


def _evenly_apart(operands: tuple[Batch, ...], sizes: tuple[int, ...]) -> tuple[int, ...]:
    """The batch letters that one call covers: all, if each operand's matrices have one constant
    stride; else the longest."""
    several = tuple(at for at, size in enumerate(sizes) if size > 1)
    for batch in operands:
        for at, inner in pairwise(several):
            if batch.steps[at] != batch.steps[inner] * sizes[inner]:
                return (max(several, key=lambda at: sizes[at]),)
    return several


def gemm(
    a: Matrix,
    b: Matrix,
    c: Matrix,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    batch: int = 1,
    reduced: bool = True,
) -> Callable[[], None]:
    """C = alpha * A B + beta * C, packed: calling the result runs it on CuPy's current stream.

    f16 and bf16 are multiplied by cuBLAS's default algorithm, on tensor cores, accumulated in f32;
    ``reduced``: the slices of a split K may be added in C's type, as by default.
    """
    assert a.columns == b.rows and (a.rows, b.columns) == (c.rows, c.columns)
    if not c.transposed:  # cuBLAS stores by columns: C by rows is C^T = B^T A^T by columns
        a, b, c = b.flipped(), a.flipped(), c.flipped()
    mode = PEDANTIC if a.dtype not in HALVES else DEFAULT if reduced else F32_REDUCTIONS
    handle = _handle(cupy().cuda.runtime.getDevice(), mode)
    accumulators = _ACCUMULATORS["f64" if a.dtype == "f64" else "f32"]
    real = ctypes.c_double if a.dtype == "f64" else ctypes.c_float
    one, two = real(alpha), real(beta)
    pointer, size, long = ctypes.c_void_p, ctypes.c_int, ctypes.c_longlong

    def operand(matrix: Matrix) -> tuple[object, ...]:
        single = (pointer(matrix.pointer), size(DTYPES[matrix.dtype].cuda[0]), size(matrix.ld))
        return single if batch == 1 else (*single, long(matrix.stride))

    arguments = (
        handle.value,
        size(0 if a.transposed else 1),
        size(0 if b.transposed else 1),
        *(size(c.rows), size(c.columns), size(a.columns), ctypes.byref(one)),
        *(*operand(a), *operand(b), ctypes.byref(two), *operand(c)),
        *(() if batch == 1 else (size(batch),)),
        *(size(accumulators), size(_DEFAULT_ALGORITHM)),
    )
    function = handle.gemm if batch == 1 else handle.gemm_batched
    current = cupy().cuda.get_current_stream

    def run() -> None:
        handle.join(current().ptr)
        _check(function(*arguments), "cublasGemmEx")

    return run


class _Handle:
    """A cuBLAS context of one device, in one math mode, with a workspace."""

    def __init__(self, mode: int) -> None:
        cublas = library()
        handle = ctypes.c_void_p()
        _check(cublas.cublasCreate_v2(ctypes.byref(handle)), "cublasCreate")
        self.value = handle
        self.gemm = cublas.cublasGemmEx
        self.gemm_batched = cublas.cublasGemmStridedBatchedEx
        self._set_stream = cublas.cublasSetStream_v2
        self._set_workspace = cublas.cublasSetWorkspace_v2
        self._memory = cupy().empty((_WORKSPACE,), "uint8")
        self._stream = -1
        _check(cublas.cublasSetMathMode(handle, ctypes.c_int(mode)), "cublasSetMathMode")

    def join(self, stream: int) -> None:
        """Uses ``stream`` from now on.  Setting a stream resets the workspace, which is set
        again."""
        if stream == self._stream:
            return
        _check(self._set_stream(self.value, ctypes.c_void_p(stream)), "cublasSetStream")
        memory = ctypes.c_void_p(self._memory.data.ptr)
        size = ctypes.c_size_t(_WORKSPACE)
        _check(self._set_workspace(self.value, memory, size), "cublasSetWorkspace")
        self._stream = stream


@cache
def _handle(device: int, mode: int = PEDANTIC) -> _Handle:
    return _Handle(mode)


@cache
def version() -> int:
    """cuBLAS's version number, 130100 say."""
    handle = _handle(cupy().cuda.runtime.getDevice())
    found = ctypes.c_int()
    _check(library().cublasGetVersion_v2(handle.value, ctypes.byref(found)), "cublasGetVersion")
    return found.value


@cache
def library(stem: str = "libcublas") -> ctypes.CDLL:
    """The cuBLAS that CuPy loads (or cublasLt, which comes with it), or else the system's."""
    with suppress(ImportError, RuntimeError, OSError, AttributeError):
        cupy().cuda.device.get_cublas_handle()
    names = [*_loaded(stem), *(f"{stem}.so{version}" for version in (".13", ".12", ""))]
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise CannotCheck(f"{stem} is not installed, so there is no comparison")


def _loaded(stem: str) -> list[str]:
    """Paths of the libraries of that name in this process."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return []
    paths = {line.split()[-1] for line in maps.read_text().splitlines() if "/" in line}
    return sorted(path for path in paths if Path(path).name.startswith(f"{stem}.so"))


def _check(status: int, call: str) -> None:
    if status != 0:
        raise RuntimeError(f"{call} failed with status {status}")
