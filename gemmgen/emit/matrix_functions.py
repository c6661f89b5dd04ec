"""The ``gg_*`` functions of ``ldmatrix`` and ``mma.sync``."""

from __future__ import annotations

from functools import cache

from gemmgen.emit.ctypes import STORED, load_suffix, product_name, register_type
from gemmgen.emit.device_function import DeviceFunction, function
from gemmgen.ir.atoms import ATOMS, VIA, Atom, Product
from gemmgen.ir.dtypes import ROUNDED, DType
from gemmgen.ir.lane_matrices import packed


@cache
def ldmatrix(dtype: DType, count: int, transposed: bool) -> DeviceFunction:
    stored = STORED[dtype]
    numbers = {1: "one matrix", 2: "two matrices", 4: "four matrices"}
    return function(
        "ldmatrix_tf32" if dtype in ROUNDED else "ldmatrix",
        type=stored,
        matrix="8 x 8 elements of 16 bits" if stored == STORED["f16"] else "8 rows of 16 bytes",
        count=count,
        trans=".trans" if transposed else "",
        suffix=load_suffix(dtype, transposed),
        how=", transposed" if transposed else "",
        number=numbers[count],
        numbers=", ".join(f"%{at}" for at in range(count)),
        outputs=", ".join(f'"=r"(fragment[{at}])' for at in range(count)),
    )


def split(count: int) -> DeviceFunction:
    return function("split", count=count, numbers=2 * count)


_PTX: dict[DType, str] = {"i8": "s8", "i32": "s32"}
"""Types by PTX's names, where those differ."""


A_LINE, A_NUMBERS = 6, 4
"""Operands in a line of text."""
_ACCUMULATOR_ROWS = {
    1: (("acc",), "a row"),
    2: (("upper", "lower"), "each of two\n// rows that are 8 apart"),
}
"""The rows of a lane's accumulators: the parameters that point to them, and in words."""


@cache
def mma(atom: Atom, types: Product) -> DeviceFunction:
    traits, (a, b, acc_type) = ATOMS[atom], types
    assert traits.a and traits.b and traits.accumulators
    rows, where = _ACCUMULATOR_ROWS[traits.accumulators.along("row")[0]]
    held = [f"{row}[{at}]" for row in rows for at in (0, 1)]
    of_a, of_b = traits.a.registers // packed(a), traits.b.registers // packed(b)
    own, register = len(held), {"i32": "r", "f64": "d"}.get(acc_type, "f")
    numbers = [f"%{at}" for at in range(own + of_a + of_b)]
    word = "d" if register_type(a) == "double" else "r"
    inputs = [f'"{word}"({x}[{at}])' for x, n in (("a", of_a), ("b", of_b)) for at in range(n)]
    return function(
        "mma",
        shape=traits.shape,
        product=product_name(atom, types),
        operands=a if a == b else f"{a}/{b}",
        types=".".join(_PTX.get(each, each) for each in (acc_type, a, b, acc_type)),
        where=where,
        parameters=", ".join(f"{STORED[acc_type]} *{row}" for row in rows),
        operand=register_type(a),
        of_accumulators=", ".join(numbers[:own]),
        of_a=", ".join(numbers[own : own + of_a]),
        between=", " if of_a <= A_NUMBERS else f', "\n{17 * " "}"',
        of_b=", ".join(numbers[own + of_a :]),
        outputs=", ".join(f'"+{register}"({each})' for each in held),
        inputs=f",\n{19 * ' '}".join(
            ", ".join(inputs[at : at + A_LINE]) for at in range(0, len(inputs), A_LINE)
        ),
    )


_LOADED: dict[str, DType] = {
    STORED[a]: a for atom in VIA["mma"] if ATOMS[atom].loads == "rows" for a in ATOMS[atom].types
}
"""A type of each that elements of rows are stored as."""

LOADS = (
    *(
        ldmatrix(dtype, count, transposed)
        for dtype in _LOADED.values()
        for count in (1, 2, 4)
        for transposed in (False, True)
        if not transposed or dtype in ATOMS["m16n8k16"].mn_major
    ),
    ldmatrix("f32", 4, transposed=False),
)
SPLITS = tuple(map(split, (2, 4)))
PRODUCTS = tuple(
    dict.fromkeys(mma(atom, types) for atom in VIA["mma"] for types in ATOMS[atom].products)
)
"""All there are."""
