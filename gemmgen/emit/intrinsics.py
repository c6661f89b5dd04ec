"""The ``gg_*`` functions: what plain C++ can't say, one function per PTX instruction.

A file that uses one prints it above its kernel.  ``sim/host.h`` gives the same names a C++ model,
so that the kernel's own text runs on the CPU unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Literal, cast

from gemmgen.ir.lowered import AtomicAdd, Commit, CopyAsync, CountIn, Wait

COPY = """\
// Copies `valid` bytes of {bytes} to shared memory, zeros behind them; asynchronous.
__device__ __forceinline__ void gg_copy_async_{bytes}(float *target, const float *source, int valid)
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
ADD_TEXT = f"""\
// Adds to what other blocks add to as well.
__device__ __forceinline__ void {ADD}(float *target, float value)
{{
    asm volatile("red.relaxed.gpu.add.f32 [%0], %1;" :: "l"(target), "f"(value) : "memory");
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


def copy_function(width: int) -> str:
    """The name of the copy of ``width`` floats."""
    return f"gg_copy_async_{4 * width}"


def intrinsics_of(body: object) -> list[str]:
    """The functions that a kernel's lowered body calls, in a fixed order."""
    found = set(_used(body))
    return [text for name, text in _ALL.items() if name in found]


_ALL = {
    **{
        copy_function(width): COPY.format(bytes=4 * width, cache="cg" if width == 4 else "ca")
        for width in (1, 2, 4)
    },
    "gg_commit_group": COMMIT,
    "gg_wait_group": WAIT,
    ADD: ADD_TEXT,
    COUNT_IN: COUNT_IN_TEXT,
}


def _used(node: object) -> Iterator[str]:
    match node:
        case CopyAsync():
            yield copy_function(node.width)
        case Commit():
            yield "gg_commit_group"
        case Wait():
            yield "gg_wait_group"
        case CountIn():
            yield COUNT_IN
        case AtomicAdd():
            yield ADD
        case _ if isinstance(node, tuple):
            for part in cast("tuple[object, ...]", node):
                yield from _used(part)
        case _ if is_dataclass(node):
            for part in fields(node):
                yield from _used(getattr(node, part.name))
        case _:
            return
