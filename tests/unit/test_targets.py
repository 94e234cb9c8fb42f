"""A targets file: the meaning of each line, and messages with the number of a wrong one."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trueload.errors import UserError
from trueload.request.fields import EXPECT_KEYS, FileFlags
from trueload.request.origins import ORIGINS_MAX
from trueload.request.target_formats import KEYS, VEGETA
from trueload.request.targets import (
    TARGETS_MAX,
    TURNS_MAX,
    TargetsFile,
    parse_targets,
    read_targets,
)
from trueload.request.url import parse_url
from trueload.request.values import Expect, TargetSpec

URL = "http://a:8080/x"


def the_file(*lines: Any, one_origin: bool = False) -> TargetsFile:
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    content = "\n".join(texts).encode("utf-8", "surrogateescape")
    return TargetsFile(content, "the file", Path(), one_origin)


def parse(*lines: Any, flags: FileFlags | None = None) -> tuple[TargetSpec, ...]:
    return parse_targets(the_file(*lines), flags or FileFlags())[1]


def test_a_line_says_all_about_a_request() -> None:
    line = {
        "method": "PUT",
        "url": "http://me:secret@a:8080/x?{counter}",
        "headers": {"Accept": "text/plain", "X": ["1", "2"]},
        "body": "ü{random}",
        "weight": 3,
        "expect": {"status": ["2xx", 404], "body": "ok"},
        "name": "put",
    }
    (found,) = parse(line)
    assert (found.weight, found.name) == (3, "put")
    assert found.url == "http://<redacted>@a:8080/x?{counter}"
    request = found.request
    assert (request.method, request.path, request.host) == ("PUT", "/x?{counter}", "a:8080")
    assert request.body == "ü{random}".encode()
    assert request.headers[:3] == (("Accept", "text/plain"), ("X", "1"), ("X", "2"))
    assert request.headers[3][0] == "Authorization"
    assert found.expect.body == b"ok"
    assert found.expect.statuses is not None
    assert {200, 299, 404} < set(found.expect.statuses)


def test_a_line_needs_no_more_than_a_url() -> None:
    (found,) = parse({"url": URL})
    assert found.request.method == "GET"
    assert (found.weight, found.name, found.expect, found.url) == (1, None, Expect(), URL)


def test_a_body_without_a_method_is_a_post_and_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "body.bin").write_bytes(b"\x00\xff")
    file = tmp_path / "targets.jsonl"
    file.write_text('{"url": "http://a/", "body_file": "body.bin"}\n')
    (origin,), (found,) = read_targets(file, FileFlags())
    assert (found.request.method, found.request.body) == ("POST", b"\x00\xff")
    assert origin.authority == "a"


def test_empty_lines_are_passed_over_and_counted() -> None:
    assert len(parse("", {"url": URL}, "  ", {"url": URL}, "")) == 2
    with pytest.raises(UserError, match="line 3: "):
        parse("", {"url": URL}, "x")


def test_paths_are_of_the_url_that_was_given() -> None:
    base = parse_url("http://me:pw@a:8080/ignored?too")
    found = parse({"url": "/b"}, {"url": "http://a:8080/c"}, flags=FileFlags(base=base))
    assert [target.request.path for target in found] == ["/b", "/c"]
    assert [target.request.host for target in found] == ["a:8080", "a:8080"]
    assert [name for name, _ in found[0].request.headers] == ["Authorization"]


def test_flags_go_into_lines_that_say_nothing_else() -> None:
    flags = FileFlags(
        headers=("Accept: */*", "X: flag"), user="me:pw", expect=Expect(statuses=(204,))
    )
    plain, own = parse(
        {"url": URL},
        {
            "url": URL,
            "headers": {"x": "line", "Authorization": "Bearer b"},
            "expect": {"body": "b"},
        },
        flags=flags,
    )
    assert [name for name, _ in plain.request.headers] == ["Accept", "X", "Authorization"]
    assert plain.expect == Expect(statuses=(204,))
    assert own.request.headers == (
        ("x", "line"),
        ("Authorization", "Bearer b"),
        ("Accept", "*/*"),
    )
    assert own.expect == Expect(statuses=(204,), body=b"b")


WRONG = [
    ("{", "not JSON at character 2"),
    ("nonsense", "not JSON at character 1"),
    ("[1]", "not a JSON object"),
    ("\udcff", "not UTF-8 at byte 1"),
    ("[" * 100_000, "not JSON that can be read"),
    ('{"url": 1, "url": 2}', "'url' is given twice"),
    ({}, "'url' is missing"),
    ({"url": 5}, "'url' is not a string"),
    ({"url": "/a"}, "'url' has no scheme and host"),
    ({"url": "ftp://a/"}, "'ftp://' cannot be loaded"),
    ({"url": "http://a:8080/ b"}, "the URL has a space at position 15"),
    ({"url": "http://a/\ud800"}, "the URL has the character U+D800 at position 10"),
    ({"url": URL, "wait": 1}, "'wait' is not a key"),
    ({"url": URL, "method": 1}, "'method' is not a string"),
    ({"url": URL, "method": "G T"}, "'G T' is not a method"),
    ({"url": URL, "headers": "a: b"}, "'headers' is not an object"),
    ({"url": URL, "headers": {"a": 1}}, "the header 'a' has a value that is not text"),
    ({"url": URL, "headers": {"a:b": "c"}}, "a header's name has a colon"),
    (
        {"url": URL, "headers": {"a": "b\r\nc: d"}},
        "header 'a: b\\r\\nc: d' has a control character",
    ),
    ({"url": URL, "headers": {"Content-Length": "5"}}, "trueload sets Content-Length itself"),
    ({"url": URL, "body": {"a": 1}}, "'body' is not a string"),
    ({"url": URL, "body": "\ud800"}, "'body' has half of a surrogate pair"),
    ({"url": URL, "body": "a", "body_file": "b"}, "'body' and 'body_file' cannot be used together"),
    (
        {"url": URL, "body_file": "/no/file"},
        "the body file '/no/file' cannot be read",
    ),
    ({"url": URL, "weight": 0}, "'weight' is not a whole number"),
    ({"url": URL, "weight": 1.5}, "'weight' is not a whole number"),
    ({"url": URL, "weight": True}, "'weight' is not a whole number"),
    ({"url": URL, "weight": 10**7}, "'weight' is not a whole number"),
    ({"url": URL, "expect": 200}, "'expect' is not an object"),
    ({"url": URL, "expect": {"code": 200}}, "'code' is not a key of 'expect'"),
    ({"url": URL, "expect": {"status": []}}, "'expect' has a 'status' that is not a status code"),
    ({"url": URL, "expect": {"status": True}}, "'expect' has a 'status' that is not a status code"),
    ({"url": URL, "expect": {"status": 99}}, "'99' is not a final status code"),
    ({"url": URL, "name": ""}, "'name' is not a line"),
    ({"url": URL, "name": "a\nb"}, "'name' is not a line"),
]


@pytest.mark.parametrize(("line", "why"), WRONG)
def test_a_bad_line_is_named_with_its_number(line: Any, why: str) -> None:
    with pytest.raises(UserError, match=re.escape(f"the file, line 2: {why}")) as caught:
        parse({"url": URL}, line)
    assert "\n" not in caught.value.message + caught.value.hint
    assert caught.value.hint


def test_lines_may_be_of_several_origins_in_the_order_in_which_they_come() -> None:
    lines = [
        {"url": URL},
        {"url": "http://A:8080/y"},
        {"url": "https://a:8080/"},
        {"url": "http://a/"},
        {"url": "http://b:8080/"},
        {"url": "http://a:80/z"},
    ]
    origins, found = parse_targets(the_file(*lines), FileFlags())
    assert [origin.origin for origin in origins] == [
        "http://a:8080",
        "https://a:8080",
        "http://a",
        "http://b:8080",
    ]
    assert [target.origin for target in found] == [0, 0, 1, 2, 3, 2]
    base = FileFlags(base=parse_url("http://b/"))
    origins, found = parse_targets(the_file({"url": URL}, {"url": "/c"}), base)
    assert [origin.authority for origin in origins] == ["a:8080", "b"]


def test_the_url_that_was_given_is_one_of_the_origins() -> None:
    base = FileFlags(base=parse_url("http://b/"))
    with pytest.raises(UserError, match=r"no line of the file goes to b, which the URL names"):
        parse({"url": URL}, flags=base)


def test_where_one_origin_is_wanted_it_is_that_of_the_url() -> None:
    base = FileFlags(base=parse_url("http://me:secret@b/"))
    file = the_file({"url": "/x"}, {"url": "http://me:hidden@a:8080/x"}, one_origin=True)
    with pytest.raises(
        UserError, match=r"line 2: it goes to .*a:8080, but the URL is of"
    ) as caught:
        parse_targets(file, base)
    assert "secret" not in caught.value.message
    assert "hidden" not in caught.value.message


def test_too_many_origins_are_refused_at_the_first_that_is_too_many() -> None:
    lines = [{"url": f"http://a:{port}/"} for port in range(1, ORIGINS_MAX + 2)]
    assert len(parse(*lines[:-1])) == ORIGINS_MAX
    why = f"line {ORIGINS_MAX + 1}: a:{ORIGINS_MAX + 1} is one more origin"
    with pytest.raises(UserError, match=why):
        parse(*lines)


@pytest.mark.parametrize("content", [b"", b"\n\n"])
def test_a_file_without_a_target_is_refused(content: bytes) -> None:
    with pytest.raises(UserError, match="the file has no target"):
        parse_targets(TargetsFile(content, "the file", Path()), FileFlags())


def test_weights_that_make_too_long_a_cycle_are_refused() -> None:
    parse({"url": URL, "weight": 1_000_000}, {"url": URL, "weight": 1_000_000})
    with pytest.raises(UserError, match=f"at most {TURNS_MAX:,} are allowed"):
        parse({"url": URL, "weight": 999_999}, {"url": URL, "weight": 1_000_000})


def test_too_many_targets_are_refused_at_the_first_that_is_too_many() -> None:
    line = json.dumps({"url": URL})
    with pytest.raises(UserError, match=f"line {TARGETS_MAX + 1}: there are more than"):
        parse(*[line] * (TARGETS_MAX + 1))


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_targets(tmp_path / "none", FileFlags())


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just(URL),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYS, *EXPECT_KEYS, "A"]), inner, max_size=4)
    ),
    max_leaves=6,
)


@given(st.lists(VALUES.map(json.dumps) | st.text(max_size=30), min_size=1, max_size=4))
def test_whatever_stands_in_a_file_is_targets_or_one_line_and_a_hint(lines: list[str]) -> None:
    refused = None
    found: tuple[TargetSpec, ...] = ()
    try:
        found = parse(*lines)
    except UserError as error:
        refused = error
    assert (refused is None) == bool(found)
    assert all(target.request.host == "a:8080" for target in found)
    if refused is not None:
        assert re.match(r"the file(, line \d+: .| has no target)", refused.message)
        assert refused.message.isprintable()
        assert refused.hint.isprintable()


def of_text(text: str | bytes, *, vegeta: bool = False, folder: Path = Path()) -> list[TargetSpec]:
    content = text.encode() if isinstance(text, str) else text
    base = FileFlags(base=parse_url("http://a:8080/")) if b" /" in content else FileFlags()
    return list(parse_targets(TargetsFile(content, "the file", folder, vegeta=vegeta), base)[1])


def said(found: Sequence[TargetSpec]) -> list[tuple[object, ...]]:
    """What is sent, in few words."""
    return [
        (each.request.method, each.url, dict(each.request.headers), each.request.body)
        for each in found
    ]


VEGETA_TEXT = """# from the manual
GET http://a:8080/x
X-One: 1
X-One: 2

