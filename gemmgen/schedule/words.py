"""The words of the language other than directives, and their names in other languages."""

from __future__ import annotations

from collections.abc import Iterable

from gemmgen.base.record import record
from gemmgen.ir.dtypes import DTYPES
from gemmgen.ir.target import DEFAULT_TARGET
from gemmgen.schedule.spec import ArgumentSpec, Elsewhere

DTYPES_ELSEWHERE = {
    name: meant for meant, traits in DTYPES.items() for name in traits.called.split()
}
DTYPES_LATER = (
    (
        "fp4 f4 e2m1 nvfp4 mxfp4 mxfp8 fp6 e3m2 e2m3 e8m0",
        "e4m3 and e5m2 are the smallest types, with scales by the epilogue: acc * SA[m] * SB[n]",
    ),
    (
        "uint8 u8 int4 i4 uint4 u4 int16 i16 int64 i64",
        "i8 holds the integers from -128 to 127, and accumulates in i32",
    ),
)
"""Types that this version lacks, and alternatives."""

QUANTITIES = ("shared", "threads", "registers", "spills")
SAME_BITS = "same_bits"
"""The requirement that is not a bound."""
UNITS = {"B": 1, "KiB": 1024}


@record
class Head:
    """A statement that is not a directive: a summary, and an example."""

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
        "element types: f32 if they are left out; `dtype f16` (f64, bf16) for A, B and C; "
        "`dtype i8` for A=i8 B=i8 C=i32, with accumulators in i32; `dtype e4m3` (e5m2) for "
        "A=e4m3 B=e4m3 C=f32; `dtype tf32`: f32 A and B, multiplied with 10 fraction bits",
        "dtype A=f16 B=f16 C=f32 acc=f32",
        Elsewhere("a tensor's type", "type types accumulate accumulator acc"),
    ),
    "target": Head(
        f"the oldest architecture that must run it; if it is left out {DEFAULT_TARGET}, or the "
        "first that has the element types (sm_89 for FP8)",
        f"target {DEFAULT_TARGET}",
        Elsewhere("--arch", "arch sm gpu"),
    ),
    "assume": Head(
        "a fact about the arguments, checked at launch: it removes guards and parameters",
        "assume N % 4 == 0",
    ),
    "require": Head(
        "a bound on shared memory (bytes or KiB), threads, registers or spills; or `same_bits over "
        "m`: a row's bits do not depend on the number of rows",
        "require shared <= 48KiB",
        Elsewhere(
            "Kernel Tuner restrictions",
            "restrictions constraint limit assert same_bits batch_invariant deterministic",
        ),
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
    "stream_k": Later(
        "remove the line: `split_k parts=2` gives each tile two blocks, which share its k",
        Elsewhere("CUTLASS StreamKScheduler", "streamk streamkscheduler stream_k_scheduler"),
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
    from difflib import get_close_matches

    by_lower = {name.lower(): name for name in known}
    found = get_close_matches(word.lower()[:64], by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None


def argument_meant(word: str, known: dict[ArgumentSpec, str]) -> str | None:
    """The argument that ``word`` means; ``known`` has each one's name in this schedule."""
    for spec, name in known.items():
        if word.lower() in spec.elsewhere.split() or _ROLES.get(word.lower()) == spec.name:
            return name
    return close(word, known.values())
