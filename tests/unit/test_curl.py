"""A copied curl command: its words as bash reads them, its options as curl reads them."""

from __future__ import annotations

import dataclasses
import shlex
import string
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from trueload.errors import UserError
from trueload.request.curl import (
    COMPRESSED,
    FORM,
    WITH_VALUE,
    WITHOUT_VALUE,
    CurlCommand,
    parse_curl,
)
from trueload.request.form import make_form
from trueload.request.redact import REDACTED, redact_command, redact_curl
from trueload.request.shell import split_words

WORDS = [
    "curl http://a/ -H 'A: b'",
    "curl\t  'a b'\"c d\"e\\ f",
    "curl \\\n  'http://a/' \\\n  -H $'A: it\\'s \\x41\\u00e9\\U0001F600'",
    "curl $'\\a\\b\\e\\E\\f\\n\\r\\t\\v\\\\\\'\\\"\\?\\101\\cA\\q' \"\" ''",
    'curl "a\\"b\\\\c\\$d\\`e\\f" \'$x `y` \\\'',
    'curl "a\\\nb" a\\$b $ a$ $"translated" "$"',
    "curl $'\\xc3\\xa9' é 'ü'",
    "curl ''$'a''b'\"c\"d",
]


@pytest.mark.parametrize("command", WORDS)
def test_words_are_those_of_bash(command: str) -> None:
    script = f"words() {{ printf '%s\\0' \"$@\"; }}; words {command}"
    result = subprocess.run(
        ["bash", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    words = result.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]
    assert split_words(command) == words


def test_a_line_of_windows_goes_on_as_well() -> None:
    assert split_words("curl \\\r\n 'a'") == ["curl", "a"]


@given(st.lists(st.text(), min_size=1))
def test_what_is_quoted_for_a_shell_comes_back(words: list[str]) -> None:
    assert split_words(shlex.join(words)) == words


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
@example("\U0001f600 it's")
def test_what_a_browser_escapes_comes_back(text: str) -> None:
    units = text.encode("utf-16-be")
    escaped = "".join(
        f"\\u{high:02x}{low:02x}" for high, low in zip(units[::2], units[1::2], strict=True)
    )
    assert split_words(f"curl $'{escaped}'") == ["curl", text]


@given(st.text(alphabet=[*string.ascii_letters[:4], *"$'\"\\ \n{`|&;<>x0u", "é", "\udcff"]))
def test_whatever_is_pasted_is_words_or_one_line_that_says_why(text: str) -> None:
    why = ""
    try:
        split_words(text)
    except ValueError as error:
        why = str(error)
    assert why.isprintable()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("curl 'http://a/", "No closing quotation"),
        ("curl $'http://a/", "No closing quotation"),
        ("curl http://a/ | jq .", "an unquoted '|' ends it in a shell"),
        ("curl http://a/?b&c", "an unquoted '&' ends it in a shell"),
        ("curl http://a/ > out", "an unquoted '>' ends it in a shell"),
        ("curl http://a/; rm x", "an unquoted ';' ends it in a shell"),
        ("curl http://a/\ncurl http://b/", "a new line ends it in a shell"),
        (
            'curl -H "Authorization: $TOKEN" http://a/',
            "'$TOKEN' would be replaced by a shell, and no shell runs here",
        ),
        ("curl ${URL}", "'${URL' would be replaced by a shell, and no shell runs here"),
        ("curl $(cat url)", "'$(' would be replaced by a shell, and no shell runs here"),
        ("curl `cat url`", "'`' would be replaced by a shell, and no shell runs here"),
    ],
)
def test_what_only_a_shell_can_do_is_refused(command: str, why: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_curl(command)
    assert caught.value.message == f"the curl command cannot be read: {why}"


def asked(**fields: Any) -> CurlCommand:
    return dataclasses.replace(CurlCommand(url="http://a/"), **fields)


def form(body: bytes, **fields: Any) -> CurlCommand:
    return asked(body=body, headers=[f"Content-Type: {FORM}"], **fields)


COMMANDS = [
    ("curl http://a/", asked()),
    ("curl a/", asked()),
    ("/usr/bin/curl --url http://a/", asked()),
    ("curl -- http://a/", asked()),
    ("curl -X PUT http://a/", asked(method="PUT")),
    ("curl -XPUT http://a/", asked(method="PUT")),
    ("curl --request PUT http://a/", asked(method="PUT")),
    ("curl -sSivk -o /dev/null http://a/ -w '%{http_code}' -D -", asked(insecure=True)),
    ("curl -skXPUT http://a/", asked(method="PUT", insecure=True)),
    ("curl -I http://a/", asked(method="HEAD")),
    ("curl -I -X GET http://a/", asked(method="GET")),
    ("curl -H 'A: b' -H'C:d' http://a/", asked(headers=["A: b", "C:d"])),
    ("curl -H 'A;' -H 'B:' http://a/", asked(headers=["A:"])),
    ("curl -H 'Connection: keep-alive' -H 'Content-Length: 5' http://a/", asked()),
    ("curl -H 'connection: close' http://a/", asked(close=True)),
    ("curl -d a=b -d c http://a/", form(b"a=b&c")),
    ("curl -da=b --data-ascii c --data-raw @d --data-binary e http://a/", form(b"a=b&c&@d&e")),
    ("curl -d '' http://a/", form(b"")),
    ("curl -d a -H 'content-type: x' http://a/", asked(body=b"a", headers=["content-type: x"])),
    ("curl -d a -H 'Content-Type:' http://a/", asked(body=b"a")),
    (
        "curl --json '{}' http://a/",
        asked(body=b"{}", headers=["Content-Type: application/json", "Accept: application/json"]),
    ),
    ("curl -G -d a=b -d c http://a/", asked(url="http://a/?a=b&c")),
    ("curl -d a=b -G 'http://a/?x'", asked(url="http://a/?x&a=b")),
    # What curl 7.88 sent when asked for these.
    (
        "curl --json '{\"a\":1' --json ',\"b\":2}' http://a/",
        asked(
            body=b'{"a":1,"b":2}',
            headers=["Content-Type: application/json", "Accept: application/json"],
        ),
    ),
    ("curl -G -d a=1 'http://a/?z#part'", asked(url="http://a/?z&a=1")),
    ("curl 'http://a/?b=\\[1\\]&c=\\{d\\}'", asked(url="http://a/?b=[1]&c={d}")),
    ("curl -g 'http://a/?b=\\[1\\]&c={d,e}[1-3]'", asked(url="http://a/?b=\\[1\\]&c={d,e}[1-3]")),
    ("curl 'http://[::1]/?a[]=1\\('", asked(url="http://[::1]/?a[]=1\\(")),
    ("curl 'http://a/{counter}?{random}'", asked(url="http://a/{counter}?{random}")),
    ("curl -H 'Content-Length: 0' http://a/", asked(method="GET", body=b"")),
    ("curl -X POST -H 'content-length: 0' http://a/", asked(method="POST", body=b"")),
    ("curl -I -H 'content-length: 0' http://a/", asked(method="HEAD", body=b"")),
    ("curl -fsS --fail-with-body http://a/", asked()),
    ("curl -u me:secret http://a/", asked(user="me:secret")),
    ("curl -b 'a=b; c=d' -b e=f http://a/", asked(headers=["Cookie: a=b; c=d; e=f"])),
    (
        "curl -A me -e 'http://b/;auto' http://a/",
        asked(headers=["User-Agent: me", "Referer: http://b/"]),
    ),
    ("curl -A me -H 'User-Agent: you' http://a/", asked(headers=["User-Agent: you"])),
    ("curl -A '' http://a/", asked()),
    ("curl --compressed http://a/", asked(headers=[f"Accept-Encoding: {COMPRESSED}"])),
    (
        "curl --compressed -H 'accept-encoding: gzip' http://a/",
        asked(headers=["accept-encoding: gzip"]),
    ),
    ("curl --http1.1 --no-progress-meter -gN http://a/", asked()),
    (
        "curl --resolve a:80:::1 --resolve b:1:2 --unix-socket /s http://a/",
        asked(resolve=["a:80:::1", "b:1:2"], unix="/s"),
    ),
    (
        "curl --cacert ca.pem -E me.pem --key me.key http://a/",
        asked(cacert="ca.pem", cert="me.pem", key="me.key"),
    ),
    # What curl 7.88 sends.
    ("curl --data-urlencode 'q=a b&c~-._é' http://a/", form(b"q=a+b%26c~-._%C3%A9")),
    ("curl --data-urlencode '=a@b' --data-urlencode 'c d=' http://a/", form(b"a%40b&c d=")),
    ("curl --data-urlencode 'a=b' -d c http://a/", form(b"a=b&c")),
    ("curl -G --data-urlencode 'q=a b' http://a/?x", asked(url="http://a/?x&q=a+b")),
    ("curl -L http://a/", asked(follow=50)),
    ("curl --location --max-redirs 3 http://a/", asked(follow=3)),
    ("curl -L --max-redirs -1 http://a/", asked(follow=100)),
    ("curl --max-redirs 3 http://a/", asked()),
    ("curl -m 2.5 http://a/", asked(timeout_ns=2_500_000_000)),
    ("curl --max-time 0 http://a/", asked()),
    ("curl -u :token http://a/", asked(user=":token")),
    ("curl 'http://a/b/../c/./d/..?x=/../#/../'", asked(url="http://a/c/?x=/../#/../")),
    ("curl http://a/..//b/%2e%2e/c", asked(url="http://a//b/%2e%2e/c")),
    ("curl http://a/b/..", asked(url="http://a/")),
    ("curl http://a/b/.", asked(url="http://a/b/")),
    ("curl http://a/.b/..c/d.", asked(url="http://a/.b/..c/d.")),
    ("curl --path-as-is http://a/b/../c", asked(url="http://a/b/../c")),
    ("curl 'http://a?x=/../'", asked(url="http://a?x=/../")),
    # Copied from Chrome and Firefox.
    (
        "curl 'http://a/' \\\n  -H 'Accept: */*' \\\n  -b 'x=1' \\\n  --data-raw $'it\\'s' \\\n"
        "  --compressed \\\n  --insecure",
        asked(
            body=b"it's",
            insecure=True,
            headers=[
                "Accept: */*",
                f"Content-Type: {FORM}",
                f"Accept-Encoding: {COMPRESSED}",
                "Cookie: x=1",
            ],
        ),
    ),
]


@pytest.mark.parametrize(("command", "meant"), COMMANDS)
def test_a_command_means_what_curl_makes_of_it(command: str, meant: CurlCommand) -> None:
    assert parse_curl(command) == meant


def test_data_comes_from_files_as_curl_reads_them(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(b"a\r\nb\0\xff")
    for option, body in [
        ("-d", b"ab\xff"),
        ("--data-binary", b"a\r\nb\0\xff"),
        ("--data-raw", f"@{file}".encode()),
        ("--json", b"a\r\nb\0\xff"),
    ]:
        assert parse_curl(f"curl {option} @{file} http://a/").body == body


def test_a_form_of_curl_has_our_boundary_and_its_redaction() -> None:
    command = (
        "curl -F 'a=\"x;y\"' --form-string b=@c http://a/ -H 'Content-Type: multipart/form-data'"
    )
    found = parse_curl(command)
    content_type, body = make_form(['a="x;y"', 'b="@c"'])
    assert (found.headers, found.body) == ([f"Content-Type: {content_type}"], body)
    assert b'name="b"\r\n\r\n@c\r\n' in body
    shown = redact_curl("curl -F pin=1234 --form-string pin=@1234 --data-urlencode pin=1234 a")
    assert "1234 " not in shown


@pytest.mark.parametrize(
    ("command", "error", "hint"),
    [
        ("", "not given a curl command", "--curl 'curl"),
        ("wget http://a/", "not given a curl command", "--curl 'curl"),
        ("curl", "has no URL", "copy it again"),
        ("curl http://a/ http://b/", "has two URLs", "quote it"),
        ("curl -X", "ends after -X", "copy it again"),
        ("curl http://a/ --header", "ends after --header", "copy it again"),
        ("curl --frobnicate http://a/", "has --frobnicate, which is not known", "leave it out"),
        ("curl -Z http://a/", "has -Z, which is not known", "leave it out"),
        ("curl -F a http://a/", "has no name and value", "NAME=VALUE"),
        ("curl -F a=b -d c http://a/", "has a form and other data", "keep one"),
        ("curl -F a=@/no/file http://a/", "the file '/no/file' cannot be read", "name a file"),
        ("curl -m 5x http://a/", "a -m that is not a number", "-m 2.5"),
        ("curl -L --max-redirs x http://a/", "a --max-redirs that is not a number", "5"),
        ("curl --connect-timeout 5 http://a/", "has --connect-timeout", "--max-time"),
        ("curl --http2 http://a/", "has --http2, which", "--http auto for https://"),
        ("curl --http2 http://a/", "has --http2, which", "--http 2 for http:// if"),
        ("curl --http2-prior-knowledge http://a/", "has --http2-prior", "--http 2"),
        ("curl -T file http://a/", "has -T, which", "-X PUT --data-binary @FILE"),
        ("curl --user=me:secret http://a/", "has --user, which is not known", "leave it out"),
        ("curl http://a/item/[1-100]", "has '[1-100]' in its URL", "-g"),
        ("curl http://a/[a-z:2]", "has '[a-z:2]' in its URL", "-g"),
        ("curl 'http://a/{one,two}'", "has '{one,two}' in its URL", "-g"),
        ("curl 'http://a/{id}'", "has '{id}' in its URL", "write the URL that is meant"),
        ('curl ^"http://a/?b^&c^" ^\r\n  -H ^"d: e^"', "is quoted for Windows", "for bash"),
        ('curl "http://a/" ^\n  -H "d: e"', "a new line ends it", "for bash"),
        ("curl -H @/no/file http://a/", "the headers file '/no/file' cannot", "can be read"),
        ("curl -b cookies.txt http://a/", "a file of cookies", "-b 'name=value'"),
        ("curl -d @/no/file http://a/", "the file '/no/file', which cannot be read", "folder"),
    ],
)
def test_what_cannot_be_taken_over_is_refused_with_a_hint(
    command: str, error: str, hint: str
) -> None:
    with pytest.raises(UserError) as caught:
        parse_curl(command)
    assert error in caught.value.message
    assert hint in caught.value.hint


WORD = st.sampled_from([*WITH_VALUE, *WITHOUT_VALUE, "-L", "--x", "-", "--", "http://a/"])


@given(st.lists(WORD | st.text(max_size=8), max_size=8))
def test_whatever_the_options_are_they_are_taken_over_or_refused_in_one_line(
    words: list[str],
) -> None:
    # Leave out words with "@": they name files, which this test must not open.
    words = [word for word in words if "@" not in word]
    refused = None
    try:
        found = parse_curl(shlex.join(["curl", *words]))
    except UserError as error:
        refused = error
    else:
        assert found.url
    if refused is not None:
        assert refused.message.isprintable()
        assert refused.hint.isprintable()


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("curl http://me:secret@a/", f"curl 'http://{REDACTED}@a/'"),
        ("curl me:secret@a/", f"curl '{REDACTED}@a/'"),
        ("curl -u me:secret http://a/", f"curl -u '{REDACTED}' http://a/"),
        ("curl -sume:secret http://a/", f"curl '-su{REDACTED}' http://a/"),
        ("curl --user me:secret http://a/", f"curl --user '{REDACTED}' http://a/"),
        ("curl -b x=secret http://a/", f"curl -b '{REDACTED}' http://a/"),
        ("curl -F x=@me.png http://a/", "curl -F x=@me.png http://a/"),
        ("curl --data-urlencode x@me http://a/", "curl --data-urlencode x@me http://a/"),
        (
            "curl -H 'cookie: x=secret' -H 'A: b' http://a/",
            f"curl -H 'cookie: {REDACTED}' -H 'A: b' http://a/",
        ),
        ("curl -H$'Authorization: \\x73ecret' a", f"curl '-HAuthorization: {REDACTED}' a"),
        ("curl -E me.pem:secret http://a/", f"curl -E 'me.pem:{REDACTED}' http://a/"),
        ("curl -A $'\\xff' http://a/", "curl -A '\\udcff' http://a/"),
        ("curl 'secret", REDACTED),
        ("curl --secret", REDACTED),
    ],
)
def test_secrets_of_a_command_are_shown_nowhere(command: str, shown: str) -> None:
    assert redact_curl(command) == shown
    for argument in (("--curl", command), (f"--curl={command}",)):
        redacted = redact_command(["trueload", "http", *argument])
        assert "secret" not in " ".join(redacted)
        assert redacted[-1].endswith(shown)
