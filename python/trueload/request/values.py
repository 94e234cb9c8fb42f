"""What is sent and what counts as an answer: values as the user asked for them, without
behaviour.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class Request:
    """The request that is sent. ``headers`` are the user's; ``plans`` adds Host (unless given),
    Content-Length (with a body) and ``Connection: close`` (with ``close``)."""

    host: str
    """Value of the Host header: ``example.org``, ``127.0.0.1:8080`` or ``[::1]:8080``."""
    path: str = "/"
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


@dataclass(frozen=True, kw_only=True)
class Expect:
    """What counts as a good answer; None means any 2xx, and any body. With ``same`` the answers to
    a request must be like each other."""

    statuses: tuple[int, ...] | None = None
    body: bytes | None = None
    same: bool = False


ANY_ANSWER = Expect()


@dataclass(frozen=True, kw_only=True)
class TargetSpec:
    """One of several requests, which take turns by ``weight``. ``url`` and ``name`` are shown and
    stored, and contain no secret. ``origin`` is the index of its origin."""

    url: str
    request: Request
    expect: Expect = Expect()
    weight: int = 1
    name: str | None = None
    origin: int = 0


@dataclass(frozen=True, kw_only=True)
class Tls:
    """TLS of the client. ``issuers``, ``certificate`` and ``key`` are PEM; ``issuers`` are for the
    trust ``given``. The key is shown nowhere."""

    server_name: str
    """The name that is sent (SNI, names only), and that the certificate must be for."""
    alpn: tuple[str, ...]
    alpn_required: bool = False
    trust: Literal["system", "given", "anybody"] = "system"
    issuers: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = field(default=None, repr=False)
    resumption: bool = True
    tunnel: bytes | None = field(default=None, repr=False)
    """The request that has a proxy open a tunnel to the server."""


@dataclass(frozen=True, kw_only=True)
class OriginSpec:
    """One of several origins; ``url`` contains neither a path nor a secret."""

    url: str
    addresses: tuple[str, ...] = ()
    tls: Tls | None = None
