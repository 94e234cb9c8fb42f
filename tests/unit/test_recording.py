"""Recordings: what each format says, which times the requests have, and what is refused."""

from __future__ import annotations

import base64
import io
import json
import struct
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import (
    AGENT,
    COMBINED,
    COMMON,
    FORM,
    MS,
    NGINX,
    S,
    T,
    har,
    har_entry,
    of_har,
    read,
    timed,
)
from trueload.errors import UserError
from trueload.protocol.request_options import parse_speed
from trueload.request import recording
from trueload.request.gather import Gathering, RecordingFlags
from trueload.request.log_clock import put_right
from trueload.request.logs.common import parse_line
from trueload.request.logs.nginx import parse_nginx
from trueload.request.recorded_request import (
    RecordedRequest,
    UnsendableError,
    parse_common_time,
    parse_iso,
)
from trueload.request.replay import spread
from trueload.request.timed_lines import parse_timed


@pytest.mark.parametrize(
    ("parse", "text", "expected"),
    [
        (parse_line, COMMON, RecordedRequest(T, "GET", "", "/a?b=1", status=200, whole=True)),
        (parse_line, COMBINED, RecordedRequest(T, "GET", "", "/a?b=1", AGENT, None, 200, True)),
        (
            parse_line,
            'h - - [27/Nov/2026:11:30:00 +0130] "POST /\\x22\\xc3\\xbc x HTTP/1.0" - - "-" "a\\"b"',
            RecordedRequest(
                T, "POST", "", '/"%C3%BC%20x', (("User-Agent", 'a"b'),), None, None, True
            ),
        ),
        (
            parse_line,
            '::1 - - [27/Nov/2026:10:00:00 +0000] "GET http://h:80/ HTTP/1.1" 404 - more',
            RecordedRequest(T, "GET", "h", "/", status=404, whole=True),
        ),
        (
            parse_nginx,
            json.dumps(NGINX),
            RecordedRequest(T + 250 * MS, "GET", "", "/a?b=1", status=200),
        ),
        (
            parse_nginx,
            json.dumps({**NGINX, "request_time": 0.2, "host": "H", "http_user_agent": "u"}),
            RecordedRequest(T + 50 * MS, "GET", "h", "/a?b=1", (("User-Agent", "u"),), None, 200),
        ),
        (
            parse_nginx,
            '{"time_iso8601":"2026-11-27T11:00:00+01:00","request_method":"PUT","uri":"/","args":"x"}',
            RecordedRequest(T, "PUT", "", "/?x", whole=True),
        ),
        (
            parse_nginx,
            '{"time_local":"27/Nov/2026:10:00:00 +0000","request_method":"GET","request_uri":"/y"}',
            RecordedRequest(T, "GET", "", "/y", whole=True),
        ),
        (parse_timed, '{"at": 1.25, "path": "/a#b"}', RecordedRequest(1_250 * MS, "GET", "", "/a")),
        (
            parse_timed,
            '{"at":"2026-11-27T10:00:00Z","url":"https://H:443/ü","headers":{"A":["1","2"]},"body":""}',
            RecordedRequest(T, "POST", "h", "/%C3%BC", (("A", "1"), ("A", "2")), b"", None, True),
        ),
        (of_har, har_entry(), RecordedRequest(T + 250 * MS, "GET", "h", "/a?b=1", status=200)),
        (
            of_har,
            har_entry(
                request={
                    "method": "POST",
                    "headers": [
                        {"name": ":path", "value": "/a"},
                        {"name": "Content-Length", "value": "5"},
                        {"name": "Connection", "value": "close"},
                        {"name": "Cookie", "value": "a=1"},
                    ],
                    "postData": {"mimeType": "x", "params": [{"name": "a b", "value": "ü"}]},
                },
                response={"status": 0},
            ),
            RecordedRequest(
                T + 250 * MS, "POST", "h", "/a?b=1", (("Cookie", "a=1"), FORM), b"a+b=%C3%BC"
            ),
        ),
    ],
)
def test_a_request_is_what_its_format_says(
    parse: Callable[[Any], RecordedRequest], text: Any, expected: RecordedRequest
) -> None:
    assert parse(text) == expected


