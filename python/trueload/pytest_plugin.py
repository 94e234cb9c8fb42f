"""The pytest plugin: a fixture ``trueload`` for what a project's own tests expect under load.

    def test_the_front_page_is_fast(trueload):
        r = trueload.http("http://127.0.0.1:8080/", connections=64, duration=5)
        assert r.p99 < 0.020

How: the fixture has what the module ``trueload`` has. Its measurements save nothing unless
``no_save=False``. A test must not pass on a figure that cannot be trusted. So an invalid verdict
fails it at once (with ``strict=True`` a suspect one, too), and so does a condition of ``fail_on``
that holds. A test that failed shows each of its measurements. Its report has their figures as
properties, which JUnit XML shows. Nothing of trueload is imported before the fixture is used, so
the plugin costs other tests nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import pytest

if TYPE_CHECKING:
    from trueload.api import options as of
    from trueload.api.results.ab import AbResult
    from trueload.api.results.result import Result
    from trueload.api.results.suite import SuiteResult

    Measured = Result | AbResult | SuiteResult

Found = TypeVar("Found", bound="Measured")
_RESULTS: pytest.StashKey[list[Measured]] = pytest.StashKey()


class Trueload:
    """The module ``trueload``, whose measurements fail the test if they cannot be trusted."""

    def __init__(self, keep: Callable[[Measured], None]) -> None:
        self._keep = keep

    def ab(
        self,
        url_a: str,
        url_b: str,
        /,
        *,
        invalid_ok: bool = False,
        **options: Unpack[of.AbOptions],
    ) -> AbResult:
        """``trueload.ab``; an invalid verdict fails the test unless ``invalid_ok``."""
        __tracebackhide__ = True
        result: AbResult = self._trusted("ab", (url_a, url_b), options, invalid_ok)
        return result

    def suite(
        self,
        name: str | None = None,
        /,
        *,
        invalid_ok: bool = False,
        **options: Unpack[of.SuiteOptions],
    ) -> SuiteResult:
        """``trueload.suite``; an invalid verdict fails the test unless ``invalid_ok``."""
        __tracebackhide__ = True
        result: SuiteResult = self._trusted("suite", (name,), options, invalid_ok)
        return result

    # Written by tools/options.py.

    def http(
        self,
        url: str | None = None,
        /,
        *,
        invalid_ok: bool = False,
        **options: Unpack[of.HttpOptions],
    ) -> Result:
        """``trueload.http``; an invalid verdict fails the test unless ``invalid_ok``."""
        __tracebackhide__ = True
        result: Result = self._trusted("http", (url,), options, invalid_ok)
        return result

    def tcp(
        self, where: str, /, *, invalid_ok: bool = False, **options: Unpack[of.TcpOptions]
    ) -> Result:
        """``trueload.tcp``; an invalid verdict fails the test unless ``invalid_ok``."""
        __tracebackhide__ = True
        result: Result = self._trusted("tcp", (where,), options, invalid_ok)
        return result

    def udp(
        self, where: str, /, *, invalid_ok: bool = False, **options: Unpack[of.UdpOptions]
    ) -> Result:
        """``trueload.udp``; an invalid verdict fails the test unless ``invalid_ok``."""
        __tracebackhide__ = True
        result: Result = self._trusted("udp", (where,), options, invalid_ok)
        return result

    def ws(
        self, url: str, /, *, invalid_ok: bool = False, **options: Unpack[of.WsOptions]
    ) -> Result:
        """``trueload.ws``; an invalid verdict fails the test unless ``invalid_ok``."""
        __tracebackhide__ = True
        result: Result = self._trusted("ws", (url,), options, invalid_ok)
        return result

    # End of what is written.

    @property
    def aio(self) -> _Aio:
        """``trueload.aio``, by the same rules."""
        return _Aio(self)

    def __getattr__(self, name: str) -> Any:
        import trueload

        return getattr(trueload, name)

    def _trusted(
        self,
        name: str,
        given: tuple[object, ...],
        options: Mapping[str, object],
        invalid_ok: bool,
    ) -> Any:
        __tracebackhide__ = True
        import trueload

        measure = getattr(trueload, name)
        return self._judged(measure(*given, **_unsaved(measure, options)), options, invalid_ok)

    def _judged(self, result: Found, options: Mapping[str, object], invalid_ok: bool) -> Found:
        __tracebackhide__ = True
        self._keep(result)
        strict, undecided = options.get("strict"), getattr(result, "undecided", ())
        # Conditions that are certain decide, whatever the verdict. A suite has none.
        is_decided = hasattr(result, "undecided") and options.get("fail_on") and not undecided
        bad = {"invalid", "suspect"} if strict else set() if is_decided else {"invalid"}
        if undecided and not invalid_ok:
            pytest.fail(f"{result!r} is undecided: {'; '.join(undecided)}")
        if result.verdict in bad - ({"invalid"} if invalid_ok else set()):
            reasons = "; ".join(result.reasons)
            pytest.fail(f"the verdict on {result!r} is {result.verdict}: {reasons}")
        if crossed := getattr(result, "crossed", ()):
            pytest.fail(f"{result!r}: {'; '.join(crossed)}")
        return result


class _Aio:
    def __init__(self, fixture: Trueload) -> None:
        self._fixture = fixture

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        from trueload import aio

        measure = getattr(aio, name)

        async def run(*given: object, invalid_ok: bool = False, **options: object) -> Any:
            __tracebackhide__ = True
            result = await measure(*given, **_unsaved(measure, options))
            return self._fixture._judged(result, options, invalid_ok)

        return run


def _unsaved(measure: Callable[..., object], options: Mapping[str, object]) -> dict[str, object]:
    """The options, with nothing saved by default; a suite always is."""
    return {**({} if measure.__name__ == "suite" else {"no_save": True}), **options}


@pytest.fixture
def trueload(request: pytest.FixtureRequest) -> Trueload:
    """What the module ``trueload`` has: ``trueload.http(url, connections=64, duration=5)`` and so
    on; an invalid verdict fails the test."""
    results: list[Measured] = []
    request.node.stash[_RESULTS] = results

    def keep(result: Measured) -> None:
        results.append(result)
        request.node.user_properties.extend(_properties(result, len(results)))

    return Trueload(keep)


def _properties(result: Measured, number: int) -> list[tuple[str, object]]:
    """Properties for JUnit XML; ``number`` distinguishes the measurements of a test."""
    from trueload.api.results.result import Result

    values: dict[str, object] = {"verdict": result.verdict}
    if isinstance(result, Result):
        values |= {
            "url": result.url,
            "lower_bound": result.lower_bound,
            "ok_per_s": result.throughput.ok_per_s,
            "p50_ms": result.p50.ms if result.p50.is_known else None,
            "p99_ms": result.p99.ms if result.p99.is_known else None,
            "errors": float(result.errors),
        }
    return [
        (f"trueload.{number}.{name}", value) for name, value in values.items() if value is not None
    ]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what was measured if the test has failed."""
    report = yield
    if report.failed:
        for result in item.stash.get(_RESULTS, ()):
            report.sections.append(("trueload", result.summary()))
    return report
