"""``{env:NAME}``: what requests take from the environment, and what is stored of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trueload.commands.request_flags import read_workload
from trueload.errors import UserError
from trueload.protocol.request_options import HttpOptions
from trueload.request.environment import environment_of, fill_header, fill_in
from trueload.request.redact import REDACTED, redact_command, redact_headers, redact_url
from trueload.request.values import Request

ENVIRON = {"KEY": "s3cret", "B": "b", "LINES": "a\nb", "BYTES": "\udcff", "EMPTY": ""}


def asked(path: str = "/", header: str = "x", body: bytes | None = None) -> Request:
    return Request(host="h", path=path, headers=(("X-Key", header),), body=body)


@pytest.mark.parametrize(
    ("request_", "found"),
    [
        (asked(), {}),
        (asked("/?key={env:KEY}"), {"KEY": "s3cret"}),
        (asked(header="Bearer {env:KEY}{env:B}"), {"KEY": "s3cret", "B": "b"}),
        (asked(body=b'{"a":"{env:KEY}","b":"{env:LINES}"}'), {"KEY": "s3cret", "LINES": "a\nb"}),
        (asked(header="{env:EMPTY}"), {"EMPTY": ""}),
        (asked(header="{{env:NO} {env:} {env:a b} {env:1} {ENV:KEY}"), {}),
    ],
)
def test_a_request_has_the_variables_that_it_names(
    request_: Request, found: dict[str, str]
) -> None:
    assert environment_of([request_], ENVIRON) == found


@pytest.mark.parametrize(
    ("request_", "message", "hint"),
    [
        (asked(header="{env:NO}"), "no variable NO is set", "{{env:NO}"),
        (asked("/{env:NO}"), "no variable NO is set", "export NO"),
        (asked(body=b"{env:NO}"), "no variable NO is set", "export NO"),
        (asked(header="{env:LINES}"), "LINES has a control character", "line breaks"),
        (asked("/{env:BYTES}"), "BYTES is not UTF-8", "UTF-8"),
    ],
)
def test_a_variable_that_cannot_be_sent_is_refused(
    request_: Request, message: str, hint: str
) -> None:
    with pytest.raises(UserError, match=message) as error:
        environment_of([request_], ENVIRON)
    assert hint in (error.value.hint or "")


_JSON_TYPE = "application/vnd.api+json; charset=utf-8"


@pytest.mark.parametrize(
    ("body", "value", "content_type", "is_sent"),
    [
        ('{"a":"{env:V|raw}"}', 'x\\"y', None, True),
        ('{"a":"{env:V|raw}"}', 'x"y', None, False),
        ('{"a":"{env:V|raw}"}', "x\ny", None, False),
        ('{"a":"{env:V}"}', 'x"y', None, True),
        ('{"a":{env:V}}', 'x"y', None, True),
        ('{"a":{env:V|json}}', 'x"y', None, True),
        ('{"a":{env:V|raw}}', '[1, {"b": null}]', None, True),
        ('{"a":{env:V|raw}}', "anna", None, False),
        ('{"a":{env:V|raw}}', "NaN", None, False),
        ('{"a":{env:V|raw}}', "", None, False),
        ('{"a":1{env:V|raw}}', ',"b":2', None, True),
        ('{"a":{env:V|raw}', "1}", None, True),
        ('{"a":{env:V|raw}', "1", None, True),
        ('{"a":{id},"b":"{name}","c":{env:V|raw}}', "[", None, False),
        ('{"a":{{"b":{env:V|raw}}}', "[", None, False),
        ('{"a":"{{env:V|raw}"}', '"', None, True),
        ('{"a":"{{env:V|raw} {env:V|raw}"}', '"', None, False),
        ('{"a":1}\n\n{"a":{env:V|raw}}\n', "{}", None, True),
        ('{"a":1}\n\n{"a":{env:V|raw}}\n', "}{", None, False),
        ("{env:V|raw}", "anna", None, True),
        ("{env:V|raw}", "anna", _JSON_TYPE, False),
        ("{env:V|raw}", '{"a":1} [2]', _JSON_TYPE, True),
        ("{env:V|raw}", "anna", "application/x-ndjson", False),
        ('{"a":{env:V|raw}}', "anna", "text/plain", True),
        ('{"a":{env:V|raw}}', "anna", "application/x-www-form-urlencoded", True),
    ],
)
def test_a_raw_variable_that_would_break_json_is_refused(
    body: str, value: str, content_type: str | None, is_sent: bool
) -> None:
    headers = () if content_type is None else (("content-type", content_type),)
    request = Request(host="h", method="POST", headers=headers, body=body.encode())
    environ = {"V": value}
    if is_sent:
        assert environment_of([request], environ).items() <= environ.items()
        return
    with pytest.raises(UserError, match="the variable V makes a body that is not JSON") as error:
        environment_of([request], environ)
    assert error.value.hint == "write {env:V} without |raw"
    assert value == "" or value not in str(error.value)


def test_what_the_front_encodes_is_filled_there() -> None:
    assert fill_in("me:{env:KEY}", ENVIRON) == "me:s3cret"
    assert fill_in("me:{{env:KEY}{env:B}", ENVIRON) == "me:{env:KEY}b"
    assert fill_in("me:{{x", ENVIRON) == "me:{{x"
    assert fill_header("X: {env:KEY}", ENVIRON) == "X: s3cret"
    with pytest.raises(UserError, match="LINES"):
        fill_header("X: {env:LINES}", ENVIRON)


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("Authorization", "Bearer {env:KEY}", "Bearer {env:KEY}"),
        ("Authorization", "{env:KEY}", "{env:KEY}"),
        ("X-Api-Key", "{env:KEY}{env:B}", "{env:KEY}{env:B}"),
        ("X-Api-Key", "abc{env:B}", f"{REDACTED}{{env:B}}"),
        ("Authorization", "Bearer abc", REDACTED),
        ("Cookie", "sid={env:KEY}; a=b", f"{REDACTED}{{env:KEY}}{REDACTED}"),
        ("Accept", "{env:B}", "{env:B}"),
    ],
)
def test_the_text_is_what_is_shown_of_a_secret_header(name: str, value: str, shown: str) -> None:
    once = redact_headers([(name, value)])
    assert once == ((name, shown),)
    assert redact_headers(once) == once


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["-H", "X-Api-Key: {env:KEY}"], None),
        (["--header=Authorization: Bearer {env:KEY}"], None),
        (["--user", "{env:B}:{env:KEY}"], None),
        (["--user", "me:{env:KEY}"], ["--user", f"{REDACTED}{{env:KEY}}"]),
        (["--curl", "curl h -u '{env:B}:{env:KEY}' -H 'X-Token: {env:KEY}'"], None),
    ],
)
def test_the_text_is_what_is_stored_of_a_command(words: list[str], shown: list[str] | None) -> None:
    assert list(redact_command(words)) == (words if shown is None else shown)


def test_the_text_is_what_is_stored_of_a_url() -> None:
    assert redact_url("http://h/?token={env:KEY}&a=1") == "http://h/?token={env:KEY}&a=1"
    assert redact_url("http://h/?token=x{env:KEY}") == f"http://h/?token={REDACTED}{{env:KEY}}"


@pytest.mark.parametrize(
    "given",
    [
        {"header": ("X-Key: {env:NO}",)},
        {"user": "me:{env:NO}"},
        {"body": '{"a":"{env:NO}"}'},
        {"curl": "curl http://h/ -H 'X-Key: {env:NO}'"},
    ],
)
def test_an_unset_variable_is_refused_before_anything_is_sent(given: dict[str, Any]) -> None:
    url = None if "curl" in given else "http://127.0.0.1:1/"
    with pytest.raises(UserError, match="no variable NO is set"):
        read_workload(url, HttpOptions(**given))


@pytest.mark.parametrize("flag", ["--body", "--curl", "--scenario", "--targets"])
def test_a_broken_body_is_refused_before_anything_is_sent(
    flag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("V", '"')
    body, url = '{"a":"{env:V|raw}"}', "http://127.0.0.1:1/"
    file = tmp_path / "file"
    file.write_text(
        f"[[step]]\nname = 'a'\nrequest = {{ url = '{url}', body = '{body}' }}\n"
        if flag == "--scenario"
        else json.dumps({"url": url, "body": body})
    )
    texts = {"--body": body, "--curl": f"curl {url} --json '{body}'"}
    given: dict[str, Any] = {flag.removeprefix("--"): texts.get(flag, file)}
    with pytest.raises(UserError, match="V makes a body that is not JSON"):
        read_workload(url if flag == "--body" else None, HttpOptions(**given))


def test_the_user_of_a_url_is_not_taken_from_the_environment() -> None:
    with pytest.raises(UserError, match="cannot be taken from the environment") as error:
        read_workload("http://me:{env:KEY}@h/", HttpOptions())
    assert "--user" in (error.value.hint or "")
