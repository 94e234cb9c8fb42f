"""The Common Log Format and the combined one, which Apache, nginx and many others write. Pure.

Such a log has the time of each request to the second, and no body.
"""

from __future__ import annotations

import re
from functools import lru_cache

from trueload.request.logs.line import (
    QUOTED,
    LineFormat,
    Parser,
    headers_of,
    plain,
    status_of,
)
from trueload.request.recorded_request import (
    RecordedRequest,
    parse_common_time,
    parse_request_line,
)

_LINE = re.compile(
    r"\S+ [^\[]*\[(\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4})\] "
    rf"{QUOTED} (\d{{3}}|-) (?:\d+|-)(?: {QUOTED} {QUOTED})?",
    re.ASCII,
)


def parse_line(line: str) -> RecordedRequest:
    """Parse a line of either format. Raises ``ValueError`` and ``UnsendableError``."""
    found = _LINE.match(line)
    if found is None:
        raise ValueError("not a line of an access log")
    time, request, status, referer, agent = found.groups()
    at_ns = common_time(time)
    asked = parse_request_line(plain(request))
    headers = headers_of((("Referer", plain(referer)), ("User-Agent", plain(agent))))
    return asked.recorded(at_ns, headers, status=status_of(status), whole=True)


# Neighbouring lines have the same time.
common_time = lru_cache(maxsize=16)(parse_common_time)


def _begin_common(line: str) -> Parser | None:
    found = _LINE.match(line)
    return parse_line if found is not None and found[4] is None else None


def _begin_combined(line: str) -> Parser | None:
    return parse_line if _LINE.match(line) else None


COMMON = LineFormat(name="common access log", begin=_begin_common)
COMBINED = LineFormat(name="combined access log", begin=_begin_combined)
