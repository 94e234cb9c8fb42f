"""A scenario made of a HAR file: it can be read as one, and does what was recorded."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trueload.cli.app import run
from trueload.request.scenario import ScenarioFlags, read_scenario, used_values
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
    beside = ScenarioFlags(parse_url("http://127.0.0.1:8080/"))
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
    assert list(used_values(step)) == []
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


def headed(*pairs: tuple[str, str]) -> dict[str, Any]:
    return {"headers": [{"name": name, "value": value} for name, value in pairs]}


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("Authorization", "Bearer s3cr3t", "Bearer {env:AUTHORIZATION}"),
        ("authorization", "Basic czNjcjN0Cg==s3cr3t", "Basic {env:AUTHORIZATION}"),
        ("Authorization", "s3cr3t", "{env:AUTHORIZATION}"),
        ("Authorization", "AWS4-HMAC-SHA256 s3cr3t", "{env:AUTHORIZATION}"),
        ("X-Api-Key", "s3cr3t", "{env:X_API_KEY}"),
        ("x-auth-token", "{s3cr3t}", "{env:X_AUTH_TOKEN}"),
        ("X-Page", "a {env:HOME} {b", "a {{env:HOME} {{b"),
        ("X-Page", "a {b", "a {b"),
        ("Referer", "http://h/a?sid=s3cr3t&b={c}", "http://h/a?sid={env:SID}&b={{c}"),
    ],
)
def test_secrets_of_headers_are_read_from_the_environment(
    name: str, value: str, written: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = made(tmp_path, entry(0, "http://h/", request=headed((name, value))))
    assert f"{json.dumps(name)} = {json.dumps(written)}" in text
    assert "s3cr3t" not in text
    variable = written.partition("{env:")[2].partition("}")[0]
    told = f"# Its secrets are read from the environment: {variable}\n"
    assert (told in text) == ("s3cr3t" in value)
    said = f"export its secrets first: {variable}\n"
    assert (said in capsys.readouterr().err) == ("s3cr3t" in value)


def test_secrets_that_differ_have_variables_of_their_own(tmp_path: Path) -> None:
    tokens = ("Bearer one", "Bearer two", "Bearer one")
    entries = (
        entry(at, "http://h/", request=headed(("Authorization", token)))
        for at, token in enumerate(tokens)
    )
    text = made(tmp_path, *entries)
    numbers = [
        text.count(f'"Bearer {{env:{name}}}"') for name in ("AUTHORIZATION", "AUTHORIZATION_2")
    ]
    assert numbers == [2, 1]
    assert "environment: AUTHORIZATION, AUTHORIZATION_2\n" in text


@pytest.mark.parametrize(
    ("url", "written"),
    [
        ("/a?api_key=s3cr3t", "/a?api_key={env:API_KEY}"),
        ("/a?b=1&access%5Ftoken=s3cr3t%2B&c=2", "/a?b=1&access%5Ftoken={env:ACCESS_TOKEN}&c=2"),
        ("/{a}?sid=s3cr3t&x={{y", "/{{a}?sid={env:SID}&x={{{{y"),
        ("/a?token=&b", "/a?token=&b"),
        ("/a?author=me", "/a?author=me"),
    ],
)
def test_secrets_of_a_url_are_read_from_the_environment(
    url: str, written: str, tmp_path: Path
) -> None:
    text = made(tmp_path, entry(0, f"http://h{url}"))
    assert f"url = {json.dumps(written)}" in text
    assert "s3cr3t" not in text


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        ("gzip, deflate, br, zstd", "gzip, deflate, br"),
        ("br;q=1.0, GZIP;q=0.8, *;q=0.1", "br;q=1.0, GZIP;q=0.8"),
        ("gzip", "gzip"),
        ("br", "br"),
        ("zstd;q=1.0, dcb", None),
        ("*", None),
        ("gzip-2,x", None),
    ],
)
def test_no_compression_is_asked_for_that_no_value_could_be_taken_from(
    recorded: str, asked: str | None, tmp_path: Path
) -> None:
    request = headed(("Accept-Encoding", recorded), ("X", ""), ("Accept", "*/*"))
    made(tmp_path, entry(0, "http://h/", request=request))
    first = [] if asked is None else [("Accept-Encoding", asked)]
    assert steps(tmp_path)[0].request.headers == (*first, ("X", ""), ("Accept", "*/*"))


def test_a_body_that_is_no_text_is_put_beside_the_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = {"mimeType": "x", "text": "/yJ7YX0i", "encoding": "base64"}
    request = {"method": "POST", "headers": [], "postData": data}
    text = made(tmp_path, entry(0, "http://h/"), entry(1, "http://h/up", request=request))
    assert 'body_file = "scenario-2.body"' in text
    assert (tmp_path / "scenario-2.body").read_bytes() == b'\xff"{{a}"'
    assert steps(tmp_path)[1].request.body == b'\xff"{{a}"'
    assert "2 steps and 1 file with bodies" in capsys.readouterr().err
    assert run(["import", "har", str(tmp_path / "session.har")]) == 2
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err.splitlines()[0].endswith("has bodies that are not text: 1")


def test_a_form_made_of_its_fields_is_told_in_the_scenario(tmp_path: Path) -> None:
    data = {"mimeType": "multipart/form-data; boundary=x", "params": [{"name": "a", "value": "1"}]}
    request = {"method": "POST", "headers": [], "postData": data}
    text = made(tmp_path, entry(0, "http://h/", request=request))
    assert "# 1 form made of the recorded fields, with a boundary of trueload's own\n" in text
    assert (steps(tmp_path)[0].request.body or b"").startswith(b"--trueload-")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_compressed_har_file_is_read(
    pack: Callable[[bytes], bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "session.har.gz"
    path.write_bytes(pack(json.dumps({"log": {"entries": [entry(0, "http://h/")]}}).encode()))
    assert run(["import", "har", str(path)]) == 0
    assert 'url = "/"' in capsys.readouterr().out
    path.write_bytes(path.read_bytes()[:-9])
    assert run(["import", "har", str(path)]) == 2
    assert "session.har.gz' ends early\nhint: " in capsys.readouterr().err


def test_an_entry_without_a_time_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "session.har"
    entries = [entry(0, "http://h/"), {**entry(1, "http://h/"), "startedDateTime": None}]
    path.write_text(json.dumps({"log": {"entries": entries}}))
    assert run(["import", "har", str(path)]) == 2
    assert "entry 2 has no startedDateTime: not HAR 1.2\nhint: " in capsys.readouterr().err
