"""Redirects and sessions together with HTTP/2 by ALPN, streamed answers, and pipelining.

What holds for each alone is tested beside it: ``test_redirects_cli``, ``test_streams_cli``,
``test_scenario_cli``.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from harness import Trueload, start_server, statuses
from session_http2 import Http2SessionServer
from test_http_cli import measure
from test_scenario_cli import SHOP

pytestmark = pytest.mark.engine

HTTP2 = ("--http", "2")
TLS = ("--tls",)
AUTO = ("--http", "auto", "--insecure")
LINES = ("--stream", "jsonl")
PIPELINE = ("--pipeline", "8")


def served(trueload: Trueload, *flags: str) -> str:
    """Start the reference server, and return its URL."""
    url = start_server(trueload, *flags).url
    return url.replace("http:", "https:") if "--tls" in flags else url


@pytest.mark.parametrize(
    ("server", "words", "connections"),
    [
        ((*TLS, *HTTP2), AUTO, (4, 0)),
        (TLS, AUTO, (0, 4)),
        ((*TLS, *HTTP2), (*AUTO, "--streams", "8", *LINES), (4, 0)),
        (TLS, (*AUTO, *LINES, "--rate", "1k/s"), (0, 4)),
        ((), PIPELINE, None),
        ((), (*PIPELINE, *LINES), None),
        ((), (*PIPELINE, *LINES, "--rate", "1k/s"), None),
        ((), (*LINES, "--close"), None),
        (HTTP2, (*HTTP2, "--streams", "8", *LINES, "--stall", "20s"), (4, 0)),
    ],
    ids=str,
)
def test_a_chain_is_one_request_with_one_stream_however_it_is_sent(
    trueload: Trueload,
    server: tuple[str, ...],
    words: tuple[str, ...],
    connections: tuple[int, int] | None,
) -> None:
    url = served(trueload, *server)
    asked = ("--requests", "96", "-c", "4", "--follow", "3", *words)
    record = measure(trueload, f"{url}/redirect/3", *asked, "--expect-body", "Hello, World!")
    counts, found = record["counts"], record["redirects"]
    assert (counts["ok"], counts["statuses"], counts["failed"]) == (96, {"200": 96}, {})
    assert (found["followed"], found["statuses"], found["hops"]) == (288, {"302": 288}, {"3": 96})
    assert found["redirect_ns"]["count"] == 288
    assert statuses(record)["protocol"] != "fail"
    if "--stream" in words:
        streams = record["streams"]
        # A redirect has a line, too.
        assert (streams["whole"], streams["parts"]) == (96, 96)
        assert streams["first_part_ns"]["max"] > found["redirect_ns"]["p50"]
    else:
        assert record["streams"] is None
    if connections is not None:
        assert (record["http2"]["connections"], record["http2"]["http1"]) == connections
    # One more redirect is one too many: no stream of any of them is whole.
    record = measure(trueload, f"{url}/redirect/4", *asked, code=4)
    assert record["counts"]["failed"] == {"redirect": 96}
    assert (record["streams"] or {"parts": 0})["parts"] == 0
    why = "behind 3 redirects: a redirect to /"
    assert record["connections"]["reasons"]["redirect"] == why


@contextlib.contextmanager
def answering(answers: Mapping[str, bytes]) -> Iterator[tuple[str, list[list[str]]]]:
    """Answer by target over HTTP/1.1: the URL, and the targets that were answered on each
    connection. An answer that says so is the last of its connection."""
    listener, seen = socket.create_server(("127.0.0.1", 0)), list[list[str]]()

    def serve(connection: socket.socket, targets: list[str]) -> None:
        with connection, contextlib.suppress(OSError):
            lines = (line for line in connection.makefile("rb") if line.startswith(b"GET "))
            for line in lines:
                targets.append(line.split()[1].decode())
                connection.sendall(answers[targets[-1]])
                if b"close" in answers[targets[-1]]:
                    connection.shutdown(socket.SHUT_WR)
                    break
            # Others may have been pipelined: with them unread, the close would be a reset.
            for _ in lines:
                pass

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                seen.append([])
                words = (listener.accept()[0], seen[-1])
                threading.Thread(target=serve, args=words, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}", seen
    listener.close()


def chunked(head: str, *chunks: str, end: bool = True) -> bytes:
    """An answer of these chunks."""
    parts = "".join(f"{len(chunk):x}\r\n{chunk}\r\n" for chunk in chunks)
    last = "0\r\n\r\n" if end else ""
    return f"HTTP/1.1 {head}\r\nTransfer-Encoding: chunked\r\n\r\n{parts}{last}".encode()


MOVED = chunked("302 Found\r\nLocation: /b", "moved\n", "there\n")
MOVED_AND_CLOSED = MOVED.replace(b"302 Found\r\n", b"302 Found\r\nConnection: close\r\n")
WHOLE = chunked("200 OK", "a\n", "b\n")


def test_hops_go_behind_pipelined_requests_on_the_wire(trueload: Trueload) -> None:
    with answering({"/a": MOVED, "/b": WHOLE}) as (url, seen):
        words = ("--requests", "4", "-c", "1", "--pipeline", "4", "--follow", "1", *LINES)
        record = measure(trueload, f"{url}/a", *words)
    targets = [target for connection in seen for target in connection]
    assert targets == ["/a"] * 4 + ["/b"] * 4
    assert (record["streams"]["whole"], record["streams"]["parts"]) == (4, 8)
    assert record["latency_ns"]["count"] == 4


@pytest.mark.parametrize("words", [PIPELINE, (*PIPELINE, *LINES), LINES], ids=str)
def test_a_hop_whose_connection_was_closed_goes_on_over_the_next(
    trueload: Trueload, words: tuple[str, ...]
) -> None:
    with answering({"/a": MOVED_AND_CLOSED, "/b": WHOLE}) as (url, seen):
        asked = ("--requests", "24", "-c", "2", "--follow", "1", *words)
        record = measure(trueload, f"{url}/a", *asked)
    counts = record["counts"]
    assert (counts["ok"], counts["issued"], counts["failed"]) == (24, 24, {})
    assert record["redirects"]["hops"] == {"1": 24}
    answered = [targets.count("/b") for targets in seen]
    assert sum(answered) == 24
    # What was pipelined behind a redirect was sent again.
    assert (counts["stale"] > 0) == ("--pipeline" in words)
    if "--stream" in words:
        assert (record["streams"]["whole"], record["streams"]["parts"]) == (24, 48)


@pytest.mark.parametrize(
    ("final", "failed", "parts"),
    [
        (chunked("200 OK", "a\n", "b\n", end=False), {"timeout.stall": 4}, 8),
        (chunked("200 OK"), {"mismatch": 4}, 0),
        (chunked("503 Busy", "a\n"), {"status": 4}, 0),
    ],
    ids=["stalled", "no stream", "status"],
)
def test_a_stream_that_fails_behind_a_redirect_fails_the_whole(
    trueload: Trueload, final: bytes, failed: dict[str, int], parts: int
) -> None:
    with answering({"/a": MOVED, "/b": final}) as (url, _):
        words = ("--requests", "4", "-c", "4", "--follow", "1", *LINES, "--stall", "200ms")
        record = measure(trueload, f"{url}/a", *words, code=4)
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (0, failed)
    assert (record["streams"]["whole"], record["streams"]["parts"]) == (0, parts)
    assert (record["redirects"]["followed"], record["redirects"]["hops"]) == (4, {})
    assert record["verdict"] == "invalid"


TALK = """
[[step]]
name    = "ask"
request = { url = "/stream/3/1" }
take    = { tokens = 'regex:token ([2-9]) "}}\\]}\\n\\ndata: .DONE' }

