"""The program that runs one kernel: its process, and the protocol over its pipes.

The layouts are those of ``Header``, ``BufferHead``, ``Piece``, ``ArgumentHead``, ``Tensor`` and
``SharedArray`` in runner.h, and of ``AnswerHead`` in request.cpp.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import subprocess
import threading
import time
import weakref
from pathlib import Path

from gemmgen.base.record import record
from gemmgen.sim.failures import KernelFault, KernelTimeout

_MAGIC = 0x67676D32
_HEADER = struct.Struct("=IIQ12I")
_BUFFER = struct.Struct("=Q4I64s")
_PIECE = struct.Struct("=QQ")
_RANK = 6
_TENSOR = struct.Struct(f"=6IQ{2 * _RANK}Q")
_SHARED = struct.Struct("=QQ")
_ARGUMENT = struct.Struct("=IIQ")
_ANSWER = struct.Struct("=IIQ")

ORDERS = ("ascending", "descending", "shuffled")
LANDINGS = ("late", "early")
"""When asynchronous copies complete: at the wait for them, or at once."""


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

    ``tensors`` and ``arrays`` (offset, bytes in shared memory) are for checked kernels; ``landing``
    is one of ``LANDINGS``; ``by_launcher``: through the text's launcher, if it has one.
    """

    grid: int
    block: tuple[int, int]
    buffers: tuple[TransferredBuffer, ...]
    arguments: tuple[int | float | Real | Pointer, ...]
    order: str
    seed: int
    tensors: tuple[CheckedTensor, ...] = ()
    arrays: tuple[tuple[int, int], ...] = ()
    landing: str = "late"
    by_launcher: bool = True


class Process:
    """A program that serves launches one after another.  It is started when needed.

    Threads that launch at the same time wait for one another.  A fork starts a program of its own.
    """

    def __init__(self, program: Path):
        self._program = program
        self._running: subprocess.Popen[bytes] | None = None
        self._lock = threading.RLock()
        _PROCESSES.add(self)

    def launch(self, launch: LaunchRequest, seconds: float) -> bytes:
        """Runs ``launch``; returns the records of what a checked run found, if anything.

        Raises KernelFault or KernelTimeout; the process has then ended.  ``seconds`` don't include
        the wait for another thread's launch.
        """
        with self._lock:
            return self._launch(launch, seconds)

    def _launch(self, launch: LaunchRequest, seconds: float) -> bytes:
        deadline = time.monotonic() + seconds
        try:
            self._send(launch, seconds)
            magic, status, size = _ANSWER.unpack(self._receive(_ANSWER.size, deadline))
            assert magic == _MAGIC
            if status == 1:
                raise KernelFault(self._receive(size, deadline).decode("utf-8", "replace"))
            if status in (2, 3):
                records = self._receive(size, deadline)
                if status == 3:
                    self.close()
                return records
            for buffer in launch.buffers:
                for part in buffer.parts() if buffer.writable else ():
                    self._receive_into(part, deadline)
            return b""
        except BaseException:
            self.close()
            raise

    def exchange(self, request: bytes, seconds: float) -> tuple[int, bytes]:
        """Sends ``request``; returns the status and the bytes of its answer."""
        with self._lock:
            return self._exchange(request, time.monotonic() + seconds)

    def _exchange(self, request: bytes, deadline: float) -> tuple[int, bytes]:
        try:
            pipe = self._started().stdin
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):  # the answer says why
                _write_all(pipe.fileno(), memoryview(request))
            magic, status, size = _ANSWER.unpack(self._receive(_ANSWER.size, deadline))
            assert magic == _MAGIC
            return status, self._receive(size, deadline)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the process; the next launch starts another."""
        with self._lock:
            process, self._running = self._running, None
        if process is None:
            return
        process.kill()
        process.wait()
        _close_pipes(process)

    def forget(self) -> None:
        """In a fork: leaves the process to the parent, whatever the parent's threads did with
        it."""
        self._lock = threading.RLock()
        process, self._running = self._running, None
        if process is not None:
            process.returncode = 0  # not a child of this process: there is nothing to wait for
            _close_pipes(process)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._running is None:
            self._running = subprocess.Popen(
                [self._program],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )
        return self._running

    def _send(self, launch: LaunchRequest, seconds: float) -> None:
        pipe = self._started().stdin
        assert pipe is not None
        memory = [part for buffer in launch.buffers for part in buffer.parts()]
        try:
            for part in (memoryview(_head(launch, seconds)), *memory):
                _write_all(pipe.fileno(), part)
        except BrokenPipeError:
            pass  # the answer says why

    def _receive(self, size: int, deadline: float) -> bytes:
        data = bytearray(size)
        self._receive_into(memoryview(data), deadline)
        return bytes(data)

    def _receive_into(self, memory: memoryview, deadline: float) -> None:
        process = self._started()
        assert process.stdout is not None
        pipe = process.stdout.fileno()
        while memory.nbytes:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise KernelTimeout("the kernel did not end in the time it was given")
            count = os.readv(pipe, [memory])
            if count == 0:
                _raise_ended(process.wait())
            memory = memory[count:]


_PROCESSES: weakref.WeakSet[Process] = weakref.WeakSet()


def _forget_all() -> None:
    for process in tuple(_PROCESSES):
        process.forget()


os.register_at_fork(after_in_child=_forget_all)


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


def _head(launch: LaunchRequest, seconds: float) -> bytes:
    """All of a request but the buffers' memory."""
    head = bytearray(
        _HEADER.pack(
            _MAGIC,
            ORDERS.index(launch.order),
            launch.seed % 2**64,
            launch.grid,
            *launch.block,
            max(1, round(seconds * 1000)),
            len(launch.buffers),
            len(launch.arguments),
            len(launch.tensors),
            len(launch.arrays),
            LANDINGS.index(launch.landing),
            min((*(tensor.element for tensor in launch.tensors), 4)),
            launch.by_launcher,
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


def _write_all(pipe: int, memory: memoryview) -> None:
    while memory.nbytes:
        memory = memory[os.write(pipe, memory) :]


def _raise_ended(code: int) -> None:
    if code == -signal.SIGALRM:
        raise KernelTimeout("the kernel did not end in the time it was given")
    how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    raise KernelFault(f"the kernel's process ended {how}")
