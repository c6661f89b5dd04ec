"""The ``gg_*`` functions: what plain C++ can't say, one function per PTX instruction.

A file that uses one prints it above its kernel.  ``sim/ptx.h`` has a C++ model of each of the
instructions, so that the functions run on the CPU, too: a new instruction needs one.
"""

from __future__ import annotations

from typing import Literal

from gemmgen.emit.ctypes import STORED
from gemmgen.emit.wmma import load_function, multiply_function, store_function, wmma_texts
from gemmgen.ir.control import Commit, Wait
from gemmgen.ir.dtypes import ACCESS, BYTES
from gemmgen.ir.expr import Call
from gemmgen.ir.lowered import (
    AtomicAdd,
    CopyAsync,
    CountArrival,
    LoadFragment,
    MultiplyFragments,
    Point,
    StoreFragment,
)
from gemmgen.ir.parts import inside

COPY = """\
// Copies `valid` bytes of {bytes} to shared memory, zeros behind them; asynchronous.
__device__ __forceinline__ void gg_copy_async_{bytes}({signature})
{{
    const unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(target));
    asm volatile("cp.async.{cache}.shared.global [%0], [%1], {bytes}, %2;"
                 :: "r"(to), "l"(source), "r"(valid) : "memory");
}}"""

COMMIT = """\
// Ends a group of this thread's asynchronous copies.
__device__ __forceinline__ void gg_commit_group()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}"""

WAIT = """\
// Waits until at most `pending` of this thread's groups are under way.
template <int pending>
__device__ __forceinline__ void gg_wait_group()
{
    asm volatile("cp.async.wait_group %0;" :: "n"(pending) : "memory");
}"""

BASE = "gg_base"
BASE_TEXT = """\
// The same pointer; what is added to it stays a constant of the instruction that uses it.
__device__ __forceinline__ const {type} *gg_base(const {type} *pointer)
{{
    asm("" : "+l"(pointer));
    return pointer;
}}"""

COUNT_IN = "gg_count_in"
COUNT_IN_TEXT = f"""\
// Counts up, from `last` to 0 again, and gives the count before.  What the block wrote before its
// last barrier is seen behind the next one by every block that counts later.
__device__ __forceinline__ unsigned {COUNT_IN}(unsigned *counter, unsigned last)
{{
    unsigned before;
    asm volatile("atom.acq_rel.gpu.inc.u32 %0, [%1], %2;"
                 : "=r"(before) : "l"(counter), "r"(last) : "memory");
    return before;
}}"""

ADD = "gg_add"
ADD_TEXT = """\
// Adds to what other blocks add to as well.
__device__ __forceinline__ void gg_add({type} *target, {type} value)
{{
    asm volatile("red.relaxed.gpu.add.{suffix} [%0], %1;"
                 :: "l"(target), "{register}"(value) : "memory");
}}"""

SHUFFLE = """\
// {what}; all lanes of the warp call it together.
__device__ __forceinline__ float gg_shuffle_{name}(float value, int {offset})
{{
    float result;
    asm volatile("shfl.sync.{mode}.b32 %0, %1, %2, 0x1f, 0xffffffff;"
                 : "=f"(result) : "f"(value), "r"({offset}));
    return result;
}}"""

SHUFFLE_DOUBLE = """\
// {what}; all lanes of the warp call it together.
__device__ __forceinline__ double gg_shuffle_{name}(double value, int {offset})
{{
    double result;
    asm volatile("{{\\n"
                 ".reg .b32 low, high;\\n"
                 "mov.b64 {{low, high}}, %1;\\n"
                 "shfl.sync.{mode}.b32 low, low, %2, 0x1f, 0xffffffff;\\n"
                 "shfl.sync.{mode}.b32 high, high, %2, 0x1f, 0xffffffff;\\n"
                 "mov.b64 %0, {{low, high}};\\n"
                 "}}" : "=d"(result) : "d"(value), "r"({offset}));
    return result;
}}"""

_SHUFFLES = {
    "xor": ("The value of the lane whose number differs by `lane_mask`", "lane_mask", "bfly"),
    "down": ("The value of the lane `delta` further; behind the last, its own", "delta", "down"),
}


