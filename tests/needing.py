"""Skips the tests that need what this machine lacks, and says for what.

``@pytest.mark.needs("chromium", "root")`` names entries of the table in ``tools/needs.py``; where
only a fixture or a run knows, it calls ``need``. With TEST_NEEDS=all, as in CI, such a test fails.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import Any, NoReturn

import pytest

from tools.needs import NEEDS, STRICT, note, summary

REASON = re.compile(r"needs (\S+) \(")


def need(*names: str) -> None:
    """Skip the test that runs unless all of these are here."""
    for name in names:
        if not NEEDS[name].is_met():
            skip(name)


def skip(name: str, why: str = "") -> NoReturn:
    """Skip the test that runs, because what it needs is not here or, by `why`, is no good."""
    reason = f"needs {name} ({NEEDS[name].cure})" + (f": {why}" if why else "")
    if STRICT:
        pytest.fail(f"{reason}; nothing may be skipped with TEST_NEEDS=all", pytrace=False)
    pytest.skip(reason)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test before its fixtures are made if one of its marks says so."""
    for mark in item.iter_markers("needs"):
        need(*mark.args)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: Any) -> Generator[None, object, object]:
    """Print last how many tests were skipped for what; add them to the list of `make test`."""
    result = yield
    found = list(_skipped(terminalreporter.stats.get("skipped", ())))
    if found:
        terminalreporter.write_line(summary(found))
    for name, test in found:
        note(name, [test])
    return result


def _skipped(reports: Any) -> Iterator[tuple[str, str]]:
    """Yield the need and the test of each report of a test that was skipped for a need."""
    for report in reports:
        if isinstance(report.longrepr, tuple) and (told := REASON.search(report.longrepr[2])):
            yield told[1], report.nodeid