@pytest.mark.parametrize(
    "line",
    [
        'h - - [27/Nov/2026:10:00:00 +0000] "-" 408 0',
        'h - - [27/Nov/2026:10:00:00 +0000] "\\x16\\x03\\x01" 400 157',
        'h - - [27/Nov/2026:10:00:00 +0000] "CONNECT h:443 HTTP/1.1" 405 0',
        'h - - [27/Nov/2026:10:00:00 +0000] "GET ftp://h/ HTTP/1.1" 405 0',
    ],
)
def test_a_line_without_a_request_that_can_be_sent_is_left_out(line: str, tmp_path: Path) -> None:
    with pytest.raises(UnsendableError):
        parse_line(line)
    replay = read(tmp_path, f"{COMMON}\n{line}\nnot a line\n")
    assert replay.count == 1
    assert replay.notes[1] == "2 requests that cannot be sent are left out, the first in line 2"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (COMMON, "common access log"),
        (f"a line of something else\n\n{COMBINED}", "combined access log"),
        (json.dumps(NGINX), "nginx JSON log"),
        ('\ufeff{"at": 0, "path": "/"}', "file of JSON lines"),
        (har(har_entry()), "HAR file"),
        (har(har_entry(), indent=1), "HAR file"),
    ],
)
def test_the_format_is_told_from_the_content(text: str, kind: str, tmp_path: Path) -> None:
    replay = read(tmp_path, text)
    assert replay.notes[0] == f"file is a {kind}: 1 request, over 0 s"
    assert replay.about == f"file ({kind})"


def test_a_har_file_in_one_line_is_read_to_its_end(tmp_path: Path) -> None:
    text = har(*(har_entry(f"http://h/{'x' * 4000}{number}") for number in range(300)))
    assert len(text) > recording.LINE_BYTES_MAX
    assert read(tmp_path, text).count == 300


