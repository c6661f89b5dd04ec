"""The ``gg_wmma_*`` functions: a warp's fragments of 16 x 16, one PTX instruction each.

Which lane holds which element of a fragment is not told; one is only loaded, multiplied with its
like and stored (PTX ISA, "Warp-level matrix multiply-accumulate instructions: wmma").
"""

from __future__ import annotations

from itertools import product

from gemmgen.ir.dtypes import DType
from gemmgen.ir.lowered import Line, LoadFragment, MultiplyFragments, StoreFragment

REGISTERS: dict[DType, int] = {"f16": 8, "bf16": 4, "f32": 8}
"""32-bit registers that a lane gives to a fragment; of f16 the hardware may hold elements twice."""

LINES: tuple[Line, ...] = ("row", "col")
SIDES = {"a": "A", "b": "B"}


def load_function(node: LoadFragment) -> str:
    """The name of a load's function: ``gg_wmma_load_a_row_f16``."""
    return f"gg_wmma_load_{node.side}_{node.line}_{node.dtype}"


def multiply_function(node: MultiplyFragments) -> str:
    """The name of a multiplication's function: ``gg_wmma_multiply_row_col_f16``."""
    return f"gg_wmma_multiply_{node.a_line}_{node.b_line}_{node.dtype}"


def store_function(node: StoreFragment) -> str:
    """The name of a store's function: ``gg_wmma_store_row``."""
    return f"gg_wmma_store_{node.line}"


LOAD = """\
// A warp's 16 x 16 of {operand}, {lines} `pitch` elements apart in shared memory.
__device__ __forceinline__ void gg_wmma_load_{side}_{line}_{dtype}(
    unsigned (&fragment)[{count}], const unsigned short *source, int pitch)
{{
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(source));
    asm volatile("wmma.load.{side}.sync.aligned.{line}.m16n16k16.shared.{dtype} "
                 "{{{outputs}}}, [%{count}], %{last};"
                 : {constraints}
                 : "r"(from), "r"(pitch) : "memory");
}}"""

MULTIPLY = """\
// sum += a * b, of a warp's fragments; {a_lines} of A and {b_lines} of B were loaded.
__device__ __forceinline__ void gg_wmma_multiply_{a}_{b}_{dtype}(
    float (&sum)[8], const unsigned (&a)[{count}], const unsigned (&b)[{count}])
{{
    asm volatile("wmma.mma.sync.aligned.{a}.{b}.m16n16k16.f32.{types} "
                 "{{{sums}}}, "
                 "{{{first}}}, "
                 "{{{second}}}, "
                 "{{{sums}}};"
                 : {sum_constraints}
                 : {a_constraints},
                   {b_constraints});
}}"""

STORE = """\
// A warp's 16 x 16 sums to shared memory, {lines} `pitch` elements apart.
__device__ __forceinline__ void gg_wmma_store_{line}(float *target, const float (&sum)[8],
                                                   int pitch)
{{
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target));
    asm volatile("wmma.store.d.sync.aligned.{line}.m16n16k16.shared.f32 [%0], "
                 "{{{inputs}}}, %1;"
                 :: "r"(to), "r"(pitch),
                    {constraints}
                 : "memory");
}}"""

_WORDS = {"row": "rows", "col": "columns"}


def _places(first: int, count: int) -> str:
    """``%4, %5, ...``"""
    return ", ".join(f"%{i}" for i in range(first, first + count))


def _constraints(constraint: str, name: str, count: int, indent: int) -> str:
    """``"=r"(name[0]), ...``, four a line."""
    parts = [f'"{constraint}"({name}[{i}])' for i in range(count)]
    rows = [", ".join(parts[i : i + 4]) for i in range(0, count, 4)]
    return f",\n{' ' * indent}".join(rows)


def _load_text(side: str, line: Line, dtype: DType) -> str:
    count = REGISTERS[dtype]
    return LOAD.format(
        operand=SIDES[side],
        side=side,
        line=line,
        lines=_WORDS[line],
        dtype=dtype,
        count=count,
        last=count + 1,
        outputs=_places(0, count),
        constraints=_constraints("=r", "fragment", count, 19),
    )


def _multiply_text(a: Line, b: Line, dtype: DType) -> str:
    count = REGISTERS[dtype]
    return MULTIPLY.format(
        a=a,
        b=b,
        a_lines=_WORDS[a],
        b_lines=_WORDS[b],
        dtype=dtype,
        count=count,
        types="f32" if dtype == "f16" else f"{dtype}.{dtype}.f32",
        sums=_places(0, 8),
        first=_places(8, count),
        second=_places(8 + count, count),
        sum_constraints=_constraints("+f", "sum", 8, 19),
        a_constraints=_constraints("r", "a", count, 19),
        b_constraints=_constraints("r", "b", count, 19),
    )


def _store_text(line: Line) -> str:
    return STORE.format(
        line=line,
        lines=_WORDS[line],
        inputs=_places(2, 8),
        constraints=_constraints("f", "sum", 8, 20),
    )


def wmma_texts() -> dict[str, str]:
    """Every function by its name."""
    halves: tuple[DType, ...] = ("f16", "bf16")
    return {
        **{
            f"gg_wmma_load_{side}_{line}_{dtype}": _load_text(side, line, dtype)
            for side, line, dtype in product(SIDES, LINES, halves)
        },
        **{
            f"gg_wmma_multiply_{a}_{b}_{dtype}": _multiply_text(a, b, dtype)
            for a, b, dtype in product(LINES, LINES, halves)
        },
        **{f"gg_wmma_store_{line}": _store_text(line) for line in LINES},
    }
