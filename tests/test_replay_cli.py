"""Replays, checked at a server that writes down what it was asked; the examples of the page run."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from counting import Counting
from harness import Trueload
from targets_files import measure

PAGE = Path(__file__).parents[1] / "docs" / "replay.md"


@pytest.fixture
def counting() -> Iterator[Counting]:
    with Counting() as server:
        yield server


def test_the_lines_of_the_page_are_sent_in_order_each_once(
    trueload: Trueload, counting: Counting, tmp_path: Path
) -> None:
    (lines,) = re.findall(r'(?ms)^```\n(\{"at".*?)^```', PAGE.read_text())
    path = tmp_path / "traffic.jsonl"
    path.write_text(lines)
    more = ("-c", "1", "-H", "Accept: own", "--warmup", "100ms", "--speed", "2x")
    record = measure(trueload, counting.url, "--replay", path, *more)
    asked = [(one.method, one.path, one.body) for one in counting.asked]
    assert asked == [
        ("GET", "/", b""),
        ("GET", "/item/1", b""),
        ("POST", "/item", b'{"id": 7}'),
        ("GET", "/item/2", b""),
    ]
    assert {one.headers["accept"] for one in counting.asked} == {"own"}
    assert {one.headers["host"] for one in counting.asked} == {counting.authority}
    assert record["warmup"]["counts"]["ok"] == 1, "the first 100 ms of what is sent"
    assert record["counts"]["scheduled"] == record["counts"]["ok"] == 3
    assert record["window"]["window_ns"] >= 650_000_000, (
        "the last one is due 750 ms after the first"
    )
    replay = record["plan"]["generate"]["replay"]
    assert replay["about"] == "traffic.jsonl (file of JSON lines, 2x)"
    checks = {check["name"]: check for check in record["checks"]}
    assert checks["send-lag"]["status"] != "n/a"
    assert checks["rate-reached"]["status"] == "pass"


def test_a_log_is_sent_once_over_threads_and_a_page_that_was_missing_may_be_missing(
    trueload: Trueload, counting: Counting, tmp_path: Path
) -> None:
    path = tmp_path / "access.log"
    wanted = [f"/missing/{at}" if at % 5 == 0 else f"/{at % 7}" for at in range(300)]
    path.write_text(
        "".join(
            f'h - - [27/Nov/2026:10:00:0{at // 60} +0000] "GET {asked} HTTP/1.1"'
            f' {404 if "missing" in asked else 200} 2 "-" "agent"\n'
            for at, asked in enumerate(wanted)
        )
    )
    words = ("--replay", path, "--speed", "10x", "-c", "8", "--threads", "2", "--json", "-")
    done = trueload.run("http", counting.url, *words)
    assert done.code in (0, 4), done
    record = done.json()
    assert record["counts"]["ok"] == 300
    assert record["counts"]["statuses"] == {"200": 240, "404": 60}
    assert Counter(one.path for one in counting.asked) == Counter(wanted)
    assert {one.headers["user-agent"] for one in counting.asked} == {"agent"}
    assert "note: access.log is a combined access log: 300 requests, 67 of them" in done.err
    assert "spread evenly within each second" in done.err
    assert not record["targets"]


def test_bytes_of_several_compressed_logs_arrive_as_they_were(
    trueload: Trueload, counting: Counting, tmp_path: Path
) -> None:
    line = b'h - - [27/Nov/2026:10:00:%02d +0000] "GET /%s HTTP/1.1" 200 2 "-" "%s"\n'
    old, new = tmp_path / "access.log.1.gz", tmp_path / "access.log"
    old.write_bytes(gzip.compress(line % (0, b"caf\\xE9", b"a \\x22b\\x22 \\xE9")))
    new.write_bytes(line % (1, b"caf\xe9", b"\xe9") + line % (2, b"caf\xc3\xa9", b"\xc3\xa9"))
    more = ("-c", "1", "--speed", "10x")
    record = measure(trueload, counting.url, "--replay", new, "--replay", old, *more)
    assert record["counts"]["ok"] == 3
    assert [one.path for one in counting.asked] == ["/caf%E9", "/caf%E9", "/caf%C3%A9"]
    agents = [one.headers["user-agent"].encode("latin-1") for one in counting.asked]
    assert agents == [b'a "b" \xe9', b"\xe9", b"\xc3\xa9"]


def test_a_log_is_sent_by_its_format(
    trueload: Trueload, counting: Counting, tmp_path: Path
) -> None:
    path = tmp_path / "odd.log"
    path.write_text("1795773600.0|PUT|/a?b|x\\x22|k\n")
    form = "$msec|$request_method|$request_uri|$request_body|$http_x_key"
    measure(trueload, counting.url, "--replay", path, "--log-format", form)
    (asked,) = counting.asked
    assert (asked.method, asked.path, asked.body) == ("PUT", "/a?b", b'x"')
    assert asked.headers["x-key"] == "k"


def test_a_scenario_made_of_a_har_file_reads_its_secrets_from_the_environment(
    trueload: Trueload, counting: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers = [{"name": "Authorization", "value": "Bearer s3cr3t"}]
    data = {"text": "/3sheH0=", "encoding": "base64"}
    request = {"method": "POST", "headers": headers, "postData": data}
    entry = {
        "startedDateTime": "2026-11-27T10:00:00Z",
        "request": {**request, "url": "http://h/{env:HOME}?api_key=s3cr3t&x={{y"},
        "response": {"status": 200},
    }
    path, made = tmp_path / "session.har", tmp_path / "scenario.toml"
    path.write_text(json.dumps({"log": {"entries": [entry]}}))
    assert trueload.run("import", "har", path, "-o", made).code == 0
    assert "s3cr3t" not in made.read_text()
    more = ("-c", "1", "--requests", "1", "--scenario", made, counting.url)
    refused = trueload.run("http", *more)
    assert (refused.code, "API_KEY" in refused.err) == (2, True), refused
    monkeypatch.setenv("AUTHORIZATION", "t0ken")
    monkeypatch.setenv("API_KEY", "k3y&")
    record = measure(trueload, *more)
    (asked,) = counting.asked
    assert asked.path == "/{env:HOME}?api_key=k3y%26&x={{y"
    assert asked.headers["authorization"] == "Bearer t0ken"
    assert asked.body == b"\xff{!x}"
    assert "t0ken" not in json.dumps(record)


def test_a_scenario_made_of_a_har_file_runs(
    trueload: Trueload, counting: Counting, tmp_path: Path
) -> None:
    def entry(at_ms: int, url: str) -> dict[str, Any]:
        request = {"method": "GET", "url": url, "headers": []}
        at = f"2026-11-27T10:00:00.{at_ms:03}Z"
        return {"startedDateTime": at, "time": 1, "request": request, "response": {"status": 200}}

    urls = ["https://shop.example/", "https://cdn.example/x.js", "https://shop.example/{id}?a={{b"]
    entries = [entry(at * 60, url) for at, url in enumerate(urls)]
    path = tmp_path / "session.har"
    path.write_text(json.dumps({"log": {"entries": entries}}))
    made = tmp_path / "scenario.toml"
    done = trueload.run("import", "har", path, "--host", "shop.example", "-o", made)
    assert done.code == 0, done
    more = ("-c", "1", "-d", "500ms", "--warmup", "0s")
    record = measure(trueload, counting.url, "--scenario", made, *more)
    assert {one.path for one in counting.asked} == {"/", "/{id}?a={{b"}
    assert [step["name"] for step in record["targets"]] == ["1 GET /", "2 GET /{id}"]
