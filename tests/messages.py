"""What a worker of ``pytest -n`` reports of its tests: the first process reads less.

To send a report and to read it took as long as a third of the tests do: three for each test, and in
each the names and the marks of the test.  A preparation or an end that passed is reported if
``--durations`` asks for it; names and marks are those of the test that the worker has.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from _pytest.runner import runtestprotocol


class Messages:
    """A plugin of a worker."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> bool | None:
        if item.config.getoption("durations") is not None:
            return None
        about = {"nodeid": item.nodeid, "location": item.location}
        item.ihook.pytest_runtest_logstart(**about)
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        item.ihook.pytest_runtest_logfinish(**about)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(self) -> Generator[None, Any, Any]:
        data = yield
        if data is not None and "keywords" in data:
            data["keywords"] = {}
        return data
