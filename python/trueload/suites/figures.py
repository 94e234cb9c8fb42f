"""The figures that tables show: of one repetition, and of several together.

How: of a record only a dozen numbers are kept, so that a run of 10,000 cells needs little memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from trueload import repetitions, stats
from trueload.protocol.client import UNKEPT
from trueload.record import figures as of_record
from trueload.record.account import Account
from trueload.record.accounts import ACCOUNTS
from trueload.record.bound import middle_estimate
from trueload.record.memory import growth_text
from trueload.record.schema import Generator, Record, Server, Verdict
from trueload.record.turn import read_turn
from trueload.suites.client_figures import ClientFigures, client_figures, known
from trueload.suites.client_figures import together as clients_together
from trueload.suites.states import UNKNOWN, State, state_of
from trueload.units import NS_PER_MS
from trueload.verdict import CHECKS, generator_shares
from trueload.verdict.apachebench import ApacheBench

# Checks that fail because of the machine or the generator, not of the subject: another
# repetition can stand in for the one that they spoiled.
MACHINE_CHECKS = frozenset(
    name for name, check in CHECKS.items() if check.fault in ("generator", "machine", "either")
)
# Checks that fail, too, when a disturbance makes the rate uneven.
UNEVEN = frozenset(name for name, check in CHECKS.items() if check.moves.by_delays)

IN_SUITES = tuple(each for each in ACCOUNTS.values() if each.in_suites)

# A search that our own side kept from its result is as if the generator had been the limit.
UNFOUND = {"generator": "generator-limit"}

# Latencies of a table that may lie among requests without a time; the last is of broadcasts.
SHOWN_RANKS = ("p25", "p50", "p75", "p99")
BOUNDED = (*SHOWN_RANKS, "p95")


@dataclass(frozen=True)
class BroadcastCapacity:
    """What one repetition of a broadcast came to, with as many clients as it carried."""

    clients: float
    """The most clients that kept to the limit; 0 if none did."""
    above: float | None
    """The fewest that did not; None if larger loads were not tried, or our side was the limit."""
    deliveries_per_s: float | None
    lost: float | None
    bytes_per_connection: float | None


@dataclass(frozen=True)
class Figures:
    """What one repetition left, or several together."""

    record_id: str
    verdict: Verdict
    failed_checks: tuple[str, ...]
    reasons: tuple[str, ...]
    response_bytes: int | None
    requests: int
    errors: int
    ok_per_s: float | None
    bytes_per_s: float | None
    latency: stats.Distribution
    """In ns. Of several repetitions: the medians, the least and the greatest."""
    latency_at_least: tuple[str, ...]
    """The percentiles that are only lower bounds, because some requests have no time."""
    cpu_share: float | None
    """The subject's CPU time over the window; 1.0 for one CPU."""
    peak_rss_bytes: int | None
    latency_at_most: tuple[str, ...] = ()
    """The percentiles that are only upper bounds, because the generator was paused."""
    latency_too_few: tuple[str, ...] = ()
    """The percentiles that say nothing, because there were too few requests."""
    p50_ours_ms: float | None = None
    """The generator's own part; None where it is not known."""
    p99_ours_ms: float | None = None
    carried: BroadcastCapacity | None = None
    apachebench: ApacheBench | None = None
    client: ClientFigures | None = None
    accounts: Mapping[str, Any] = field(default_factory=dict)
    """What the record keeps of each account that tables of suites show, by name."""
    seq: int = 0
    """The stored row."""
    partial: bool = False
    pair: int | None = None
    """The number of its pair, if it was measured in pairs; ``side`` is its side of that pair."""
    side: str = ""
    lower_bound: bool = False
    """Whether it can carry more."""
    answers: int = 0
    """Requests that have a time."""
    state: State = UNKNOWN
    """The machine's."""
    unlike: str = ""
    """Why the state is not that of most repetitions."""
    remark: str = ""
    """What takes nothing from the figures."""
    ratio: float | None = None
    """Its throughput to that of the reference beside it."""
    estimate_per_s: float | None = None
    """Beside a lower bound: the throughput at the server's limit, by how busy it was."""

    def ms(self, name: str) -> float | None:
        """A figure of the latency by its name, in ms; ``p99_ours`` is the generator's own part."""
        if name.endswith("_ours"):
            own: float | None = getattr(self, f"{name}_ms")
            return own
        return _ms(getattr(self.latency, name))

    @property
    def largest_of(self) -> int | None:
        """How many answers the greatest latency is of, where they are too few to say more."""
        few = stats.is_too_few("p999", self.requests)
        return self.answers if few and self.answers else None

    @property
    def score(self) -> float | None:
        """What rows are ranked by: the clients that a broadcast carried, the throughput of a
        client, else requests per second."""
        if self.client is not None:
            return self.client.goodput_per_s
        return self.ok_per_s if self.carried is None else self.carried.clients


