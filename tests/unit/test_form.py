"""``--form`` sends what a browser sends, and nothing of it is stored."""

from __future__ import annotations

from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import pytest
from trueload.commands.http import read_job
from trueload.errors import UserError
from trueload.request.form import make_form
from trueload.request.redact import redact_command

URL = "http://127.0.0.1:1/upload"


def parts(content_type: str, body: bytes) -> list[Message]:
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    found = BytesParser().parsebytes(head + body)
    assert found.is_multipart()
    assert not found.defects
    return list(found.get_payload())


def test_a_form_has_fields_and_files(tmp_path: Path) -> None:
    picture = tmp_path / "a b.png"
    picture.write_bytes(b"\x89PNG\r\n--\x00")
    name, file, empty = parts(*make_form(['name="Ann=B\r\n"', f"file=@{picture}", 'qu"ote=']))
    assert name.get_param("name", header="content-disposition") == "name"
    assert name.get_payload(decode=True) == b"Ann=B\r\n"
    assert file.get_filename() == "a b.png"
    assert file.get_content_type() == "image/png"
    assert file.get_payload(decode=True) == picture.read_bytes()
    assert empty.get_param("name", header="content-disposition") == "qu%22ote"
    assert empty.get_payload(decode=True) == b""


@pytest.mark.parametrize(
    ("field", "head", "content"),
    [
        # What curl 7.88 sent for each, without its boundary.
        (
            r'a="x;y\"z";type=text/x-a; charset=utf-8',
            ["Content-Type: text/x-a; charset=utf-8"],
            'x;y"z',
        ),
        (
            'a=@t.png;filename=b"c.jpg',
            ['; filename="b%22c.jpg"', "Content-Type: image/jpeg"],
            "PNG",
        ),
        ('a=@"t.png"', ['; filename="t.png"', "Content-Type: image/png"], "PNG"),
        ("a=@t.bin;type=x/y", ['; filename="t.bin"', "Content-Type: x/y"], "BIN"),
        ("a=@t.bin", ['; filename="t.bin"', "Content-Type: application/octet-stream"], "BIN"),
        ("a=<t.png", ["", "Content-Type: image/png"], "PNG"),
        ("a=<t.bin", [], "BIN"),
        ("a=abc;filename=x.pdf", ['; filename="x.pdf"', "Content-Type: application/pdf"], "abc"),
        ("a=", [], ""),
        ('a=1;headers="X-A: b"', ["", "X-A: b"], "1"),
        ("a= sp ace ", [], "sp ace"),
        ("a=x;type=text/plain;filename=q", ['; filename="q"', "Content-Type: text/plain"], "x"),
        ('a=b"c', [], 'b"c'),
        ('a="b', [], '"b'),
    ],
)
def test_a_field_is_what_curl_makes_of_it(
    field: str, head: list[str], content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.png").write_text("PNG")
    (tmp_path / "t.bin").write_text("BIN")
    body = make_form([field])[1]
    lines = body.decode().split("\r\n")
    first = 'Content-Disposition: form-data; name="a"'
    if not (head and head[0].startswith(";")):
        head = ["", *[line for line in head if line]]
    expected = [first + head[0], *head[1:], "", content]
    assert lines[1:-2] == expected


def test_the_same_form_has_the_same_bytes() -> None:
    assert make_form(["a=1", "b=2"]) == make_form(["a=1", "b=2"])
    assert make_form(["a=1"])[0] != make_form(["a=2"])[0]


def test_a_form_is_posted_with_its_type() -> None:
    job = read_job(url=URL, form=["a={random}"], header=["content-type: text/plain", "X: y"])
    request = job.spec.traffic.request
    assert request is not None
    assert request.method == "POST"
    assert [name for name, _ in request.headers] == ["X", "Content-Type"]
    [part] = parts(request.headers[1][1], request.body or b"")
    assert part.get_payload() == "{random}"
    assert job.spec.traffic.has_random


def test_a_curl_command_sets_the_redirects_and_the_timeout_unless_a_flag_does() -> None:
    command = f"curl -L -m 2.5 -F a=b {URL}"
    job = read_job(curl=command)
    assert job.spec.traffic.dialogue.follow == 50
    assert job.spec.engine.timeout_ns == 2_500_000_000
    assert job.spec.traffic.request is not None
    assert b'name="a"' in (job.spec.traffic.request.body or b"")
    job = read_job(curl=command, follow=3, timeout=7)
    assert (job.spec.traffic.dialogue.follow, job.spec.engine.timeout_ns) == (3, 7)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"form": ["=x"]}, "--form has no name and value"),
        ({"form": ["x"]}, "--form has no name and value"),
        ({"form": ["x=@/no/such/file"]}, "the file '/no/such/file'"),
        ({"form": ["x=@/no/such,file"]}, "the file '/no/such,file'"),
        ({"form": ["x=(;type=multipart/mixed"]}, "begins a form within the form"),
        ({"form": ["x=a;b"]}, "more behind its value"),
        ({"form": ['x="a" b']}, "more behind its value"),
        ({"form": ["x=a;encoder=base64"]}, "more behind its value"),
        ({"form": ["x=a;type=text"]}, "has a type= that cannot be sent"),
        ({"form": ["x=a;headers=@file"]}, "has a headers= that cannot be sent"),
        ({"form": ["x=a;filename='b\r\nX: y'"]}, "has a filename= that cannot be sent"),
        ({"form": ["x=y"], "body": "z"}, "--form and a body cannot be used together"),
        ({"form": ["x=y"], "curl": "curl http://h/", "url": None}, "--curl and --form"),
        ({"form": ["x=y"], "replay": (Path("log"),)}, "--replay and --form"),
        ({"form": ["x=y"], "targets": Path("t")}, "--targets and --form"),
        ({"form": ["x=y"], "scenario": Path("s")}, "--scenario and --form"),
    ],
)
def test_what_is_no_form_or_excludes_it_is_one_line_and_a_hint(
    flags: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message) as refused:
        read_job(**{"url": URL, **flags})
    assert refused.value.hint


def test_a_stored_command_has_no_value_of_a_form_but_the_names_of_files() -> None:
    words = ["trueload", "http", URL, "--form", "pin=1234", "--form=file=@a.png"]
    *_, field, file = redact_command(words)
    assert field.startswith("pin=<body: 4 bytes, SHA-256 ")
    assert file == "--form=file=@a.png"
    assert redact_command([*words, "--keep-body"])[4] == "pin=1234"
