"""What a URL means: where to connect, what to ask for, which Host to name.

How: ``parse_url`` is strict and pure. Whatever it accepts can be sent as it is, so nothing in a URL
can add a header or a request of its own. ``resolve`` asks the system for the addresses in bounded
time.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from trueload.deadline import within
from trueload.errors import UserError
from trueload.request.environment import BEGIN
from trueload.request.secret_urls import redact_refused_url

RESOLVE_S = 5.0
URL_BYTES_MAX = 64 * 2**10
_HOST_PORT = "write it as HOST:PORT, for example 127.0.0.1:9000"
PORTS: dict[str, int] = {"http": 80, "https": 443, "ws": 80, "wss": 443}
"""The port of a URL that names none."""
SECURE: frozenset[str] = frozenset({"https", "wss"})


@dataclass(frozen=True)
class Family:
    """The schemes of one protocol, and the command for such URLs."""

    command: str
    plain: str
    secure: str

    @property
    def example(self) -> str:
        return f"write it as {self.plain}://HOST[:PORT]/PATH, for example {self.plain}://127.0.0.1:8080/"


HTTP = Family("http", "http", "https")
WS = Family("ws", "ws", "wss")
FAMILIES = (HTTP, WS)

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://", re.ASCII)
_SCHEME_CUT_SHORT = re.compile(r"([A-Za-z]+)(?::/*|//)(.*)", re.ASCII)
_PORT_ONLY = re.compile(r"(?::|(?=\d\d))(\d{1,5}(?:[/?#].*)?)", re.ASCII | re.DOTALL)
_LABEL = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)", re.ASCII)
_PATH_SAFE = "/?:@!$&'()*+,;=-._~%[]{}|\\^`\"<>"


@dataclass(frozen=True)
class Url:
    """A parsed URL. ``host`` is a name (IDNA) or an address without brackets. ``path`` is the
    request target. ``credentials`` is the value of an Authorization header, or None."""

    url: str
    scheme: str
    host: str
    port: int
    path: str
    credentials: str | None

    @classmethod
    def of_socket_file(cls, text: str) -> Url:
        """Make the URL for ``unix:PATH``, with a protocol that needs no host name."""
        return cls(url=text, scheme="tcp", host="localhost", port=0, path="", credentials=None)

    @property
    def authority(self) -> str:
        """Value of the Host header: brackets around IPv6 (without a zone), no default port."""
        host = self.host.partition("%")[0]
        shown = f"[{host}]" if ":" in host else host
        return shown if self.port == PORTS.get(self.scheme) else f"{shown}:{self.port}"

    @property
    def host_port(self) -> str:
        """The server in a message; its port is named even if it is the scheme's own."""
        return with_port(self.host, self.port)

    @property
    def is_secure(self) -> bool:
        """Whether it is reached over TLS."""
        return self.scheme in SECURE

    @property
    def unsealed(self) -> str:
        """The scheme of the same protocol without TLS."""
        family = next((each for each in FAMILIES if each.secure == self.scheme), None)
        return self.scheme if family is None else family.plain

    @property
    def origin(self) -> str:
        """The URL up to its path, as it was written, with its user information if it has any."""
        start = self.url.index("://") + 3
        end = min((self.url.index(c, start) for c in "/?#" if c in self.url[start:]), default=None)
        return self.url[:end]


