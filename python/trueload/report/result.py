"""The short result of a command: a few lines of plain text. Pure.

It shows what was measured and the doubts about it: throughput, latency, failures by class, both
ends' CPU, the checks that warn or fail, and the verdict. An unknown percentile, whose rank falls
among requests without a time, is shown as ``> X``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trueload.protocol.plan import Closed, Duration, LoadPlan, Open, Requests, Stage, Turns
from trueload.protocol.tick import Counts
from trueload.record import figures
from trueload.record.bound import at_least, estimate_text, middle_estimate, verdict_text
from trueload.record.certainty import usable_text
from trueload.record.client import ClientEnd
from trueload.record.core_latency import moved_text
from trueload.record.memory import growth_text
from trueload.record.schema import REPORTED_STATUSES, Check, Record
from trueload.repetitions import coefficient_of_variation, interval, median
from trueload.report.accounts import following
from trueload.report.accounts.idle import idle_text
from trueload.report.accounts.tls import tls_text
from trueload.report.client_result import busy_text, by_count, client_headline, client_lines
from trueload.report.quantile import quantile_text
from trueload.report.times import brief_text, times_text
from trueload.report.tls import failure_reasons
from trueload.text import APART, REASON_LINES, folded, labelled, plain
from trueload.units import (
    TOO_FEW,
    Ramp,
    counted,
    format_count,
    format_duration,
    format_rate,
    format_share,
    format_size,
    format_span,
    format_stages,
)
from trueload.verdict import (
    generator_shares,
    is_lower_bound,
    offered_per_s,
    sent_per_s,
    worst_checks,
)
from trueload.verdict.common import in_flight, times
from trueload.verdict.limit import bottleneck_text
from trueload.verdict.slots import idle_closed_text
from trueload.verdict.throttling import throttled_text
from trueload.verdict.window import ANSWERS_WARN

HOSTS_NAMED = 3
TAIL_SHOWN_FROM = 0.05  # of the time that counts: less would not show in a rate over the whole


def result_lines(record: Record, *, whole: bool = False) -> list[str]:
    """Return the lines to show of a trial; ``whole`` leaves out and cuts off nothing."""
    if record.client is not None:
        return _of_client(record, record.client, whole=whole)
    lines: list[str] = []
    for label, text in trial_texts(record, whole=whole):
        lines += labelled(label, text)
        for account in following(label):
            lines += account.block(record)
            for own, words in account.shown(record):
                lines += labelled(own, words)
    return _with_verdict(_headline(record), lines, record.verdict_text, [record], whole=whole)


def trial_texts(record: Record, *, whole: bool = True) -> Iterator[tuple[str, str]]:
    """Yield labels and texts of what every trial has; accounts follow them.

    Without ``whole``, what only repeats another line is left out.
    """
    is_open = isinstance(record.plan.window.load, Open)
    yield "throughput", _throughput(record)
    yield "tail", tail_text(record)
    yield "rate", rate_text(record)
    # Two times only if they can differ: from the schedule, and from the send.
    yield "response" if is_open else "latency", latency_text(record)
    yield "", generator_share_text(record)
    if is_open:
        brief = _brief_times(figures.service(record))
        yield "service", service_text(record) if whole else brief
    yield "connections", connections_text(record) if whole else ""
    outcomes, alike = _outcomes(record.counts, record.http2 is not None), _one_status(record.counts)
    yield "requests", f"{outcomes}, each with status {alike}" if alike else outcomes
    yield "failures", by_count(record.counts.failed)
    yield "statuses", "" if alike else by_count(record.counts.statuses)
    yield "reasons", failure_reasons(record)
    yield "warm-up", _warmup(record)
    yield "set-up", _set_up(record)
    yield "idle ends", idle_closed_text(record)
    yield "CPU", _cpu(record)
    yield "bottleneck", bottleneck_text(record)
    yield "CPU limit", _throttled(record)
    yield "memory", growth_text(record.server)
    yield "driver", _driver(record)
    yield "moved", moved_text([record.cpu_distance])
    yield "partial", _partial(record)
    yield "usable", usable_text(record)


def _of_client(record: Record, client: ClientEnd, *, whole: bool) -> list[str]:
    """Return the lines of one trial of a client."""
    lines = [line for label, text in client_lines(record, client) for line in labelled(label, text)]
    head = client_headline(record, client)
    return _with_verdict(head, lines, record.verdict_text, [record], whole=whole)


def _with_verdict(
    head: str, lines: Sequence[str], verdict: str, records: Sequence[Record], *, whole: bool = False
) -> list[str]:
    """Return headline, verdict with its reasons, and figures."""
    reasons = reason_lines(verdict_lines(records), whole=whole)
    after = [""] if reasons else []
    return [*folded(head, indent="  "), "", *labelled("verdict", verdict), *reasons, *after, *lines]


def reason_lines(reasons: Iterable[str], *, whole: bool = False) -> list[str]:
    """Return the reasons of a verdict as they are shown, each in at most two lines."""
    return [line for reason in reasons for line in folded(reason, None if whole else REASON_LINES)]


def repeated_lines(records: Sequence[Record]) -> list[str]:
    """Return one line for each of several trials, then the median."""
    lines = []
    for number, record in enumerate(records, start=1):
        per_s = record.throughput.ok_per_s
        rate = "nothing measured" if per_s is None else format_rate(per_s, "requests")
        latency = figures.latency(record).figures
        times = "" if latency.max is None else brief_text(latency, between=APART)
        shown = [part for part in (rate, times, record.verdict) if part]
        lines += labelled(f"trial {number}", "   ".join(shown))
    lines += labelled("throughput", _median_throughput(records))
    lines += labelled("reasons", failure_reasons(records[-1]))
    lines += labelled("TLS", tls_text(records[-1]))
    lines += labelled("moved", moved_text(record.cpu_distance for record in records))
    verdicts = {record.verdict for record in records}
    worst = next(name for name in ("invalid", "suspect", "valid") if name in verdicts)
    verdict = verdict_text(worst, is_lower_bound(worst_checks(records)))
    return _with_verdict(_headline(records[0]), lines, verdict, records)


def verdict_lines(records: Sequence[Record]) -> list[str]:
    """Return the checks that fail, warn or bound, each with its reason, the worst first."""
    found = [check for check in worst_checks(records) if check.status in REPORTED_STATUSES]
    return check_lines(
        sorted(found, key=lambda check: REPORTED_STATUSES.index(check.status), reverse=True)
    )


def check_lines(checks: Iterable[Check]) -> list[str]:
    """Return such lines for any checks: ``  warn noise: other processes took …``."""
    return [
        f"  {check.status} {check.name}: {plain(check.why)}"
        for check in checks
        if check.status in REPORTED_STATUSES
    ]


def latency_text(record: Record) -> str:
    """A text: ``p50 0.42 ms   p99 > 5.00 s   max of answers 5.00 s``; empty if all failed."""
    return _times(figures.latency(record))


def service_text(record: Record) -> str:
    """The latencies from the actual send: an unsent request has no service time."""
    return _times(figures.service(record))


def connections_text(record: Record) -> str:
    """The mean service time over connections; empty for a single connection."""
    found = record.connection_service_ns
    if found.count < 2 or found.max is None:
        return ""
    parts = [f"{name} {quantile_text(found.at(name))}" for name in ("p50", "p90")]
    return "   ".join(["mean time of each:", *parts, f"max {format_duration(found.max)}"])


def generator_share_text(record: Record) -> str:
    """A text: ``generator's part  140 us of p50 293 us   …``; empty if unknown."""
    shares = "   ".join(part.sentence() for part in generator_shares(record))
    return f"generator's part  {shares}" if shares else ""


