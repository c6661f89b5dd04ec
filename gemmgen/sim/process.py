"""The program that runs one kernel: its process, and the exchange over its pipes.

An answer's layout is that of ``AnswerHead`` in launch_request.cpp.
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
from collections.abc import Generator, Sequence
from pathlib import Path

from gemmgen.sim.failures import KernelFault, KernelTimeout
from gemmgen.sim.launch_request import MAGIC, LaunchRequest, head_of

_ANSWER = struct.Struct("=IIQ")


class Process:
    """A program that serves launches one after another.  It is started when needed.

    Threads that launch at the same time wait for one another.  A fork starts its own program.
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
        memory = [part for buffer in launch.buffers for part in buffer.parts()]
        with self._lock, self._closed_on_error():
            deadline = time.monotonic() + seconds
            status, size = self._asked((memoryview(head_of(launch, seconds)), *memory), deadline)
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

    def exchange(self, request: bytes, seconds: float) -> tuple[int, bytes]:
        """Sends ``request``; returns the status and the bytes of its answer."""
        with self._lock, self._closed_on_error():
            deadline = time.monotonic() + seconds
            status, size = self._asked((memoryview(request),), deadline)
            return status, self._receive(size, deadline)

    @contextlib.contextmanager
    def _closed_on_error(self) -> Generator[None]:
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _asked(self, parts: Sequence[memoryview], deadline: float) -> tuple[int, int]:
        """Sends a request; the status and the bytes of the answer that follows."""
        pipe = self._started().stdin
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):  # the answer says why
            for part in parts:
                _write_all(pipe.fileno(), part)
        magic, status, size = _ANSWER.unpack(self._receive(_ANSWER.size, deadline))
        assert magic == MAGIC
        return status, size

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


def _write_all(pipe: int, memory: memoryview) -> None:
    while memory.nbytes:
        memory = memory[os.write(pipe, memory) :]


def _raise_ended(code: int) -> None:
    if code == -signal.SIGALRM:
        raise KernelTimeout("the kernel did not end in the time it was given")
    how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    raise KernelFault(f"the kernel's process ended {how}")
