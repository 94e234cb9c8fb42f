"""What ``--follow`` excludes. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from trueload.errors import UserError
from trueload.protocol.option import refuse_beside
from trueload.request.values import Expect, Request

REDIRECTS = frozenset({301, 302, 303, 307, 308})
"""The statuses that are followed (RFC 9110, section 15.4)."""


def check_load(follow: int | None, *, connect_open: bool) -> None:
    """Refuse a load in which a request cannot go on by its redirect. Raises ``UserError``."""
    if follow is not None:
        hint = "use --close, which gives each redirect a connection of its own"
        refuse_beside("--follow", {"--connect-open": connect_open}, hint)


def check_requests(sent: Iterable[Request], expected: Iterable[Expect]) -> None:
    """Refuse requests that cannot be redirected, and redirects that are expected. Raises
    ``UserError``."""
    for expect in expected:
        found = REDIRECTS.intersection(expect.statuses or ())
        if found:
            raise UserError(
                f"status {min(found)} is expected, but --follow follows it",
                "leave one of them out; the final answer is judged",
            )
    for request in sent:
        if not request.path.startswith("/"):
            raise UserError(
                "--follow needs a request for a path, and this one names a whole URL or none",
                "leave --follow out; by --proxy, only https:// URLs are followed",
            )