def _times(sample: figures.Sample) -> str:
    return times_text(sample.figures, most=_most(sample))


def _brief_times(sample: figures.Sample) -> str:
    found = sample.figures
    if found.max is None:
        return ""
    return APART.join(
        (brief_text(found, between=APART), f"{_most(sample)} {format_duration(found.max)}")
    )


def _most(sample: figures.Sample) -> str:
    """Return the name of the slowest answer's time.

    With few answers it says nothing about others. A bare "max" would pass for the maximum of all
    requests.
    """
    of = sample.figures.largest_of
    if of is not None:
        return f"largest of {format_count(of)}{' answers' if sample.slower else ''}"
    return "max of answers" if sample.slower else "max"


def rate_text(record: Record) -> str:
    """A text: ``offered 20,000 requests/s, sent 12,345/s``; empty unless an open loop.

    A number of sessions lasts until the last one ends, so that only their rate is known. The same
    holds where sessions open connections: each has several requests.
    """
    window_ns = record.window.window_ns
    load = record.plan.window.load
    if not isinstance(load, Open) or window_ns <= 0:
        return ""
    offered, sent = offered_per_s(record), sent_per_s(record)
    of_requests = isinstance(record.plan.window.stop, Requests)
    if record.sessions is not None and (of_requests or record.openings):
        return f"offered {format_rate(load.stages[0].from_, 'sessions')}"
    what, done = ("connections", "tried") if record.openings else ("requests", "sent")
    return f"offered {format_rate(offered, what)}, {done} {format_count(sent)}/s"