def figures(record: Record, labels: Mapping[str, str], seq: int = 0) -> Figures:
    """The numbers of a row that a table needs. Pure."""
    latency = of_record.latency(record).figures
    died, fault = labels.get("died"), labels.get("fault")
    failed = [check for check in record.checks if check.status == "fail"]
    failed.sort(key=lambda check: check.name in MACHINE_CHECKS)  # the subject's own come first
    warned = [check for check in record.checks if check.status == "warn"]
    noted = failed or warned or [check for check in record.checks if check.status == "bound"]
    reasons = [f"{check.name}: {check.why}" for check in noted]
    if record.trouble is not None:
        reasons.insert(0, record.trouble.what)  # the cause of what the checks found
    unfound = labels.get("unfound")
    if unfound:
        reasons.insert(0, labels.get("result", ""))
    if died:
        reasons.insert(0, f"the subject ended in mid-run: {died}")
    if fault:
        reasons.insert(0, fault)
    window_s, turn = record.window.window_ns / 1e9, read_turn(labels)
    subject = _subject_usage(record)
    ranks = BOUNDED if "clients" in labels else SHOWN_RANKS
    ours_ns = {part.percentile: part.ours_ns for part in generator_shares(record)}
    return Figures(
        record_id=record.id,
        verdict="invalid" if died or fault or unfound else record.verdict,
        failed_checks=(
            *(["died"] if died else []),
            *(["fault"] if fault else []),
            *([UNFOUND.get(unfound, unfound)] if unfound else []),
            *(check.name for check in failed),
        ),
        reasons=tuple(reasons),
        response_bytes=int(labels["response_bytes"]) if "response_bytes" in labels else None,
        requests=record.counts.issued,
        errors=of_record.failed(record.counts),
        ok_per_s=record.throughput.ok_per_s,
        bytes_per_s=record.throughput.bytes_in_per_s,
        latency=latency,
        latency_at_least=tuple(name for name in ranks if latency.at(name).above),
        latency_at_most=tuple(name for name in ranks if latency.at(name).overstated_ns),
        latency_too_few=tuple(name for name in ranks if latency.at(name).too_few),
        cpu_share=_share(subject.cpu_s, window_s) if subject is not None else None,
        peak_rss_bytes=subject.peak_rss_bytes if subject is not None else None,
        p50_ours_ms=_ms(ours_ns.get("p50")),
        p99_ours_ms=_ms(ours_ns.get("p99")),
        carried=_carried(record, labels),
        client=client_figures(record),
        accounts={each.name: getattr(record, each.name) for each in IN_SUITES},
        seq=seq,
        partial=record.partial,
        pair=turn.pair if turn else None,
        side=turn.letter if turn else "",
        lower_bound=record.lower_bound or _is_bounded(record, labels),
        answers=latency.count,
        state=state_of(record),
        remark=growth_text(record.server) or _unkept(record),
        estimate_per_s=record.throughput.estimate_per_s,
    )


def _is_bounded(record: Record, labels: Mapping[str, str]) -> bool:
    """Whether a disturbed trial has at least its throughput."""
    of_server = record.client is None and "clients" not in labels
    bounds = record.bounds if record.verdict == "invalid" and of_server else None
    return bounds is not None and bounds.throughput == "at_least"


def _unkept(record: Record) -> str:
    """A remark on a client that was measured without connections that are kept."""
    client = record.client
    if client is None or client.asked.setup.keep_alive:
        return ""
    return UNKEPT


