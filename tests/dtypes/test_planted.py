"""Mistakes with types, planted in emitted text and in lowering, are found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gemmgen.base.source import Source
from gemmgen.calling.launches import Case
from gemmgen.ir.dtypes import DType
from gemmgen.ir.expr import Call, Expr
from gemmgen.lower import contraction, epilogue, operands
from gemmgen.pipeline import Emitted, compile_source
from gemmgen.proof import meaning
from gemmgen.proof.calls import Caller
from gemmgen.proof.outcome import Subject
from gemmgen.sim.failures import KernelFailure
from gemmgen.sim.run import CompiledKernel

from .schedules import text

SHAPE = (33, 69, 35)
CASES = (Case(SHAPE, "normal", 0.7, -1.0, 5), Case(SHAPE, "integers", 1.0, 0.0, 8))


def emitted(schedule: str, types: str) -> Emitted:
    return compile_source(Source(text(schedule, types)))


def complaint(kernel: Emitted, changed: str) -> str | None:
    """The result of a checked run of another text in place of the kernel."""
    caller = Caller(kernel)
    try:
        run = CompiledKernel(changed, kernel.interface, checked=True, warn=False)
        return next((c for case in CASES if (c := caller.complaint(case, run))), None)
    except KernelFailure as failure:
        return str(failure)


NEXT = "\n" + 24 * " "
A_PIECE = "&A[(long long)m * lda + k],\n" + 12 * " "
B_PIECE = "&B[(long long)k * ldb + n],\n" + 12 * " "
TEXTS = {
    "a fragment not converted": (
        "wide", "f16", "= gg_from_f16(A_raw[e])", "= A_raw[e]", "C: wrong bits",
    ),
    "bits of the other format": (
        "wide", "f16 times bf16", "gg_from_bf16(B_raw", "gg_from_f16(B_raw", "C: ",
    ),
    "an element not converted": (
        "naive", "bf16", "gg_from_bf16(A[(long long)m * lda + k])", "A[(long long)m * lda + k]",
        "C: wrong bits",
    ),
    "a result not converted": (
        "naive", "f16", "gg_to_f16(fmaf(", "static_cast<unsigned short>(fmaf(", "C: ",
    ),
    "a result rounded to the other format": (
        "tiled", "bf16", "cvt.rn.bf16.f32", "cvt.rn.f16.f32", "C: ",
    ),
    "a result rounded twice": (
        "wide", "f16", "alpha * acc[reg_m][reg_n + e]",
        "gg_from_f16(gg_to_f16(alpha * acc[reg_m][reg_n + e]))", "C: wrong bits",
    ),
    "old elements not converted": (
        "wide", "f16", "gg_from_f16(old[e])", "old[e]", "C: wrong bits",
    ),
    "acc in single precision": ("register_blocked", "f64", "double acc[", "float acc[", "C: "),
    "a multiply-add in single precision": (
        "register_blocked", "f64", "fma(A_frag", "fmaf(A_frag", "C: wrong bits",
    ),
    "alpha in single precision": (
        "naive", "f64", "alpha * acc", "static_cast<float>(alpha) * acc", "C: wrong bits",
    ),
    "half of a wide read": (
        "wide", "f16",
        "copy8(A_raw, ",
        "*reinterpret_cast<uint2 *>(A_raw) = *reinterpret_cast<const uint2 *>(",
        "C: ",
    ),
    "a wide read guarded like a narrower one": (
        "wide", "f16", "j + VEC - 1 < cols", "j + 3 < cols", "out of bounds",
    ),
    "a row that breaks wide accesses": (
        "wide", "f16", "B_shared[2][BK][BN]", "B_shared[2][BK][BN + 4]", "misaligned",
    ),
    "raw elements that wide reads do not fit": (
        "wide", "f16", "alignas(16) unsigned short B_raw[VEC]", "unsigned short B_raw[VEC]",
        "lacks alignas(16)",
    ),
    "fragments of doubles that wide reads do not fit": (
        "wide", "f64", "alignas(16) double A_frag", "double A_frag", "lacks alignas(16)",
    ),
    "a half that is not stored": (
        "wide", "f16", f"e < VEC; ++e){NEXT}A_shared", f"e < VEC - 1; ++e){NEXT}A_shared",
        "never written",
    ),
    "a barrier dropped among halves": (
        "wide", "f16", "                __syncthreads();\n", "", "race",
    ),
    "a barrier dropped among doubles": (
        "tiled", "f64", "        __syncthreads();\n", "", "race",
    ),
    "elements counted for bytes": (
        "asynchronous", "f16", f"{A_PIECE}valid * sizeof(unsigned short)", f"{A_PIECE}valid", "C: ",
    ),
    "more bytes than there are": (
        "asynchronous", "f64",
        f"{B_PIECE}valid * sizeof(double)",
        f"{B_PIECE}2 * valid * sizeof(double)",
        "valid bytes",
    ),
    "i8 without its sign": (
        "wide", "i8 to i8", "static_cast<float>(old[e])",
        "static_cast<float>(static_cast<unsigned char>(old[e]))", "C: wrong bits",
    ),
    "operands without their sign": (
        "wide", "i8", "= A_raw[e]", "= static_cast<unsigned char>(A_raw[e])", "C: wrong bits",
    ),
    "no saturation": (
        "wide", "i8 to i8", "gg_to_i8(fmaf(", "static_cast<signed char>(fmaf(", "C: ",
    ),
    "the sign of a byte lost": (
        "wide", "e5m2 to e4m3", "out[e] =\n", "out[e] = 0x7f &\n", "C: wrong bits",
    ),
    "bytes of the other format": (
        "wide", "e4m3 to e5m2", "gg_from_e4m3(B_raw", "gg_from_e5m2(B_raw", "",
    ),
    "a byte that is not stored": (
        "wide", "i8", f"e < VEC; ++e){NEXT}A_shared", f"e < VEC - 1; ++e){NEXT}A_shared",
        "never written",
    ),
}  # fmt: skip


@pytest.mark.proof
@pytest.mark.in_proof(share=3)
@pytest.mark.parametrize("name", TEXTS)
def test_finds_in_the_text(name: str) -> None:
    schedule, types, old, new, found = TEXTS[name]
    kernel = emitted(schedule, types)
    assert old in kernel.text, f"the emitted text has no {old!r} any more: mend this test"
    assert complaint(kernel, kernel.text) is None
    message = complaint(kernel, kernel.text.replace(old, new))
    assert message is not None and found in message, message


def test_neighbours_of_a_word_that_two_threads_write_are_no_race() -> None:
    """Threads that store the two halves of one word do not meet."""
    kernel = emitted("tiled", "f16")
    assert "A_shared[A_k][A_m] = " in kernel.text
    assert complaint(kernel, kernel.text) is None


def as_it_is(expr: Expr, dtype: DType, numbers: DType = "f32") -> Expr:
    return expr


def other_format(expr: Expr, dtype: DType, numbers: DType = "f32") -> Expr:
    known = {"f16": "bf16", "bf16": "f16"}
    return Call(f"from_{known[dtype]}", (expr,)) if dtype in known else expr


LOWERING: dict[str, tuple[object, str, Callable[[Expr, DType], Expr], str, str]] = {
    "fragments are not converted": (operands, "computable", as_it_is, "wide", "f16"),
    "operands are not converted": (contraction, "computable", as_it_is, "tiled", "bf16"),
    "fragments are of the other format": (operands, "computable", other_format, "wide", "bf16"),
    "results are not converted": (epilogue, "storable", as_it_is, "naive", "f16"),
    "the epilogue's tensors are not converted": (
        epilogue, "computable", as_it_is, "epilogue", "bf16",
    ),
}  # fmt: skip


@pytest.mark.by_default("results are not converted")
@pytest.mark.parametrize("name", LOWERING)
def test_the_interpreter_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, function, wrong, schedule, types = LOWERING[name]
    kernel = emitted(schedule, types)
    assert meaning.check(Subject(kernel, (SHAPE,))).status == "passed"
    monkeypatch.setattr(module, function, wrong)
    assert meaning.check(Subject(kernel, (SHAPE,))).status == "failed"
