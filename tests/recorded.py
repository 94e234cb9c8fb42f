"""Recordings for tests: lines and entries of their formats, and how they are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from trueload.request.gather import RecordingFlags
from trueload.request.har import parse_har
from trueload.request.recorded_request import RecordedRequest
from trueload.request.recording import read_recording
from trueload.request.replay import Replay

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


def timed(*at: object, path: str = "/") -> str:
    return "".join(json.dumps({"at": each, "path": path}) + "\n" for each in at)
