"""Makes the record of a trial of a client from what both ends reported about one order. Pure.

How: the client takes the generator's place. Its process tree is the record's ``generator``, and our
reference server is the ``server``. Times are the server's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from trueload.assemble.machine import MachineUse, RunProcesses, machine_use
from trueload.assemble.observation import HostSample
from trueload.assemble.server import allowed_cpus, make_server, over_window, tree_throttled_share
from trueload.assemble.unfinished import NO_COUNTS, NO_HISTOGRAMS
from trueload.machine.accounting import ServerUsage, TreeSample, usage
from trueload.protocol.client import Claim
from trueload.protocol.engine_options import CONNECT_RATE_PER_S
from trueload.protocol.exchange import ExpectPlan, RequestPlan
from trueload.protocol.flow import Flow
from trueload.protocol.plan import Closed, Generate, Phase, Requests
from trueload.protocol.server_report import ServerReport
from trueload.protocol.sums import add_counts
from trueload.protocol.tick import Counts, Second
from trueload.record.client import ClientTask, interval_ns, make_client_end, took_ns
from trueload.record.schema import (
    SCHEMA,
    Connections,
    CoreLatency,
    Environment,
    Generator,
    Host,
    Record,
    RecordPlan,
    Server,
    Throughput,
    Warmup,
    Window,
)
from trueload.units import NS_PER_MS, NS_PER_S
from trueload.verdict import judge


@dataclass(frozen=True)
class EndSample:
    """Samples of the machine, the client's process tree and our server's, at one moment."""

    host: HostSample
    client: TreeSample


@dataclass(frozen=True, kw_only=True)
class ClientObservation:
    """Everything that was seen of one order.

    `wall_s` is how long we waited for its claim, and `ready_wall_s` how long the client took to be
    ready. `warmup` holds the claims of the orders before. `cpus` are the client's CPUs.
    `server_cpus` are the CPUs that the server's threads are pinned to, empty for all.
    """

    id: str
    started_at: str
    asked: ClientTask
    claim: Claim
    seen: ServerReport
    warmup: Sequence[Claim]
    before: EndSample
    after: EndSample
    wall_s: float
    ready_wall_s: float
    cpus: tuple[int, ...]
    server_cpus: tuple[int, ...]
    front_pid: int
    environment: Environment
    cpu_distance: CoreLatency | None = None


def make_client_record(found: ClientObservation) -> Record:
    """Return the record, with its checks and verdict."""
    client = usage(found.before.client, found.after.client)
    machine = _machine(found)
    generator = _generator(found, client, machine)
    counts = _counts(found.asked.requests, [found.claim])
    order_ns = round(found.wall_s * NS_PER_S)
    end = make_client_end(found.asked, found.claim, found.seen, client.cpu_s, order_ns)
    record = Record(
        schema=SCHEMA,
        id=found.id,
        started_at=found.started_at,
        plan=_plan(found),
        partial=False,
        verdict="invalid",
        checks=(),
        counts=counts.model_copy(update={"statuses": found.seen.statuses}),
        warmup=_warmup(found),
        throughput=_throughput(found.seen, order_ns),
        histograms=NO_HISTOGRAMS,
        connections=_connections(found),
        series=_series(found.seen),
        generator=generator,
        server=_server(found, machine),
        hosts=(Host(place="local", generator=generator, environment=found.environment),),
        environment=found.environment,
        window=Window(
            window_ns=interval_ns(found.seen),
            drain_ns=0,
            connect_wall_s=found.ready_wall_s,
            wall_s=found.wall_s,
            host_idle_share=machine.idle,
            others_share=machine.others,
            stolen_share=machine.stolen,
        ),
        client=end,
        cpu_distance=found.cpu_distance,
        flow=_flow(found.seen),
    )
    return judge(record)


def _plan(found: ClientObservation) -> RecordPlan:
    """Return the client's orders as a generator's plan.

    The client decides for itself how fast it connects.
    """
    asked, setup = found.asked, found.asked.setup
    url = urlsplit(setup.url)
    generate = Generate(
        addresses=(url.netloc,),
        local_addresses=(),
        request=RequestPlan(method="GET", path=url.path, headers=(), body_sha256=None),
        expect=ExpectPlan(statuses=(200,), body_sha256=None),
        connections=asked.room,
        pipeline=setup.pipelining,
        close=not setup.keep_alive,
        threads=len(found.cpus) or 1,
        cpus=found.cpus,
        timeout_ns=setup.timeout_ms * NS_PER_MS,
        connect_rate_per_s=CONNECT_RATE_PER_S,
    )
    warmup = _phase("warmup", asked.warmup_requests) if asked.warmup_requests else None
    return RecordPlan(
        url=setup.url, generate=generate, warmup=warmup, window=_phase("window", asked.requests)
    )


def _phase(name: str, requests: int) -> Phase:
    return Phase(
        id=name, load=Closed(), connections=None, stop=Requests(count=requests), at_ns=None
    )


def _counts(asked: int, claims: Sequence[Claim]) -> Counts:
    """Return the counts that the client claims; the audit checks whether they add up."""
    failed = add_counts(claim.failed for claim in claims)
    return NO_COUNTS.model_copy(
        update={
            "scheduled": asked,
            "issued": asked,
            "ok": sum(claim.ok for claim in claims),
            "failed": {name: count for name, count in failed.items() if count},
        }
    )


def _warmup(found: ClientObservation) -> Warmup:
    return Warmup(
        counts=_counts(found.asked.warmup_requests, found.warmup),
        wall_s=sum(claim.elapsed_s for claim in found.warmup),
    )


def _throughput(seen: ServerReport, order_ns: int) -> Throughput:
    """The rates over the whole order, with in and out as seen from the client."""
    if interval_ns(seen) <= 0:
        return Throughput(ok_per_s=None, bytes_in_per_s=None, bytes_out_per_s=None)
    took_s = took_ns(seen, order_ns) / NS_PER_S
    return Throughput(
        ok_per_s=seen.ok / took_s,
        bytes_in_per_s=seen.bytes_out / took_s,
        bytes_out_per_s=seen.bytes_in / took_s,
    )


def _connections(found: ClientObservation) -> Connections:
    """The connections that fit into the pools, the server's peak, and those opened in the order."""
    seen = found.seen
    return Connections(
        requested=found.asked.room,
        established=seen.connections.peak,
        failed={},
        reconnects=seen.accepted,
        family="ipv4",
        address=urlsplit(found.asked.setup.url).netloc,
    )


