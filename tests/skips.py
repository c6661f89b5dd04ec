"""What was skipped, by reason: a line each at the end, so that nothing is missing in silence."""

from __future__ import annotations

from collections import Counter

import pytest


def message(skipped: list[pytest.TestReport]) -> list[str]:
    """``225 skipped: CuPy is not installed``, the most first."""
    reasons = Counter(_reason(report) for report in skipped)
    return [f"{count} skipped: {reason}" for reason, count in reasons.most_common()]


def _reason(report: pytest.TestReport) -> str:
    *_, said = report.longrepr if isinstance(report.longrepr, tuple) else (str(report.longrepr),)
    return str(said).removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in message(terminalreporter.getreports("skipped")):
        terminalreporter.write_line(line)
