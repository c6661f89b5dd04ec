"""The default suite's budget: CPU seconds of each test and of all, on a machine of known speed.

Seconds of the clock say little where other programs run.  What counts is the CPU time of a test and
of the processes that it waited for, divided by how slowly this machine runs a fixed piece of work
meanwhile.  A default run of everything that takes more than its budget fails, and says which
tests took the most.  ``GEMMGEN_CPU_LOG`` names a file that gets a line a test.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from dataclasses import dataclass, field

import pytest

TEST, TESTS = 8.0, 240.0
"""CPU seconds of one test, and of all of them.  Two cores have 360 in three minutes, installation
included."""
UNSEEN = 2.0
"""How many times ``TESTS`` fails a run.  The fixed work needs little memory: on cores of 2.1 GHz
the same tests took 1.4 times as long, while it took as long as on those of 2.8 GHz; beside other
programs that use the caches they took 1.5 times as long."""
UNIT, WORK = 0.0107, 200_000
"""CPU seconds of the fixed work on a core of 2.8 GHz of its own, and its size."""
EVERY = 5.0
"""CPU seconds between two measurements of the machine."""
SHOWN = 12
_KEY = "gemmgen_cpu"


def spent() -> float:
    """CPU seconds of this process and of those that it waited for."""
    return sum(os.times()[:4])


def slowness() -> float:
    """How many times ``UNIT`` the fixed work takes here and now."""
    start = time.process_time()
    total = 0
    for i in range(WORK):
        total += i & 7
    return (time.process_time() - start) / UNIT


@dataclass(eq=False)  # pytest wants plugins with a hash
class Budget:
    """Measures the tests of one process; the first process adds up what the others report.

    ``samples`` are of the machine's slowness: its mean over the run counts, as one says little.
    """

    log: str = os.environ.get("GEMMGEN_CPU_LOG", "")
    due: float = 0.0
    samples: list[float] = field(default_factory=list[float])
    took: dict[str, float] = field(default_factory=dict[str, float])

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        start = spent()
        if start >= self.due:
            self.samples.append(slowness())
            start = spent()
            self.due = start + EVERY
        try:
            return (yield)
        finally:
            self.took[item.nodeid] = spent() - start
            if self.log:
                with open(self.log, "a", encoding="utf-8") as file:
                    file.write(f"{spent() - start:.3f} {item.nodeid}\n")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput[_KEY] = [self.took, self.samples]
            return
        over = self.over(whole=is_whole(session.config))
        if over and not session.exitstatus:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        took, samples = getattr(node, "workeroutput", {}).get(_KEY, ({}, []))
        self.took.update(took)
        self.samples += samples

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        whole = is_whole(terminalreporter.config)
        if whole:
            total, factor = sum(s for _, s in self._most()), self._factor()
            terminalreporter.write_line(
                f"{total:.0f} CPU seconds of the {TESTS:.0f} allowed; "
                f"this machine was {factor:.2f} times as slow as the one that they are for"
            )
        for line in self.over(whole):
            terminalreporter.write_line(line)

    def over(self, whole: bool) -> list[str]:
        """What is over budget, as lines; nothing where not all was run."""
        if not whole:
            return []
        message = [
            f"{s:.1f} CPU seconds, more than {TEST:.0f}: {n}" for n, s in self._most() if s > TEST
        ]
        if sum(s for _, s in self._most()) > UNSEEN * TESTS:
            message.append("too much in all; the most is taken by:")
            message += [f"  {seconds:5.1f} {name}" for name, seconds in self._most()[:SHOWN]]
        return message

    def _most(self) -> list[tuple[str, float]]:
        factor = self._factor()
        found = ((name, seconds / factor) for name, seconds in self.took.items())
        return sorted(found, key=lambda one: -one[1])

    def _factor(self) -> float:
        """A faster machine's seconds count as they are: compilers and memory are not as much
        faster as the fixed work."""
        return max(1.0, sum(self.samples) / len(self.samples)) if self.samples else 1.0


def is_whole(config: pytest.Config) -> bool:
    """Is this the default run of all there is?"""
    chosen = any(map(config.getoption, ("-k", "-m", "--proof", "--exhaustive")))
    return config.args == config.getini("testpaths") and not chosen
