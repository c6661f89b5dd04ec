"""The ``gg_*`` functions: what plain C++ can't say, one function per PTX instruction.

Each is a file of ``intrinsics/``; functions that differ in a size or a type alone are one file with
``$names`` in it.  A text that calls a function holds it above its kernel.  ``sim/ptx.h``
has a C++ model of each of the instructions, so that the functions run on the CPU, too: a new
instruction needs one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import groupby, product
from typing import Any, cast

from gemmgen.emit import matrix_functions, warpgroup_functions
from gemmgen.emit.ctypes import STORED, vector_type
from gemmgen.emit.device_function import DeviceFunction, function
from gemmgen.ir.atoms import Atom
from gemmgen.ir.dtypes import ACCESS, BYTES, HALVES, DType, widths
from gemmgen.ir.expr import Call
from gemmgen.ir.instruction import Instruction
from gemmgen.ir.instruction_table import INSTRUCTIONS
from gemmgen.ir.lane_matrices import (
    SplitMatrices,
)
from gemmgen.ir.lowered import LoweredKernel
from gemmgen.ir.product_types import types_of
from gemmgen.ir.tensor_map import RANKS
from gemmgen.ir.thread_code import CountArrival, Move, Point
from gemmgen.ir.traversal import inside
from gemmgen.ir.warp_matrices import Line, LoadFragment, MultiplyFragments, StoreFragment
from gemmgen.ir.warpgroup_matrices import DescribeMatrix

TENSOR_MAP = DeviceFunction("tensor_map")
"""The type of tensor maps, which is not a function."""


SHARED = DeviceFunction("shared")
"""What functions of TMA, mbarriers and wgmma call, each for its operands in shared memory."""


def called(body: object) -> list[str]:
    """The texts of the functions that a kernel's lowered body calls, in a fixed order."""
    return [each.text() for each in _called(body)]


def _called(body: object) -> list[DeviceFunction]:
    nodes = tuple(inside(body))
    found = {_CALLED[type(node)](node) for node in nodes if type(node) in _CALLED}
    issued = [node for node in nodes if isinstance(node, Instruction)]
    found |= {function_of(node) for node in issued if not node.row.builtin}
    found |= {policy for node in issued if (policy := policy_of(node))}
    ours = {each for each in found if each.file in _FIRST}
    ours |= {helper for each in ours for helper in each.needs}
    return sorted(ours, key=_place)


def function_of(node: Instruction) -> DeviceFunction:
    """The device function of an instruction that is not CUDA's own."""
    made = _PARAMETERIZED.get(node.name)
    return DeviceFunction(node.name) if made is None else made(node)


def policy_of(node: Instruction) -> DeviceFunction | None:
    """The function that makes an instruction's policy for the L2 cache, its last operand."""
    when = node.get("evict")
    return None if when is None else _evict(str(when))


def above(kernel: LoweredKernel) -> list[list[str]]:
    """What a text has above ``kernel``: the type of its tensor maps, and the functions it calls.

    Short functions of one mechanism, which follow one another without a blank line, are a list.
    """
    maps = [TENSOR_MAP] if kernel.interface.maps else []
    bodies = kernel.body, tuple(pre_pass.body for pre_pass in kernel.pre_passes)
    texts = [each.text() for each in (*maps, *_called(bodies))]
    return [list(group) for _, group in groupby(texts, _mechanism)]


_MECHANISMS = ("wgmma", r"cp\.async\.bulk|proxy\.async", "mbarrier", r"cp\.async", "mma|matrix")
_LONG = 9
"""Lines of a function that has a blank line above and below it."""


def _mechanism(text: str) -> str:
    """What a function has to do with; the text itself of a long one."""
    if text.count("\n") >= _LONG:
        return text
    return next((each for each in _MECHANISMS if re.search(each, text)), "")


def _evict(when: str) -> DeviceFunction:
    return function("evict", when=when)


def _copy_async(stored: str, size: int, hinted: bool) -> DeviceFunction:
    cache = "cg" if size == ACCESS else "ca"
    # With a policy, ptxas 12.9 to 13.5 fold a uniform addend into the shared address for sm_90 and
    # then encode neither that register nor the policy's: an illegal instruction.  They fold an
    # addition only if it is the last operation, and they do not treat prmt as a move (decision 69).
    file = "copy_async_by_policy" if hinted else "copy_async"
    return function(file, type=stored, bytes=size, cache=cache)


