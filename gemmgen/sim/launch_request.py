"""One launch of a kernel as the program that runs it is asked: records, and their bytes.

The layouts are those of ``Header``, ``BufferHead``, ``Piece``, ``ArgumentHead``, ``Tensor`` and
``SharedArray`` in runner.h.
"""

from __future__ import annotations

import struct

from gemmgen.base.record import record
from gemmgen.calling.launches import BOX_LANDINGS, ORDERS, STRICT_ORDERS, Landing, Order

MAGIC = 0x67676D32
_HEADER = struct.Struct("=IIQ16I")
_BUFFER = struct.Struct("=Q4I64s")
_PIECE = struct.Struct("=QQ")
_RANK = 6
_TENSOR = struct.Struct(f"=6IQ{2 * _RANK}Q")
_SHARED = struct.Struct("=QQ")
_ARGUMENT = struct.Struct("=IIQ")


@record
class TransferredBuffer:
    """Memory that is sent to the kernel, and back into the same array if it is writable.

    ``pieces`` are the (offset, bytes) that are sent; the kernel finds zeros between them.
    """

    name: str
    memory: memoryview
    address: int
    writable: bool
    pieces: tuple[tuple[int, int], ...]

    def parts(self) -> tuple[memoryview, ...]:
        return tuple(self.memory[start : start + size] for start, size in self.pieces)


@record
class Pointer:
    """``offset`` bytes into the ``buffer``-th buffer."""

    buffer: int
    offset: int


@record
class CheckedTensor:
    """What a checked kernel may access from ``pointer``, its lowest element; ``strides`` count
    bytes.

    Unless it is ``readable``, its elements are undefined before the launch.
    """

    name: str
    pointer: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    readable: bool
    element: int = 4
    """Bytes."""
    shared: bool = False
    """Whether several blocks may write an element, one after another."""


@record
class Real:
    """A number that the kernel takes in double precision."""

    value: float


@record
class LaunchRequest:
    """One launch; ``arguments`` in the order of the kernel's parameters.

    ``tensors`` and ``arrays`` (offset, bytes in shared memory) are for checked kernels;
    ``by_launcher``: through the text's launcher, if it has one.  ``keeps_clocks``: for checked
    kernels whose threads do not only wait for all of their block, or of their warp.
    """

    grid: int
    block: tuple[int, int]
    buffers: tuple[TransferredBuffer, ...]
    arguments: tuple[int | float | Real | Pointer, ...]
    order: Order
    seed: int
    tensors: tuple[CheckedTensor, ...] = ()
    arrays: tuple[tuple[int, int], ...] = ()
    landing: Landing = "late"
    by_launcher: bool = True
    keeps_clocks: bool = False
    multiprocessors: int = 1
    """Of the GPU that the launcher finds, which runs as many clusters at a time."""
    attributes: int = 0
    """Numbers of its attributes, as bits."""
    finite: bool = False
    """Whether no element is an infinity or a NaN, so that no sum is."""


def head_of(launch: LaunchRequest, seconds: float) -> bytes:
    """All of a request but the buffers' memory."""
    head = bytearray(
        _HEADER.pack(
            MAGIC,
            (*ORDERS, *STRICT_ORDERS).index(launch.order),
            launch.seed % 2**64,
            launch.grid,
            *launch.block,
            max(1, round(seconds * 1000)),
            len(launch.buffers),
            len(launch.arguments),
            len(launch.tensors),
            len(launch.arrays),
            BOX_LANDINGS.index(launch.landing),
            min((*(tensor.element for tensor in launch.tensors), 4)),
            launch.by_launcher,
            launch.keeps_clocks,
            launch.multiprocessors,
            launch.attributes,
            launch.finite,
            0,
        )
    )
    for buffer in launch.buffers:
        size, residue = buffer.memory.nbytes, buffer.address % 256
        name = buffer.name.encode()[:63]
        head += _BUFFER.pack(size, residue, buffer.writable, len(buffer.pieces), 0, name)
    for argument in launch.arguments:
        head += _argument_head(argument)
    for tensor in launch.tensors:
        head += _tensor_head(tensor)
    for array in launch.arrays:
        head += _SHARED.pack(*array)
    for buffer in launch.buffers:
        for piece in buffer.pieces:
            head += _PIECE.pack(*piece)
    return bytes(head)


def _tensor_head(tensor: CheckedTensor) -> bytes:
    """The longest stride first; a dimension of stride 0 has one element."""
    *outer, last = zip(tensor.strides, tensor.shape, strict=True)
    by_stride = sorted(((abs(s), n if s else min(n, 1)) for s, n in outer), reverse=True)
    strides, shape = zip(*by_stride, last, strict=True)
    fill = (0,) * (_RANK - len(shape))
    flags = tensor.readable, tensor.shared
    head = (tensor.pointer.buffer, len(shape), *flags, tensor.element, 0, tensor.pointer.offset)
    return _TENSOR.pack(*head, *shape, *fill, *strides, *fill)


def _argument_head(argument: int | float | Real | Pointer) -> bytes:
    if isinstance(argument, Real):
        return _ARGUMENT.pack(3, 0, struct.unpack("=Q", struct.pack("=d", argument.value))[0])
    if isinstance(argument, Pointer):
        return _ARGUMENT.pack(2, argument.buffer, argument.offset)
    if isinstance(argument, float):
        return _ARGUMENT.pack(1, 0, struct.unpack("=I", struct.pack("=f", argument))[0])
    return _ARGUMENT.pack(0, 0, argument % 2**64)