def parse_url(url: str, family: Family = HTTP) -> Url:
    """Parse a URL. Raises ``UserError`` that names what is wrong with it."""
    if len(url) > URL_BYTES_MAX:
        raise UserError(
            f"the URL has {len(url):,} characters, and {URL_BYTES_MAX:,} are the most",
            "send what is long as the body: --body-file FILE",
        )
    _refuse_odd_characters(url, family)
    match, shown = _SCHEME.match(url), redact_refused_url(url)
    if match is None:
        raise UserError(f"'{shown}' has no scheme", _hint_for_scheme(shown, family))
    named = match[1].lower()
    scheme = next((each for each in (family.plain, family.secure) if each == named), None)
    if scheme is None:
        other = next((each for each in FAMILIES if named in (each.plain, each.secure)), None)
        hint = f"use `trueload {other.command}` for it" if other else family.example
        raise UserError(f"'{named}://' cannot be loaded with `trueload {family.command}`", hint)
    rest = url[match.end() :].partition("#")[0]
    end = min((rest.index(c) for c in "/?" if c in rest), default=len(rest))
    authority, path = rest[:end], rest[end:]
    user_info, at, host_port = authority.rpartition("@")
    credentials = credentials_of(user_info) if at else None
    try:
        host, port = _split_host_port(host_port, shown, family.example)
    except UserError:
        if at or "@" not in url:
            raise
        # The text there may be the beginning of a password, which must not be shown.
        raise UserError(
            "the URL has no valid host and port before its first /, ? or #, but an @ after it",
            f"percent-encode / ? and # in the name and password of a user; {family.example}",
        ) from None
    return Url(
        url=url,
        scheme=scheme,
        host=host,
        port=PORTS[scheme] if port is None else port,
        path=request_target(path),
        credentials=credentials,
    )


def parse_given_url(text: str, family: Family = HTTP) -> Url:
    """Parse a typed URL; ``HOST:PORT/PATH`` is one without TLS, and ``:PORT`` of this machine.
    Raises ``UserError``."""
    if (local := _PORT_ONLY.fullmatch(text)) is not None:
        text = f"localhost:{local[1]}"
    cut_short = _SCHEME_CUT_SHORT.match(text)
    meant = cut_short is not None and any(
        cut_short[1].lower() in (each.plain, each.secure) for each in FAMILIES
    )
    is_bare = _SCHEME.match(text) is None and not meant and (text[:1].isalnum() or text[:1] == "[")
    return parse_url(f"{family.plain}://{text}" if is_bare else text, family)


def parse_host_port(text: str, scheme: str = "tcp") -> Url:
    """Parse ``HOST:PORT``, also behind the scheme and ``://``. Raises ``UserError``."""
    if not text or any(c.isspace() or not c.isprintable() for c in text):
        raise UserError(f"{redact_refused_url(text)!r} is not HOST:PORT", _HOST_PORT)
    plain = text.removeprefix(f"{scheme}://")
    if "://" in plain or any(c in plain for c in "/?#@"):
        raise UserError(f"'{redact_refused_url(text)}' is not HOST:PORT", _HOST_PORT)
    host, port = _split_host_port(plain, text, _HOST_PORT)
    if port is None:
        raise UserError(f"'{text}' has no port", _HOST_PORT)
    return Url(
        url=f"{scheme}://{plain}", scheme=scheme, host=host, port=port, path="", credentials=None
    )


def credentials_of(user_info: str) -> str:
    """Return the user of a URL as the value of an Authorization header. Raises ``UserError``."""
    if BEGIN in user_info:
        hint = "use --user 'NAME:{env:PASSWORD}', and in a curl command -u"
        raise UserError("the user of a URL cannot be taken from the environment", hint)
    return basic_credentials(unquote_to_bytes(user_info.encode("utf-8", "replace")))


def basic_credentials(user_info: bytes) -> str:
    """``name:password`` as the value of an Authorization header (RFC 7617)."""
    pair = user_info if b":" in user_info else user_info + b":"
    return "Basic " + base64.b64encode(pair).decode()


def resolve(host: str, port: int, timeout_s: float = RESOLVE_S) -> tuple[str, ...]:
    """Resolve a host to addresses as ``IP:PORT`` or ``[IPv6]:PORT``, in the system's order. Empty
    if the name does not exist, or is not resolved in time."""
    literal = _literal(host)
    if literal is not None and "%" not in host:
        return (with_port(host, port),)
    try:
        stream = socket.SOCK_STREAM
        found = within(timeout_s, lambda: socket.getaddrinfo(host, port, type=stream))
    except (OSError, UnicodeError):  # TimeoutError is an OSError
        return ()
    return tuple(dict.fromkeys(_from_system(at) for *_, at in found))


