"""Makes the record of a trial from what was observed: a pure step after everything has ended.

How: ``Observation`` holds the facts in the order in which they came in (ready, phases, ticks,
samples, trouble). With the engine's measurement of the window the record is complete. Without one
it is made from the last ticks (``unfinished``), is partial, and says why in ``trouble``.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueload import hdr
from trueload.assemble.hosts import clock_bounds_ns, make_hosts
from trueload.assemble.machine import MachineUse, RunProcesses, cpu_speeds, machine_use
from trueload.assemble.observation import HostSample, Observation, PhaseLog
from trueload.assemble.server import (
    allowed_cpus,
    bytes_per_connection,
    make_backends,
    make_server,
    tree_throttled_share,
)
from trueload.assemble.unfinished import NO_COUNTS, last_counts, measure_from_ticks
from trueload.machine.accounting import accounts_for_all, covers
from trueload.protocol import plan
from trueload.protocol.exchange import RequestPlan, WsBroadcastPlan, WsEchoPlan
from trueload.protocol.plan import Generate, Measurement, Ready
from trueload.record import figures
from trueload.record.account import TrialFacts
from trueload.record.accounts import ACCOUNTS
from trueload.record.accounts.generator_times import GENERATOR_TIMES, GeneratorTimes
from trueload.record.accounts.idle import merged_failed
from trueload.record.groups import make_groups
from trueload.record.schema import (
    REDIRECT,
    SCHEMA,
    Connections,
    Generator,
    Record,
    RecordPlan,
    Server,
    Throughput,
    Warmup,
    Window,
)
from trueload.record.throughput import make_tail, make_throughput
from trueload.request.redact import redact_headers, redact_url
from trueload.units import NS_PER_S
from trueload.verdict import judge
from trueload.verdict.slots import jain_index, starvation_ns, starved
from trueload.verdict.weighed import requests_in_unit

MEANINGFUL_CONNECTIONS = 1_000
AS_MEASURED = (
    *("refill", "coalesced_ns", "start_skew_ns", "saturation", "peak_rss_bytes", "lateness"),
)
REFUSED = "connect.refused"
NO_THROUGHPUT = Throughput.model_construct(ok_per_s=None, bytes_in_per_s=None, bytes_out_per_s=None)


def make_record(seen: Observation) -> Record:
    """Return the record, with its checks and verdict."""
    return judge(make_unjudged(seen))


def make_unjudged(seen: Observation) -> Record:
    """Return the record without checks."""
    window = seen.phase(seen.window.id)
    measured = window.measurement or measure_from_ticks(window, seen)
    if seen.joined is not None:
        measured = with_joining(measured, seen.joined)
    complete = window.measurement is not None
    machine = _machine(seen, measured)
    handshakes = hdr.added(each.histograms.handshake for each in seen.measurements())
    throughput = _throughput(seen, measured)
    facts = _facts(seen, measured, complete, throughput)
    accounts = {name: each.made(facts) for name, each in ACCOUNTS.items()}
    generator = _generator(seen, measured, complete, accounts[GENERATOR_TIMES.name], machine)
    hosts = make_hosts(seen, generator, make_unjudged)
    record = Record(
        schema=SCHEMA,
        id=seen.id,
        started_at=seen.started_at,
        plan=RecordPlan(
            url=redact_url(seen.url),
            generate=_redacted(seen.generate),
            warmup=seen.warmup,
            window=seen.window,
            claim=seen.claim,
            payload_bytes=seen.payload_bytes,
        ),
        partial=_is_partial(seen, measured, complete),
        verdict="invalid",
        checks=(),
        counts=measured.counts,
        warmup=_warmup(seen),
        throughput=throughput,
        connect_ns=figures.complete(measured.histograms.connect).figures,
        histograms=measured.histograms.model_copy(update={"handshake": handshakes}),
        connections=_connections(seen, measured, complete),
        slots=measured.slots if complete else None,
        series=measured.series,
        generator=generator,
        server=_server(seen, measured, machine),
        hosts=hosts,
        groups=make_groups(hosts),
        environment=seen.environment,
        window=_window(seen, measured, machine),
        trouble=seen.trouble,
        handshake_ns=figures.complete(handshakes).figures,
        cpu_distance=seen.cpu_distance,
        cpu_speeds=cpu_speeds(seen),
        round_trip_ns=figures.complete(measured.histograms.round_trip).figures,
        tail=make_tail(measured, seen.window),
        **accounts,
    )
    return figures.with_figures(record)


def _facts(
    seen: Observation, measured: Measurement, complete: bool, throughput: Throughput
) -> TrialFacts:
    return TrialFacts(
        window=measured,
        generate=seen.generate,
        complete=complete,
        warmup=seen.phase(seen.warmup.id).measurement if seen.warmup else None,
        phases=seen.measurements(),
        ready=seen.ready,
        target_urls=seen.target_urls,
        origin_urls=seen.origin_urls,
        steps=seen.steps,
        ok_per_s=throughput.ok_per_s,
        # By how much times from one host to another are wrong at most; None without such times.
        clock_bound_ns=max(clock_bounds_ns(seen.hosts), default=seen.clock_bound_ns),
    )


def with_joining(measured: Measurement, joined: Measurement) -> Measurement:
    """Return a window's measurement with the connection figures of the phase before it.

    In that phase the window's connections were set up and nothing was sent.
    """
    before, after = joined.connections, measured.connections
    connections = after.model_copy(
        update={
            "failed": before.failed,
            "set_up_ns": before.set_up_ns,
            "dropped": before.dropped + after.dropped,
            "reasons": {**after.reasons, **before.reasons},
        }
    )
    histograms = measured.histograms.model_copy(update={"connect": joined.histograms.connect})
    return measured.model_copy(update={"connections": connections, "histograms": histograms})


def _window(seen: Observation, measured: Measurement, machine: MachineUse | None) -> Window:
    return Window(
        window_ns=measured.window_ns,
        drain_ns=measured.drain_ns,
        connect_wall_s=seen.connect_wall_s,
        wall_s=seen.wall_s,
        host_idle_share=machine.idle if machine else None,
        others_share=machine.others if machine else None,
        stolen_share=machine.stolen if machine else None,
    )


def is_lost(seen: Observation) -> bool:
    """Whether a host was lost, or one of several had trouble.

    The rate of the other hosts is then not that of the load that was asked for.
    """
    return seen.trouble is not None and (seen.trouble.kind == "lost" or seen.several_hosts)


def _is_partial(seen: Observation, measured: Measurement, complete: bool) -> bool:
    """Whether less was measured than was planned.

    A trial without a single connection failed as a whole: nothing of it was cut short.
    """
    if seen.interrupted or seen.trouble is not None:
        return True
    if any(report.lost for report in seen.hosts):
        return True
    if seen.resolve_failed or (seen.ready is not None and seen.ready.established == 0):
        return False
    return measured.partial or not complete


def _warmup(seen: Observation) -> Warmup:
    log = PhaseLog() if seen.warmup is None else seen.phase(seen.warmup.id)
    if log.measurement is not None:
        wall_ns = log.measurement.window_ns + log.measurement.drain_ns
        return Warmup(
            counts=log.measurement.counts,
            wall_s=wall_ns / NS_PER_S,
            reconnects=log.measurement.connections.reconnects,
            dropped=log.measurement.connections.dropped,
        )
    if log.first is None or log.last is None:
        return Warmup(counts=NO_COUNTS, wall_s=0.0)
    first_ns = log.first.at_ns if log.started_ns is None else log.started_ns
    wall_ns = log.last.at_ns - first_ns
    return Warmup(counts=last_counts(log.last), wall_s=wall_ns / NS_PER_S)


def _throughput(seen: Observation, measured: Measurement) -> Throughput:
    if is_lost(seen) or measured.window_ns <= 0:
        return NO_THROUGHPUT
    found = measured.histograms
    took = figures.complete(found.total or found.service).figures
    return make_throughput(measured, seen.window, seen.warmup, took)


def _connections(seen: Observation, measured: Measurement, complete: bool) -> Connections:
    found, slots = measured.connections, measured.slots
    threshold_ns = starvation_ns(figures.latency(measured).percentile(0.5))
    jain = jain_index(slots.asked, slots.answers_sum, slots.answers_sum_squares)
    unit = requests_in_unit(measured)
    ready = seen.ready
    nothing_there = ready is not None and ready.established == 0
    known = complete or nothing_there or seen.resolve_failed
    refused = complete and is_nobody_there(seen.measurements())
    reasons = {**found.reasons, **(ready.reasons if ready else {})}
    return Connections(
        **found.model_dump(include={"requested", "reconnects", "dropped", "unended"}),
        established=0 if refused else found.established,
        failed={REFUSED: found.requested} if refused else merged_failed(ready, seen.steps),
        idle_closed=found.idle_closed.count,
        idle_closed_after_ns=found.idle_closed.after_ns if found.idle_closed.count else None,
        starved=starved(slots, found.reconnects, threshold_ns, unit) if complete else None,
        jain=jain if complete else None,
        least_ok=slots.answers_min if complete and slots.asked else None,
        most_ok=slots.answers_max if complete and slots.asked else None,
        down=found.down if known else None,
        outages=found.outages if known else None,
        outage_ns=found.outage_ns if known else None,
        family=found.family or _family(ready),
        address=ready.address if ready else None,
        connect_rate_per_s=_per_s(ready.established, ready.set_up_ns) if ready else None,
        reasons={name: _without_secrets(why) for name, why in reasons.items()},
        server_files=seen.server_files,
    )


def _without_secrets(why: str) -> str:
    """A reason of the engine's, without secrets in the URL that a redirect leads to."""
    before, found, url = why.partition(REDIRECT)
    return before + found + redact_url(url) if found else why


