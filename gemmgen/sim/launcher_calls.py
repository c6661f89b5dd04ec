"""Calls of an emitted text's launcher, and its calls of the CUDA runtime.

The layouts are those of ``CallHead`` and ``Called`` in launcher.cpp.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from gemmgen.base.record import record
from gemmgen.ir.interface import Interface, Param

CALLED = 4
"""The status of an answer to calls."""
_MAGIC = 0x67676D63
_COUNTS = struct.Struct("=3I")
_HEAD = struct.Struct("=Q2i")
_CALLED = struct.Struct("=i4I2i3I3II2Q")
_WORD = struct.Struct("=Q")
MAX_DYNAMIC_SHARED = 8
"""``cudaFuncAttributeMaxDynamicSharedMemorySize``."""


@record
class LauncherCall:
    """One call: a value for each parameter (of a pointer its address), the stream's address.

    If ``attribute_error`` or ``launch_error`` is not 0, the runtime returns it.
    """

    values: Mapping[str, int | float]
    stream: int = 0
    attribute_error: int = 0
    launch_error: int = 0


@record
class Called:
    """What a call returned and did.

    ``arguments`` are those that reached the kernel, as their bits; ``attribute`` is a pair of the
    attribute set last and its value, None if none was set.
    """

    error: int
    launches: int
    is_kernel: bool
    attribute: tuple[int, int] | None
    attribute_late: bool
    errors_taken: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    arguments: tuple[int, ...]


def packed_calls(interface: Interface, calls: Sequence[LauncherCall]) -> bytes:
    """The request for any number of calls."""
    request = bytearray(_COUNTS.pack(_MAGIC, len(calls), len(interface.params)))
    for call in calls:
        request += _HEAD.pack(call.stream, call.attribute_error, call.launch_error)
        for param in interface.params:
            request += _WORD.pack(bits_of(param, call.values[param.name]))
    return bytes(request)


def read_called(interface: Interface, answer: bytes) -> tuple[Called, ...]:
    """The answer, one ``Called`` for each call."""
    count = len(interface.params)
    size = _CALLED.size + count * _WORD.size
    return tuple(
        _called(answer[start : start + size], count) for start in range(0, len(answer), size)
    )


def _called(packed: bytes, count: int) -> Called:
    error, launches, attributes, taken, is_kernel, attribute, value, *rest = _CALLED.unpack(
        packed[: _CALLED.size]
    )
    (x, y, z), (block_x, block_y, block_z), (late, shared, stream) = rest[:3], rest[3:6], rest[6:]
    arguments = struct.unpack(f"={count}Q", packed[_CALLED.size :])
    return Called(
        error,
        launches,
        bool(is_kernel),
        (attribute, value) if attributes else None,
        bool(late),
        taken,
        (x, y, z),
        (block_x, block_y, block_z),
        shared,
        stream,
        arguments,
    )


def bits_of(param: Param, value: int | float) -> int:
    """The 8 bytes of a ``GgArgument``: the value's own, followed by zeros."""
    if param.kind == "scalar":
        code = "=d" if param.dtype == "f64" else "=f"
        return int.from_bytes(struct.pack(code, value), "little")
    bits = 32 if param.kind in ("extent", "ld") else 64
    return int(value) % (1 << bits)
