"""The program that runs one kernel: its process, and what is said over its pipes.

The layouts are those of ``Header``, ``BufferHead`` and ``ArgumentHead`` in runner.h, and of
``AnswerHead`` in request.cpp.
"""

from __future__ import annotations

import os
import select
import signal
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from gemmgen.sim.failures import KernelFault, KernelTimeout

_MAGIC = 0x67676D31
_HEADER = struct.Struct("=IIQ6I")
_BUFFER = struct.Struct("=QII64s")
_ARGUMENT = struct.Struct("=IIQ")
_ANSWER = struct.Struct("=IIQ")

ORDERS = ("ascending", "descending", "shuffled")


@dataclass(frozen=True)
class Buffer:
    """Memory that goes to the kernel, and comes back into the same place where it is writable."""

    name: str
    memory: memoryview
    address: int
    writable: bool


@dataclass(frozen=True)
class Pointer:
    """``offset`` bytes into the ``buffer``-th buffer."""

    buffer: int
    offset: int


@dataclass(frozen=True)
class Launch:
    """One launch; ``arguments`` in the order of the kernel's parameters."""

    grid: int
    block: tuple[int, int]
    buffers: tuple[Buffer, ...]
    arguments: tuple[int | float | Pointer, ...]
    order: str
    seed: int


class Process:
    """A program that serves launches one after another.  It is started when needed."""

    def __init__(self, program: Path):
        self._program = program
        self._running: subprocess.Popen[bytes] | None = None

    def launch(self, launch: Launch, seconds: int) -> None:
        """Runs ``launch``.  Raises KernelFault or KernelTimeout; the process is then gone."""
        deadline = time.monotonic() + seconds
        try:
            self._send(launch, seconds)
            magic, status, size = _ANSWER.unpack(self._receive(_ANSWER.size, deadline))
            assert magic == _MAGIC
            if status != 0:
                raise KernelFault(self._receive(size, deadline).decode("utf-8", "replace"))
            for buffer in launch.buffers:
                if buffer.writable:
                    self._receive_into(buffer.memory, deadline)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends the process; the next launch starts another."""
        process, self._running = self._running, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()

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

    def _send(self, launch: Launch, seconds: int) -> None:
        head = bytearray(
            _HEADER.pack(
                _MAGIC,
                ORDERS.index(launch.order),
                launch.seed % 2**64,
                launch.grid,
                *launch.block,
                seconds,
                len(launch.buffers),
                len(launch.arguments),
            )
        )
        for buffer in launch.buffers:
            name = buffer.name.encode()[:63]
            head += _BUFFER.pack(buffer.memory.nbytes, buffer.address % 256, buffer.writable, name)
        for argument in launch.arguments:
            head += _argument_head(argument)
        pipe = self._started().stdin
        assert pipe is not None
        try:
            for part in (memoryview(head), *(buffer.memory for buffer in launch.buffers)):
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


def _argument_head(argument: int | float | Pointer) -> bytes:
    if isinstance(argument, Pointer):
        return _ARGUMENT.pack(2, argument.buffer, argument.offset)
    if isinstance(argument, float):
        return _ARGUMENT.pack(1, 0, struct.unpack("=I", struct.pack("=f", argument))[0])
    return _ARGUMENT.pack(0, 0, argument % 2**32)


def _write_all(pipe: int, memory: memoryview) -> None:
    while memory.nbytes:
        memory = memory[os.write(pipe, memory) :]


def _raise_ended(code: int) -> None:
    if code == -signal.SIGALRM:
        raise KernelTimeout("the kernel did not end in the time it was given")
    how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    raise KernelFault(f"the kernel's process ended {how}")