def _headline(record: Record) -> str:
    return f"{plain(record.plan.url)}  {load_text(record)}"


def load_text(record: Record) -> str:
    """The load of a trial: ``64 connections, pipeline 10, 10s, after 1s of warm-up``."""
    generate = record.plan.generate
    parts = [times(generate.connections, "connection")]
    if generate.targets:
        of = f" of {len(generate.origins)} origins" if generate.origins else ""
        parts[0] = f"{times(len(generate.targets), 'target')}{of}, {parts[0]}"
    if generate.replay is not None:
        parts[0] = f"replay of {plain(generate.replay.about)}, {parts[0]}"
    if generate.scenario:
        steps = times(len(generate.scenario), "step")
        parts[0] = f"sessions of {steps}, {times(generate.connections, 'user')}"
    if generate.connect_open:
        each = " for sessions" if generate.scenario else ""
        parts[0] = f"new connections{each}, {format_count(generate.connections)} at most at once"
    parts[0] += idle_text(record)
    if generate.close:
        parts[0] += ", one per request" if generate.exchange is None else ", one per message"
    if record.plan.payload_bytes is not None:
        parts.append(f"messages of {format_size(record.plan.payload_bytes)}")
    parts += in_flight(generate)
    parts += _load(record.plan.window.load)
    what = "session" if generate.scenario else "request"
    parts.append(_stop(record.plan.window.stop, what))
    if record.plan.warmup is not None:
        parts.append(f"after {_stop(record.plan.warmup.stop, what)} of warm-up")
    return ", ".join(parts)


def _load(load: LoadPlan) -> list[str]:
    """Return an open loop, or stages, in the form of the options."""
    if isinstance(load, Turns):
        return [f"{load.concurrent} broadcasts in flight"]
    if isinstance(load, Closed):
        return [f"stages {_ramps(load.active)} of connections"] if load.active else []
    if load.arrivals == "recorded":
        return [f"recorded arrivals over {format_duration(sum(each.ns for each in load.stages))}"]
    rates = {value for stage in load.stages for value in (stage.from_, stage.to)}
    if len(rates) > 1:
        return [f"stages {_ramps(load.stages)} of {load.arrivals} arrivals"]
    return [f"{format_rate(rates.pop())} of {load.arrivals} arrivals"]


def _ramps(stages: Sequence[Stage]) -> str:
    return format_stages([Ramp(stage.ns, stage.from_, stage.to) for stage in stages])


def _stop(stop: Duration | Requests, what: str) -> str:
    if isinstance(stop, Duration):
        return format_span(stop.ns)
    return times(stop.count, what)


def _throughput(record: Record) -> str:
    found = record.throughput
    if found.ok_per_s is None or found.bytes_in_per_s is None or found.bytes_out_per_s is None:
        return ""
    bytes_text = (
        f"in {format_size(found.bytes_in_per_s)}/s   out {format_size(found.bytes_out_per_s)}/s"
    )
    if record.counts.ok < ANSWERS_WARN and not isinstance(record.plan.window.load, Turns):
        return f"{times(record.counts.ok, 'answer')}: {TOO_FEW} for a rate"
    rate = at_least(format_rate(found.ok_per_s, "requests"), record.lower_bound)
    estimate = estimate_text(found.estimate_per_s) if record.lower_bound else ""
    return f"{rate}{estimate}   {bytes_text}"


def tail_text(record: Record) -> str:
    """A text: ``the last 1 of 1,000 took 4.0 s more``; empty if counting it would not matter."""
    tail, counted_ns = record.tail, record.throughput.counted_to_ns
    if tail is None or counted_ns is None or tail.ns < TAIL_SHOWN_FROM * counted_ns:
        return ""
    if tail.last >= record.counts.issued:
        return ""
    of = f"{format_count(tail.last)} of {format_count(record.counts.issued)}"
    return f"the last {of} took {format_duration(tail.ns)} more"


