"""The table of formats of which each line is a request. A line is of the first that knows it."""

from __future__ import annotations

from trueload.request.logs.alb import ALB
from trueload.request.logs.caddy import CADDY
from trueload.request.logs.cloudfront import CLOUDFRONT
from trueload.request.logs.common import COMBINED, COMMON
from trueload.request.logs.line import LineFormat, Parser
from trueload.request.logs.nginx import NGINX
from trueload.request.timed_lines import JSON_LINES

FORMATS: tuple[LineFormat, ...] = (COMMON, COMBINED, ALB, CLOUDFRONT, JSON_LINES, NGINX, CADDY)


def look(line: str) -> tuple[LineFormat, Parser] | None:
    """Return the format of a line, and a parser of the lines beside it; None if it is of none."""
    for each in FORMATS:
        try:
            parser = each.begin(line)
        except ValueError:
            continue
        if parser is not None:
            return each, parser
    return None
