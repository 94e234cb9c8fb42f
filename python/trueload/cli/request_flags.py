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

from trueload.asked import RANDOM, has_place
from trueload.cli import options
from trueload.errors import UserError
from trueload.redact import redact_url
from trueload.request import make_request, parse_statuses, read_body
from trueload.route import Route, make_route
from trueload.spec import Expect, Request, TargetSpec
from trueload.target import Target, parse_url
from trueload.targets import Defaults, read_targets


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the flags come to. ``url`` is shown and stored: it holds no secret."""

    url: str
    target: Target
    route: Route
    local_addresses: tuple[str, ...]
    request: Request | None
    expect: Expect
    targets: tuple[TargetSpec, ...]
    close: bool

    @property
    def has_random(self) -> bool:
        """Whether chance has a part in what is sent."""
        requests = [target.request for target in self.targets]
        requests += [] if self.request is None else [self.request]
        return any(has_place(request, (RANDOM,)) for request in requests)


def read_asked(
    url: options.UrlArgument = None,
    targets: options.TargetsOption = None,
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
    base = None if url is None else parse_url(url)
    local = local_address or ()
    route = make_route(unix=unix, overrides=resolve or (), local_addresses=local)
    expect = Expect(
        statuses=parse_statuses(expect_status or ()),
        body=None if expect_body is None else expect_body.encode("utf-8", "surrogateescape"),
    )
    headers = tuple(header or ())
    if targets is not None:
        _refuse_beside_targets(method=method, body=body, body_file=body_file)
        target, several = read_targets(targets, Defaults(base, headers, user, expect))
        request, shown = None, target.origin
    elif base is None:
        raise UserError("there is no URL", "write `trueload http URL`, or --targets FILE")
    else:
        target, several, shown = base, (), base.url
        content = read_body(body, body_file)
        request = make_request(target, method=method, headers=headers, user=user, body=content)
    return Asked(
        url=redact_url(shown),
        target=target,
        route=route,
        request=request,
        expect=expect,
        targets=several,
        close=close,
        local_addresses=_local_addresses(local),
    )


def _refuse_beside_targets(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise UserError(
                f"--targets and --{name.replace('_', '-')} exclude each other",
                "each line of the targets file has its own",
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
