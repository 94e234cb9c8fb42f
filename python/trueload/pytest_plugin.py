"""The pytest plugin: a fixture ``load`` for what a project's own tests expect under load.

    def test_the_front_page_is_fast(load):
        result = load.http("http://127.0.0.1:8080/", connections=64, duration=5)
        assert result.p99 < 0.010

How: ``load.http``, ``load.ws``, ``load.tcp`` and ``load.udp`` are those of ``trueload``, and save
nothing unless ``no_save=False``. A figure that cannot be trusted is no ground for a test to pass:
an invalid verdict fails it at once (with ``strict=True`` a suspect one, too), and so does a
condition of ``fail_on`` that holds. A test that failed shows each of its measurements; its report
has their figures as properties, which JUnit XML shows. Nothing of trueload is imported before the
fixture is used, so that the plugin costs other tests nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from trueload.api.results.result import Result

_RESULTS: pytest.StashKey[list[Result]] = pytest.StashKey()


class Load:
    """Measures, and fails the test where the figures cannot be trusted."""

    def __init__(self, keep: Callable[[Result], None]) -> None:
        self._keep = keep

    def http(
        self, url: str | None = None, /, *, invalid_ok: bool = False, **options: object
    ) -> Result:
        """``trueload.http``; an invalid verdict fails the test unless ``invalid_ok``."""
        __tracebackhide__ = True
        from trueload.api import http

        return self._trusted(lambda: http(url, **_unsaved(options)), invalid_ok, options)

    def ws(self, url: str, /, *, invalid_ok: bool = False, **options: object) -> Result:
        """``trueload.ws``; an invalid verdict fails the test unless ``invalid_ok``."""
        __tracebackhide__ = True
        from trueload.api import ws

        return self._trusted(lambda: ws(url, **_unsaved(options)), invalid_ok, options)

    def tcp(self, where: str, /, *, invalid_ok: bool = False, **options: object) -> Result:
        """``trueload.tcp``; an invalid verdict fails the test unless ``invalid_ok``."""
        __tracebackhide__ = True
        from trueload.api import tcp

        return self._trusted(lambda: tcp(where, **_unsaved(options)), invalid_ok, options)

    def udp(self, where: str, /, *, invalid_ok: bool = False, **options: object) -> Result:
        """``trueload.udp``; an invalid verdict fails the test unless ``invalid_ok``."""
        __tracebackhide__ = True
        from trueload.api import udp

        return self._trusted(lambda: udp(where, **_unsaved(options)), invalid_ok, options)

    def _trusted(
        self, measure: Callable[[], Result], invalid_ok: bool, options: dict[str, object]
    ) -> Result:
        __tracebackhide__ = True
        from trueload.errors import UserError

        try:
            result = measure()
        except UserError as error:
            error.add_note(f"hint: {error.hint}")
            raise
        self._keep(result)
        bad = {"invalid", "suspect"} if options.get("strict") else {"invalid"}
        if result.verdict in bad - ({"invalid"} if invalid_ok else set()):
            reasons = "; ".join(result.reasons)
            pytest.fail(f"the verdict on {result.url} is {result.verdict}: {reasons}")
        if result.crossed:
            pytest.fail(f"{result.url}: {'; '.join(result.crossed)}")
        return result


def _unsaved(options: dict[str, object]) -> dict[str, object]:
    return {"no_save": True, **options}


@pytest.fixture
def load(request: pytest.FixtureRequest) -> Load:
    """Measures under load: ``load.http(url, connections=64, duration="5s")``, ``ws``, ``tcp``
    and ``udp``; an invalid verdict fails the test."""
    results: list[Result] = []
    request.node.stash[_RESULTS] = results

    def keep(result: Result) -> None:
        results.append(result)
        request.node.user_properties.extend(_properties(result, len(results)))

    return Load(keep)


def _properties(result: Result, number: int) -> list[tuple[str, object]]:
    """For JUnit XML; ``number`` tells the measurements of a test apart."""
    times = result.latency
    values: dict[str, object] = {
        "url": result.url,
        "verdict": result.verdict,
        "ok_per_s": result.throughput.ok_per_s,
        "p50_ms": times.p50.ms if times.p50.is_known else None,
        "p99_ms": times.p99.ms if times.p99.is_known else None,
        "errors": float(result.errors),
    }
    return [
        (f"trueload.{number}.{name}", value) for name, value in values.items() if value is not None
    ]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed shows what it measured."""
    report = yield
    if report.failed:
        for result in item.stash.get(_RESULTS, ()):
            report.sections.append(("trueload", result.summary()))
    return report
