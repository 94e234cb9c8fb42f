"""The fields of one entry of a user's file, such as a target or a step: each read and checked.

How: a field of the wrong kind is refused with its name, and with how the file's format writes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from trueload.errors import UserError
from trueload.request.make import make_request, parse_header, parse_statuses, read_body
from trueload.request.url import Url, parse_url
from trueload.request.values import ANY_ANSWER, Expect, Request

EXPECT_KEYS = ("status", "body")


@dataclass(frozen=True)
class FileFlags:
    """The flags beside a file, which each entry has unless it says otherwise. ``base`` is the URL
    that was given, if any; entries may then have only a path."""

    base: Url | None = None
    headers: tuple[str, ...] = ()
    user: str | None = None
    expect: Expect = ANY_ANSWER


@dataclass(frozen=True, kw_only=True)
class FileFormat:
    """How a kind of file is written, for hints: a whole entry, and some of its fields."""

    entry: str
    table: str
    """What fields in braces are called."""
    text: str
    """A field that is a text, with a place for its name."""
    headers: str
    expect: str = ""
    server: str = ""
    """Where the server is named, for an entry with only a path."""

    def refuse(self, what: str, hint: str | None = None) -> NoReturn:
        """Raise ``UserError``; the hint is a whole entry unless there is a better one."""
        raise UserError(what, hint or self.entry)

    def parse_json(self, text: str) -> dict[str, Any]:
        """Parse a JSON object, in which no name is given twice. Raises ``UserError``."""

        def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            fields = dict(pairs)
            if len(fields) < len(pairs):
                names = [name for name, _ in pairs]
                twice = next(name for name in names if names.count(name) > 1)
                self.refuse(f"'{twice}' is given twice", "keep one of them")
            return fields

        try:
            fields = json.loads(text, object_pairs_hook=once)
        except json.JSONDecodeError as error:
            raise UserError(
                f"not JSON at character {error.pos + 1}: {error.msg}", self.entry
            ) from None
        except (ValueError, RecursionError):
            raise UserError("not JSON that can be read", self.entry) from None
        if not isinstance(fields, dict):
            self.refuse("not a JSON object")
        return fields


@dataclass(frozen=True)
class Entry:
    """The fields of an entry. Raises ``UserError`` for a key that is not among ``keys``, which are
    ``of`` another field, if any; so do all that read a field."""

    fields: dict[str, Any]
    keys: Sequence[str]
    format: FileFormat
    of: str = ""

    def __post_init__(self) -> None:
        for key in self.fields:
            if key not in self.keys:
                raise UserError(
                    f"{key!r} is not a key{self.of}", f"keys are {', '.join(self.keys)}"
                )

    def text(self, key: str) -> str | None:
        value = self.fields.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            hint = f"write it in quotes: {self.format.text.format(key)}"
            self.format.refuse(f"'{key}' is not a string", hint)
        return value

    def encoded(self, key: str) -> bytes | None:
        """Return a text as UTF-8, or the bytes that a format has instead."""
        if isinstance(value := self.fields.get(key), bytes):
            return value
        try:
            return None if (text := self.text(key)) is None else text.encode()
        except UnicodeEncodeError:
            hint = "write whole characters"
            raise UserError(f"'{key}' has half of a surrogate pair", hint) from None

    def table(self, key: str, hint: str) -> dict[str, Any]:
        """Return the fields in braces of a field; none if it is not there."""
        value = self.fields.get(key)
        if value is not None and not isinstance(value, dict):
            self.format.refuse(f"'{key}' is not {self.format.table}", hint)
        return value or {}

    def endpoint(self, base: Url | None) -> Url:
        """Return the URL of the request: a whole one, or a path below ``base``."""
        value = self.fields.get("url")
        if not isinstance(value, str) or not value:
            self.format.refuse("'url' is missing" if value is None else "'url' is not a string")
        if not value.startswith("/"):
            return parse_url(value)
        if base is None:
            self.format.refuse("'url' has no scheme and host", self.format.server)
        return parse_url(base.origin + value)

    def headers(self) -> list[tuple[str, str]]:
        """Return the headers; a list of values becomes as many of them."""
        pairs = []
        for name, values in self.table("headers", self.format.headers).items():
            if ":" in name:
                self.format.refuse("a header's name has a colon", self.format.headers)
            for one in values if isinstance(values, list) else [values]:
                if not isinstance(one, str):
                    why = f"the header {name!r} has a value that is not text"
                    self.format.refuse(why, self.format.headers)
                pairs.append((name, one))
        return pairs

    def request(self, endpoint: Url, folder: Path, flags: FileFlags) -> Request:
        """Return the request for a URL, with what the flags add; its body's file is in the
        folder."""
        own = [f"{name}: {value}" for name, value in self.headers()]
        named = {parse_header(text)[0].lower() for text in own}
        rest = [text for text in flags.headers if parse_header(text)[0].lower() not in named]
        body, file = self.encoded("body"), self.text("body_file")
        if body is not None and file is not None:
            self.format.refuse("'body' and 'body_file' cannot be used together", "keep one of them")
        return make_request(
            endpoint,
            method=self.text("method"),
            headers=[*own, *rest],
            user=None if "authorization" in named or endpoint.credentials else flags.user,
            body=body if file is None else read_body(None, folder / file),
        )

    def expect(self, default: Expect) -> Expect:
        """Return what counts as a good answer."""
        fields = self.table("expect", self.format.expect)
        inner, expect = Entry(fields, EXPECT_KEYS, self.format, " of 'expect'"), default
        if (status := fields.get("status")) is not None:
            codes = status if isinstance(status, list) else [status]
            if not codes or any(type(code) not in (str, int) for code in codes):
                why = "'expect' has a 'status' that is not a status code"
                self.format.refuse(why, self.format.expect)
            expect = replace(expect, statuses=parse_statuses([str(code) for code in codes]))
        body = inner.encoded("body")
        return expect if body is None else replace(expect, body=body)

    def count(self, key: str, most: int) -> int:
        """Return a whole number from 1 on, which is 1 if it is not there."""
        value = self.fields.get(key, 1)
        if type(value) is not int or not 1 <= value <= most:
            why = f"'{key}' is not a whole number from 1 to {most:,}"
            self.format.refuse(why, "write for example 3")
        return value