def is_nobody_there(phases: Sequence[Measurement]) -> bool:
    """Whether no datagram server was there at all: datagrams were refused, and none came back.

    Connecting a datagram socket sends nothing to the peer, so only received data shows that the
    connection is usable. If nothing is refused, the server may be silent.
    """
    sent = [each for each in phases if each.datagrams is not None]
    refused = any(each.counts.failed.get(REFUSED) for each in sent)
    received = (each.bytes_in or (each.datagrams and each.datagrams.unsolicited) for each in sent)
    return refused and not any(received)


def _family(ready: Ready | None) -> str | None:
    if ready is None or ready.address is None:
        return None
    if ready.address.startswith("unix:"):
        return "unix"
    return "ipv6" if ready.address.startswith("[") else "ipv4"


def _generator(
    seen: Observation,
    measured: Measurement,
    complete: bool,
    own_times: GeneratorTimes,
    machine: MachineUse | None,
) -> Generator:
    found, ready = measured.generator, seen.ready
    cpu_s = found.cpu_ns / NS_PER_S
    window_s = measured.window_ns / NS_PER_S
    own = {name: getattr(found, name) if complete else None for name in AS_MEASURED}
    return Generator(
        **own,
        driver=found.driver if complete else (ready.driver or None) if ready else None,
        driver_note=found.driver_note if complete else ready.driver_note if ready else None,
        spin_ns=seen.generate.spin_ns,
        spun_s=found.spun_ns / NS_PER_S if complete else None,
        threads=found.threads if complete else seen.generate.threads,
        cpus=found.cpus if complete else seen.generate.cpus,
        allowed_cpus=seen.engine_cpus,
        cpu_s=cpu_s if complete else None,
        cpu_share=cpu_s / window_s if complete and window_s > 0 else None,
        bytes_per_connection=_bytes_per_connection(ready),
        send_lag_p99_ns=own_times.send.p99 if own_times.send else None,
        throttled_share=_throttled_share(seen, found),
        waited=machine.generator if machine else None,
    )