def _copy(dtype: DType, width: int) -> DeviceFunction:
    return function("copy", type=STORED[dtype], width=width, vector=vector_type(dtype, width))


def _base(stored: str) -> DeviceFunction:
    return function("base", type=stored)


def _load_box(rank: int, hinted: bool) -> DeviceFunction:
    if hinted:
        return _of_box("load_box_by_policy", rank, 3, policy=f"%{3 + rank}")
    return _of_box("load_box", rank, 3)


def _multicast_box(rank: int, hinted: bool) -> DeviceFunction:
    blocks = f"%{3 + rank}"
    if hinted:
        policy = f"%{4 + rank}"
        return _of_box("multicast_box_by_policy", rank, 3, policy=policy, blocks=blocks)
    return _of_box("multicast_box", rank, 3, blocks=blocks)


def _store_box(rank: int) -> DeviceFunction:
    return _of_box("store_box", rank, 2)


def _of_box(file: str, rank: int, first: int, **more: object) -> DeviceFunction:
    """A copy of a box whose coordinates are the operands from ``first`` on."""
    names = [f"i{at}" for at in range(rank)]
    return function(
        file,
        rank=rank,
        parameters=", ".join(f"int {name}" for name in names),
        numbers=", ".join(f"%{first + at}" for at in range(rank)),
        operands=", ".join(f'"r"({name})' for name in names),
        gap=" " if rank == 2 else "\n" + 18 * " ",  # a line has 100 characters
        **more,
    )


_ADDED: tuple[DType, ...] = ("f32", "f64", "i32")


def _add(dtype: DType) -> DeviceFunction:
    register, added = {"f64": ("d", "f64"), "i32": ("r", "s32")}.get(dtype, ("f", "f32"))
    return function("add", type=STORED[dtype], dtype=added, register=register)


_LINES: dict[Line, str] = {"row": "rows", "col": "columns"}


def _wmma_load(side: str, line: Line, dtype: DType) -> DeviceFunction:
    names = {"side": side, "operand": side.upper(), "line": line, "lines": _LINES[line]}
    return function(f"wmma_load_{dtype}", **names)


def _wmma_multiply(a: Line, b: Line, dtype: DType) -> DeviceFunction:
    names = {"a_line": a, "a_lines": _LINES[a], "b_line": b, "b_lines": _LINES[b]}
    return function(f"wmma_multiply_{dtype}", **names)


def _wmma_store(line: Line) -> DeviceFunction:
    return function("wmma_store", line=line, lines=_LINES[line])


_CALLED: dict[type, Callable[[Any], DeviceFunction]] = {
    Call: lambda node: DeviceFunction(node.function),
    Move: lambda node: _copy(node.dtype, node.width),
    Point: lambda node: _base(STORED[node.dtype]),
    CountArrival: lambda node: DeviceFunction("count_in"),
    LoadFragment: lambda node: _wmma_load(node.side, node.line, node.dtype),
    MultiplyFragments: lambda node: _wmma_multiply(node.a_line, node.b_line, node.dtype),
    StoreFragment: lambda node: _wmma_store(node.line),
    SplitMatrices: lambda node: matrix_functions.split(node.count),
    DescribeMatrix: lambda node: warpgroup_functions.matrix(node.swizzle, node.mn_major),
}
"""The function that a node calls; a ``Call`` of one that CUDA itself has is not a file's."""


def _copied(node: Instruction) -> DeviceFunction:
    dtype, width = cast(DType, node.get("dtype")), cast(int, node.get("width"))
    return _copy_async(STORED[dtype], width * BYTES[dtype], policy_of(node) is not None)


def _matrices(node: Instruction) -> tuple[DType, int, bool]:
    """The elements, the number of matrices, and whether they are transposed."""
    return cast(DType, node.get("dtype")), cast(int, node.get("count")), node.has("transposed")


