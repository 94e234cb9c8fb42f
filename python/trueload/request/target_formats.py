"""The formats of a targets file: JSON lines, a list of URLs, and vegeta's text and JSON.

How: the lines are divided into those of each target, and these become the fields that a target has
in JSON lines. The first line tells the format. Of JSON, vegeta's has a `header` in some line; where
none has, ``vegeta:FILE`` says so.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueload.request.fields import Entry, FileFormat
from trueload.request.make import read_body

VEGETA = "vegeta:"
"""Stands before the name of a file that vegeta reads."""
KEYS = ("method", "url", "headers", "body", "body_file", "weight", "expect", "name")
_VEGETA_KEYS = ("method", "url", "header", "body")
FORMAT = FileFormat(
    entry='a line is a URL, or like {"method": "GET", "url": "http://h/", "weight": 2}',
    table="an object",
    text='"{}": "…"',
    headers='write for example "headers": {"Accept": "text/plain"}',
    expect='write for example "expect": {"status": [200, 404], "body": "ok"}',
    server="write them in every line, or name the server: `trueload http URL --targets FILE`",
)
_VEGETA_TEXT = FileFormat(
    entry="vegeta's text has lines like GET http://127.0.0.1:8080/, and headers and @FILE below",
    table="a header",
    text="{}",
    headers="write for example Accept: text/plain",
    server=FORMAT.server,
)
_VEGETA_JSON = FileFormat(
    entry='vegeta\'s JSON has lines like {"method": "GET", "url": "http://127.0.0.1:8080/"}',
    table="an object",
    text='"{}": "…"',
    headers='write for example "header": {"Accept": ["text/plain"]}',
    server=FORMAT.server,
)

Lines = Sequence[tuple[int, bytes]]
"""Lines with their numbers."""

_REQUEST = re.compile(rb"[A-Z]+[ \t]+\S")  # as vegeta tells a request from a header
_URL = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://|/")


@dataclass(frozen=True)
class TargetsFormat:
    """How a targets file is written: which lines are of one target, and what they say. ``fields``
    gets the lines of a target, and the folder of the file. Raises ``UserError``."""

    form: FileFormat
    divide: Callable[[Lines], Iterator[Lines]]
    fields: Callable[[Sequence[str], Path], dict[str, Any]]


def format_of(lines: Lines, *, vegeta: bool) -> TargetsFormat:
    """Return the format of a file's lines; ``vegeta``: it is known to be one of vegeta's."""
    texts = [text for _, line in lines if (text := line.strip())]
    first = next((text for text in texts if not text.startswith(b"#")), b"")
    if first.startswith(b"{"):
        return _BY_VEGETA if vegeta or any(map(_is_vegetas, texts)) else _JSON_LINES
    if vegeta or _REQUEST.match(first):
        return _TEXT_BY_VEGETA
    return _URLS if _URL.match(first) else _JSON_LINES


def _is_vegetas(line: bytes) -> bool:
    try:
        fields = json.loads(line) if b'"header"' in line else None
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and "header" in fields


def _each(lines: Lines) -> Iterator[Lines]:
    return ([numbered] for numbered in lines if numbered[1].strip())


def _each_but_comments(lines: Lines) -> Iterator[Lines]:
    return (one for one in _each(lines) if not one[0][1].lstrip().startswith(b"#"))


def _by_request(lines: Lines) -> Iterator[Lines]:
    """An empty line, or the next request, ends a target of vegeta's text."""
    found: list[tuple[int, bytes]] = []
    for number, line in lines:
        text = line.strip()
        if found and (not text or _REQUEST.match(text)):
            yield found
            found = []
        if text and not text.startswith(b"#"):
            found.append((number, text))
    if found:
        yield found


def _of_json(lines: Sequence[str], folder: Path) -> dict[str, Any]:
    return FORMAT.parse_json(lines[0])


def _of_url(lines: Sequence[str], folder: Path) -> dict[str, Any]:
    return {"url": lines[0].strip()}


def _of_vegeta(lines: Sequence[str], folder: Path) -> dict[str, Any]:
    entry = Entry(_VEGETA_JSON.parse_json(lines[0]), _VEGETA_KEYS, _VEGETA_JSON)
    fields = {"method": entry.text("method"), "url": entry.fields.get("url")}
    if body := entry.encoded("body"):
        try:
            fields["body"] = base64.b64decode(body, validate=True)
        except ValueError:
            _VEGETA_JSON.refuse("'body' is not base64", "vegeta's JSON has bodies in base64")
    return {**fields, "headers": entry.table("header", _VEGETA_JSON.headers)}


def _of_vegetas_text(lines: Sequence[str], folder: Path) -> dict[str, Any]:
    if not _REQUEST.match(lines[0].encode()):
        _VEGETA_TEXT.refuse(f"{lines[0][:40]!r} is not a method and a URL")
    method, url = lines[0].split(None, 1)
    fields: dict[str, Any] = {"method": method, "url": url}
    headers: dict[str, list[str]] = {}
    for text in lines[1:]:
        name, colon, value = text.partition(":")
        if text.startswith("@"):
            # vegeta looks in the present folder.
            near = folder / text[1:]
            fields["body"] = read_body(None, near if near.exists() else Path(text[1:]))
        elif not (colon and name.strip() and value.strip()):
            _VEGETA_TEXT.refuse(f"{name[:40]!r} is not a header", _VEGETA_TEXT.headers)
        else:
            headers.setdefault(name.strip(), []).append(value.strip())
    return {**fields, "headers": headers}


_JSON_LINES = TargetsFormat(FORMAT, _each, _of_json)
_URLS = TargetsFormat(FORMAT, _each_but_comments, _of_url)
_TEXT_BY_VEGETA = TargetsFormat(_VEGETA_TEXT, _by_request, _of_vegetas_text)
_BY_VEGETA = TargetsFormat(_VEGETA_JSON, _each, _of_vegeta)
