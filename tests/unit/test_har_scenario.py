"""A scenario made of a HAR file: it can be read as one, and does what was recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trueload.cli.app import run
from trueload.request.scenario import Beside, read_scenario, used_values
from trueload.request.steps import StepSpec
from trueload.request.url import parse_url

MS = 1_000_000


def entry(at_ms: int, url: str, page: str = "", **more: Any) -> dict[str, Any]:
    return {
        "startedDateTime": f"2026-11-27T10:00:{at_ms // 1000:02}.{at_ms % 1000:03}Z",
        "time": 20,
        "pageref": page,
        "request": {"method": "GET", "url": url, "headers": [], **more.pop("request", {})},
        "response": {"status": 200, **more},
    }


def made(folder: Path, *entries: dict[str, Any], words: tuple[str, ...] = ()) -> str:
    pages = [{"id": "p1", "title": "Home\nsweet"}, {"id": "p2", "title": ""}]
    path = folder / "session.har"
    path.write_text(json.dumps({"log": {"pages": pages, "entries": entries}}))
    output = folder / "scenario.toml"
    assert run(["import", "har", str(path), "-o", str(output), *words]) == 0
    return output.read_text()


def steps(folder: Path) -> tuple[StepSpec, ...]:
    beside = Beside(parse_url("http://127.0.0.1:8080/"))
    return read_scenario(folder / "scenario.toml", beside)[1]


def test_steps_are_in_order_page_after_page_with_the_pauses_between_them(tmp_path: Path) -> None:
    text = made(
        tmp_path,
        entry(0, "http://h/", "p1"),
        entry(10, "http://h/style.css", "p1"),
        entry(1_000, "http://h/next", "p2", status=302),
        entry(40, "http://h/late.js", "p1"),
        entry(59_000, "http://h/last", "p2"),
    )
    found = steps(tmp_path)
    assert [step.name for step in found] == [
        *("1 GET /", "2 GET /style.css", "3 GET /late.js", "4 GET /next", "5 GET /last")
    ]
    pauses_ms = [step.think_ns[0] // MS for step in found]
    assert pauses_ms == [0, 0, 0, 940, 5_000], "gaps of 10 ms and less are no pauses"
    statuses = found[3].expect.statuses
    assert statuses is not None
    assert {200, 302} <= set(statuses)
    assert found[0].expect.statuses is None
    assert "# page: Home sweet\n" in text
    assert "# page: p2\n" in text
    assert "# recorded: 58.0 s" in text


def test_a_step_sends_what_was_recorded_and_keeps_cookies_of_its_own(tmp_path: Path) -> None:
    headers = [("Cookie", "sid=1"), ("Accept", "a"), ("accept", "b"), ("Content-Length", "9")]
    body = '{"a": "{name}", "b": {{1}}, "c": "ü\x7f\\"}'
    request = {
        "method": "PUT",
        "headers": [{"name": name, "value": value} for name, value in headers],
        "postData": {"mimeType": "application/json", "text": body},
    }
    text = made(tmp_path, entry(0, "https://h/{id}?q={{x", request=request))
    (step,) = steps(tmp_path)
    assert step.request.method == "PUT"
    assert step.request.headers == (("Accept", "a, b"),)
    assert list(used_values(step.request)) == []
    assert (step.request.body or b"").decode().replace("{{", "{") == body
    assert "sid=1" not in text


def test_of_several_hosts_one_is_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = (entry(0, "http://a/"), entry(1, "http://b:81/x"))
    made(tmp_path, *entries, words=("--host", "b"))
    assert [step.request.path for step in steps(tmp_path)] == ["/x"]
    assert "wrote" in capsys.readouterr().err
    assert run(["import", "har", str(tmp_path / "session.har")]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.splitlines() == [
        f"error: the HAR file '{tmp_path}/session.har' has requests to 2 hosts: a, b:81",
        "hint: choose one: --host a",
    ]


def test_a_har_file_of_too_many_requests_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "long.har"
    path.write_text(json.dumps({"log": {"entries": [entry(0, "http://h/")] * 1_001}}))
    assert run(["import", "har", str(path)]) == 2
    assert "a scenario at most 1,000 steps" in capsys.readouterr().err
