"""cuBLAS's call for the same product."""

from __future__ import annotations

from gemmgen.base.record import record
from gemmgen.emit.ctext import c_text
from gemmgen.emit.main.layout import chain, elements, paragraph
from gemmgen.emit.printing import printed
from gemmgen.emit.views import View
from gemmgen.ir.dtypes import DTYPES, DType, in_blas
from gemmgen.ir.expr import Expr, Var, Wide
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param
from gemmgen.ir.problem import Problem

_COMPUTED: dict[DType, str] = {
    **dict.fromkeys(("f32", "f16", "bf16"), "CUBLAS_COMPUTE_32F"),
    "f64": "CUBLAS_COMPUTE_64F",
    "tf32": "CUBLAS_COMPUTE_32F_FAST_TF32",
}
"""How cuBLAS multiplies operands of a type."""


def data_type(dtype: DType) -> str:
    """``cudaDataType_t`` of an element."""
    return f"CUDA_R_{DTYPES[dtype].cuda[1]}"


def has_call(problem: Problem) -> bool:
    """Whether cuBLAS has a call for these types, with accumulators in f32, or in f64 if all are
    f64."""
    a, b, c = problem.a.dtype, problem.b.dtype, problem.c.dtype
    return in_blas(a, b, c) or (a, b, c) == ("tf32", "tf32", "f32")


@record
class _CublasMatrix:
    """A matrix as cuBLAS's call names it; ``stride`` parts those of one call."""

    op: str
    at: str
    type: str
    ld: str
    stride: str


def rival(interface: Interface, problem: Problem, sum_type: str, seed: int) -> str:
    """The declarations of ``prod`` and of ``product``, which writes A B there."""
    of = {param.name: param for param in interface.tensors}
    a, b, c = (of[tensor.name] for tensor in (problem.a, problem.b, problem.c))
    by_rows = c.indices[-1] == problem.n
    # What cuBLAS takes first and second, and the letter that is contiguous where it lies as it is.
    first, second = (
        ((b, problem.n), (a, problem.k)) if by_rows else ((a, problem.m), (b, problem.k))
    )
    outer, inner = _batches(interface, problem)
    operands = [
        _matrix(interface, param, letter, outer, inner) for param, letter in (first, second)
    ]
    rows, columns = (problem.n, problem.m) if by_rows else (problem.m, problem.n)
    transposed = [p.text for p, letter in (first, second) if p.indices[-1] != letter]
    view: View = {
        "first": operands[0],
        "second": operands[1],
        "result": _matrix(interface, c, c.indices[-1], outer, inner, "prod"),
        "rows": interface.extent(rows),
        "columns": interface.extent(columns),
        "depth": interface.extent(problem.k),
        "matrices": c_text(chain("*", *(Var(interface.extent(x)) for x in inner))) if inner else "",
        "compute": _COMPUTED[problem.a.dtype],
    }
    explained: View = {"a": a.name, "b": b.name, "c": c.name, "transposed": transposed}
    loops = [printed("main/loop.j2", _loop(interface, letter)) for letter in outer]
    return printed(
        "main/rival.j2",
        {
            "pedantic": range(problem.a.dtype in ("f32", "f64")),
            "sum": sum_type,
            "count": elements(interface, c),
            "seed": seed,
            "c": c.name,
            "why": paragraph(f"main/{'rows' if by_rows else 'columns'}.j2", explained),
            "loops": ["    " * at + loop for at, loop in enumerate(loops)],
            "within": 8 + 4 * len(loops),
            "call": printed(f"main/{'gemm_batched' if inner else 'gemm'}.j2", view),
        },
    )


def _loop(interface: Interface, letter: str) -> View:
    return {"letter": letter, "extent": interface.extent(letter)}


def _batches(interface: Interface, problem: Problem) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The batch letters of loops, and those of one call: all of them if every tensor has all as its
    first letters, in one order, or has none; else the last."""
    letters = problem.batch
    for tensor in (problem.a, problem.b, problem.c):
        if tensor.letters[: len(letters)] != letters and set(letters) & set(tensor.letters):
            return letters[:-1], letters[-1:]
    return (), letters


def _matrix(
    interface: Interface,
    param: Param,
    contiguous: str,
    outer: tuple[str, ...],
    inner: tuple[str, ...],
    buffer: str = "",
) -> _CublasMatrix:
    """A tensor's matrix: as it lies if ``contiguous`` is its last letter, else transposed."""
    step = dict(zip(param.indices, interface.steps(param), strict=True))
    start: Expr = Var(f"{buffer or param.name}.there")
    for letter in outer:
        if (stride := step.get(letter)) is not None:
            start = start + Wide(Var(letter)) * Var(stride)
    return _CublasMatrix(
        op="CUBLAS_OP_N" if param.indices[-1] == contiguous else "CUBLAS_OP_T",
        at=c_text(start),
        type=data_type(param.dtype),
        ld=dict(interface.pitch)[param.name],
        stride=(step.get(inner[-1]) or "0") if inner else "",
    )
