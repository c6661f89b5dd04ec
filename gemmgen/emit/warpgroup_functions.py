"""The ``gg_*`` functions of a warpgroup's multiplications, and of a warp's stores of matrices."""

from __future__ import annotations

from functools import cache
from itertools import product

from gemmgen.emit.ctypes import STORED
from gemmgen.emit.device_function import DeviceFunction, function
from gemmgen.emit.line_breaks import filled
from gemmgen.ir.atoms import ATOMS, Product
from gemmgen.ir.dtypes import BYTES, HALVES, DType

SPANS = {128: 1, 64: 2, 32: 3}
"""Bytes in a swizzled row of an operand, and the mode of its descriptor."""
STEP = 32
"""Bytes along k of an operand that one instruction multiplies."""
_PTX: dict[DType, str] = {"i8": "s8", "i32": "s32"}
"""Types by PTX's names, where those differ."""
_ROWS_OF_A_THREAD = "cd"
_ROWS = 8
"""Rows that a swizzle repeats after."""
_ROOM = 88
"""Columns of a line of register numbers."""
_OUTPUTS = 8
"""Accumulators in a line of outputs."""
_HOW = {
    (False, False): "both K-major",
    (True, False): "a M-major, b K-major",
    (False, True): "a K-major, b N-major",
    (True, True): "a M-major, b N-major",
}
_MATRICES = {1: "one matrix", 2: "two matrices", 4: "four matrices"}


@cache
def multiply(
    n: int, types: Product, mn_major: tuple[bool, bool] = (False, False)
) -> DeviceFunction:
    """wgmma of 64 x ``n`` accumulators, of A, B and accumulators of these ``types``; operand a lies
    along m, or b along n, where ``mn_major``: those of 16 bits alone."""
    dtype, _, held = types
    words, register = dict.fromkeys(types[:2]), {"i32": "r"}.get(held, "f")
    accumulators = n // 2
    outputs = [
        f'"+{register}"({row}[{i + j}])'
        for i in range(0, n // 4, 2)
        for row in _ROWS_OF_A_THREAD
        for j in (0, 1)
    ]
    numbers = filled([f"%{at}" for at in range(accumulators)], ",", _ROOM)
    return function(
        "wgmma_multiply",
        n=n,
        k=STEP // BYTES[dtype],
        name="_".join(words),
        operands=" and ".join(words),
        types=".".join(_PTX.get(each, each) for each in (held, *types[:2])),
        type=STORED[held],
        how=_HOW[mn_major],
        suffix=mn_major_suffix(mn_major),
        numbers=(',"\n' + 8 * " ").join(f'"{",".join(line)}' for line in numbers),
        outputs=",\n    ".join(
            ",".join(outputs[at : at + _OUTPUTS]) for at in range(0, len(outputs), _OUTPUTS)
        ),
        a=accumulators,
        b=accumulators + 1,
        accumulate=accumulators + 2,
        factors=_factors(dtype, mn_major),
    )


def mn_major_suffix(mn_major: tuple[bool, bool]) -> str:
    """How the function's name ends whose operands a and b are MN-major if ``mn_major``."""
    sides = "".join(side for side, flag in zip("ab", mn_major, strict=True) if flag)
    return f"_mn_major_{sides}" if sides else ""


def _factors(dtype: DType, mn_major: tuple[bool, bool]) -> str:
    """The last operands: factors of a and b, and whether they are MN-major."""
    if dtype == "i8":
        return ""
    more = f", {int(mn_major[0])}, {int(mn_major[1])}" if dtype in HALVES else ""
    return f", 1, 1{more}"


def matrix(span: int, mn_major: bool = False) -> DeviceFunction:
    """The descriptor of an operand along k in swizzled rows of ``span`` bytes: 128, 64 or 32; of
    an MN-major one, in atom columns of such rows."""
    name = "matrix_mn_major" if mn_major else "matrix"
    return function(name, bytes=span, group=_ROWS * span, mode=SPANS[span])


def stmatrix(count: int, transposed: bool) -> DeviceFunction:
    """stmatrix of ``count`` matrices: 1, 2 or 4."""
    return function(
        "stmatrix",
        count=count,
        trans=".trans" if transposed else "",
        suffix="_trans" if transposed else "",
        gap="\n    " if transposed else "",  # a line has 100 characters
        brace="\n{" if transposed else " {",
        how=", transposed" if transposed else "",
        number=_MATRICES[count],
        numbers=", ".join(f"%{1 + at}" for at in range(count)),
        inputs=", ".join(f'"r"(held[{at}])' for at in range(count)),
    )


_HALF_PRODUCTS = ATOMS["m64nNk16"].products
(_INTEGERS,) = ATOMS["m64nNk32_i8"].products
(_CUT,) = ATOMS["m64nNk8"].products
_OTHER_PRODUCTS: tuple[Product, ...] = (
    *ATOMS["m64nNk32"].products,
    _CUT,
    _INTEGERS,
)

DESCRIPTORS: tuple[DeviceFunction, ...] = (
    *(matrix(span) for span in SPANS),
    *(matrix(span, mn_major=True) for span in SPANS),
)

PRODUCTS: tuple[DeviceFunction, ...] = (
    *(multiply(8, types) for types in _HALF_PRODUCTS),
    *(
        multiply(64, types, mn_major)
        for types in _HALF_PRODUCTS
        for mn_major in ((True, False), (False, True), (True, True))
    ),
    *(multiply(32, types) for types in _OTHER_PRODUCTS),
    multiply(24, _INTEGERS),
    multiply(24, _HALF_PRODUCTS[0], (True, False)),
)
"""A size of each: texts have any, and all take long to write."""

STORES = tuple(stmatrix(*choice) for choice in product((1, 2, 4), (False, True)))