def _series(seen: ServerReport) -> tuple[Second, ...]:
    """The answers by second, from the first request on."""
    began_ns = seen.first_request_ns
    if began_ns is None:
        return ()
    seconds: dict[int, int] = {}
    for span in seen.series:
        if span.answered:
            t_s = max(0, span.began_ns - began_ns) // NS_PER_S
            seconds[t_s] = seconds.get(t_s, 0) + span.answered
    return tuple(
        Second(t_s=t_s, ok=count, failed=0, latency={}) for t_s, count in sorted(seconds.items())
    )


def _flow(seen: ServerReport) -> Flow | None:
    """The answers by span, for spans that lie whole between first request and last answer."""
    began_ns, ended_ns = seen.first_request_ns, seen.last_answer_ns
    if began_ns is None or ended_ns is None:
        return None
    whole = [
        span
        for span in seen.series
        if span.ns == seen.span_ns and began_ns <= span.began_ns <= ended_ns - span.ns
    ]
    if not whole:
        return None
    places = {(span.began_ns - whole[0].began_ns) // seen.span_ns: span.answered for span in whole}
    answered = tuple(places.get(place, 0) for place in range(max(places) + 1))
    return Flow(
        whole_ns=len(answered) * seen.span_ns,
        part_ns=seen.span_ns,
        answered=answered,
        gaps={},
        backlog=None,
    )


def _generator(found: ClientObservation, used: ServerUsage, machine: MachineUse) -> Generator:
    took_s = interval_ns(found.seen) / NS_PER_S
    return Generator(
        driver=None,
        threads=used.threads,
        cpus=found.cpus,
        allowed_cpus=allowed_cpus(found.before.client, found.after.client),
        cpu_s=used.cpu_s,
        cpu_share=used.cpu_s / took_s if took_s > 0 else None,
        saturation=over_window(used, interval_ns(found.seen)),
        peak_rss_bytes=used.peak_rss_bytes,
        send_lag_p99_ns=None,
        throttled_share=tree_throttled_share(found.before.client, found.after.client),
        waited=machine.generator,
    )


def _server(found: ClientObservation, machine: MachineUse) -> Server:
    before, after = found.before.host.server, found.after.host.server
    assert before is not None
    assert after is not None
    server = make_server("started", before, after, interval_ns(found.seen))
    cpus = found.server_cpus or server.allowed_cpus
    return server.model_copy(update={"allowed_cpus": cpus, "waited": machine.server})


def _machine(found: ClientObservation) -> MachineUse:
    first, last = (
        replace(sample.host, engine=sample.client) for sample in (found.before, found.after)
    )
    trees = (found.before.client, found.after.client, first.server, last.server)
    pids = {found.front_pid}.union(*(tree.pids for tree in trees if tree is not None))
    clients = allowed_cpus(found.before.client, found.after.client)
    servers = [tree for tree in (first.server, last.server) if tree is not None]
    cpus = found.server_cpus or allowed_cpus(*servers)
    return machine_use(first, last, RunProcesses(pids, clients, cpus), see_all=True)
