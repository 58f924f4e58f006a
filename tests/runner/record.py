"""A pytest plugin that records what a run came to: a line of JSON for each process, each failure, and the end.

The process that was started records the failures, also those of workers and of tests in which a worker died.
"""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Generator
from typing import Any

import pytest

_SHARED = "the teardown of what tests share"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record", metavar="FILE", help="where to record what the run came to")


def pytest_configure(config: pytest.Config) -> None:
    recorder = Recorder(config.getoption("record"))
    recorder.write(process=os.getpid())
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(recorder)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Mark errors that came after the last of several tests: any of them may be the cause."""
    report = yield
    if call.excinfo and report.when == "teardown" and _is_of_shared(call.excinfo.value):
        report.user_properties.append((_SHARED, True))
    return report


def _is_of_shared(error: BaseException) -> bool:
    places = [frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__)]
    if any(isinstance(place, pytest.FixtureDef) and place.scope != "function" for place in places):
        return True
    return isinstance(error, BaseExceptionGroup) and any(map(_is_of_shared, error.exceptions))


class Recorder:
    """Writes the record; it is appended to by several processes, each line at once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.uncollected = 0
        self.passed: set[str] = set()
        self.skipped: set[str] = set()
        self.failed: set[str] = set()
        self.ran: set[str] = set()

    def write(self, **line: Any) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.ran.add(report.nodeid)
        if report.failed:
            self.failed.add(report.nodeid)
            text = "\n".join([report.longreprtext, *(f"--- {name} ---\n{text}" for name, text in report.sections)])
            shared = (_SHARED, True) in map(tuple, report.user_properties)
            self.write(failed=report.nodeid, when=report.when, text=text, shared=shared)
        elif report.skipped and not hasattr(report, "wasxfail"):
            self.skipped.add(report.nodeid)
        elif report.when == "call":
            self.passed.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.uncollected += report.failed

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Workers would run what they could collect; without them pytest itself ends here."""
        if self.uncollected:
            pytest.exit(f"errors during collection: {self.uncollected}", returncode=pytest.ExitCode.INTERRUPTED)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.write(
            collected=session.testscollected,
            ran=len(self.ran),
            passed=len(self.passed - self.failed),
            skipped=len(self.skipped - self.failed),
        )
