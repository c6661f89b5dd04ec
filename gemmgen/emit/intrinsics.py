"""The ``gg_*`` functions: what plain C++ can't say, one function per PTX instruction.

A file that uses one prints it above its kernel.  ``sim/host.h`` gives the same names a C++ model,
so that the kernel's own text runs on the CPU unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import cast

from gemmgen.ir.lowered import Commit, CopyAsync, Wait

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
}
INTRINSICS = tuple(_ALL.values())
"""The text of every function."""


def _used(node: object) -> Iterator[str]:
    match node:
        case CopyAsync():
            yield copy_function(node.width)
        case Commit():
            yield "gg_commit_group"
        case Wait():
            yield "gg_wait_group"
        case _ if isinstance(node, tuple):
            for part in cast("tuple[object, ...]", node):
                yield from _used(part)
        case _ if is_dataclass(node):
            for part in fields(node):
                yield from _used(getattr(node, part.name))
        case _:
            return