[[step]]
name    = "ask again"
request = { url = "/stream/{tokens}/1" }
repeat  = 2
"""
SSE = ("--stream", "sse", "--stream-end", "[DONE]")


def run_sessions(
    trueload: Trueload, folder: Path, text: str, url: str, *words: str, code: int = 0
) -> Any:
    """Run 12 sessions of 3 users."""
    file = folder / "scenario.toml"
    file.write_text(text)
    asked = ("--scenario", str(file), "--requests", "12", "-c", "3", *words)
    return measure(trueload, url, *asked, code=code)


VERSIONS = [((), ()), (HTTP2, HTTP2), ((*TLS, *HTTP2), AUTO), (TLS, AUTO)]


@pytest.mark.parametrize(("server", "words"), VERSIONS, ids=str)
def test_a_value_is_taken_from_a_whole_stream_of_a_session(
    trueload: Trueload, tmp_path: Path, server: tuple[str, ...], words: tuple[str, ...]
) -> None:
    url = served(trueload, *server)
    record = run_sessions(trueload, tmp_path, TALK, url, *SSE, *words)
    sessions, streams = record["sessions"], record["streams"]
    assert (sessions["begun"], sessions["ok"], sessions["failed"]) == (12, 12, 0)
    assert (record["counts"]["ok"], record["counts"]["failed"]) == (36, {})
    assert (streams["whole"], streams["parts"], streams["gap_ns"]["count"]) == (36, 108, 72)
    assert [step["counts"]["ok"] for step in record["targets"]] == [12, 24]
    steps = TALK.replace('"/stream/3/1"', '"/redirect/2"')
    steps = re.sub("take .*", "", steps).replace("{tokens}", "3")
    record = run_sessions(trueload, tmp_path, steps, url, *LINES, *words, "--follow", "2")
    assert record["sessions"]["ok"] == 12
    # The final answer of the first step has one line, and each of the others four.
    assert (record["streams"]["whole"], record["streams"]["parts"]) == (36, 12 + 24 * 4)
    assert record["redirects"]["hops"] == {"0": 24, "2": 12}
    assert record["targets"][0]["counts"]["redirects"] == 24


@pytest.mark.parametrize(("server", "words"), VERSIONS, ids=str)
def test_a_stream_that_stalls_fails_its_session_and_skips_the_rest(
    trueload: Trueload, tmp_path: Path, server: tuple[str, ...], words: tuple[str, ...]
) -> None:
    url = served(trueload, *server, "--stall-share", "100%")
    stall = (*SSE, "--stall", "200ms", *words)
    record = run_sessions(trueload, tmp_path, TALK, url, *stall, code=4)
    counts, sessions = record["counts"], record["sessions"]
    assert (sessions["begun"], sessions["ok"], sessions["failed"]) == (12, 0, 12)
    assert (counts["failed"], counts["skipped"]) == ({"timeout.stall": 12}, 24)
    assert record["streams"]["whole"] == 0
    assert statuses(record)["sessions"] == "fail"


@pytest.mark.parametrize("turns", [False, True], ids=["HTTP/2", "both versions"])
@pytest.mark.parametrize("words", [(), LINES, ("--rate", "60/s")], ids=str)
def test_a_session_knows_what_it_knew_on_a_connection_of_the_other_version(
    trueload: Trueload, tmp_path: Path, turns: bool, words: tuple[str, ...]
) -> None:
    scenario = SHOP.replace('"/login"', '"/sign-in"')
    asked = (*AUTO, "--follow", "1", *words)
    with Http2SessionServer(secure=True, turns=turns, goaway_every=4) as server:
        record = run_sessions(trueload, tmp_path, scenario, server.url, *asked)
        seen = server.counted()
    sessions, counts = record["sessions"], record["counts"]
    assert (sessions["begun"], sessions["ok"], sessions["failed"]) == (12, 12, 0)
    assert {status for _, _, status in seen} == {200, 302}, "no token or cookie of another session"
    assert (counts["ok"], counts["issued"], counts["failed"]) == (60, 60, {})
    assert record["redirects"]["hops"] == {"0": 48, "1": 12}
    found = record["http2"]
    assert found["connections"] > 0
    assert (found["http1"] > 0) == turns
    assert found["goaways"] > 0
    if words == LINES:
        assert (record["streams"]["whole"], record["streams"]["parts"]) == (60, 60)


DRY = ("-d", "10s", "-c", "4", "--place", "k8s:load", "--hosts", "2", "--dry-run")


@pytest.mark.parametrize(
    "words",
    [
        ("https://127.0.0.1:1/", "--follow", "2", *AUTO),
        ("http://127.0.0.1:1/", "--follow", "2", *PIPELINE, *LINES),
        ("https://127.0.0.1:1/", "--scenario", "FILE", *AUTO, *LINES),
        ("http://127.0.0.1:1/", "--scenario", "FILE", *HTTP2, *LINES, "--follow", "2"),
    ],
    ids=str,
)
def test_a_combination_is_good_for_a_dry_run_as_well(
    trueload: Trueload, tmp_path: Path, words: tuple[str, ...]
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(TALK)
    given = [str(file) if word == "FILE" else word for word in words]
    done = trueload.run("http", *given, *DRY)
    assert (done.code, done.err) == (0, ""), done
    assert done.json()["kind"] == "Job"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ("--follow", "2", "--connect-open", "10/s"),
            "--follow and --connect-open cannot be used together",
        ),
        (("--follow", "2", "--http", "auto"), "--http auto is for https://"),
        (("--follow", "2", *LINES, "--expect-status", "302"), "status 302 is expected"),
        (
            ("--scenario", "FILE", *HTTP2, "--streams", "2"),
            "--scenario and --streams cannot be used together",
        ),
        (("--scenario", "FILE", *PIPELINE), "--scenario and --pipeline cannot be used together"),
        (("--scenario", "FILE", "--stream", "sse", "--stall", "0"), "must be greater than 0"),
    ],
    ids=str,
)
def test_what_still_excludes_each_other_is_refused_with_and_without_a_dry_run(
    trueload: Trueload, tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(TALK)
    given = [str(file) if word == "FILE" else word for word in words]
    for more in ((), DRY):
        done = trueload.run("http", "http://127.0.0.1:1/", *given, *more)
        assert (done.code, done.out) == (2, ""), done
        assert why in done.err.splitlines()[0]