def _throttled_share(seen: Observation, found: plan.Generator) -> float | None:
    """The share of the window in which a CPU limit stopped the engines."""
    if not seen.is_here:
        return None if found.machine is None else found.machine.throttled
    if seen.before is None or seen.after is None:
        return None
    return tree_throttled_share(seen.before.engine, seen.after.engine)


def _per_s(count: int, ns: int) -> float | None:
    return count * NS_PER_S / ns if count and ns else None


def _bytes_per_connection(ready: Ready | None) -> float | None:
    if ready is None or ready.established < MEANINGFUL_CONNECTIONS or not ready.grown_bytes:
        return None
    return ready.grown_bytes / ready.established


def _server(seen: Observation, measured: Measurement, machine: MachineUse | None) -> Server | None:
    window_ns = measured.window_ns
    if seen.before is None or seen.after is None or seen.server_source is None:
        return None
    before, after = seen.before.server, seen.after.server
    if before is None or after is None or not (before.processes or after.processes):
        return None
    if not covers(before.at_ns, after.at_ns, window_ns) or not accounts_for_all(before, after):
        return None
    connections = max(measured.connections.established, seen.most_connections)
    each = bytes_per_connection(seen.idle_server, after, connections)
    found = make_server(seen.server_source, before, after, window_ns, each)
    peers = make_backends(seen.peers, seen.before.processes, seen.after.processes)
    waited = machine.server if machine else None
    return found.model_copy(update={"waited": waited, "backends": peers})


