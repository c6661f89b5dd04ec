"""The functions of users: ``matmul``, ``linear`` and ``explain_matmul``."""

from __future__ import annotations

from typing import Any, Protocol

from gemmgen.functions.array_kinds import NUMPY, TORCH, Array, kind_of
from gemmgen.functions.call_epilogue import given
from gemmgen.functions.cupy_calls import cupy_product
from gemmgen.functions.direct import DirectCall, product
from gemmgen.functions.torch_calls import torch_product
from gemmgen.ir.decompositions import Fast


class Handler(Protocol):
    """The product of arrays of one library; ``transposed``: ``b`` is a weight, (N, K)."""

    def __call__(
        self,
        a: Array,
        b: Array,
        bias: Array | None,
        epilogue: object,
        out: Array | None,
        fast: Fast,
        same_bits: str | None,
        transposed: bool,
    ) -> Array: ...


_handlers: dict[type, Handler] = {}
"""By the type of the first operand."""


def matmul(
    a: object,
    b: object,
    *,
    bias: object = None,
    epilogue: object = None,
    out: object = None,
    fast: Fast = False,
    same_bits: str | None = None,
) -> Any:
    """The matrix product of two arrays of one library: NumPy, CuPy or PyTorch.

    >>> import numpy as np
    >>> import gemmgen
    >>> a = np.arange(6, dtype=np.float32).reshape(2, 3)
    >>> b = np.ones((3, 4), np.float32)
    >>> gemmgen.matmul(a, b, bias=np.array([0, 1, 2, 3], np.float32))
    array([[ 3.,  4.,  5.,  6.],
           [12., 13., 14., 15.]], dtype=float32)
    >>> gemmgen.matmul(a, b, epilogue=("relu(scale * acc) + r[m, n]", {"scale": -1.0, "r": a @ b}))
    array([[ 3.,  3.,  3.,  3.],
           [12., 12., 12., 12.]], dtype=float32)

    **Shapes** are those of ``numpy.matmul``: (..., M, K) times (..., K, N) is (..., M, N), vectors
    are taken, and batch dimensions broadcast without copies.  With K = 0 the product is 0.

    **Strides**: each operand may be contiguous, transposed, or a slice of either, and is read in
    place.  An operand that no kernel can read in place (no stride of its matrices is 1, or one is
    negative, or rows overlap) is copied first; ``explain_matmul`` says so.

    **Types**: f16, bf16, f32, f64, i8, e4m3 and e5m2, both operands alike (the two of FP8 may be
    mixed).  The result has that type, but of i8 it is int32 and of FP8 float32: these are what
    sums are kept in, and FP8 has no scales here.  Sums of f16, bf16 and f32 are kept in float32.
    tf32 is never used for float32.  An ``out`` may also be float32, float16 or bfloat16 where sums
    are float32, and float32 for i8.

    ``bias``: N values that are added along n.  ``epilogue``: what is computed of each sum ``acc``
    in place of that, an expression of the language (``"gelu(acc + bias[n])"``) or a pair of it and
    the values of its names.  Its letters are m and n, and b1, b2, ... for batch dimensions from the
    left of the result.  Numbers go by name rather than in the text: each text is compiled.

    ``out``: where the result is written, never through a copy; it must not overlap an operand.
    Then ``C[m, n]`` in an epilogue is its old value.

    ``fast``: float32 may be multiplied on tensor cores as products of bf16 terms, where the GPU has
    wgmma (sm_90) and that is estimated to be faster.  Each element then differs from the exact
    product by at most (18 T + K / T + 1) 2^-24 times the sum of abs(a b) along k, T = 64.  In
    practice that is the error of float32 for up to 4096 terms, and up to 4 times as much for 65536;
    parts of numbers below 2^-110 are lost.  ``fast="f16"``: as products of two f16 terms of scaled
    rows, faster and less accurate: (9 T + K / T + 9) 2^-24 times that sum, T = 128, and K 2^-38
    times the largest magnitudes of the row of ``a`` and of the column of ``b``.

    ``same_bits``: ``"m"`` if the bits of a row of the result must not depend on the number of rows
    (batch invariance), ``"n"`` for columns, ``"m n"`` for both.  All calls that differ in it alone
    then sum in one order, which ``gemmgen.suggest`` fixes by the types, K and N; K is not split.
    Leading batch dimensions of ``a`` that ``b`` lacks are rows.  Rows of operands should begin at
    multiples of 16 bytes; if no kernel of the order takes the arrays, that is an error.

    **Kernels** are chosen for each shape by ``gemmgen.suggest``'s estimates for the GPU of the
    arrays and compiled in the first call, which takes seconds; later calls like it only launch, on
    the library's current stream.  That works within the capture of a CUDA graph, too, but compiles
    there: call each shape once before.  PyTorch tensors have gradients, under ``torch.compile`` it
    is one operator, and the result is contiguous.  NumPy arrays (and CPU tensors) are multiplied by
    the emitted text that g++ compiles, which is slow and meant for tests.

    Raises ``CallError`` (a ``ValueError``) for arrays that can't be multiplied, with what to do;
    ``ScheduleError`` for a mistake in the epilogue; ``CannotCheck`` without a GPU or g++.
    """
    return (_handlers.get(type(a)) or _handler(a))(
        a, b, bias, epilogue, out, fast, same_bits, False
    )


def linear(
    x: object,
    weight: object,
    bias: object = None,
    *,
    epilogue: object = None,
    out: object = None,
    fast: Fast = False,
    same_bits: str | None = None,
) -> Any:
    """``x`` times the transposed ``weight``, as ``torch.nn.functional.linear`` has it.

    >>> import numpy as np
    >>> import gemmgen
    >>> x, weight = np.ones((2, 3), np.float32), np.eye(4, 3, dtype=np.float32)
    >>> gemmgen.linear(x, weight, epilogue="relu(acc - 0.5)")
    array([[0.5, 0.5, 0.5, 0. ],
           [0.5, 0.5, 0.5, 0. ]], dtype=float32)

    ``x``: (..., K).  ``weight``: (N, K), or (K,) for a result without a dimension for n.  ``bias``:
    N values.  All else is as for ``matmul``, of whose product these are ``a`` and ``b.T``.
    """
    run = _handlers.get(type(x)) or _handler(x, "x")
    return run(x, weight, bias, epilogue, out, fast, same_bits, True)


def _handler(value: object, name: str = "a") -> Handler:
    """The handler of an array's library; raises ``CallError`` for anything else."""
    kind = kind_of({name: value})
    found: Handler = _numpy_product
    if kind is not NUMPY:
        found = torch_product if kind is TORCH else cupy_product
    _handlers[type(value)] = found
    return found


def _numpy_product(
    a: Array,
    b: Array,
    bias: Array | None,
    epilogue: object,
    out: Array | None,
    fast: Fast,
    same_bits: str | None,
    transposed: bool,
) -> Array:
    text, values = given(bias, epilogue)
    found = product(DirectCall.of(a, b, text, values, out, fast, same_bits, transposed))
    return found if out is not None else found[()]
