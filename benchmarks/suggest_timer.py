"""Times of launches from CUDA graphs, on a stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Timer:
    """Times launches from CUDA graphs."""

    cp: Any
    stream: Any
    alive: dict[int, object] = field(default_factory=dict)
    """What graphs use, until ``forget``."""

    def forget(self) -> None:
        self.stream.synchronize()
        self.alive.clear()

    def once(self, launch: Callable[[], None]) -> float:
        """Rough milliseconds: the minimum of three."""
        return min(self.elapsed(launch) for _ in range(3))

    def elapsed(self, run: Callable[[], None]) -> float:
        start, end = self.cp.cuda.Event(), self.cp.cuda.Event()
        start.record()
        run()
        end.record()
        end.synchronize()
        return self.cp.cuda.get_elapsed_time(start, end)

    def graph(self, launch: Callable[[], None], launches: int) -> Callable[[], None]:
        self.stream.begin_capture()
        try:
            for _ in range(launches):
                launch()
        finally:
            found = self.stream.end_capture()

        def run() -> None:
            found.launch(self.stream)

        self.alive[id(run)] = launch  # keeps its module and scratch alive; the graph does not
        return run

    def prepared(self, launch: Callable[[], None]) -> tuple[Callable[[], None], int]:
        """A graph of about 1 ms, and the launches in it."""
        rough = self.once(launch)
        launches = max(1, min(100, math.ceil(1.0 / max(rough, 2e-3))))
        return self.graph(launch, launches), launches

    def sample(self, run: Callable[[], None], launches: int, warm: float, timed: float) -> float:
        """Microseconds of a launch."""
        each = max(self.elapsed(run), 1e-3)
        for _ in range(int(warm / each)):
            run()
        times = max(1, round(timed / each))

        def several() -> None:
            for _ in range(times):
                run()

        return self.elapsed(several) / times / launches * 1e3
