"""The words of the language other than directives, and their names in other languages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from gemmgen.base.record import record
from gemmgen.ir.dtypes import BYTES, DType
from gemmgen.ir.target import DEFAULT_TARGET
from gemmgen.schedule.spec import ArgumentSpec, Elsewhere

DTYPES: tuple[DType, ...] = tuple(BYTES)
_DTYPES_ELSEWHERE = (
    ("f32", "float float32 fp32 single s sgemm binary32"),
    ("f64", "double float64 fp64 d dgemm binary64"),
    ("f16", "half float16 fp16 h hgemm __half half_t binary16"),
    ("bf16", "bfloat16 bfloat nv_bfloat16 __nv_bfloat16 bfloat16_t b16"),
)
DTYPES_ELSEWHERE = {name: meant for meant, names in _DTYPES_ELSEWHERE for name in names.split()}
DTYPES_LATER = (
    ("tf32 tfloat32 fp32_tf32", "A=f32 B=f32 are multiplied with all their digits"),
    (
        "fp8 f8 e4m3 e5m2 f8e4m3 f8e5m2 f8e4m3fn float8 float8_e4m3 float8_e4m3fn float8_e5m2 fp4",
        "f16 and bf16 are the smallest types",
    ),
    (
        "int8 i8 s8 uint8 u8 int4 i4 int16 i16 int32 i32 int64 i64 int",
        "f16 holds the integers up to 2,048 and sums in f32 those up to 16,777,216 exactly",
    ),
)
"""Types that this version lacks, and alternatives."""

QUANTITIES = ("shared", "threads", "registers", "spills")
UNITS = {"B": 1, "KiB": 1024}


@record
class Head:
    """A statement that is no directive: a summary, and an example."""

    summary: str
    example: str
    elsewhere: Elsewhere | None = None


HEADS = {
    "gemm": Head(
        "what is computed, in index notation; index order is storage order, last contiguous",
        "gemm C[m, n] = A[m, k] * B[k, n]",
        Elsewhere("einsum, matmul", "matmul einsum compute mm gemv contract algorithm"),
    ),
    "kernel": Head(
        "the kernel's name; gemm if it is left out",
        "kernel my_gemm",
        Elsewhere("a kernel's name", "name function"),
    ),
    "dtype": Head(
        "element types: f32 if they are left out, f16, bf16, or f64 (all or nothing)",
        "dtype A=f16 B=f16 C=f32 acc=f32",
        Elsewhere("a tensor's type", "type types accumulate accumulator acc"),
    ),
    "target": Head(
        f"the oldest architecture that must run it; {DEFAULT_TARGET} if it is left out",
        f"target {DEFAULT_TARGET}",
        Elsewhere("--arch", "arch sm gpu"),
    ),
    "assume": Head(
        "a fact about the arguments, checked at launch: it removes guards and parameters",
        "assume N % 4 == 0",
    ),
    "require": Head(
        "a bound on shared memory (bytes or KiB), threads, registers or spills",
        "require shared <= 48KiB",
        Elsewhere("Kernel Tuner restrictions", "restrictions constraint limit assert"),
    ),
    "let": Head("a name for a value or a set that is used several times", "let t = {64, 128}"),
}
"""In the order in which a canonical text has them."""


@record
class Later:
    """A directive of the design that this version lacks, and what to do without it."""

    hint: str
    elsewhere: Elsewhere | None = None


LATER = {
    "cluster": Later(
        "remove the line: blocks run one by one; `raster group=8` keeps adjacent blocks together",
        Elsewhere("CUTLASS cluster shape", "cluster_shape"),
    ),
}

_ROLES = (
    {"block_size_x": "<n>", "block_size_y": "<m>", "tile_size_x": "<n>", "tile_size_y": "<m>"}
    | {"x": "<n>", "y": "<m>"}
    | {
        prefix + role: f"<{role}>"
        for role in "mnk"
        for prefix in ("", "b", "t", "w", "block_", "tile_", "block_size_", "size_")
    }
    | {f"{role}{suffix}": f"<{role}>" for role in "mnk" for suffix in ("wg", "dimc", "_tile")}
)
"""Other languages' names of arguments that are named after a letter."""


def close(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most similar to a misspelt one."""
    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower()[:64], by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None


def argument_meant(word: str, known: dict[ArgumentSpec, str]) -> str | None:
    """The argument that ``word`` means; ``known`` has each one's name in this schedule."""
    for spec, name in known.items():
        if word.lower() in spec.elsewhere.split() or _ROLES.get(word.lower()) == spec.name:
            return name
    return close(word, known.values())
