"""Access logs of CloudFront: fields between tabs, named by a line that begins with ``#Fields:``.
Pure.

https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html has
the fields. Texts are percent-encoded there, and a ``%`` of theirs is written ``%25``. Lines are in
no order.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote

from trueload.request.logs.line import LineFormat, Parser, headers_of, status_of
from trueload.request.recorded_request import RecordedRequest, parse_asked, parse_iso
from trueload.units import NS_PER_S

_FIELDS = "#Fields:"
_NEEDED = {"date", "time", "cs-method", "cs-uri-stem", "x-edge-location"}
# The first fields of every log, for a part of one that does not name them.
_FIRST = (
    *("date", "time", "x-edge-location", "sc-bytes", "c-ip", "cs-method", "cs(Host)"),
    *("cs-uri-stem", "sc-status", "cs(Referer)", "cs(User-Agent)", "cs-uri-query", "cs(Cookie)"),
    *("x-edge-result-type", "x-edge-request-id", "x-host-header"),
)
_LINE = re.compile(r"\d{4}-\d\d-\d\d\t\d\d:\d\d:\d\d\t[A-Z]{3}[0-9A-Z-]*\t", re.ASCII)
_DOUBLE = re.compile(r"%25(?=[0-9A-Fa-f]{2})")


class CloudFront:
    """Parses the lines of a log, which says itself what its fields are."""

    def __init__(self) -> None:
        self._names: tuple[str, ...] = _FIRST

    def __call__(self, line: str) -> RecordedRequest | None:
        """Parse a line; None for a comment. Raises ``ValueError`` and ``UnsendableError``."""
        if line.startswith("#"):
            self._names = _names_in(line) or self._names
            return None
        values = line.split("\t") if "\t" in line else line.split()
        fields = dict(zip(self._names, values, strict=False))
        if not fields.keys() >= _NEEDED:
            raise ValueError("too few fields")
        target = fields["cs-uri-stem"]
        if (query := fields.get("cs-uri-query", "-")) != "-":
            target += f"?{query}"
        asked = parse_asked(fields["cs-method"], _DOUBLE.sub("%", target))
        named = fields.get("x-host-header", "-")
        at_ns, whole = _time(fields)
        headers = headers_of(
            (name, _decoded(fields.get(f"cs({name})", "-")))
            for name in ("Referer", "User-Agent", "Cookie")
        )
        host = fields.get("cs(Host)", "") if named == "-" else named
        status = status_of(fields.get("sc-status", ""))
        return asked.recorded(at_ns, headers, host=host, status=status, whole=whole)


def _names_in(line: str) -> tuple[str, ...]:
    """The fields that a line names, if they are those of CloudFront."""
    names = tuple(line.removeprefix(_FIELDS).split()) if line.startswith(_FIELDS) else ()
    return names if set(names) >= _NEEDED else ()


def _time(fields: dict[str, str]) -> tuple[int, bool]:
    """When a request ended, which is all that most logs say, and only to the second."""
    at_ms = fields.get("timestamp(ms)", "")
    if at_ms.isascii() and at_ms.isdigit():
        return int(at_ms[:15]) * (NS_PER_S // 1000), False
    return _second(f"{fields['date']}T{fields['time']}Z")


_second = lru_cache(maxsize=16)(parse_iso)


@lru_cache(maxsize=4096)
def _decoded(text: str) -> str:
    """The value of a header. Older logs encode it twice."""
    once = unquote(text, errors="surrogateescape")
    return unquote(once, errors="surrogateescape") if "%20" in once and " " not in once else once


def _begin(line: str) -> Parser | None:
    return CloudFront() if _names_in(line) or _LINE.match(line) else None


CLOUDFRONT = LineFormat(name="CloudFront log", begin=_begin, order="none")