def shuffle_text(name: Literal["xor", "down"], dtype: Literal["f32", "f64"]) -> str:
    """``gg_shuffle_xor`` or ``gg_shuffle_down`` of values of ``dtype``."""
    what, offset, mode = _SHUFFLES[name]
    text = SHUFFLE if dtype == "f32" else SHUFFLE_DOUBLE
    return text.format(what=what, name=name, offset=offset, mode=mode)


FROM_F16 = """\
// The number that the bits of an f16 stand for.
__device__ __forceinline__ float gg_from_f16(unsigned short bits)
{
    float number;
    asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(bits));
    return number;
}"""

TO_F16 = """\
// The bits of the f16 nearest to a number, ties to even.
__device__ __forceinline__ unsigned short gg_to_f16(float number)
{
    unsigned short bits;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(number));
    return bits;
}"""

FROM_BF16 = """\
// The number that the bits of a bf16 stand for: the upper half of a float.
__device__ __forceinline__ float gg_from_bf16(unsigned short bits)
{
    float number;
    asm("mov.b32 %0, {%1, %2};" : "=f"(number) : "h"(static_cast<unsigned short>(0)), "h"(bits));
    return number;
}"""

TO_BF16 = """\
// The bits of the bf16 nearest to a number, ties to even.
__device__ __forceinline__ unsigned short gg_to_bf16(float number)
{
    unsigned short bits;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(number));
    return bits;
}"""

SIZES = (4, 8, 16)
"""Bytes that one asynchronous copy can have."""


def copy_function(node: CopyAsync) -> str:
    """The name of a copy's function, by its bytes; each element type has an overload."""
    return f"gg_copy_async_{node.width * BYTES[node.dtype]}"


def intrinsics_of(body: object) -> list[str]:
    """The functions that a kernel's lowered body calls, in a fixed order."""
    found = {_function_of(node) for node in inside(body)}
    return [text for name, text in _ALL.items() if name in found]


def _copy_text(stored: str, size: int) -> str:
    signature = f"{stored} *target, const {stored} *source, int valid"
    cache = "cg" if size == ACCESS else "ca"
    return COPY.format(bytes=size, signature=signature, cache=cache)


_ALL: dict[tuple[str, str], str] = {
    ("shuffle_xor", ""): shuffle_text("xor", "f32"),
    ("shuffle_xor_f64", ""): shuffle_text("xor", "f64"),
    ("from_f16", ""): FROM_F16,
    ("to_f16", ""): TO_F16,
    ("from_bf16", ""): FROM_BF16,
    ("to_bf16", ""): TO_BF16,
    **{
        (f"gg_copy_async_{size}", stored): _copy_text(stored, size)
        for size in SIZES
        for stored in dict.fromkeys(STORED.values())
    },
    **{(BASE, stored): BASE_TEXT.format(type=stored) for stored in dict.fromkeys(STORED.values())},
    ("gg_commit_group", ""): COMMIT,
    ("gg_wait_group", ""): WAIT,
    (ADD, "float"): ADD_TEXT.format(type="float", suffix="f32", register="f"),
    (ADD, "double"): ADD_TEXT.format(type="double", suffix="f64", register="d"),
    (COUNT_IN, ""): COUNT_IN_TEXT,
    **{(name, ""): text for name, text in wmma_texts().items()},
}
"""By name and, of overloads, the type that they take."""
INTRINSICS = tuple(_ALL.values())
"""The text of every function."""


def _function_of(node: object) -> tuple[str, str] | None:
    """The function that a node calls: its name and, of overloads, the type that it takes."""
    match node:
        case CopyAsync():
            return copy_function(node), STORED[node.dtype]
        case Point():
            return BASE, STORED[node.dtype]
        case Call():
            return node.function, ""
        case Commit():
            return "gg_commit_group", ""
        case Wait():
            return "gg_wait_group", ""
        case CountArrival():
            return COUNT_IN, ""
        case AtomicAdd():
            return ADD, STORED[node.dtype]
        case LoadFragment():
            return load_function(node), ""
        case MultiplyFragments():
            return multiply_function(node), ""
        case StoreFragment():
            return store_function(node), ""
        case _:
            return None
