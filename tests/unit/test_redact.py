"""What is removed from URLs, headers, command lines and messages that are stored or shown."""

from __future__ import annotations

import hashlib
import shlex
import subprocess

import pytest
from trueload.errors import UserError
from trueload.request.make import parse_header
from trueload.request.redact import (
    FILL_IN,
    REDACTED,
    command_text,
    has_placeholders,
    hide_arguments,
    redact_body,
    redact_command,
    redact_curl,
    redact_headers,
    redact_url,
)
from trueload.request.shell import join_words, split_words
from trueload.request.url import WS, parse_host_port, parse_url

BODY = f"<body: 7 bytes, SHA-256 {hashlib.sha256(b'hunter2').hexdigest()}>"
URLS = [
    ("http://h/?token=hunter2&a=b", f"http://h/?token={REDACTED}&a=b"),
    ("http://h?a=b&to%6ben=hunter2", f"http://h?a=b&to%6ben={REDACTED}"),
    ("/p?X-Amz-Signature=hunter2", f"/p?X-Amz-Signature={REDACTED}"),
    ("http://me:hunter2@h/", f"http://{REDACTED}@h/"),
    ("//me:hunter2@h/", f"//{REDACTED}@h/"),
    ("wss://hunter2@h/ws?sid=hunter2", f"wss://{REDACTED}@h/ws?sid={REDACTED}"),
    ("http://h/http://me:hunter2@i/", f"http://h/http://{REDACTED}@i/"),
    ("http://h/#access_token=hunter2", f"http://h/#access_token={REDACTED}"),
    ("http://h/?a#/cb?sid=hunter2", f"http://h/?a#/cb?sid={REDACTED}"),
    ("/a;jsessionid=hunter2/b;v=1?x=1", f"/a;jsessionid={REDACTED}/b;v=1?x=1"),
    ("/a;jsessionid=hunter2?x=1", f"/a;jsessionid={REDACTED}?x=1"),
    # Only the next parameter ends a value, not a mark within it.
    ("/?token=a;hunter2&b=1", f"/?token={REDACTED}&b=1"),
    ("/?token=a?hunter2#hunter2", f"/?token={REDACTED}"),
    ("/?a=1;token=hunter2", f"/?a={REDACTED}"),
    ("/?next=http%3A%2F%2Fme%3Ahunter2%40h%2F&y=1", f"/?next={REDACTED}&y=1"),
    ("/?next=%2Fx%3Fapi_key%3Dhunter2", f"/?next={REDACTED}"),
    ("/?next=%252Fx%253Fapi_key%253Dhunter2", f"/?next={REDACTED}"),
    ("/?http://me:hunter2@h/", f"/?http://{REDACTED}@h/"),
    ('/?q={"token":"hunter2"}', f"/?q={REDACTED}"),
    ("http://h/p?q=a@b", "http://h/p?q=a@b"),
    ("http://h/?monkey=1&author=x&design=y", "http://h/?monkey=1&author=x&design=y"),
    ("http://h/{counter}?nocache={random}", "http://h/{counter}?nocache={random}"),
    ("http://h/?token=&a", "http://h/?token=&a"),
    ("http://key.example.com:80/token", "http://key.example.com:80/token"),
    ("text/html;q=0.9,*/*;q=0.8", "text/html;q=0.9,*/*;q=0.8"),
]


@pytest.mark.parametrize(("url", "shown"), URLS)
def test_a_url_keeps_all_but_its_secrets_and_only_loses_them_once(url: str, shown: str) -> None:
    assert redact_url(url) == shown
    assert redact_url(shown) == shown


