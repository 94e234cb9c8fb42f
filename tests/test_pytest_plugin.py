"""The pytest plugin, in the tests of a project that has it installed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from harness import Server
from subject_world import World

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.engine

Ran = Callable[..., pytest.RunResult]


@pytest.fixture
def ran(
    pytester: pytest.Pytester, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Ran:
    """Return a function that runs one test with this body; its ``URL`` is that of a live server."""
    monkeypatch.setenv("TRUELOAD_STORE", str(tmp_path / "store.sqlite"))

    def run(body: str, *args: str) -> pytest.RunResult:
        lines = [f"URL = {server.url!r}", "def test_it(trueload):", *_indented(body)]
        pytester.makepyfile("\n".join(lines))
        return pytester.runpytest_subprocess("-p", "no:cacheprovider", *args)

    return run


def _indented(body: str) -> list[str]:
    return [f"    {line}" for line in body.strip().splitlines()]


FEW = "connections=2, requests=200"


def test_what_holds_passes_and_leaves_properties(ran: Ran, pytester: pytest.Pytester) -> None:
    ended = ran(
        f"""
result = trueload.http(URL, {FEW}, invalid_ok=True)
assert result.p99 < 10 and result.errors < "0.1%" and result.run_id is None
trueload.http(URL, {FEW}, invalid_ok=True)
""",
        "--junitxml=it.xml",
    )
    ended.assert_outcomes(passed=1)
    tree = ElementTree.parse(pytester.path / "it.xml")
    found = {each.attrib["name"]: each.attrib["value"] for each in tree.iter("property")}
    assert found["trueload.1.url"] == found["trueload.2.url"]
    assert float(found["trueload.1.ok_per_s"]) > 0
    assert float(found["trueload.2.errors"]) == 0
    assert float(found["trueload.1.p50_ms"]) <= float(found["trueload.1.p99_ms"])


def test_what_does_not_hold_fails_and_shows_what_was_measured(ran: Ran) -> None:
    body = f"result = trueload.http(URL, {FEW}, invalid_ok=True)\nassert result.p99 < 1e-9"
    ended = ran(body)
    ended.assert_outcomes(failed=1)
    expected = [r"E .*assert .* < 1e-09", r"-+ trueload -+"]
    # An invalid result begins with its verdict, so the two lines come in either order.
    ended.stdout.re_match_lines([*expected, r"requests +200 ok"])
    ended.stdout.re_match_lines([*expected, r"verdict +\w+"])


def test_an_invalid_verdict_fails_the_test_at_once(ran: Ran) -> None:
    body = f"trueload.http(URL, {FEW}, expect_status=404)\nraise AssertionError('it went on')"
    ended = ran(body)
    ended.assert_outcomes(failed=1)
    ended.stdout.re_match_lines(
        [r"E .*the verdict on .* is invalid: .*fail errors: .*", r"-+ trueload -+", r"failures .*"]
    )
    ended.stdout.no_fnmatch_line("*it went on*")


def test_a_crossed_condition_fails_the_test(ran: Ran) -> None:
    ended = ran(f"trueload.http(URL, {FEW}, invalid_ok=True, fail_on='throughput>1')")
    ended.assert_outcomes(failed=1)
    ended.stdout.re_match_lines([r"E .*--fail-on says throughput>1"])


def test_the_fixture_has_what_the_module_has(ran: Ran) -> None:
    ended = ran(
        f"""
import trueload as module
assert (trueload.serve, trueload.Time) == (module.serve, module.Time)
with trueload.serve() as server:
    done = trueload.ab(server.url, URL, {FEW}, repeat=1, invalid_ok=True)
assert done.run_id is None and trueload.runs() == []
"""
    )
    ended.assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "measure",
    [
        "trueload.ab(URL, URL, {0}, repeat=1, expect_status=404)",
        "asyncio.run(trueload.aio.http(URL, {0}, expect_status=404))",
    ],
)
def test_no_way_of_measuring_lets_an_invalid_verdict_pass(ran: Ran, measure: str) -> None:
    ended = ran(f"import asyncio\n{measure.format(FEW)}\nraise AssertionError('it went on')")
    ended.assert_outcomes(failed=1)
    ended.stdout.re_match_lines([r"E .*the verdict on .* is invalid: .*fail errors: .*"])
    ended.stdout.no_fnmatch_line("*it went on*")


def test_a_suite_of_which_nothing_can_be_ranked_fails_the_test(
    world: World, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in world.env.items():
        monkeypatch.setenv(name, value)
    world.add("good")
    pytester.makepyfile(
        f"""
import os
def test_it(trueload):
    os.chdir({str(world.folder)!r})
    trueload.suite("http-servers", connections=2, pipeline=1, requests=20, repeat=1,
                   cores="single", share_cpus=True, timeout=1e-6)
"""
    )
    ended = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    ended.stdout.re_match_lines([r"E .*the verdict on <suite http-servers: 0 of 1 row ranked>.*"])


def test_a_mistake_comes_with_its_hint(ran: Ran, refusing_port: int) -> None:
    ended = ran("trueload.http(URL, conections=2)")
    ended.assert_outcomes(failed=1)
    ended.stdout.re_match_lines([r"E .*no argument conections=", r"E .*did you mean connections="])
    ended = ran(f"trueload.tcp('127.0.0.1:{refusing_port}', connections=2, requests=5)")
    ended.stdout.re_match_lines([r"E .*NothingMeasuredError.*connect\.refused", r"E .*hint: .*"])


@pytest.mark.parametrize(
    "call",
    [
        "trueload.http(URL, connections=-1)",
        "trueload.http('http://127.0.0.1:1/', connections=1, requests=1)",
        "__import__('trueload').http(URL, connections=-1)",
        "__import__('asyncio').run(trueload.aio.http(URL, connections=-1))",
    ],
)
def test_a_failing_test_shows_its_own_line_and_none_of_ours(ran: Ran, call: str) -> None:
    ended = ran(call)
    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines([f">   *{call}", "E *UserError*" if "-1" in call else "E *Error*"])
    ended.stdout.no_re_match_line(r"\S*trueload/\S+\.py:\d+|.*direct cause")


def test_a_project_that_does_not_use_it_does_not_import_trueload(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import sys
        def test_it():
            own = ("trueload.record", "trueload.aio", "trueload.api", "trueload.cli")
            assert not [name for name in sys.modules if name.startswith(own)]
            assert "trueload.pytest_plugin" in sys.modules
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
    assert "trueload.pytest_plugin" in sys.modules
