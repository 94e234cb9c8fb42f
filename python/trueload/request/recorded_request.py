"""One recorded request as a value, and what the formats of recordings have in common. Pure.

Headers of a connection are left out: they were between two other programs. Times are ns since some
zero that a recording has in common.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple, NoReturn
from urllib.parse import quote, urlsplit

from trueload.errors import UserError
from trueload.request.make import is_token
from trueload.request.url import PORTS, credentials_of
from trueload.units import NS_PER_S

Headers = tuple[tuple[str, str], ...]

# RFC 9110, 7.6.1: those of a connection. The plan adds Host and Content-Length itself, and HTTP/2's
# settings and Expect ask for an answer that is not the last.
_OF_CONNECTION = frozenset(
    {
        *("connection", "keep-alive", "proxy-connection", "proxy-authenticate"),
        *("proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"),
        *("host", "content-length", "http2-settings", "expect"),
    }
)
# No control character (RFC 9110, 5.5), and no half of a surrogate pair, which JSON can have. The
# surrogates that are allowed stand for bytes that are not UTF-8 (PEP 383).
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\ud800-\udc7f\udd00-\udfff]*")
_AUTHORITY = re.compile(r"[^/]*//[^/?]*")
_VISIBLE = re.compile(r"/[!-~]*")
_AS_IT_IS = "".join(map(chr, range(0x21, 0x7F)))
_ISO = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class RecordedRequest(NamedTuple):
    """A recorded request. ``host`` is empty if it was not recorded. ``status`` is that of its
    answer. With ``whole`` its time is known to the second only."""

    at_ns: int
    method: str
    host: str
    path: str
    headers: Headers = ()
    body: bytes | None = None
    status: int | None = None
    whole: bool = False


class UnsendableError(Exception):
    """Why a recorded request is left out, in a few words."""


def clean_headers(headers: Iterable[tuple[str, str]]) -> Headers:
    """Return the headers without those of a connection, of HTTP/2's own (``:path``), and those that
    no request can have."""
    return tuple(
        (name, value.strip(" \t"))
        for name, value in headers
        if name.lower() not in _OF_CONNECTION and is_token(name) and _VALUE.fullmatch(value)
    )


class Asked(NamedTuple):
    """What was asked for, as it is sent. ``host`` is empty if it was not named, and ``credentials``
    are those of the user that a URL names, as the value of an Authorization header."""

    method: str
    host: str
    path: str
    credentials: str | None = None

    def with_user(self, headers: Headers) -> Headers:
        """Return the headers, with the user of the URL unless they name one."""
        named = any(name.lower() == "authorization" for name, _ in headers)
        if self.credentials is None or named:
            return headers
        return (*headers, ("Authorization", self.credentials))

    def recorded(
        self, at_ns: int, headers: Headers, *, host: str = "", **more: Any
    ) -> RecordedRequest:
        """Return the request that came then; ``host`` is the one that the log names besides, and
        ``more`` are further fields."""
        return RecordedRequest(
            at_ns=at_ns,
            method=self.method,
            host=self.host or host.lower(),
            path=self.path,
            headers=self.with_user(headers),
            **more,
        )


def parse_request_line(line: str) -> Asked:
    """Parse a line like ``GET /a HTTP/1.1``. Raises ``UnsendableError`` and ``UserError``."""
    method, _, rest = line.partition(" ")
    target, space, version = rest.rpartition(" ")
    if not space or not version.startswith("HTTP/"):
        target = rest
    return parse_asked(method, target)


def parse_asked(method: str, target: str) -> Asked:
    """Parse a path or a whole URL. Raises ``UnsendableError``, and ``UserError`` for a user that
    cannot be sent."""
    if not is_token(method) or method.isdigit() or method == "CONNECT" or not target:
        raise UnsendableError("no request that can be sent")
    if target == "*":
        return Asked(method, "", target)
    if target.startswith("/"):
        return Asked(method, "", _as_sent(target.partition("#")[0]))
    try:
        parts = urlsplit(target)
        port = parts.port
    except ValueError:
        raise UnsendableError("a URL that cannot be read") from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise UnsendableError("a URL that is not of HTTP")
    named = port is not None and port != PORTS[parts.scheme.lower()]
    host = f"{parts.hostname}:{port}" if named else parts.hostname
    # Its own text, as the parts do not say whether an empty query was there.
    path = _AUTHORITY.sub("", target.partition("#")[0], count=1)
    user, at, _ = parts.netloc.rpartition("@")
    credentials = credentials_of(user) if at else None
    return Asked(method, host, _as_sent(path if path.startswith("/") else f"/{path}"), credentials)


def _as_sent(path: str) -> str:
    if _VISIBLE.fullmatch(path):
        return path  # as nearly all are: a log may have a million
    try:
        return quote(path, safe=_AS_IT_IS, errors="surrogateescape")
    except UnicodeEncodeError:  # JSON can have half of a surrogate pair
        raise UnsendableError("a path that is not text") from None


def parse_iso(text: str) -> tuple[int, bool]:
    """Return a time like ``2026-11-27T10:00:00.125Z`` as ns since 1970, and whether it has no
    fraction. Without a zone it is UTC. Raises ``ValueError``."""
    found = _ISO.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a time like 2026-11-27T10:00:00.125Z")
    day, clock, fraction, zone = found.groups()
    at = datetime.fromisoformat(f"{day}T{clock}{'+00:00' if zone in (None, 'Z') else zone}")
    return since_1970(at) + int((fraction or "").ljust(9, "0")), not fraction


def parse_common_time(text: str) -> int:
    """Return the time of an access log, like ``27/Nov/2026:10:00:00 +0000``, as ns since 1970.
    Raises ``ValueError``."""
    day, month, year = text[:2], _MONTHS.index(text[3:6]) + 1, text[7:11]
    zone = text[21:].strip() or "+0000"
    at = datetime.fromisoformat(f"{year}-{month:02}-{day}T{text[12:20]}{zone[:3]}:{zone[-2:]}")
    return since_1970(at)


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def since_1970(at: datetime) -> int:
    """Return a time in ns since 1970, without its fraction of a second."""
    past = at - _EPOCH
    return (past.days * 86_400 + past.seconds) * NS_PER_S


def refuse_hosts(shown: str, hosts: Iterable[str], flag: str) -> NoReturn:
    """Ask which of several hosts is meant. Raises ``UserError``."""
    every = list(hosts)
    named = ", ".join(every[:3]) + (", …" if len(every) > 3 else "")
    raise UserError(
        f"{shown} has requests to {len(every)} hosts: {named}", f"choose one: {flag} {every[0]}"
    )


def choose_host(shown: str, hosts: Iterable[str], chosen: str | None, flag: str) -> str | None:
    """Return the host whose requests are meant; None if they are all of one. Raises ``UserError``
    if that is not clear."""
    known = list(hosts)
    if chosen is None:
        if len(known) > 1:
            refuse_hosts(shown, known, flag)
        return None
    wanted = chosen.lower()
    found = [host for host in known if wanted in (host, host.rpartition(":")[0])]
    if len(found) != 1:
        named = ", ".join(known[:3]) + (", …" if len(known) > 3 else "")
        raise UserError(
            f"{shown} has no requests to {chosen!r}" if not found else f"{chosen!r} is not clear",
            f"its hosts are {named}" if known else "it names no hosts: leave the option out",
        )
    return found[0]