_PARAMETERIZED: dict[str, Callable[[Instruction], DeviceFunction]] = {
    "copy_async": _copied,
    "load_box": lambda node: _load_box(len(node.operands) - 3, policy_of(node) is not None),
    "multicast_box": lambda node: _multicast_box(
        len(node.operands) - 4, policy_of(node) is not None
    ),
    "store_box": lambda node: _store_box(len(node.operands) - 2),
    "add": lambda node: _add(cast(DType, node.get("dtype"))),
    "ldmatrix": lambda node: matrix_functions.ldmatrix(*_matrices(node)),
    "mma": lambda node: matrix_functions.mma(cast(Atom, node.get("atom")), types_of(node)),
    "wgmma_multiply": lambda node: warpgroup_functions.multiply(
        cast(int, node.get("n")), types_of(node), (node.has("a_mn_major"), node.has("b_mn_major"))
    ),
    "stmatrix": lambda node: warpgroup_functions.stmatrix(*_matrices(node)[1:]),
}
"""The functions of instructions whose files have ``$names``."""

_TYPES = tuple(dict.fromkeys(STORED.values()))

_VARIANTS: dict[str, tuple[DeviceFunction, ...]] = {
    "copy_async": tuple(
        _copy_async(stored, size, hinted)
        for size in (4, 8, 16)
        for stored in _TYPES
        for hinted in (False, True)
    ),
    "load_box": tuple(_load_box(*choice) for choice in product(RANKS, (False, True))),
    "multicast_box": tuple(_multicast_box(*choice) for choice in product(RANKS, (False, True))),
    "store_box": tuple(map(_store_box, RANKS)),
    "add": tuple(map(_add, _ADDED)),
    "ldmatrix": matrix_functions.LOADS,
    "mma": matrix_functions.PRODUCTS,
    "wgmma_multiply": warpgroup_functions.PRODUCTS,
    "stmatrix": warpgroup_functions.STORES,
}
"""All texts of files that have ``$names``."""

_BEFORE: dict[str, tuple[DeviceFunction, ...]] = {
    "commit_group": tuple(map(_base, _TYPES)),
    "ldmatrix": (
        DeviceFunction("count_in"),
        *(_wmma_load(*choice) for choice in product("ab", _LINES, HALVES)),
        *(_wmma_multiply(*choice) for choice in product(_LINES, _LINES, HALVES)),
        *map(_wmma_store, _LINES),
    ),
    "mma": matrix_functions.SPLITS,
    "wgmma_fence": warpgroup_functions.DESCRIPTORS,
}
"""Functions that are not an instruction's, which a text has before that of an instruction."""


def _of_row(name: str) -> tuple[DeviceFunction, ...]:
    own = (DeviceFunction(name),)
    return (*_BEFORE.get(name, ()), *_VARIANTS.get(name, own))


FUNCTIONS: tuple[DeviceFunction, ...] = (
    SHARED,
    *dict.fromkeys(_copy(dtype, width) for dtype in STORED for width in widths(dtype)),
    DeviceFunction("hilbert"),
    *map(
        DeviceFunction,
        (
            "shuffle_xor",
            "shuffle_xor_f64",
            "shuffle_xor_i32",
            "uniform",
            "mad",
            "to_i8",
            "is_finite",
            "row_scale",
        ),
    ),
    *map(DeviceFunction, ("from_f16", "to_f16", "from_bf16", "to_bf16", "from_tf32")),
    *map(DeviceFunction, ("from_e4m3", "to_e4m3", "from_e5m2", "to_e5m2")),
    *map(_evict, ("first", "last")),
    *(
        function
        for row in INSTRUCTIONS.values()
        if not row.builtin
        for function in _of_row(row.name)
    ),
)
"""All there are, in the order in which a text has them; of wgmma's multiplications, some sizes."""

_NUMBERS = {each: number for number, each in enumerate(FUNCTIONS)}
_FIRST = {each.file: number for each, number in reversed(_NUMBERS.items())}


def _place(each: DeviceFunction) -> tuple[int, tuple[tuple[str, str], ...]]:
    """Where a text has it: one that ``FUNCTIONS`` does not list goes with those of its file."""
    return _NUMBERS.get(each, _FIRST[each.file]), each.names