def test_headers_go_by_their_names_and_by_urls_in_their_values() -> None:
    headers = [
        ("X-Api-Key", "hunter2"),
        ("cookie", "a=hunter2"),
        ("Referer", "http://me:hunter2@h/?token=hunter2"),
        ("X-Author", "me"),
        ("X-Token", ""),
        ("X-More", "a=1; api_key=hunter2"),
        ("X-Bare", "api_key=hunter2, x"),
        ("Sec-WebSocket-Protocol", "access_token, hunter2"),
        ("Sec-WebSocket-Protocol", "graphql-ws, chat.v1"),
        ("Accept", "text/html;q=0.9, */*;q=0.8"),
    ]
    assert redact_headers(headers) == (
        ("X-Api-Key", REDACTED),
        ("cookie", REDACTED),
        ("Referer", f"http://{REDACTED}@h/?token={REDACTED}"),
        ("X-Author", "me"),
        ("X-Token", ""),
        ("X-More", f"a=1; api_key={REDACTED}"),
        ("X-Bare", REDACTED),
        ("Sec-WebSocket-Protocol", REDACTED),
        ("Sec-WebSocket-Protocol", "graphql-ws, chat.v1"),
        ("Accept", "text/html;q=0.9, */*;q=0.8"),
    )
    assert redact_headers(redact_headers(headers)) == redact_headers(headers)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["-H", "X-Api-Key: hunter2"], ["-H", f"X-Api-Key: {REDACTED}"]),
        (["-HX-Api-Key:hunter2"], [f"-HX-Api-Key: {REDACTED}"]),
        (["--header=X-Api-Key: hunter2"], [f"--header=X-Api-Key: {REDACTED}"]),
        (["-H", "Referer: /?sid=hunter2"], ["-H", f"Referer: /?sid={REDACTED}"]),
        (["-H", "X-Author: me"], ["-H", "X-Author: me"]),
        (["-H", "hunter2"], ["-H", REDACTED]),
        (["X-Api-Key: hunter2"], [f"X-Api-Key: {REDACTED}"]),
        (["--user", "me:hunter2"], ["--user", REDACTED]),
        (["--subprotocol", "graphql-ws"], ["--subprotocol", "graphql-ws"]),
        (["--subprotocol", "base64.bearer.hunter2"], ["--subprotocol", REDACTED]),
        (
            ["--subprotocol=access_token", "--subprotocol", "hunter2"],
            [f"--subprotocol={REDACTED}", "--subprotocol", REDACTED],
        ),
        (["--body", "hunter2"], ["--body", BODY]),
        (["--body=hunter2"], [f"--body={BODY}"]),
        (["--expect-body", "hunter2"], ["--expect-body", BODY]),
        (["--body", "--user"], ["--body", redact_body("--user")]),
        (["--body", "--keep-body"], ["--body", redact_body("--keep-body")]),
        (["--keep-body", "--body", "hunter2"], ["--keep-body", "--body", "hunter2"]),
        (["--", "--keep-body", "--body=hunter2"], ["--", "--keep-body", f"--body={BODY}"]),
        (["http://h/?pin=hunter2"], [f"http://h/?pin={REDACTED}"]),
        (["--origin=http://h/?pin=hunter2"], [f"--origin=http://h/?pin={REDACTED}"]),
        (["--resolve", "auth.local:80:127.0.0.1"], ["--resolve", "auth.local:80:127.0.0.1"]),
        (["auth:9000", "--key", "me.pem"], ["auth:9000", "--key", "me.pem"]),
        (["--host", "ssh:me@key"], ["--host", "ssh:me@key"]),
    ],
)
def test_a_command_line_keeps_all_but_its_secrets(words: list[str], shown: list[str]) -> None:
    assert list(redact_command(words)) == shown
    assert list(redact_command(shown)) == shown


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("curl -d hunter2 a", f"curl -d '{BODY}' a"),
        ("curl -dhunter2 a", f"curl '-d{BODY}' a"),
        ("curl --json hunter2 a", f"curl --json '{BODY}' a"),
        ("curl --data-raw @hunter2 a", f"curl --data-raw '{redact_body('@hunter2')}' a"),
        ("curl -d @form.txt a", "curl -d @form.txt a"),
        ("curl -G -d token=hunter2 -d a=b a", f"curl -G -d 'token={REDACTED}' -d a=b a"),
        ("curl -e http://me:hunter2@h/ a", f"curl -e 'http://{REDACTED}@h/' a"),
        ("curl -H 'X-Api-Key: hunter2' a", f"curl -H 'X-Api-Key: {REDACTED}' a"),
        ("curl 'a?api_key=hunter2'", f"curl 'a?api_key={REDACTED}'"),
    ],
)
def test_a_curl_command_keeps_all_but_its_secrets(command: str, shown: str) -> None:
    assert redact_curl(command) == shown
    assert redact_curl(shown) == shown


