"""Calls of an emitted text's launcher, and its calls of the CUDA runtime.

The layouts are those of ``CallHead`` and ``Called`` in launcher.cpp.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from gemmgen.base.record import record
from gemmgen.ir.interface import Interface
from gemmgen.ir.param import Param

CALLED = 4
"""The status of an answer to calls."""
_MAGIC = 0x67676D63
_COUNTS = struct.Struct("=5I")
_HEAD = struct.Struct("=Q3iIiI4i")
_CALLED = struct.Struct("=i4I2i3I3I4I4x2Q128s")
_WORD = struct.Struct("=Q")
_MARK = 0x6D746767
_MAP = struct.Struct("=Q5Q4Q5H5B6B3xI20x")
OFTEN = 8
"""Devices that are remembered from call to call."""
MAX_DYNAMIC_SHARED = 8
"""``cudaFuncAttributeMaxDynamicSharedMemorySize``."""


@record
class LauncherCall:
    """One call: a value for each parameter (of a pointer its address), the stream's address, and
    the multiprocessors of the current GPU, which runs as many clusters at a time.

    If ``attribute_error``, ``launch_error`` or ``device_error`` is not 0, the runtime returns it,
    and the driver ``map_error`` for encoding ``refused_map`` of the call (from 0; kept maps are not
    encoded).  A caller that asks for the driver's function gets ``entry_error``, or with
    ``no_entry`` none.  One that asks how many multiprocessors there are, or how many clusters run,
    gets ``count_error``.

    ``device``: the current one, a new one if it is None; below ``OFTEN`` it is the same in several
    calls.  ``is_set_up``: the launcher has nothing to ask of it and nothing to set.
    """

    values: Mapping[str, int | float]
    stream: int = 0
    attribute_error: int = 0
    launch_error: int = 0
    map_error: int = 0
    refused_map: int = 0
    entry_error: int = 0
    no_entry: bool = False
    device_error: int = 0
    multiprocessors: int = 1
    count_error: int = 0
    device: int | None = None
    is_set_up: bool = False


@record
class EncodedMap:
    """A tensor map as it reached the kernel: an address, the fields that the interface gives, and
    the numbers of its element type, interleaving, swizzle, L2 promotion and fill.

    ``steps``: the distance of a box's elements, along each dimension.
    """

    address: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    steps: tuple[int, ...]
    type: int
    modes: tuple[int, int, int, int]


@record
class Called:
    """What a call returned and did.

    ``arguments`` are those that reached the kernel, as their bits; ``attribute`` is a pair of the
    attribute set last and its value, None if none was set.  ``maps`` are the tensor maps that
    reached the kernel, None for one that was not encoded; ``refusal`` is why the last one to be
    encoded could not be, or "".  ``questions``: attributes set, and figures of the device or of the
    kernel asked for.  ``encodings``: tensor maps that the driver was to encode.
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
    launch_attributes: int
    questions: int
    encodings: int
    arguments: tuple[int, ...]
    maps: tuple[EncodedMap | None, ...]
    refusal: str


def packed_calls(interface: Interface, calls: Sequence[LauncherCall]) -> bytes:
    """The request for any number of calls."""
    sizes = len(interface.params), len(interface.kernel_params), len(interface.maps)
    request = bytearray(_COUNTS.pack(_MAGIC, len(calls), *sizes))
    for number, call in enumerate(calls):
        request += _HEAD.pack(
            call.stream,
            call.attribute_error,
            call.launch_error,
            call.map_error,
            call.refused_map,
            call.entry_error,
            call.no_entry,
            call.device_error,
            call.multiprocessors,
            call.count_error,
            OFTEN + number if call.device is None else call.device,
        )
        for param in interface.params:
            request += _WORD.pack(bits_of(param, call.values[param.name]))
    return bytes(request)


def read_called(interface: Interface, answer: bytes) -> tuple[Called, ...]:
    """The answer, one ``Called`` for each call."""
    count, maps = len(interface.kernel_params), len(interface.maps)
    size = _CALLED.size + count * _WORD.size + maps * _MAP.size
    return tuple(
        _called(answer[start : start + size], count) for start in range(0, len(answer), size)
    )


def _called(packed: bytes, count: int) -> Called:
    error, launches, attributes, taken, is_kernel, attribute, value, *rest = _CALLED.unpack(
        packed[: _CALLED.size]
    )
    (x, y, z), (block_x, block_y, block_z), others = rest[:3], rest[3:6], rest[6:]
    late, launch_attributes, questions, encodings, shared, stream, refusal = others
    first_map = _CALLED.size + count * _WORD.size
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
        launch_attributes,
        questions,
        encodings,
        struct.unpack(f"={count}Q", packed[_CALLED.size : first_map]),
        tuple(_encoded(*found) for found in _MAP.iter_unpack(packed[first_map:])),
        refusal.rstrip(b"\0").decode(),
    )


def _encoded(address: int, *fields: int) -> EncodedMap | None:
    """The layout is that of ``TensorMap`` in tensor_map.h."""
    sizes, strides, box, steps = fields[:5], fields[5:9], fields[9:14], fields[14:19]
    rank, kind, interleave, swizzle, promotion, fill, mark = fields[19:]
    if mark != _MARK:
        return None
    return EncodedMap(
        address,
        sizes[:rank],
        strides[: rank - 1],
        box[:rank],
        steps[:rank],
        kind,
        (interleave, swizzle, promotion, fill),
    )


def bits_of(param: Param, value: int | float) -> int:
    """The 8 bytes of a ``GgArgument``: the value's own, followed by zeros."""
    if param.kind == "scalar":
        code = {"f64": "=d", "i32": "=i"}.get(param.dtype, "=f")
        given = int(value) if code == "=i" else value
        return int.from_bytes(struct.pack(code, given), "little")
    bits = 32 if param.kind in ("extent", "ld") else 64
    return int(value) % (1 << bits)
