"""The part of a record on a client under test: what it was told, what it claims, what was seen.

How: the client takes the place of the generator in a trial of a server. So the record's
``generator`` is the client's process tree, and its ``server`` is our reference server. What has no
place there is here: both ends' accounts of one order, and what follows from them.
"""

from __future__ import annotations

from trueload.protocol.client import Claim, ClientSetup
from trueload.protocol.model import Model, left_out
from trueload.protocol.server_report import ServerReport
from trueload.units import NS_PER_S

MS_PER_S = 1_000
# Failure classes that a server never notices: nothing was sent.
NEVER_SENT = ("dns", "connect.", "local.", "tls.")


class ClientTask(Model):
    """What a client was told."""

    setup: ClientSetup
    requests: int
    """The number of requests to send in the measured order."""
    warmup_requests: int
    """The number of requests to send in the orders before it, to warm up."""
    wait_ms: int
    """How long the server takes for each answer."""
    files: int | None
    """The client's open-file limit; null if there is none."""
    max_streams: int | None = left_out()
    """Streams that the server permits on an HTTP/2 connection; null over HTTP/1.1."""

    @property
    def room(self) -> int:
        """How many connections the pools have room for; a client that keeps none opens one for each
        request, whatever its pools are."""
        room = self.setup.pools * self.setup.pool_size
        return room if self.setup.keep_alive else max(room, self.setup.concurrency)

    @property
    def pool_at_once(self) -> int:
        """How many requests the pools have room for at one time."""
        streams = self.setup.pipelining
        return self.room * min(streams, self.max_streams or streams)

    @property
    def at_once(self) -> int:
        """Requests that can be under way at one time, at most."""
        return min(self.pool_at_once, self.setup.concurrency)


class ClientEnd(Model):
    """Both accounts of an order, and what follows from them. By Little's law connections that are
    each busy for ``wait_ms`` carry pools x pool size x streams / wait at most; over HTTP/1.1
    streams are 1."""

    asked: ClientTask
    claim: Claim
    seen: ServerReport
    answered_per_s: float | None
    """Answers with status 200, by the server's clock, from the first request to the last answer."""
    goodput_per_s: float | None
    """The throughput: the same over the whole order, by whichever of client and server counted
    fewer. Records keep this older name; goodput is what keeps the limits that were asked for."""
    retries: int
    """Requests that the server saw beyond those that the client says it made: a lower bound."""
    cpu_ns_per_request: float | None
    """CPU time of the client's whole process tree for each answer of the throughput."""
    pool_ceiling_per_s: float
    """The most that the connections carry."""
    ceiling_per_s: float
    """The same with as many requests at once as were asked for."""
    ceiling_share: float | None
    """The throughput as a share of that."""
    order_ns: int | None = None
    """From the order to the claim; null in older records, whose throughput is by the server's clock
    alone."""

    @property
    def idle_ns(self) -> int:
        """How much of the order was before its first request, or after its last answer."""
        return max(0, (self.order_ns or 0) - interval_ns(self.seen))


def make_client_end(
    asked: ClientTask, claim: Claim, seen: ServerReport, cpu_s: float | None, order_ns: int
) -> ClientEnd:
    """Derive what follows from both accounts. Pure."""
    took_s = interval_ns(seen) / NS_PER_S
    good = min(claim.ok, seen.ok)
    throughput = good / (took_ns(seen, order_ns) / NS_PER_S) if took_s > 0 else None
    ceiling = asked.at_once * MS_PER_S / asked.wait_ms
    return ClientEnd(
        asked=asked,
        claim=claim,
        seen=seen,
        answered_per_s=seen.ok / took_s if took_s > 0 else None,
        goodput_per_s=throughput,
        retries=max(0, seen.requests - _sent(claim)),
        cpu_ns_per_request=cpu_s * NS_PER_S / good if cpu_s is not None and good else None,
        pool_ceiling_per_s=asked.pool_at_once * MS_PER_S / asked.wait_ms,
        ceiling_per_s=ceiling,
        ceiling_share=None if throughput is None else throughput / ceiling,
        order_ns=order_ns,
    )


def interval_ns(seen: ServerReport) -> int:
    """Time from the first request to the last answer, by the server's clock; 0 if there is none."""
    if seen.first_request_ns is None or seen.last_answer_ns is None:
        return 0
    return max(0, seen.last_answer_ns - seen.first_request_ns)


def took_ns(seen: ServerReport, order_ns: int) -> int:
    """How long an order took, from its start to the claim. A client gains nothing by beginning or
    claiming late, nor by claiming before its last answer."""
    return max(order_ns, interval_ns(seen))


def _sent(claim: Claim) -> int:
    """Requests that the client says reached its server, or may have."""
    never = sum(n for name, n in claim.failed.items() if name.startswith(NEVER_SENT))
    return claim.ok + sum(claim.failed.values()) - never