GET http://a:8080/y
HEAD http://a:8080/z
POST http://a:8080/things
Content-Type: application/json
@body.json

DELETE http://a:8080/x
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{URL}\n\n# note\n  http://a:8080/y  \r\n", ["GET /x", "GET /y"]),
        (f"# note\n{URL}", ["GET /x"]),
        ("GET /x\nPOST /y", ["GET /x", "POST /y"]),
        (f"GET {URL}", ["GET /x"]),
        (f"GET\t{URL}\r\nX: 1\r\n\r\nPUT {URL}\r\n", ["GET /x", "PUT /x"]),
        (VEGETA_TEXT, ["GET /x", "GET /y", "HEAD /z", "POST /things", "DELETE /x"]),
        (f'{{"method":"GET","url":"{URL}","header":{{"X":["1"]}}}}', ["GET /x"]),
        (
            f'{{"url":"{URL}"}}\n{{"method":"PUT","url":"{URL}","header":null}}',
            ["GET /x", "PUT /x"],
        ),
    ],
)
def test_a_file_is_read_in_the_format_that_it_has(
    text: str, expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / "body.json").write_text('{"id": 7}')
    for mark in ("", "\ufeff"):
        path = tmp_path / "targets"
        path.write_text(mark + text)
        base = parse_url("http://a:8080/") if " /" in text else None
        _, found = read_targets(path, FileFlags(base=base))
        assert [f"{each.request.method} {each.request.path}" for each in found] == expected