def _subject_usage(record: Record) -> Server | Generator | None:
    """The subject's process tree: a client stands where the generator does."""
    return record.server if record.client is None else record.generator


def _share(cpu_s: float | None, window_s: float) -> float | None:
    return cpu_s / window_s if cpu_s is not None and window_s > 0 else None


def _carried(record: Record, labels: Mapping[str, str]) -> BroadcastCapacity | None:
    if "clients" not in labels or labels.get("unfound"):
        return None
    above, found = labels.get("above"), record.deliveries
    return BroadcastCapacity(
        clients=float(labels["clients"]),
        above=float(above) if above and labels.get("limited_by") == "server" else None,
        deliveries_per_s=found.per_s if found is not None else None,
        lost=found.lost + found.duplicate if found is not None else None,
        bytes_per_connection=record.server.bytes_per_connection if record.server else None,
    )


def _ms(ns: float | None) -> float | None:
    return None if ns is None else ns / NS_PER_MS


# Figures of which a row of several repetitions shows the median.
MEDIANS = ("ok_per_s", "bytes_per_s", "ratio", "cpu_share", "p50_ours_ms", "p99_ours_ms")


def together(some: Sequence[Figures]) -> Figures:
    """What several repetitions come to, at least one. Pure."""

    carried, latencies = known(some, "carried"), [each.latency for each in some]
    times = {name: _median_time(name, some) for name in (BOUNDED if carried else SHOWN_RANKS)}
    peak = repetitions.median(known(some, "peak_rss_bytes"))
    by_rate = sorted(some, key=lambda each: each.ok_per_s or 0.0)
    medians = {name: repetitions.median(known(some, name)) for name in MEDIANS}
    return replace(
        some[-1],
        record_id="",
        verdict=some[0].verdict,
        failed_checks=(),
        reasons=(),
        lower_bound=any(each.lower_bound for each in some),
        response_bytes=next(reversed(known(some, "response_bytes")), None),
        requests=sum(each.requests for each in some),
        errors=sum(each.errors for each in some),
        answers=sum(each.answers for each in some),
        latency=stats.Distribution(
            min=min(known(latencies, "min"), default=None),
            max=max(known(latencies, "max"), default=None),
            **{name: ns for name, (ns, _) in times.items()},  # type: ignore[arg-type]
        ),
        latency_at_least=tuple(name for name, (ns, above) in times.items() if above and ns),
        latency_at_most=tuple(
            name
            for name, (_, above) in times.items()
            if not above and sum(name in each.latency_at_most for each in some) * 2 >= len(some)
        ),
        latency_too_few=tuple(
            name
            for name, (_, above) in times.items()
            if not above and any(name in each.latency_too_few for each in some)
        ),
        peak_rss_bytes=None if peak is None else int(peak),
        carried=_carried_together(carried),
        apachebench=by_rate[(len(some) - 1) // 2].apachebench,
        accounts={each.name: _middle(each, some, by_rate) for each in IN_SUITES},
        estimate_per_s=middle_estimate((each.estimate_per_s, each.ok_per_s) for each in some),
        client=clients_together(known(some, "client")),
        **medians,  # type: ignore[arg-type]
    )


def _middle(account: Account, some: Sequence[Figures], by_rate: Sequence[Figures]) -> Any:
    """What stands for an account in several repetitions."""
    if account.middle is None:
        return by_rate[(len(some) - 1) // 2].accounts.get(account.name)
    found = [kept for each in some if (kept := each.accounts.get(account.name)) is not None]
    return account.middle(found) if found else None


def _carried_together(some: Sequence[BroadcastCapacity]) -> BroadcastCapacity | None:
    if not some:
        return None
    names = ("above", "deliveries_per_s", "bytes_per_connection")
    return BroadcastCapacity(
        clients=repetitions.median(known(some, "clients")) or 0.0,
        lost=sum(each.lost or 0 for each in some),
        **{name: repetitions.median(known(some, name)) for name in names},
    )


def _median_time(name: str, some: Sequence[Figures]) -> tuple[float | None, bool]:
    """The median of one percentile, in ns, and whether it is only a lower bound."""
    known = ((getattr(each.latency, name), name in each.latency_at_least) for each in some)
    return repetitions.median_of_bounds(list(known))
