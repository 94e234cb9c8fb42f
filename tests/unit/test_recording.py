"""Recordings: what each format says, which times the requests have, and what is refused."""

from __future__ import annotations

import base64
import gzip
import io
import json
import lzma
import re
import struct
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trueload.errors import UserError
from trueload.protocol.request_options import parse_speed
from trueload.request import recording
from trueload.request.gather import Gathering, RecordingFlags
from trueload.request.har import parse_har
from trueload.request.log_clock import put_right
from trueload.request.logs.common import parse_line
from trueload.request.logs.line import NoLineError
from trueload.request.logs.nginx import parse_nginx
from trueload.request.recorded_request import (
    RecordedRequest,
    UnsendableError,
    parse_common_time,
    parse_iso,
)
from trueload.request.recording import read_recording
from trueload.request.replay import Replay, spread
from trueload.request.timed_lines import parse_timed

S = 1_000_000_000
MS = S // 1000
T = 1_795_773_600 * S  # 2026-11-27T10:00:00Z
COMMON = '192.0.2.1 - anna [27/Nov/2026:10:00:00 +0000] "GET /a?b=1 HTTP/1.1" 200 2326'
AGENT = (("Referer", "http://h/"), ("User-Agent", "curl/8"))
FORM = ("Content-Type", "application/x-www-form-urlencoded")
COMBINED = f'{COMMON} "http://h/" "curl/8"'
NGINX: dict[str, Any] = {"msec": "1795773600.250", "request": "GET /a?b=1 HTTP/2.0", "status": 200}


def har_entry(url: str = "http://h/a?b=1", **more: Any) -> dict[str, Any]:
    request = {"method": "GET", "url": url, "headers": [], **more.pop("request", {})}
    return {
        "startedDateTime": "2026-11-27T10:00:00.250Z",
        "time": 10,
        "request": request,
        "response": {"status": 200},
        **more,
    }


def har(*entries: dict[str, Any], indent: int | None = None) -> str:
    return json.dumps({"log": {"version": "1.2", "pages": [], "entries": entries}}, indent=indent)


def of_har(entry: dict[str, Any]) -> RecordedRequest:
    (found,) = parse_har(har(entry).encode(), "it").entries
    return found.recorded


def read(tmp_path: Path, text: str, **beside: Any) -> Replay:
    path = tmp_path / "file"
    path.write_text(text)
    return read_recording([path], RecordingFlags(host="server:1", **beside))


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
    assert replay.notes[0] == f"file is a {kind}: 1 requests, 1 of them different, over 0 s"
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


def timed(*at: object, path: str = "/") -> str:
    return "".join(json.dumps({"at": each, "path": path}) + "\n" for each in at)


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
    except (NoLineError, UnsendableError, UserError):
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


def files(tmp_path: Path, *texts: str | bytes, **beside: Any) -> Replay:
    """Read several files as one recording."""
    paths = []
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.log"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        paths.append(path)
    return read_recording(paths, RecordingFlags(host="server:1", **beside))


def nginx(*at: float, path: str = "/") -> str:
    lines = (
        {**NGINX, "msec": f"{1_795_773_600 + each:.3f}", "request": f"GET {path}"} for each in at
    )
    return "".join(json.dumps(line) + "\n" for line in lines)