def test_vegetas_text_has_headers_and_bodies_of_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "body.json").write_bytes(b"\xff{}")
    found = of_text(VEGETA_TEXT, folder=tmp_path)
    assert found[0].request.headers == (("X-One", "1"), ("X-One", "2"))
    assert said(found)[3] == (
        *("POST", "http://a:8080/things", {"Content-Type": "application/json"}, b"\xff{}"),
    )
    monkeypatch.chdir(tmp_path)
    assert of_text(VEGETA_TEXT, folder=tmp_path / "elsewhere")[3].request.body == b"\xff{}"


def test_vegetas_json_has_bodies_in_base64(tmp_path: Path) -> None:
    line = {"method": "POST", "url": URL, "body": "/+8="}
    (found,) = of_text(json.dumps({**line, "header": {"A": ["1", "2"]}}))
    assert found.request.headers == (("A", "1"), ("A", "2"))
    assert found.request.body == b"\xff\xef"
    (ours,) = of_text(json.dumps(line))
    assert ours.request.body == b"/+8=", "without a header it is ours"
    path = tmp_path / "targets.json"
    path.write_text(json.dumps(line))
    (told,) = read_targets(Path(f"{VEGETA}{path}"), FileFlags())[1]
    assert told.request.body == b"\xff\xef"


