"""What ``--proxy`` changes in what was asked for."""

from __future__ import annotations

from dataclasses import replace

from trueload.commands.job import Asked
from trueload.errors import UserError


def through_proxy(asked: Asked) -> Asked:
    """Return what goes through the proxy of the route, if there is one. Raises ``UserError``."""
    proxy, target = asked.route.proxy, asked.target
    if proxy is None:
        return asked
    origins = asked.origins or (target,)
    if asked.http2 is not None and not all(origin.is_secure for origin in origins):
        raise UserError(
            "HTTP/2 without TLS cannot go through a proxy", "use an https:// URL, or --http 1.1"
        )
    return replace(
        asked,
        request=asked.request and proxy.through(asked.request, target),
        targets=tuple(
            replace(each, request=proxy.through(each.request, origins[each.origin]))
            for each in asked.targets
        ),
        scenario=tuple(
            replace(step, request=proxy.through(step.request, target)) for step in asked.scenario
        ),
        replay=asked.replay
        and replace(asked.replay, through=lambda request: proxy.through(request, target)),
        tls=asked.tls and replace(asked.tls, tunnel=proxy.tunnel(target)),
    )