def whole(*seconds: int, path: str = "/c") -> str:
    line = 'h - - [27/Nov/2026:10:00:{:02} +0000] "GET {} HTTP/1.1" 200 5\n'
    return "".join(line.format(second, path) for second in seconds)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((nginx(0, 2, path="/a"), nginx(1, 3, path="/b")), "a0 b1 a2 b3"),
        ((nginx(1, 3, path="/b"), nginx(0, 2, path="/a")), "a0 b1 a2 b3"),
        ((nginx(4, 5, path="/a"), nginx(0, 1, path="/b")), "b0 b1 a4 a5"),
        ((nginx(1, path="/a"), nginx(1, path="/b")), "a0 b0"),
        ((whole(0, 0, path="/a"), whole(0, 1, path="/b")), "a0 a0.33 b0.67 b1"),
        ((whole(0, 0, path="/a"), nginx(0.25, path="/b")), "a0 b0.25 a0.5"),
        ((timed(0, 2, path="/a"), timed(1, path="/b")), "a0 b1 a2"),
        ((nginx(0, path="/a"), har(har_entry("http://h/b"))), "a0 b0.25"),
    ],
)
def test_several_files_are_one_recording_in_the_order_of_their_times(
    texts: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    found = files(tmp_path, *texts)
    sent = [found.requests[number][1][1:] for number in found.numbers]
    times = [f"{round(at / S, 2):g}" for at in found.at_ns]
    assert " ".join(map("".join, zip(sent, times, strict=True))) == expected


def test_files_of_one_recording_share_requests_and_hosts(tmp_path: Path) -> None:
    found = files(tmp_path, nginx(0, 1), gzip.compress(nginx(2).encode()), whole(3, path="/"))
    assert found.about == "0.log + 1.log + 2.log (nginx JSON log and common access log)"
    assert found.notes[0] == (
        "3 files are one recording in the order of their times (nginx JSON log and common access"
        " log): 4 requests, 1 of them different, over 3.00 s"
    )
    hosts = [json.dumps({**NGINX, "host": host}) for host in ("a", "b")]
    with pytest.raises(UserError, match="the recording in 2 files has requests to 2 hosts: a, b"):
        files(tmp_path, *hosts)
    assert files(tmp_path, *hosts, chosen="b").count == 1
    assert files(tmp_path, *[nginx(0)] * 4).about == "4 files (nginx JSON log)"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ((nginx(0), ""), "1.log' is empty"),
        ((nginx(0), "what\n"), "1.log', line 1: no request can be read"),
        ((whole(0), whole(1).replace("GET /c", "-")), "1.log', line 1: no request can be read"),
        ((nginx(0), timed(0)), "1.log' counts its times from 0, and the recording"),
        ((timed(0), nginx(7300) + nginx(0)), "1.log', line 2: its time is 7,300 s before"),
    ],
)
def test_a_mistake_names_the_file_of_several(
    texts: tuple[str, ...], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as refused:
        files(tmp_path, *texts)
    assert message in refused.value.message
    assert "\n" not in refused.value.message + refused.value.hint


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_compressed_recording_is_read_as_it_is(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    assert files(tmp_path, pack(whole(0, 1).encode()) + pack(whole(2).encode())).count == 3
    assert files(tmp_path, pack(har(har_entry(), indent=1).encode())).count == 1
    for packed, message in (
        (pack(whole(0, 1).encode())[:-12], "0.log' ends early"),
        (pack(b"a" * 2**21), "0.log', line 1: longer than 1 MiB"),
        (b"BZh91AY", "0.log' is compressed by bzip2"),
    ):
        with pytest.raises(UserError) as refused:
            files(tmp_path, packed)
        assert message in refused.value.message


def test_a_compressed_recording_is_read_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording, "UNPACKED_BYTES_MAX", 2**20)
    with pytest.raises(UserError, match=r"0.log' is too large: more than 1 MiB unpacked"):
        files(tmp_path, gzip.compress(whole(0).encode() * 20_000))
    monkeypatch.setattr(recording, "LINES_MAX", 1000)
    with pytest.raises(UserError, match=r"0.log' has more than 1,000 lines"):
        files(tmp_path, gzip.compress(whole(0).encode() + b"\n" * 2000))


@pytest.mark.parametrize("text", [whole(0), nginx(0), timed(0), har(har_entry())])
def test_a_byte_order_mark_is_skipped_and_another_encoding_is_named(
    text: str, tmp_path: Path
) -> None:
    assert files(tmp_path, "\ufeff" + text).count == 1
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32"):
        named = "UTF-32" if encoding == "utf-32" else "UTF-16"
        with pytest.raises(UserError, match=f"0.log' is {named}, and must be UTF-8") as refused:
            files(tmp_path, text.encode(encoding))
        assert "iconv" in refused.value.hint


def test_a_log_is_read_by_its_pattern(tmp_path: Path) -> None:
    text = "1795773600.5|GET /a|200\n\nnoise\n1795773600|POST /b|404\n"
    found = files(tmp_path, text, pattern="$msec|$request_method $request_uri|$status")
    assert [sent[:2] for sent in found.requests] == [("GET", "/a"), ("POST", "/b")]
    assert found.about == "0.log (log of your --log-format)"
    assert "1 requests that cannot be sent are left out, the first in line 3" in found.notes
    with pytest.raises(UserError, match="line 1: no request can be read") as refused:
        files(tmp_path, "noise", pattern="$msec $request")
    assert refused.value.hint == "compare a line with the --log-format"


def test_the_order_of_a_log_does_not_matter_where_it_has_none(tmp_path: Path) -> None:
    line = "2026-11-27\t{}:00:00\tLHR62-C2\t1\t192.0.2.1\tGET\th\t/{}\t200\t-\t-\t-\t-\n"
    text = "".join(line.format(hour, hour) for hour in (12, 10, 15, 11))
    found = files(tmp_path, text)
    assert [found.requests[number][1] for number in found.numbers] == ["/10", "/11", "/12", "/15"]


def test_a_request_that_became_a_websocket_is_left_out(tmp_path: Path) -> None:
    found = files(tmp_path, whole(0) + whole(1, path="/ws").replace(" 200 ", " 101 "))
    assert (found.count, len(found.requests)) == (1, 1)
    assert "1 requests that cannot be sent are left out, the first in line 2" in found.notes


MULTIPART = {"mimeType": "multipart/form-data; boundary=----WebKit"}
FIELD = {"name": 'a"b', "value": "ü"}


@pytest.mark.parametrize(
    ("data", "kind", "body"),
    [
        ({"text": "aGk/", "encoding": "base64"}, None, b"hi?"),
        ({"text": "/+8=\n", "encoding": "Base64"}, None, b"\xff\xef"),
        ({"text": "", "encoding": "base64"}, None, b""),
        ({"text": "hi", "encoding": ""}, None, b"hi"),
        ({"text": "hi", "params": [FIELD]}, None, b"hi"),
        ({"text": "", "params": []}, None, b""),
        ({"params": [FIELD]}, FORM[1], b"a%22b=%C3%BC"),
        ({"mimeType": FORM[1], "params": [{"name": "a"}]}, FORM[1], b"a="),
        (
            {**MULTIPART, "params": [FIELD]},
            "multipart",
            'Content-Disposition: form-data; name="a%22b"\r\n\r\nü'.encode(),
        ),
        (
            {"params": [{"name": "f", "fileName": "x.png", "contentType": "image/png"}]},
            "multipart",
            b'Content-Disposition: form-data; name="f"; filename="x.png"\r\n'
            b"Content-Type: image/png\r\n\r\n",
        ),
    ],
)
def test_the_body_of_a_har_entry_is_its_text_or_its_form(
    data: dict[str, Any], kind: str | None, body: bytes
) -> None:
    own = [{"name": "content-type", "value": "application/own"}]
    for headers in ([], own if kind == "multipart" else []):
        found = of_har(har_entry(request={"method": "POST", "postData": data, "headers": headers}))
        kinds = [value for name, value in found.headers if name.lower() == "content-type"]
        if kind == "multipart":
            (said,) = kinds
            boundary = said.removeprefix("multipart/form-data; boundary=").encode()
            assert boundary.startswith(b"trueload-")
            body_of = b"--%s\r\n%s\r\n--%s--\r\n"
            assert found.body == body_of % (boundary, body, boundary)
        else:
            assert (kinds, found.body) == ([] if kind is None else [kind], body)


def test_a_form_with_a_boundary_of_our_own_is_told(tmp_path: Path) -> None:
    entry = har_entry(request={"method": "POST", "postData": {**MULTIPART, "params": [FIELD]}})
    note = "1 form made of the recorded fields, with a boundary of trueload's own"
    assert note in files(tmp_path, har(entry)).notes


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"startedDateTime": None}, "entry 2 has no startedDateTime: not HAR 1.2"),
        ({"startedDateTime": ""}, "entry 2 has no startedDateTime: not HAR 1.2"),
        ({"startedDateTime": "soon"}, "entry 2 has no time in startedDateTime: 'soon' is not"),
        ({"startedDateTime": 5}, "entry 2 has no time in startedDateTime: '5' is not"),
        ({"request": {"url": None}}, "entry 2 has no request.url: not HAR 1.2"),
        ({"request": {"method": ""}}, "entry 2 has no request.method: not HAR 1.2"),
        (
            {"request": {"postData": {"text": "a", "encoding": "base64"}}},
            "entry 2 has a body that is not base64",
        ),
        ({"request": {"postData": {"params": [{"value": "a"}]}}}, "entry 2 cannot be read"),
        ({"request": {"headers": [1]}}, "entry 2 cannot be read"),
        ({"time": "long"}, "entry 2 cannot be read"),
    ],
)
def test_an_entry_says_what_it_lacks(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"it: {message}")) as refused:
        parse_har(har(har_entry(), har_entry(**entry)).encode(), "it")
    assert "\n" not in refused.value.message + refused.value.hint


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("base64"),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["text", "params", "name", "value", "encoding"]), inner)
    ),
    max_leaves=8,
)


@given(st.sampled_from(["startedDateTime", "time", "request", "response", "postData"]), JSON_VALUES)
def test_any_entry_of_a_har_file_is_traffic_or_refused(key: str, value: Any) -> None:
    if key == "postData":
        entry = har_entry(request={"postData": value})
    else:
        entry = {**har_entry(), key: value}
    refused = ""
    try:
        found = parse_har(json.dumps({"log": {"entries": [entry]}}).encode(), "it").entries
    except UserError as error:
        found, refused = (), error.message
    assert refused.isprintable()
    assert all(isinstance(each.recorded.body, bytes | None) for each in found)
    assert bool(found) != bool(refused)
