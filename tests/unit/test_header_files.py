"""``-H @FILE``: headers that no list of processes shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from trueload.commands.http import read_job
from trueload.errors import UserError
from trueload.request.curl import parse_curl
from trueload.request.header_files import read_headers
from trueload.request.redact import redact_command


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "headers"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"X-Key: a\nY: b", ["X-Key: a", "Y: b"]),
        (b"\xef\xbb\xbfX: a\r\n\r\nY: b\r\n", ["X: a", "Y: b"]),
        (b"", []),
    ],
)
def test_the_lines_of_a_file_are_headers(file: Path, content: bytes, found: list[str]) -> None:
    file.write_bytes(content)
    assert read_headers(["A: b", f"@{file}", "C: d"]) == ("A: b", *found, "C: d")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"X: a\nsecret", "line 2 is not a header"),
        (b"\n@other", "line 2 is not a header"),
        (b"X: \xff", "not UTF-8 at byte 4"),
        (None, "cannot be read"),
    ],
)
def test_what_is_no_file_of_headers_is_one_line_and_a_hint(
    file: Path, content: bytes | None, message: str
) -> None:
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        read_headers([f"@{file}"])
    assert error.value.hint
    assert "secret" not in error.value.message


def test_flags_and_curl_commands_take_them(file: Path) -> None:
    file.write_text("X-Key: a\n")
    assert parse_curl(f"curl -H @{file} http://a/").headers == ["X-Key: a"]
    for given in ({"url": "http://a/", "header": [f"@{file}"]}, {"curl": f"curl a -H @{file}"}):
        request = read_job(**given).spec.traffic.request
        assert request is not None
        assert request.headers == (("X-Key", "a"),)
    words = ["trueload", "http", "-H", f"@{file}", f"--header=@{file}"]
    assert list(redact_command(words)) == words
