"""Recordings as files: several of them, compressed ones, and those in other encodings."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded import NGINX, S, har, har_entry, timed
from trueload.errors import UserError
from trueload.request import recording
from trueload.request.gather import RecordingFlags
from trueload.request.recording import read_recording
from trueload.request.replay import Replay


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
    assert "1 request that cannot be sent is left out, the first in line 3" in found.notes
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
    assert "1 request that cannot be sent is left out, the first in line 2" in found.notes
