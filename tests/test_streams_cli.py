"""``trueload http --stream`` as a user runs it: its page's examples, and each kind of failure."""

from __future__ import annotations

import csv
import io
import re
import shlex
from typing import Any

import pytest
from harness import ROOT, Trueload, start_server
from samples import flat

pytestmark = pytest.mark.engine

PAGE = (ROOT / "docs" / "streams.md").read_text()
LOADS = re.findall(r"^trueload (http http://127\.0\.0\.1:8080/.*)$", PAGE, re.MULTILINE)
SSE = ("--stream", "sse", "--stream-end", "[DONE]")
FEW = ("--requests", "8", "-c", "4", "--json", "-")


def measured(trueload: Trueload, url: str, *words: str) -> Any:
    return trueload.run("http", url, *FEW, *words).json()


@pytest.mark.parametrize("command", LOADS)
def test_each_example_of_the_page_measures_streams(trueload: Trueload, command: str) -> None:
    server = start_server(trueload)
    words = shlex.split(command.replace("127.0.0.1:8080", f"{server.host}:{server.port}"))
    duration = words.index("-d")
    words[duration : duration + 2] = ["-d", "1s", "--json", "-"]
    record = trueload.run(*words).json()
    found, counts = record["streams"], record["counts"]
    assert counts["failed"] == {}
    assert (found["whole"], found["first_part_ns"]["count"]) == (counts["ok"], counts["ok"])
    # Where nobody says what the end is, it is a part like the others.
    each = 20 if "--stream-end" in words else 21
    assert found["parts"] == each * counts["ok"] > 0
    assert (found["parts_per_answer"]["min"], found["parts_per_answer"]["max"]) == (each, each)
    assert found["gap_ns"]["count"] == (each - 1) * counts["ok"]
    assert 9_000_000 < found["gap_ns"]["p50"] < record["latency_ns"]["min"]


@pytest.mark.parametrize("http", ["1.1", "2"])
@pytest.mark.parametrize("driver", ["io_uring", "epoll"])
def test_parts_are_counted_over_either_version_and_driver(
    trueload: Trueload, http: str, driver: str
) -> None:
    server = start_server(trueload, "--http", "2")
    url = f"http://{server.host}:{server.port}/stream/5/1"
    record = measured(trueload, url, *SSE, "--http", http, "--driver", driver, "--stall", "20s")
    found = record["streams"]
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (8, {})
    assert (found["whole"], found["parts"], found["gap_ns"]["count"]) == (8, 40, 32)
    over_time = {track["name"]: track["series"] for track in record["tracks"]}
    ok = {name: sum(second["ok"] for second in series) for name, series in over_time.items()}
    assert ok == {"first part": 8, "gap": 40}, "of gaps all parts are counted"
    assert sum(sum(second["latency"].values()) for second in over_time["gap"]) == 32
    assert record["plan"]["generate"]["stream"] == {
        "kind": "sse",
        "end": {"kind": "content", "text": "[DONE]"},
        "stall_ns": 20_000_000_000,
    }
    checks = {check["name"]: check["status"] for check in record["checks"]}
    assert checks["delayed-ack"] == "n/a"


@pytest.mark.parametrize(
    ("flags", "words", "failed"),
    [
        (("--cut-share", "100%"), SSE, "truncated"),
        (("--cut-share", "100%"), (*SSE, "--http", "2"), "h2.stream"),
        (("--stall-share", "100%"), (*SSE, "--stall", "100ms"), "timeout.stall"),
        (("--stall-share", "100%"), (*SSE, "--stall", "100ms", "--http", "2"), "timeout.stall"),
        (("--stall-share", "100%"), (*SSE, "--timeout", "200ms"), "timeout.total"),
        ((), ("--stream", "sse", "--stream-end", "THE END"), "truncated"),
        ((), ("--stream", "sse", "--stream-end", "event:done"), "truncated"),
        ((), ("--stream", "jsonl", "--stream-end", "event"), "truncated"),
    ],
)
def test_a_stream_that_does_not_come_to_its_end_has_failed(
    trueload: Trueload, flags: tuple[str, ...], words: tuple[str, ...], failed: str
) -> None:
    server = start_server(trueload, "--http", "2", *flags)
    url = f"http://{server.host}:{server.port}/stream/4/1"
    record = measured(trueload, url, *words)
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (0, {failed: 8})
    found = record["streams"]
    assert (found["whole"], found["first_part_ns"]["count"]) == (0, 0)
    assert found["parts"] >= 16, "parts of streams that fail later are counted"
    if failed == "timeout.stall":
        assert found["gap_ns"]["slower"] == 8


def test_an_answer_that_is_no_stream_is_a_mismatch(trueload: Trueload) -> None:
    server = start_server(trueload)
    record = measured(trueload, f"http://{server.host}:{server.port}/", *SSE)
    assert record["counts"]["failed"] == {"mismatch": 8}


def test_the_text_names_the_times_of_tokens(trueload: Trueload) -> None:
    server = start_server(trueload)
    url = f"http://{server.host}:{server.port}/stream/5/1"
    out = trueload.run("http", url, *SSE, "--requests", "8", "-c", "4").out
    times = r"first part p50 .* \(time to first token\) gaps p50 .* \(time between tokens\)"
    assert re.search(times, flat([out]))
    assert re.search(r"^parts        40; 8 whole streams, 5 each; ", out, re.MULTILINE)


def test_a_csv_has_the_figures_of_streams(trueload: Trueload) -> None:
    server = start_server(trueload)
    url = f"http://{server.host}:{server.port}/stream/5/1"
    out = trueload.run("http", url, *SSE, *FEW[:4], "--format", "csv").out
    (row,) = csv.DictReader(io.StringIO(out))
    assert (row["streams_whole"], row["stream_parts"]) == ("8", "40")
    assert int(row["gap_p50_ns"]) > 0


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--stream-end", "x"), "--stream-end does nothing without --stream"),
        (("--stall", "5s"), "--stall does nothing without --stream"),
        (("--stream", "sse", "--stream-end", ""), "--stream-end is empty"),
        (("--stream", "sse", "--stream-end", "event:"), "names no event"),
        (("--stream", "jsonl", "--stream-end", "event:x"), "needs --stream sse"),
        (("--stream", "sse", "-X", "HEAD"), "HEAD has none"),
        (("--stream", "sse", "--stall", "0"), "must be greater than 0"),
    ],
)
def test_flags_that_make_no_sense_are_refused(
    trueload: Trueload, words: tuple[str, ...], why: str
) -> None:
    done = trueload.run("http", "http://127.0.0.1:9/", *words)
    assert (done.code, done.out) == (2, "")
    assert why in done.err
