"""Access logs of AWS's load balancers: the application load balancer, and the classic one. Pure.

https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html
has the fields. The classic one has no type in front, and its time is that of the request.
"""

from __future__ import annotations

import re

from trueload.request.logs.line import (
    QUOTED,
    LineFormat,
    Parser,
    headers_of,
    plain,
    seconds,
    status_of,
)
from trueload.request.recorded_request import (
    RecordedRequest,
    UnsendableError,
    parse_iso,
    parse_request_line,
)

_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
_LINE = re.compile(
    # Type, time, name, client, target, three times that it took, two statuses, two sizes.
    rf"(?:(https?|h2|grpcs?|wss?) )?({_TIME}) \S+ \S+ \S+ (\S+ \S+ \S+) (\d{{3}}|-) \S+ \d+ \d+ "
    rf"{QUOTED} {QUOTED}",
    re.ASCII,
)
_CREATED = re.compile(rf' ({_TIME}) "', re.ASCII)


def parse_alb(line: str) -> RecordedRequest:
    """Parse a line. Raises ``ValueError`` and ``UnsendableError``."""
    found = _LINE.match(line)
    if found is None:
        raise ValueError("not a line of a load balancer")
    kind, time, took, status, request, agent = found.groups()
    if kind in ("ws", "wss"):
        raise UnsendableError("a WebSocket")
    asked = parse_request_line(plain(request))
    at_ns, whole = _time(kind, time, took, line[found.end() :])
    headers = headers_of([("User-Agent", plain(agent))])
    return asked.recorded(at_ns, headers, status=status_of(status), whole=whole)


def _time(kind: str | None, time: str, took: str, rest: str) -> tuple[int, bool]:
    """When a request came. An application load balancer logs it at its end, and newer lines have
    the time of its start as well. Raises ``ValueError``."""
    if kind is None:
        return parse_iso(time)
    if created := _CREATED.search(rest):
        return parse_iso(created[1])
    at_ns, whole = parse_iso(time)
    parts = took.split()
    if whole or "-1" in parts:
        return at_ns, whole
    return at_ns - sum(map(seconds, parts)), whole


def _begin(line: str) -> Parser | None:
    return parse_alb if _LINE.match(line) else None


# Its nodes write by turns.
ALB = LineFormat(name="log of an AWS load balancer", begin=_begin, order="none")
