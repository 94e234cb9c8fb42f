"""The flags that say what is sent, where to, and what counts as a good answer.

How: they are the parameters of one function, which other commands take over by its signature; what
excludes each other is refused here, with one line and one hint. Must not know when anything is
sent, or what is done with the answers.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from trueload.cli import options
from trueload.errors import UserError
from trueload.redact import redact_url
from trueload.request import make_request, parse_statuses, read_body
from trueload.route import Route, make_route
from trueload.spec import Expect, Request
from trueload.target import Target, parse_url


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the flags come to. ``url`` is shown and stored: it holds no secret."""

    url: str
    target: Target
    route: Route
    local_addresses: tuple[str, ...]
    request: Request
    expect: Expect
    close: bool


def read_asked(
    url: options.UrlArgument,
    method: options.MethodOption = None,
    header: options.HeaderOption = None,
    user: options.UserOption = None,
    body: options.BodyOption = None,
    body_file: options.BodyFileOption = None,
    expect_status: options.ExpectStatusOption = None,
    expect_body: options.ExpectBodyOption = None,
    close: options.CloseOption = False,
    unix: options.UnixOption = None,
    resolve: options.ResolveOption = None,
    local_address: options.LocalAddressOption = None,
) -> Asked:
    """What is to be sent, and where to. Raises ``UserError``."""
    target = parse_url(url)
    local = local_address or ()
    route = make_route(unix=unix, overrides=resolve or (), local_addresses=local)
    content = read_body(body, body_file)
    return Asked(
        url=redact_url(url),
        target=target,
        route=route,
        request=make_request(target, method=method, headers=header or (), user=user, body=content),
        expect=Expect(
            statuses=parse_statuses(expect_status or ()),
            body=None if expect_body is None else expect_body.encode("utf-8", "surrogateescape"),
        ),
        close=close,
        local_addresses=_local_addresses(local),
    )


def _local_addresses(texts: Sequence[str]) -> tuple[str, ...]:
    for text in texts:
        try:
            version = ipaddress.ip_address(text).version
        except ValueError as error:
            raise UserError(
                f"--local-address '{text}' is not an IP address", "write for example 127.0.0.2"
            ) from error
        family = socket.AF_INET6 if version == 6 else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.bind((text, 0))
        except OSError as error:
            raise UserError(
                f"--local-address {text} cannot be used: {error.strerror}",
                "name an address of this machine",
            ) from error
    return tuple(texts)
