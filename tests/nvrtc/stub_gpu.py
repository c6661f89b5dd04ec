"""A GPU that takes the milliseconds that its launches say, for tests of what measures it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


class StubGpu:
    """A clock, which launches advance; ``log`` has their names in order."""

    def __init__(self) -> None:
        self.now = 0.0
        self.log: list[str] = []
        self._graph: list[Callable[[], None]] | None = None

    def kernel(self, name: str, ms: float) -> Callable[[], None]:
        """A kernel of a name that takes this many milliseconds."""

        def work() -> None:
            self.now += ms
            self.log.append(name)

        def launch() -> None:
            if self._graph is None:
                work()
            else:
                self._graph.append(work)

        return launch

    def cupy(self) -> Any:
        """A stand-in for the module CuPy."""
        runtime = SimpleNamespace(
            deviceSynchronize=lambda: None,
            getDevice=lambda: 0,
            deviceGetPCIBusId=lambda _: "0000:01:00.0",
        )
        cuda = SimpleNamespace(
            Stream=lambda **_: _Stream(self),
            Event=lambda: _Event(self),
            get_elapsed_time=lambda start, end: end.at - start.at,
            runtime=runtime,
        )
        return SimpleNamespace(cuda=cuda)

    def begin(self) -> None:
        self._graph = []

    def end(self) -> Any:
        found, self._graph = self._graph or [], None
        return SimpleNamespace(launch=lambda _: [work() for work in found])


class _Event:
    def __init__(self, gpu: StubGpu) -> None:
        self._gpu, self.at = gpu, 0.0

    def record(self) -> None:
        self.at = self._gpu.now

    def synchronize(self) -> None: ...


class _Stream:
    ptr = 0

    def __init__(self, gpu: StubGpu) -> None:
        self.begin_capture, self.end_capture = gpu.begin, gpu.end

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None: ...

    def synchronize(self) -> None: ...
