"""What is in this folder needs an NVIDIA GPU and CuPy; elsewhere it's skipped, with the reason."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gemmgen.gpu import device

CALLS = "calls on both sides, and on the CPU alone"
"""What a test records, with ``record_property``."""
MOST_BYTES = 1 << 30
"""That the tensors of a call on the GPU may span: they go there whole, from several processes."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    folder = str(Path(__file__).parent) + os.sep
    here = [item for item in items if str(item.path).startswith(folder)]
    why = device.missing() if here else None
    for item in here:
        item.add_marker(pytest.mark.gpu)
        if why is not None:
            item.add_marker(pytest.mark.skip(reason=why))


@pytest.fixture(autouse=True)
def private_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Cubins of a test run go to their own folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(autouse=True)
def unused_memory_is_given_back() -> Iterator[None]:
    """A dozen processes share the GPU, and each one's pool would keep what its largest test had."""
    yield
    if "cupy" in sys.modules and device.missing() is None:
        device.cupy().get_default_memory_pool().free_all_blocks()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Names a failure at once: a run that is cut short prints no summary."""
    if report.failed:
        print(f"\nfailed: {report.nodeid}\n{report.longreprtext[-2000:]}", flush=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many calls of random schedules were made on the GPU, and how many were left out."""
    reports = [each for found in terminalreporter.stats.values() for each in found]
    counts = [
        value
        for report in reports
        for name, value in getattr(report, "user_properties", ())
        if name == CALLS and report.when == "call"
    ]
    if counts:
        both, host_only = map(sum, zip(*counts, strict=True))
        left = f"{host_only} whose tensors span more than {MOST_BYTES >> 30} GiB on the CPU alone"
        terminalreporter.write_line(f"random schedules: {both} calls on GPU and CPU, {left}")
