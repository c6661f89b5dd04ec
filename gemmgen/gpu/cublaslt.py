"""cublasLt: every algorithm that its heuristics propose for a product of two matrices.

It multiplies what ``cublasGemmEx`` has no call for (FP8, integers, tf32), and of what
both multiply its best algorithm may be the faster one.  Numbers of enumerations are those of
``cublasLt.h`` (CUDA 12 and 13).
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from functools import cache
from typing import Any

from gemmgen.base.record import record
from gemmgen.gpu import cublas
from gemmgen.gpu.cublas import Matrix
from gemmgen.gpu.device import cupy
from gemmgen.ir.dtypes import DTYPES, FP8, HALVES, DType

MOST = 12
"""Algorithms that are asked for."""
_WORKSPACE = 64 << 20
_TRANSA, _TRANSB, _A_SCALE, _B_SCALE, _FAST = 3, 4, 17, 18, 25  # CUBLASLT_MATMUL_DESC_*
_MEMORY, _ALIGNED = 1, (5, 6, 7, 8)  # CUBLASLT_MATMUL_PREF_: workspace; of A, B, C and D
_MOST_ALIGNED = 256


class Algorithm(ctypes.Structure):
    """``cublasLtMatmulAlgo_t``, which is opaque."""

    _fields_ = (("data", ctypes.c_uint64 * 8),)


class Proposal(ctypes.Structure):
    """``cublasLtMatmulHeuristicResult_t``."""

    _fields_ = (
        ("algorithm", Algorithm),
        ("workspace", ctypes.c_size_t),
        ("status", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


@record
class Computation:
    """What products are summed in: a ``cublasComputeType_t``, and the type of alpha and beta."""

    compute: int
    scale: int
    scalar: type[ctypes.c_float] | type[ctypes.c_double] | type[ctypes.c_int32] = ctypes.c_float


_IN_F32, _IN_F64 = Computation(68, 0), Computation(70, 1, ctypes.c_double)
_IN_TF32, _IN_I32 = Computation(77, 0), Computation(72, 10, ctypes.c_int32)
COMPUTATIONS: dict[tuple[DType, DType, DType], Computation] = {
    **{(half, half, c): _IN_F32 for half in HALVES for c in (half, "f32")},
    **{
        (a, b, c): _IN_F32
        for a in FP8
        for b in FP8
        for c in (*HALVES, "f32")
        if (a, b) != ("e5m2", "e5m2")
    },
    ("f64", "f64", "f64"): _IN_F64,
    ("tf32", "tf32", "f32"): _IN_TF32,
    ("i8", "i8", "i32"): _IN_I32,
    ("i8", "i8", "i8"): Computation(72, 0),
}
"""By the types of A, B and C, as cublasLtMatmul's table of supported types has them.  f32 is not
there: what it is compared with is pedantic."""


def calls(a: Matrix, b: Matrix, c: Matrix, *, fast: bool = False) -> tuple[Callable[[], None], ...]:
    """C = A B by each algorithm proposed, packed: calling one runs it on CuPy's current stream.

    Scales of FP8 are 1; ``fast``: their accumulators keep few bits. None if the
    library has no algorithm for these types and storage orders (on Hopper FP8 lie
    along k).
    """
    computation = COMPUTATIONS.get((a.dtype, b.dtype, c.dtype))
    if computation is None or 0 in (c.rows, c.columns, a.columns):
        return ()
    if not c.transposed:  # C is stored by columns: C by rows is C^T = B^T A^T by columns
        a, b, c = b.flipped(), a.flipped(), c.flipped()
    product = _Product(a, b, c, computation, fast)
    return tuple(product.call(algorithm) for algorithm in product.algorithms())


class _Library:
    """cublasLt on one device, with a workspace, and scales of 1."""

    def __init__(self) -> None:
        self.functions: Any = cublas.library("libcublasLt")
        self.handle = ctypes.c_void_p()
        self.do("cublasLtCreate", ctypes.byref(self.handle))
        self.memory = cupy().empty((_WORKSPACE,), "uint8")
        self.one = cupy().ones((1,), "float32")

    def do(self, name: str, *arguments: object) -> None:
        status = getattr(self.functions, name)(*arguments)
        if status:
            raise RuntimeError(f"{name} failed with status {status}")

    def made(self, owner: object, name: str, *arguments: object) -> ctypes.c_void_p:
        """What ``cublasLt<name>Create`` gives; it is destroyed when ``owner`` is."""
        found = ctypes.c_void_p()
        self.do(f"cublasLt{name}Create", ctypes.byref(found), *arguments)
        destroy = getattr(self.functions, f"cublasLt{name}Destroy")
        weakref.finalize(owner, destroy, found).atexit = False
        return found


@cache
def _library(device: int) -> _Library:
    return _Library()


class _Product:
    """Descriptions of a product whose C is stored by columns."""

    def __init__(
        self, a: Matrix, b: Matrix, c: Matrix, computation: Computation, fast: bool
    ) -> None:
        self.library = _library(cupy().cuda.runtime.getDevice())
        self.matrices, self.computation = (a, b, c), computation
        accumulators = ctypes.c_int(computation.compute), ctypes.c_int(computation.scale)
        self.description = self.library.made(self, "MatmulDesc", *accumulators)
        self._set(_TRANSA, ctypes.c_int32(0 if a.transposed else 1))
        self._set(_TRANSB, ctypes.c_int32(0 if b.transposed else 1))
        if a.dtype in FP8:
            self._set(_A_SCALE, ctypes.c_void_p(self.library.one.data.ptr))
            self._set(_B_SCALE, ctypes.c_void_p(self.library.one.data.ptr))
            self._set(_FAST, ctypes.c_int8(fast))
        self.layouts = [self._layout(matrix) for matrix in self.matrices]

    def _set(self, attribute: int, value: Any) -> None:
        given = ctypes.c_int(attribute), ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value))
        self.library.do("cublasLtMatmulDescSetAttribute", self.description, *given)

    def _layout(self, matrix: Matrix) -> ctypes.c_void_p:
        """Of a matrix as it is stored, by columns."""
        stored = matrix if matrix.transposed else matrix.flipped()
        extents = ctypes.c_uint64(stored.rows), ctypes.c_uint64(stored.columns)
        kind = ctypes.c_int(DTYPES[matrix.dtype].cuda[0])
        return self.library.made(self, "MatrixLayout", kind, *extents, ctypes.c_int64(matrix.ld))

    def algorithms(self) -> list[Algorithm]:
        """Those that the heuristics propose, the one that they expect to be the fastest first."""
        a, b, c = self.layouts
        preference = self.library.made(self, "MatmulPreference")
        one, two, three = (matrix.pointer for matrix in self.matrices)
        self._wish(preference, _MEMORY, ctypes.c_uint64(_WORKSPACE))
        for attribute, pointer in zip(_ALIGNED, (one, two, three, three), strict=True):
            self._wish(preference, attribute, ctypes.c_uint32(_aligned(pointer)))
        found, count = (Proposal * MOST)(), ctypes.c_int()
        ask = self.library.functions.cublasLtMatmulAlgoGetHeuristic
        status = ask(
            *(self.library.handle, self.description, a, b, c, c, preference),
            *(ctypes.c_int(MOST), found, ctypes.byref(count)),
        )
        proposals = [] if status else found[: count.value]
        return [Algorithm.from_buffer_copy(x.algorithm) for x in proposals if not x.status]

    def _wish(self, preference: ctypes.c_void_p, attribute: int, value: Any) -> None:
        given = ctypes.c_int(attribute), ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value))
        self.library.do("cublasLtMatmulPreferenceSetAttribute", preference, *given)

    def call(self, algorithm: Algorithm) -> Callable[[], None]:
        """The product by ``algorithm``, packed."""
        library, current = self.library, cupy().cuda.get_current_stream
        one, zero = self.computation.scalar(1), self.computation.scalar(0)
        a, b, c = (ctypes.c_void_p(matrix.pointer) for matrix in self.matrices)
        at, bt, ct = self.layouts
        arguments = (
            *(library.handle, self.description, ctypes.byref(one), a, at, b, bt),
            *(ctypes.byref(zero), c, ct, c, ct, ctypes.byref(algorithm)),
            *(ctypes.c_void_p(library.memory.data.ptr), ctypes.c_size_t(_WORKSPACE)),
        )
        owner = self  # which the descriptions live as long as

        def run() -> None:
            owner.library.do("cublasLtMatmul", *arguments, ctypes.c_void_p(current().ptr))

        return run


def _aligned(pointer: int) -> int:
    """The alignment of an address in bytes, at most 256."""
    return min(pointer & -pointer or _MOST_ALIGNED, _MOST_ALIGNED)
