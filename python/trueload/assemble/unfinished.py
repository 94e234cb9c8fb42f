"""What is known of a phase that left no measurement, as when the engine died: its ticks. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from trueload.assemble.observation import Observation, PhaseLog
from trueload.protocol import connections, plan
from trueload.protocol.plan import Histograms, Measurement, Requests
from trueload.protocol.tick import Counts, Tick
from trueload.stats import encode_histogram, merge_sparse

NO_HISTOGRAMS = Histograms.model_construct(
    latency=None, service=None, connect=None, first_byte=None, total=None
)
NO_COUNTS = Counts.model_construct(
    scheduled=0, unsent=0, issued=0, ok=0, stale=0, cancelled=0, failed={}, statuses={}
)
# Placeholders for a phase that left no measurement; the record has null in their place.
NO_CONNECTIONS = connections.Connections.model_construct(
    requested=0, established=0, reconnects=0, down=0, outage_ns=0, outages=0, family=""
)
NO_SLOTS = connections.Slots.model_construct(
    asked=0,
    never_answered=0,
    answers_sum=0,
    answers_sum_squares=0,
    answers_min=0,
    answers_max=0,
    long_waits_ns=(),
    permitted_ns=0,
)
NO_GENERATOR = plan.Generator.model_construct(
    driver="", threads=0, cpus=(), cpu_ns=0, saturation=0.0, peak_rss_bytes=0
)


def charge(failed: Mapping[str, int], requests: int) -> dict[str, int]:
    """Charge requests with the failures of the connections they would have needed.

    Each class gets its share, rounded down. The classes with the largest remainders get one more
    each, so that the sum is ``requests``.
    """
    total = sum(failed.values())
    if total == 0:
        return {}
    shares = {name: count * requests // total for name, count in failed.items()}
    by_remainder = sorted(failed, key=lambda name: -(failed[name] * requests % total))
    for name in by_remainder[: requests - sum(shares.values())]:
        shares[name] += 1
    return {name: count for name, count in sorted(shares.items()) if count}


def measure_from_ticks(log: PhaseLog, seen: Observation) -> Measurement:
    """Return what is known of a phase that left no measurement.

    Requests that were open at the engine's last tick count as cancelled.
    """
    last = log.last
    counts = last_counts(last) if last else _counts_without_phase(seen)
    last_ns = last.at_ns if last else 0
    started_ns = last_ns if log.started_ns is None else log.started_ns
    stopped_ns = last_ns if log.stopped_ns is None else log.stopped_ns
    latency = encode_histogram(merge_sparse(log.latencies()))
    return Measurement(
        started_ns=started_ns,
        window_ns=max(0, stopped_ns - started_ns),
        drain_ns=max(0, last_ns - stopped_ns),
        partial=True,
        counts=counts,
        bytes_in=last.bytes_in if last else 0,
        bytes_out=last.bytes_out if last else 0,
        histograms=NO_HISTOGRAMS.model_copy(update={"latency": latency}),
        connections=NO_CONNECTIONS.model_copy(
            update={
                "requested": seen.generate.connections,
                "established": seen.ready.established if seen.ready else 0,
            }
        ),
        slots=NO_SLOTS,
        series=log.bins.seconds(),
        generator=NO_GENERATOR,
    )


def _counts_without_phase(seen: Observation) -> Counts:
    """The counts if nothing was sent: without a connection, or if the trial ended before."""
    if seen.resolve_failed:
        failed = {"dns": seen.generate.connections}
    elif seen.ready is not None and seen.ready.established == 0:
        failed = seen.ready.failed
    else:
        return NO_COUNTS
    stop = seen.window.stop
    requests = stop.count if isinstance(stop, Requests) else seen.generate.connections
    charged = charge(failed, requests)
    issued = sum(charged.values())
    return NO_COUNTS.model_copy(update={"scheduled": issued, "issued": issued, "failed": charged})


def last_counts(tick: Tick) -> Counts:
    counts = tick.counts
    settled = counts.ok + sum(counts.failed.values())
    issued = max(counts.issued, settled)
    return counts.model_copy(
        update={
            "issued": issued,
            "cancelled": issued - settled,
            "unsent": max(0, counts.scheduled - issued),
            "scheduled": max(counts.scheduled, issued),
        }
    )