@pytest.mark.parametrize(
    ("text", "beside", "message", "hint"),
    [
        ("", {}, " is empty", "formats are"),
        ("\n\n", {}, " is empty", "formats are"),
        ("\nwhat\nis this\n", {}, ", line 2: no request can be read", "formats are"),
        ('{"a": 1}\n', {}, ", line 1: no request can be read", "formats are"),
        ('h - - [27/Nov/2026:10:00:00 +0000] "-" 408 0', {}, ", line 1: no request", "formats"),
        ('{"at": 0, "path": "/"}\n{"at": 1}', {}, ", line 2: 'path' is missing", "a line is like"),
        ('{"at": 0, "path": "/"}\n{]', {}, ", line 2: not JSON at character 2", "a line is like"),
        ('{"at": -1, "path": "/"}', {}, ", line 1: 'at' is not a time", "write seconds"),
        ('{"at": "soon", "path": "/"}', {}, ", line 1: 'at': 'soon' is not a time", "write"),
        ('{"at": 0, "path": "/", "verb": "GET"}', {}, ", line 1: 'verb' is not a key", "keys are"),
        (
            '{"at": 7200, "path": "/"}\n{"at": 0, "path": "/"}',
            {},
            ", line 2: its time is 7,200 s before that of an earlier line",
            "put the lines in order",
        ),
        (
            har(har_entry("http://a/"), har_entry("http://b:8080/")),
            {},
            " has requests to 2 hosts: a, b:8080",
            "choose one: --replay-host a",
        ),
        (har(har_entry()), {"chosen": "b"}, " has no requests to 'b'", "its hosts are h"),
        ('{"log": {"entries": [{}]}}', {}, ": entry 1 has no request: not HAR 1.2", "save it"),
        ('{"log": {\n', {}, " is not JSON that can be read", "save it"),
        (har(har_entry("data:,x")), {}, " has no request that can be sent again", "save it"),
    ],
)
def test_a_recording_that_cannot_be_used_is_refused(
    text: str, beside: dict[str, Any], message: str, hint: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as refused:
        read(tmp_path, text, **beside)
    assert f"the recording '{tmp_path}/file'{message}" in refused.value.message
    assert hint in refused.value.hint
    assert "\n" not in refused.value.message + refused.value.hint


def test_times_count_from_the_first_one_at_the_speed_asked_for(tmp_path: Path) -> None:
    text = timed(10.5, 10, 12)
    assert list(read(tmp_path, text).at_ns) == [0, S // 2, 2 * S]
    fast = read(tmp_path, text, speed=10.0)
    assert list(fast.at_ns) == [0, 50 * MS, 200 * MS]
    assert fast.about == "file (file of JSON lines, 10x)"
    assert list(read(tmp_path, text, speed=0.5).at_ns) == [0, S, 4 * S]


def test_requests_of_a_second_are_spread_within_it_if_no_time_is_known_better(
    tmp_path: Path,
) -> None:
    second = "2026-11-27T10:00:0{}Z"
    whole = timed(*map(second.format, (1, 0, 1, 1, 0)))
    replay = read(tmp_path, whole)
    assert list(replay.at_ns) == [0, S // 2, S, S + S // 3, S + 2 * S // 3]
    assert "spread evenly" in replay.notes[1]
    precise = read(tmp_path, whole + timed("2026-11-27T10:00:01.5Z"))
    assert list(precise.at_ns) == [0, 0, S, S, S, S + S // 2]


@given(st.lists(st.integers(0, 20), max_size=60))
def test_spreading_keeps_the_order_and_the_second(seconds: list[int]) -> None:
    whole = sorted(second * S for second in seconds)
    at_ns = list(whole)
    spread(at_ns)
    assert at_ns == sorted(at_ns)
    assert len(set(at_ns)) == len(at_ns)
    assert [at // S * S for at in at_ns] == whole


EVEN = [at * S // 50 for at in range(400)]
"""Eight seconds at 50/s."""


def set_back(times: Sequence[int], place: int, by: int) -> list[int]:
    return [*times[:place], *(at - by for at in times[place:])]


@pytest.mark.parametrize(
    ("times", "steps", "span"),
    [
        (EVEN, 0, 8),
        (set_back(EVEN, 200, 4 * S), 1, 8),
        (set_back(EVEN, 200, 1800 * S), 1, 8),
        (set_back(EVEN, 200, S), 0, 8),
        (set_back(set_back(EVEN, 100, 3 * S), 300, 3 * S), 2, 8),
        # Slow requests are logged at their ends: one by one, or all together.
        ([at - 5 * S * (place % 40 == 39 and place > 250) for place, at in enumerate(EVEN)], 0, 8),
        ([at - 3 * S * (200 <= place < 210) for place, at in enumerate(EVEN)], 0, 8),
        ([at - 3 * S * (place >= 397) for place, at in enumerate(EVEN)], 0, 8),
        (EVEN[:1], 0, 0),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_a_clock_that_is_set_back_is_put_right(
    times: list[int], steps: int, span: int, whole: bool
) -> None:
    known = [at // S * S for at in times] if whole else times
    found, seen, back_ns = put_right(array("q", known), whole)
    assert (seen, back_ns > S) == (steps, steps > 0)
    assert max(found) - min(found) <= span * S
    if steps:
        ordered = sorted(found)
        for at in range(len(ordered) - 60):
            assert ordered[at + 60] - ordered[at] >= S, "nowhere more than 60 in a second"
    else:
        assert list(found) == known


def test_a_note_says_that_the_clock_goes_back(tmp_path: Path) -> None:
    line = '1.1.1.1 - - [27/Nov/2026:10:00:{:02} +0000] "GET / HTTP/1.1" 200 5'
    seconds = [at // 50 for at in range(200)] * 2
    replay = read(tmp_path, "\n".join(line.format(at) for at in seconds))
    assert replay.span_ns == pytest.approx(8 * S, rel=0.01)
    assert (
        "its clock goes back by 4.00 s: the order of its lines counts, and those behind follow the"
        " ones before"
    ) in replay.notes


def test_equal_requests_are_kept_once_and_their_statuses_are_good(tmp_path: Path) -> None:
    lines = [
        f'h - - [27/Nov/2026:10:00:0{at} +0000] "GET {path} HTTP/1.1" {status} 1'
        for at, path, status in [(0, "/a", 200), (1, "/b", 404), (2, "/a", 503), (3, "/b", 200)]
    ]
    replay = read(tmp_path, "\n".join(lines))
    assert [sent[1] for sent in replay.requests] == ["/a", "/b"]
    assert list(replay.numbers) == [0, 1, 0, 1]
    own, missing = replay.statuses
    assert own is None, "the plan's: a 503 is never good"
    assert missing is not None
    assert {200, 204, 304, 404} <= set(missing)
    strict = read(tmp_path, "\n".join(lines), own_statuses=True)
    assert list(strict.statuses) == [None, None]


def test_the_engine_gets_requests_as_lines_and_entries_as_bytes(tmp_path: Path) -> None:
    text = timed(0, 1) + '{"at": 2, "path": "/p", "headers": {"A": "1", "B": "2"}, "body": "ü"}\n'
    replay = read(tmp_path, text, headers=(("a", "own"),))
    requests, entries = replay.pieces(close=True)
    first, second = map(json.loads, requests.splitlines())
    assert first["headers"] == [["Host", "server:1"], ["a", "own"], ["Connection", "close"]]
    assert first.keys() == {"method", "path", "headers"}
    assert second["headers"] == [
        *(["Host", "server:1"], ["B", "2"], ["a", "own"], ["Content-Length", "2"]),
        ["Connection", "close"],
    ]
    assert base64.b64decode(second["body"]).decode() == "ü"
    assert list(struct.iter_unpack("<QI", entries)) == [(0, 0), (S, 0), (2 * S, 1)]
    plan = replay.plan(close=True)
    assert (plan.count, len(plan.requests), len(plan.entries)) == (3, 1, 1)
    assert plan != replay.plan(close=False)


@pytest.mark.parametrize(
    ("agent", "latin1", "sent"),
    [
        ("curl", False, b"curl"),
        ("\xfc", False, "\xfc".encode()),
        ("\\xE9", True, b"\xe9"),
        ("\xfc\\xE9\\x22", True, "\xfc".encode() + b'\xe9"'),
    ],
)
def test_the_engine_gets_the_bytes_of_headers_that_are_no_text(
    agent: str, latin1: bool, sent: bytes, tmp_path: Path
) -> None:
    replay = read(tmp_path, f'{COMMON} "-" "{agent}"', headers=(("A", "\xfc"),))
    requests, _ = replay.pieces(close=False)
    fields = json.loads(requests)
    assert fields.get("latin1", False) == latin1
    values = [value.encode("latin-1" if latin1 else "utf-8") for _, value in fields["headers"]]
    assert values == [b"server:1", sent, "\xfc".encode()]


@pytest.mark.parametrize("from_ns", [0, S, 3 * S])
def test_the_rate_over_time_holds_every_request(from_ns: int, tmp_path: Path) -> None:
    replay = read(tmp_path, timed(*(number / 25 for number in range(101))))
    rates = replay.rates(from_ns)
    assert sum(rate.ns for rate in rates) == 4 * S - from_ns
    held = sum(rate.ns * rate.first for rate in rates) / S
    assert held == pytest.approx(101 - replay.before(from_ns))
    assert read(tmp_path, timed(5)).rates()[0].first == pytest.approx(10)


@pytest.mark.parametrize(("text", "speed"), [("2x", 2), ("10", 10), ("0.5x", 0.5), (" 1x ", 1)])
def test_a_speed_is_a_factor(text: str, speed: float) -> None:
    assert parse_speed(text) == speed


@pytest.mark.parametrize("text", ["0", "0x", "-1x", "x", "", "nan", "1e3", "2000000x", "2 x"])
def test_what_is_no_speed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a speed above 0"):
        parse_speed(text)


def test_a_time_has_its_zone() -> None:
    assert parse_iso("2026-11-27T10:00:00.1234567891+00:00") == (T + 123_456_789, False)
    assert parse_iso("2026-11-27 08:00:00-0200") == (T, True)
    assert parse_common_time("27/Nov/2026:09:30:00 -0030") == T


def mutated(line: str) -> st.SearchStrategy[str]:
    """The line with a part of it replaced."""
    places = st.tuples(st.integers(0, len(line)), st.integers(0, 8), st.text(max_size=6))
    return places.map(lambda at: line[: at[0]] + at[2] + line[at[0] + at[1] :])


@given(
    st.one_of(
        mutated(COMBINED).map(lambda line: (parse_line, line)),
        mutated(json.dumps(NGINX)).map(lambda line: (parse_nginx, line)),
        mutated('{"at":"2026-11-27T10:00:00Z","url":"http://h/","headers":{"A":"b"}}').map(
            lambda line: (parse_timed, line)
        ),
    )
)
def test_a_spoilt_line_is_a_request_or_refused(case: tuple[Callable[[str], Any], str]) -> None:
    parse, line = case
    try:
        found = parse(line)
    except (ValueError, UnsendableError, UserError):
        return
    texts = (found.method, found.path, *(text for pair in found.headers for text in pair))
    assert found.path.isascii()
    assert found.path[0] in "/*"
    assert not any(control in text for text in texts for control in "\r\n\0")


@given(mutated(har(har_entry(), har_entry("https://h/b"))), st.binary(max_size=40))
def test_a_spoilt_file_is_traffic_or_refused(text: str, junk: bytes) -> None:
    for content in (text.encode("utf-8", "replace"), junk, COMMON.encode() + junk):
        found = Gathering(RecordingFlags(host="h"))
        try:
            recording.read_file(io.BytesIO(content), "it", "it", found, None)
            replay = found.done("help")
        except UserError:
            continue
        assert replay.count == len(replay.numbers)
        assert all(replay.pieces(close=False))