def _refuse_odd_characters(url: str, family: Family) -> None:
    for position, character in enumerate(url, start=1):
        if character.isspace() or not character.isprintable():
            name = "a space" if character == " " else f"the character U+{ord(character):04X}"
            raise UserError(f"the URL has {name} at position {position}", _instead_of(character))
    if not url:
        raise UserError("the URL is empty", family.example)


def _instead_of(character: str) -> str:
    try:
        coded = quote(character, safe="", errors="surrogateescape")
    except UnicodeEncodeError:  # JSON can have half of a surrogate pair
        return "write whole characters, percent-encoded"
    return f"write it percent-encoded, as {coded}"


def _hint_for_scheme(url: str, family: Family) -> str:
    cut_short = _SCHEME_CUT_SHORT.match(url)
    if cut_short is not None and cut_short[1].lower() in (family.plain, family.secure):
        return f"write {cut_short[1].lower()}://{cut_short[2]}"
    known = url[:1].isalnum() or url[:1] == "["
    return f"write {family.plain}://{url}" if known else family.example


def _split_host_port(host_port: str, url: str, example: str) -> tuple[str, int | None]:
    if host_port.startswith("["):
        host, bracket, rest = host_port[1:].partition("]")
        if not bracket or _ipv6(host) is None:
            raise UserError(f"'{url}' has no IPv6 address in its brackets", "write http://[::1]/")
        host = host.replace("%25", "%", 1)
    else:
        host, colon, port = host_port.partition(":")
        rest = colon + port
        if ":" in port:
            raise UserError(
                f"'{host_port}' has more than one colon", "write IPv6 in brackets: http://[::1]:80/"
            )
        if not host:
            raise UserError(f"'{url}' has no host", example)
        host = _host_name(host, example)
    if rest and not rest.startswith(":"):
        raise UserError(f"'{rest}' follows the address in '{url}'", "write http://[::1]:8080/")
    return host, _port(rest[1:]) if len(rest) > 1 else None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text[:10]) <= 65535:
        raise UserError(f"port '{text}' is not a port", "ports are numbers from 1 to 65535")
    return int(text)


def _host_name(host: str, example: str) -> str:
    """Check a host name, and encode it for DNS (IDNA 2008 for letters beyond ASCII). IPv4 addresses
    pass unchanged. Raises ``UserError``."""
    name = host
    if not host.isascii():
        import idna

        try:
            name = idna.encode(host, uts46=True).decode()
        except (idna.IDNAError, UnicodeError) as error:
            raise UserError(f"'{host}' is not a host name", f"{error}") from error
    labels = name.removesuffix(".").split(".")
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise UserError(f"'{host}' is not a host name", example)
    if labels[-1].isdigit() and _literal(name) is None:
        raise UserError(
            f"'{host}' is not an IPv4 address", "an IPv4 address is four numbers from 0 to 255"
        )
    return name


def request_target(path: str) -> str:
    """Path and query as sent: letters beyond ASCII percent-encoded as UTF-8, the rest as it is."""
    target = path if path.startswith("/") else f"/{path}"
    return quote(target, safe=_PATH_SAFE)


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _ipv6(host: str) -> ipaddress.IPv6Address | None:
    found = _literal(host.replace("%25", "%", 1))
    return found if isinstance(found, ipaddress.IPv6Address) else None


def _from_system(at: tuple[Any, ...]) -> str:
    """Format an address of getaddrinfo. IPv6 has four parts, the last is the zone's number."""
    address = str(at[0]).partition("%")[0]
    zone = f"%{at[3]}" if len(at) == 4 and at[3] else ""
    return with_port(address + zone, at[1])


def with_port(address: str, port: int) -> str:
    """An IP address and port in the form for a plan, with brackets around IPv6."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