def _median_throughput(records: Sequence[Record]) -> str:
    values = [record.throughput.ok_per_s or 0.0 for record in records]
    middle, around = median(values), interval(values)
    if middle is None or around is None:
        return ""
    low, high = format_count(around.low), format_count(around.high)
    bound = is_lower_bound(worst_checks(records))
    rate = at_least(format_rate(middle, "requests"), bound)
    trials = ((each.throughput.estimate_per_s, each.throughput.ok_per_s) for each in records)
    rate += estimate_text(middle_estimate(trials)) if bound else ""
    found = f"median {rate} ({around.kind} {low} to {high})"
    spread = coefficient_of_variation(values)
    return found if spread is None else f"{found}, CV {format_share(spread)}"


def _warmup(record: Record) -> str:
    """The failures of the warm-up, as the figures above leave the warm-up out."""
    counts = record.warmup.counts
    if not (counts.failed or counts.cancelled):
        return ""
    outcomes = _outcomes(counts, record.http2 is not None)
    return ", ".join(part for part in (outcomes, by_count(counts.failed)) if part)


def _outcomes(counts: Counts, is_http2: bool) -> str:
    failed = figures.failed(counts)
    parts = [f"{format_count(counts.ok)} ok"]
    if failed and counts.issued:
        parts.append(f"{format_count(failed)} failed ({format_share(failed / counts.issued)})")
    for count, what in (
        (counts.cancelled, "open at the end"),
        (counts.unsent, "never sent"),
        (counts.stale, _stale(counts, is_http2)),
    ):
        if count:
            parts.append(f"{format_count(count)} {what}")
    return ", ".join(parts)


def _one_status(counts: Counts) -> str:
    """The status of all answers; empty if they have several, or none."""
    names = [name for name, count in counts.statuses.items() if count == counts.ok > 0]
    return plain(names[0]) if len(counts.statuses) == len(names) == 1 else ""


def _stale(counts: Counts, is_http2: bool) -> str:
    # Over HTTP/2 a connection may go on, and the server says which requests it has not begun.
    why = ", as the server had not begun them" if is_http2 else " after a stale connection"
    what = f"sent again{why}"
    resets = counts.stale_resets
    return f"{what} ({format_count(resets)} by a reset)" if resets else what


def _set_up(record: Record) -> str:
    """The cost of connections, if there are so many that it matters."""
    per_s, each = record.connections.connect_rate_per_s, record.generator.bytes_per_connection
    if per_s is None or each is None:
        return ""
    count, size = record.connections.established, format_size(each)
    return f"{counted(count, 'connection')} at {format_rate(per_s)}, {size} of memory each"


def _cpu(record: Record) -> str:
    parts = []
    generator, server = record.generator, record.server
    if generator.cpu_s is not None and generator.cpu_share is not None:
        parts.append(f"generator {generator.cpu_s:.2f} s{busy_text(generator.saturation)}")
    if server is not None:
        peak = f", peak {format_size(server.peak_rss_bytes)}" if server.peak_rss_bytes else ""
        parts.append(f"server {server.cpu_s:.2f} s{busy_text(server.saturation)}{peak}")
    return "   ".join(parts)


def _throttled(record: Record) -> str:
    """The effect of the server's CPU limit; empty if it had none."""
    found = record.server.throttled_share if record.server is not None else None
    return throttled_text("the server", found) if found else ""


def _driver(record: Record) -> str:
    """The driver, if it is not the one that was asked for."""
    asked, found = record.plan.generate.driver, record.generator
    if found.driver is None or asked in ("auto", found.driver):
        return ""
    return plain(f"{found.driver} ({found.driver_note})")


def _partial(record: Record) -> str:
    if not record.partial:
        return ""
    if record.trouble is not None:
        return plain(record.trouble.what)
    if lost := [plain(host.place) for host in record.hosts if host.lost is not None]:
        return f"without {', '.join(lost[:HOSTS_NAMED])}{', …' if lost[HOSTS_NAMED:] else ''}"
    return f"interrupted after {format_duration(record.window.window_ns)}"
