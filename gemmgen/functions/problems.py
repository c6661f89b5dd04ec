"""The problem of a call as a schedule without directives, and the types that it takes."""

from __future__ import annotations

from functools import lru_cache

from gemmgen.base.errors import CallError
from gemmgen.base.record import record
from gemmgen.base.source import Source, value_shown
from gemmgen.functions.arrangement import Letters
from gemmgen.ir.dtypes import DTYPES, FP8, DType, sums_of
from gemmgen.ir.target import default_target
from gemmgen.language import parse_schedule
from gemmgen.schedule.model import Schedule
from gemmgen.torch.schema import Signature

OPERANDS: tuple[DType, ...] = ("f16", "bf16", "f32", "f64", "i8", "e4m3", "e5m2")
TYPES: dict[str, DType] = {DTYPES[x].name: x for x in (*OPERANDS, "i32")}
"""Element types by their names in array libraries; i32 is one of results alone."""
ROUNDED: tuple[DType, ...] = ("f32", "f16", "bf16")
"""Types that an ``out`` may have where products are summed in f32."""
BITS = {"uint16": "bfloat16", "uint8": "float8_e4m3fn"}
"""Integers that often hold the bits of other types."""


@record
class MatmulProblem:
    """``schedule`` has the gemm line, the types and the epilogue."""

    schedule: Schedule
    signature: Signature


@lru_cache(512)
def problem_of(
    letters: tuple[Letters, Letters, Letters],
    types: tuple[tuple[str, DType], ...],
    text: str | None,
    same_bits: str | None = None,
) -> MatmulProblem:
    """The problem with these ``letters`` of A, B and C; ``types`` by the tensors' names.
    ``same_bits``: letters whose extents leave an element's bits as they are.

    Raises ``ScheduleError`` for a mistake in the epilogue ``text``.
    """
    a, b, c = (", ".join(each) for each in letters)
    known = dict(types)
    acc: DType = "f64" if known["A"] == "f64" else sums_of(known["A"], known["B"])
    lines = [
        f"gemm C[{c}] = A[{a}] * B[{b}]",
        f"dtype {' '.join(f'{name}={dtype}' for name, dtype in types)} acc={acc}",
        f"target {default_target(known.values())}",
    ]
    if same_bits is not None:
        lines.append(f"require same_bits over {same_bits}")
    if text is not None:
        lines.append(f"fuse_epilogue {text}")
    schedule = parse_schedule(Source("".join(f"{line}\n" for line in lines), "<epilogue>"))
    return MatmulProblem(schedule, Signature.of(schedule))


def checked_letters(same_bits: object) -> str | None:
    """The letters of ``same_bits=``; ``CallError`` for others than m and n."""
    if same_bits is None:
        return None
    letters = same_bits.split() if isinstance(same_bits, str) else []
    if not letters or not {"m", "n"}.issuperset(letters) or len(letters) != len(set(letters)):
        raise CallError(
            f"same_bits={value_shown(same_bits)}: it is 'm' (rows have their bits for any number "
            "of rows), 'n' or 'm n'"
        )
    return " ".join(letters)


def operand_type(name: str, dtype: str) -> DType:
    """The element type of the operand ``name``; ``CallError`` for one that none multiplies."""
    found = TYPES.get(dtype)
    if found is not None and found in OPERANDS:
        return found
    if dtype in BITS:
        raise CallError(
            f"{name} is {dtype}, which is not a number type; for the bits of another type "
            f"pass {name}.view(ml_dtypes.{BITS[dtype]})"
        )
    known = ", ".join(DTYPES[x].name for x in OPERANDS)
    raise CallError(f"{name} is {dtype}, and the types that are multiplied are {known}: convert it")


def output_dtype(a: DType, b: DType, names: tuple[str, str]) -> DType:
    """The type of a new result; ``CallError`` for types that are not multiplied by each other."""
    if a != b and not (a in FP8 and b in FP8):
        first, second = names
        raise CallError(
            f"{first} is {DTYPES[a].name} and {second} is {DTYPES[b].name}: convert one to the "
            "type of the other"
        )
    return "i32" if a == "i8" else "f32" if a in FP8 else a


def problem_types(
    a: str,
    b: str,
    out: str | None,
    own: tuple[tuple[str, str], ...],
    names: tuple[str, str] = ("a", "b"),
) -> tuple[tuple[str, DType], ...]:
    """The types of A, B and C and of the epilogue's own tensors, from their names in libraries."""
    left, right = operand_type(names[0], a), operand_type(names[1], b)
    usual = output_dtype(left, right, names)
    stored = usual if out is None else check_output(left, usual, out)
    found: dict[str, DType] = {"A": left, "B": right, "C": stored}
    found.update({name: own_type(name, dtype) for name, dtype in own})
    return tuple(found.items())


def own_type(name: str, dtype: str) -> DType:
    """The type of a tensor of the epilogue."""
    found = TYPES.get(dtype)
    if found is None:
        raise CallError(f"{name} is {dtype}; an epilogue reads {', '.join(TYPES)}: convert it")
    return found


def check_output(a: DType, usual: DType, dtype: str) -> DType:
    """The type of an ``out``; ``CallError`` for one that the product can't be stored in."""
    allowed: tuple[DType, ...] = ("i32", "f32") if a == "i8" else ROUNDED
    allowed = (usual,) if a == "f64" else allowed
    found = TYPES.get(dtype)
    if found is None or found not in allowed:
        known = " or ".join(DTYPES[x].name for x in allowed)
        raise CallError(f"out is {dtype}, and a product of {DTYPES[a].name} is stored as {known}")
    return found
