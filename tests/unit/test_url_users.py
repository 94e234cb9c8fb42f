"""The user that a URL names: wherever a URL is read, it is what `--user` is."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from recorded import har, har_entry
from trueload.commands.request_flags import read_workload
from trueload.commands.ws import read_opening
from trueload.errors import UserError
from trueload.protocol.request_options import HttpOptions, UpgradeOptions
from trueload.request.har import parse_har
from trueload.request.har_scenario import scenario_of
from trueload.request.log_formats import look
from trueload.request.timed_lines import parse_timed
from trueload.request.traffic import Traffic

USER = "me:p%40ss"
BASIC = "Basic " + base64.b64encode(b"me:p@ss").decode()

Headers = tuple[tuple[str, str], ...]


def http(url: str | None, **options: Any) -> Headers:
    traffic = read_workload(url, HttpOptions(**options)).traffic
    assert isinstance(traffic, Traffic)
    targets, steps = traffic.targets, traffic.scenario
    found = [traffic.request, *(each.request for each in targets), *(s.request for s in steps)]
    return next(request for request in found if request is not None).headers


def of_file(flag: str, text: str) -> Callable[[Path, str], Headers]:
    def read(folder: Path, user: str) -> Headers:
        file = folder / "file"
        file.write_text(text.replace("USER", user))
        return http(None, **{flag: file})

    return read


def of_har(folder: Path, user: str) -> Headers:
    content = har(har_entry(url=f"http://{user}@h/")).encode()
    return parse_har(content, "x").entries[0].recorded.headers


def of_log(line: str) -> Callable[[Path, str], Headers]:
    def read(_: Path, user: str) -> Headers:
        known = look(line)
        assert known is not None
        recorded = known[1](line.replace("USER", user))
        assert recorded is not None
        return recorded.headers

    return read


AT = "2026-11-27T10:00:00.250000Z"
ASKED = '"GET http://USER@h/ HTTP/1.1"'

READERS: dict[str, Callable[[Path, str], Headers]] = {
    "a typed URL": lambda _, user: http(f"http://{user}@h/"),
    "a URL without a scheme": lambda _, user: http(f"{user}@h/"),
    "a list of targets": of_file("targets", "http://USER@h/\n"),
    "targets in JSON": of_file("targets", '{"url": "http://USER@h/"}\n'),
    "vegeta's text": of_file("targets", "GET http://USER@h/\n"),
    "a scenario": of_file(
        "scenario", '[[step]]\nname = "a"\nrequest = { url = "http://USER@h/" }\n'
    ),
    "a curl command": lambda _, user: http(None, curl=f"curl 'http://{user}@h/'"),
    "a WebSocket": lambda _, user: (
        read_opening(f"ws://{user}@h/", UpgradeOptions()).request.headers
    ),
    "HAR": of_har,
    "JSON lines with times": lambda _, user: (
        parse_timed(json.dumps({"at": 0, "url": f"http://{user}@h/"})).headers
    ),
    "an access log": of_log(f'h - - [27/Nov/2026:10:00:00 +0000] {ASKED} 200 2 "-" "curl"'),
    "nginx's variables": of_log(f'{{"msec": "1.5", "request": {ASKED}}}'),
    "nginx's URI": of_log('{"msec": "1.5", "request_uri": "http://USER@h/"}'),
    "Caddy's log": of_log('{"ts": 1.5, "request": {"method": "GET", "uri": "http://USER@h/"}}'),
    "a load balancer's log": of_log(f'{AT} lb h:1 h:80 1.0 1.0 1.0 200 200 0 2 {ASKED} "-" - -'),
    "CloudFront's log": of_log(
        "2026-11-27\t10:00:00\tLHR62\t1\th\tGET\th\thttp://USER@h/\t200\t-\t-\t-\t-"
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_the_user_of_a_url_is_sent_wherever_a_url_is_read(name: str, tmp_path: Path) -> None:
    assert ("Authorization", BASIC) in READERS[name](tmp_path, USER)


@pytest.mark.parametrize("name", READERS)
def test_a_user_from_the_environment_is_refused_there_with_a_hint(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "SECRET", "s3cret")
    with pytest.raises(UserError, match="cannot be taken from the environment") as error:
        READERS[name](tmp_path, "me:{env:SECRET}")
    assert "--user 'NAME:{env:PASSWORD}'" in (error.value.hint or "")
    assert "s3cret" not in f"{error.value} {error.value.hint}"


def test_a_header_that_was_recorded_comes_before_the_user_of_its_url() -> None:
    own = {"headers": {"authorization": "Bearer x"}}
    found = parse_timed(json.dumps({"at": 0, "url": f"http://{USER}@h/", **own}))
    assert found.headers == (("authorization", "Bearer x"),)


def test_a_scenario_made_of_a_har_file_has_a_place_for_the_user_of_a_url() -> None:
    content = har(har_entry(url=f"http://{USER}@h/")).encode()
    made = scenario_of(parse_har(content, "x"), "x", None, "s")
    assert made.secrets == {"AUTHORIZATION": BASIC.removeprefix("Basic ")}
    assert 'Authorization" = "Basic {env:AUTHORIZATION}"' in made.text
    assert "ss@h" not in made.text