@pytest.mark.parametrize(
    ("text", "vegeta", "message"),
    [
        (f"{URL}\nftp://b/\n", False, "line 2: 'ftp://' cannot be loaded"),
        (f"{URL}\nwhat\n", False, "line 2: 'what' has no scheme"),
        (f"{URL}\nhttp://a/ POST x\n", False, "line 2: the URL has a space"),
        (f"GET {URL}\nno header\n", False, "line 1: 'no header' is not a header"),
        (f"GET {URL}\nX:\n", False, "line 1: 'X' is not a header"),
        (f"GET {URL}\n\n@absent\n", False, "line 3: '@absent' is not a method and a URL"),
        (f"GET {URL}\n@absent\n", False, "line 1: the body file 'absent' cannot be read"),
        (f"GET {URL}\n\nX: 1\n", False, "line 3: 'X: 1' is not a method and a URL"),
        ("GET /x\n", False, "line 1: 'url' has no scheme and host"),
        (URL, True, f"line 1: {URL!r} is not a method and a URL"),
        (f'{{"url":"{URL}","header":{{}},"weight":1}}', False, "line 1: 'weight' is not a key"),
        (f'{{"url":"{URL}","header":[]}}', False, "line 1: 'header' is not an object"),
        (f'{{"url":"{URL}","header":{{}},"body":"a"}}', False, "line 1: 'body' is not base64"),
        (
            f'{{"url":"{URL}","header":{{}}}}\n{{"headers":{{}}}}',
            False,
            "line 2: 'headers' is not a",
        ),
        (f'{{"url":"{URL}"}}\n{URL}', False, "line 2: not JSON at character 1"),
    ],
)
def test_a_mistake_in_any_format_is_named_with_its_line(
    text: str, vegeta: bool, message: str
) -> None:
    with pytest.raises(UserError, match=re.escape(f"the file, {message}")) as refused:
        parse_targets(TargetsFile(text.encode(), "the file", Path(), vegeta=vegeta), FileFlags())
    assert "\n" not in refused.value.message + refused.value.hint
    assert refused.value.hint


@pytest.mark.parametrize("text", [URL, f"GET {URL}", json.dumps({"url": URL})])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_a_file_in_another_encoding_is_named(text: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "targets"
    path.write_bytes(text.encode(encoding))
    named = "UTF-32" if encoding == "utf-32" else "UTF-16"
    with pytest.raises(UserError, match=f"targets' is {named}, and must be UTF-8"):
        read_targets(path, FileFlags())


@given(st.lists(st.sampled_from([*VEGETA_TEXT.split("\n"), URL, "{", "#"]) | st.text(max_size=9)))
def test_any_lines_are_targets_or_refused(lines: list[str]) -> None:
    for vegeta in (False, True):
        try:
            found = of_text("\n".join(lines).encode("utf-8", "replace"), vegeta=vegeta)
        except UserError:
            found = []
        assert all(each.request.host for each in found)
