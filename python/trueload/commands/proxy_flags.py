"""What ``--proxy`` changes in what is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trueload.errors import UserError
from trueload.request.proxy import Proxy
from trueload.request.traffic import Traffic
from trueload.request.url import Url


def through_proxy(traffic: Traffic, proxy: Proxy | None, origins: Sequence[Url]) -> Traffic:
    """Return what goes through a proxy, if there is one, to these origins. Raises ``UserError``."""
    if proxy is None:
        return traffic
    endpoint = origins[0]
    if traffic.http2 is not None and not all(origin.is_secure for origin in origins):
        raise UserError(
            "HTTP/2 without TLS cannot go through a proxy", "use an https:// URL, or --http 1.1"
        )
    return replace(
        traffic,
        request=traffic.request and proxy.through(traffic.request, endpoint),
        targets=tuple(
            replace(each, request=proxy.through(each.request, origins[each.origin]))
            for each in traffic.targets
        ),
        scenario=tuple(
            replace(step, request=proxy.through(step.request, endpoint))
            for step in traffic.scenario
        ),
        replay=traffic.replay
        and replace(traffic.replay, through=lambda request: proxy.through(request, endpoint)),
        tls=traffic.tls and replace(traffic.tls, tunnel=proxy.tunnel(endpoint)),
    )