def _machine(seen: Observation, measured: Measurement) -> MachineUse | None:
    """The use of the machine that the engine ran on.

    The front sampled it if the engine ran here. Elsewhere the engine did. It cannot tell a server
    of ours on the same host from other processes, so there is no figure in that case.
    """
    if not seen.is_here:
        found = measured.generator.machine
        if found is None or seen.server_place == seen.place:
            return None
        return MachineUse(found.idle, found.others, found.stolen)
    first, last = seen.before, seen.after
    if first is None or last is None:
        return None
    if not covers(first.machine.at_ns, last.machine.at_ns, measured.window_ns):
        # A front that could not sample in time falls back to before the warm-up, which is as busy.
        first = seen.earliest or first
    return machine_use(first, last, _ours(seen, first, last), see_all=seen.sees_all)


def _ours(seen: Observation, first: HostSample, last: HostSample) -> RunProcesses:
    """The run's own processes.

    These are the front, whose children include engine and runner, the server, and the processes
    that it works with.
    """
    servers = [sample for sample in (first.server, last.server) if sample is not None]
    if seen.server_place is not None:
        servers = []  # another host's process ids mean other processes here
    pids = {seen.front_pid, *seen.peers}.union(*(sample.pids for sample in servers))
    hidden = seen.may_be_here and not servers and not seen.peers
    return RunProcesses(pids, seen.engine_cpus, allowed_cpus(*servers), hidden)


def _redacted(generate: Generate) -> Generate:
    """Return the plan without secrets."""

    def redacted(request: RequestPlan) -> RequestPlan:
        path, headers = redact_url(request.path), redact_headers(request.headers)
        return request.model_copy(update={"path": path, "headers": headers})

    targets = tuple(
        target.model_copy(update={"request": redacted(target.request)})
        for target in generate.targets
    )
    steps = tuple(
        step.model_copy(update={"request": redacted(step.request)}) for step in generate.scenario
    )
    request = None if generate.request is None else redacted(generate.request)
    exchange = generate.exchange
    if isinstance(exchange, WsEchoPlan | WsBroadcastPlan):
        exchange = exchange.model_copy(update={"opening": redacted(exchange.opening)})
    return generate.model_copy(
        update={"request": request, "targets": targets, "scenario": steps, "exchange": exchange}
    )