def test_a_curl_command_keeps_its_body_where_that_is_wanted() -> None:
    command = "curl -d hunter2 'a?sid=x'"
    assert redact_curl(command, keep_body=True) == f"curl -d hunter2 'a?sid={REDACTED}'"
    assert redact_curl("curl -G -d sid=x a", keep_body=True) == f"curl -G -d 'sid={REDACTED}' a"


def test_a_command_can_be_pasted_and_says_what_to_fill_in() -> None:
    words = ["trueload", "http", "http://h/", "--fail-on", "p99>20s", "--keep-body", "--body"]
    body = "it's\n\x1b[31m\té\u202e\\"
    text = command_text([*words, body])
    assert text.isprintable()
    assert split_words(text) == [*words, body]
    pasted = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {text}"], check=True, capture_output=True, text=True
    )
    assert pasted.stdout.split("\0")[:-1] == [*words, body]
    assert not has_placeholders([*words, body])
    assert has_placeholders(["trueload", "http", "http://h/?sid=x"])
    assert has_placeholders(["trueload", "http", "http://h/", "--body", "x"])
    assert "fill it in" in FILL_IN


def test_words_that_a_shell_takes_as_they_are_stay_so() -> None:
    assert (
        join_words(["trueload", "http", "http://h/", "-c", "8"]) == "trueload http http://h/ -c 8"
    )
    assert shlex.split(join_words(["a b", "", "$x"])) == ["a b", "", "$x"]


def test_messages_that_quote_an_argument_lose_its_secrets() -> None:
    words = ["http", "http://h/?token=hunter2", "--user=me:hunter2", "-H", "X-Key: hunter2"]
    for quoted in (*words, "me:hunter2"):
        assert "hunter2" not in hide_arguments(f"what is ({quoted})?", words)
    assert hide_arguments("what is (http)?", words) == "what is (http)?"


@pytest.mark.parametrize(
    "url",
    [
        "me:hunter2@h/",
        "h/?token=hunter2",
        "http:/me:hunter2@h/",
        "http://me:hunter2@/",
        "http://[x]/?token=hunter2",
        "http://[::1]x/?token=hunter2",
        "http:///?token=hunter2",
        "http://me:hunter2/x@h/",
        "http://me:hunter2?x@h/",
        "http://me:hunter2#x@h/",
        "http://hunter2!/x@h/",
        "ftp://me:hunter2@h/",
    ],
)
def test_a_url_that_is_refused_is_quoted_without_its_secrets(url: str) -> None:
    for read in (parse_url, lambda text: parse_url(text, WS), parse_host_port):
        with pytest.raises(UserError) as refused:
            read(url)
        assert "hunter2" not in f"{refused.value.message} {refused.value.hint}"


@pytest.mark.parametrize(
    "line",
    [
        *("X-Api-Key: hunter2\n", "X-Api-Key=hunter2", "X-Api-Key hunter2", "hunter2"),
        *("Bearer hunter2", "X-Api-Key : hunter2", "Referer: /?token=hunter2\n", "pin: hunter2\0"),
    ],
)
def test_a_header_that_is_refused_is_quoted_without_its_value(line: str) -> None:
    with pytest.raises(UserError) as refused:
        parse_header(line)
    assert "hunter2" not in refused.value.message
