"""What a record means for a step of a search, and how long a step must be.

Strategy: a limit is kept if each of its values is within it and the record can be trusted. Failed,
open and unsent requests count as slower than any other. A failed check is the server's doing, or
ours: load that the generator could not offer, or a step that the machine spoiled, gives no verdict
on the server. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trueload.record import figures
from trueload.record.certainty import range_of
from trueload.record.percentile_interval import percentile_interval
from trueload.record.schema import Check, Record
from trueload.record.shortage import Shortage, find_shortage
from trueload.record.thresholds import Condition, Threshold, untimed_text
from trueload.search.decide import Outcome, Purpose
from trueload.stats import BEYOND_MIN, samples_for
from trueload.units import NS_PER_S, TOO_FEW, format_duration, format_share
from trueload.verdict import CHECKS, GENERATOR_FULL, judge

OF_DELIVERIES = frozenset({"lost", "duplicate"})
"""Failure classes of a broadcast's deliveries."""
LOSS = "ledger: "
"""The start of a step's reason if lost or doubled deliveries decided it."""
EARLY_SHARE = 0.5
"""A p95 of receipts below this share of the deliveries' p95 is pointed out.

Such a receipt says little about the deliveries.
"""
# A queue that grows, even slowly, would cross any limit in time, so a warning is enough.
GROWS = frozenset({"backlog"})
# Checks of our side: the generator, and the machine that it runs on.
OURS = frozenset(name for name, check in CHECKS.items() if check.fault in ("generator", "machine"))
# The checks of our side that only add to response times; the service time shows how much.
LATE = frozenset({"send-lag", "client-share"})

REFUSED = frozenset({"connect.refused", "connect.unreachable"})
"""Failure classes which show that nobody listens."""

# The length of a step in seconds, at least and at most: a hiccup of one second must not decide it,
# and a search must end. While the bracket is looked for, a wrong step costs little. Bisection and
# the confirming run, which has twice the samples, correct it.
STEP_S: dict[Purpose, tuple[float, float]] = {
    "bracket": (2.0, 5.0),
    "bisect": (2.0, 20.0),
    "confirm": (5.0, 40.0),
    "recover": (2.0, 2.0),
}
# A server has recovered if its p50 is no further than this from what it was at the same load: half
# of the capacity at least doubles it, and two equal runs on a busy machine differ by less.
RECOVERED_TIMES, RECOVERED_NS = 1.5, 250_000
CONFIRM_SAMPLES = 2.0
# Times the samples of a broadcast's step. The p95 of 1,000 receipts has ranks from 93.6 % to 96.4
# %. The 200 receipts that just have some beyond it have ranks from 92 % to 98 %. Out in the tail
# that is easily 20 % of its value.
CONFIRM_TIMES_MOST = 10.0


@dataclass(frozen=True)
class LimitValue:
    """One part of a limit, and the measured value in its unit.

    The value is inf if too many requests have no time. ``within`` is its 95 % interval by rank,
    for percentiles of enough requests. ``untimed`` is the number of requests without a time.
    ``too_few``: there were too few requests for the percentile.
    """

    threshold: Threshold
    value: float
    within: tuple[float, float] | None
    untimed: int = 0
    too_few: bool = False

    @property
    def shown(self) -> str:
        """The value to show."""
        return TOO_FEW if self.too_few else self.threshold.shown(self.value)

    @property
    def is_kept(self) -> bool:
        """Whether the limit is kept; a mean over answers only never keeps to one."""
        return self.threshold.holds(self.value) and not self._is_spoilt

    @property
    def _is_spoilt(self) -> bool:
        return self.threshold.is_guarded and self.untimed > 0

    def value_text(self) -> str:
        """A text to show: ``mean of answers 3.00 ms with 1 request that failed …``."""
        more = f" with {untimed_text(self.untimed)}" if self._is_spoilt else ""
        return f"{self.shown}{more}"

    def sentence(self) -> str:
        """A text to show: ``p99 8.10 ms (7.90 ms to 8.40 ms)``."""
        text = f"{self.threshold.label} {self.value_text()}"
        if self.within is None or self.too_few:
            return text
        low, high = self.within
        return f"{text} ({format_duration(low)} to {format_duration(high)})"


@dataclass(frozen=True)
class Judgement:
    """The outcome of a step, the reason in one line, and the measured values.

    ``shortage`` is what a step with the outcome ``short`` lacked.
    """

    outcome: Outcome
    why: str
    values: tuple[LimitValue, ...]
    shortage: Shortage | None = None

    @property
    def note(self) -> str:
        """The reason, unless the values tell it already."""
        told = self.outcome == "exceeded" and not all(
            each.threshold.holds(each.value) for each in self.values
        )
        return "" if self.outcome == "kept" or told else self.why

    @property
    def is_loss(self) -> bool:
        """Whether lost or doubled deliveries decided, and not a time."""
        return self.outcome == "exceeded" and self.why.startswith(LOSS)


def judge_step(
    record: Record, limit: Condition, purpose: Purpose, of: Record | None = None
) -> Judgement:
    """Judge whether a record keeps to a limit, and if not, whose doing that is.

    Response times count from the schedule, so our side can only make them longer. A limit that is
    kept in spite of that counts as kept; in a confirming run it must be certain. ``of`` is the
    record that the limit applies to, if it is not ``record``.
    """
    values = tuple(_measured(part, of or record) for part in limit.parts)
    if is_cut(record):
        return Judgement("limited", "cut short", values)
    short = find_shortage(record)
    if short is not None:
        return Judgement("short", f"{short.limit}: {short.why}", values, short)
    if (gone := _gone(record)) is not None:
        return Judgement("gone", gone, values)
    failed = {check.name: check for check in record.checks if check.status == "fail"}
    # The length of a step sees to enough requests. Too few of them say nothing against the server,
    # and the verdict on the confirming run tells.
    failed.pop("quantile-width", None)
    ours = _our_fault(record, failed)
    beyond = [found for found in values if not found.is_kept]
    spoiled = failed.keys() & {*OURS, "rate-reached"}
    if spoiled and spoiled <= LATE and _is_served_beyond(record, beyond):
        ours = None  # we were late, but even from the actual send it took too long
    if record.trouble is not None or (ours and beyond):
        return Judgement("limited", ours or "", values)
    for found in beyond:
        mostly = _mostly(record) if math.isinf(found.value) else ""
        why = f"{found.threshold.label} is {found.value_text()}{mostly}"
        return Judgement("exceeded", why, values)
    warned = (each for each in record.checks if each.status == "warn")
    growing = {each.name: each for each in warned if each.name in GROWS}
    for name, check in {**failed, **growing}.items():
        if name not in OURS:
            outcome: Outcome = "limited" if ours else "exceeded"
            return Judgement(outcome, ours or f"{name}: {check.why}", values)
    if ours and purpose == "confirm" and not is_certain(limit, of or record):
        return Judgement("limited", ours, values)
    return Judgement("kept", ours or "", values)


def is_certain(limit: Condition, record: Record) -> bool:
    """Whether a limit is kept wherever the truth may lie: by upper bounds, if need be."""
    ends = ((part, range_of(part.metric, record)) for part in limit.parts)
    return record.bounds is not None and all(
        part.holds(low) and part.holds(high) for part, (low, high) in ends
    )


def is_cut(record: Record) -> bool:
    """Whether a step was ended before its time, which says nothing about the server."""
    return record.partial and record.trouble is None


def judge_recovery(record: Record, limit: Condition, before: Record) -> Judgement:
    """Judge whether a server is as fast as ``before`` at the same load, which kept to the limit."""
    judged = judge_step(record, limit, "recover")
    now_ns, then_ns = (figures.latency(each).percentile(0.5).value for each in (record, before))
    if judged.outcome != "kept" or now_ns is None or then_ns is None:
        return judged
    if now_ns <= max(RECOVERED_TIMES * then_ns, then_ns + RECOVERED_NS):
        return judged
    why = f"p50 is {format_duration(now_ns)}, before it was {format_duration(then_ns)}"
    return Judgement("exceeded", why, judged.values)


def _gone(record: Record) -> str | None:
    """Return the sign that the server is no longer there; None if it may be.

    One sign is that every connection was refused, or every connection to one of several origins.
    The clients of a broadcast stay from step to step. There the sign is that all had joined, and
    yet no message could be sent, because they are no longer connected.
    """
    connections, counts = record.connections, record.counts
    if record.trouble is not None or record.partial:
        return None
    for found in unreached(record):
        if found.classes and found.classes <= REFUSED:
            return found.sentence()
    exchange = record.plan.generate.exchange
    if exchange is not None and exchange.kind == "ws_broadcast":
        joined = 0 < connections.requested == connections.established
        if joined and counts.issued == 0 and counts.unsent > 0:
            return "no message could be sent, because the clients had lost their connections"
    return None


@dataclass(frozen=True)
class UnreachableServer:
    """A server, or an origin with its URL, to which no connection was established.

    ``classes`` are the failures of those connections.
    """

    url: str | None
    classes: frozenset[str]

    def sentence(self) -> str:
        """A text to show: ``no connection was established: connect.refused``."""
        to = f" to {self.url}" if self.url is not None else ""
        why = f": {', '.join(sorted(self.classes))}" if self.classes else ""
        return f"no connection{to} was established{why}"


def unreached(record: Record) -> list[UnreachableServer]:
    """Return what a step could not reach at all: the one server, or some of several origins."""
    if record.connections.established == 0:
        met = record.connections.failed or record.counts.failed
        return [UnreachableServer(None, frozenset(met))]
    return [
        UnreachableServer(origin.url, frozenset(origin.connect_failed))
        for origin in record.origins or ()
        if origin.is_unreached
    ]


def has_good_answer(record: Record) -> bool:
    """Whether any request was answered as it should be, in the step or its warm-up."""
    return record.counts.ok + record.warmup.counts.ok > 0


def silence(record: Record) -> str:
    """A text about a step without good answers: ``no request was ok: timeout.first_byte``."""
    return f"no request was ok{_mostly(record)}"


def _mostly(record: Record) -> str:
    """The most frequent failure of the requests without a time, as the end of a sentence."""
    met = record.counts.failed or record.connections.failed
    return f": {max(met, key=lambda name: met[name])}" if met else ""


def judge_broadcast(record: Record, limit: Condition, purpose: Purpose) -> Judgement:
    """Judge a step of a broadcast.

    A percentile is of deliveries, unless it names receipts. A lost delivery counts as slower than
    any. Losses decide if they make a percentile infinite, or if no receipt is left that counts.
    """
    receipts = receipts_only(record)
    of = receipts.model_copy(update={"deliveries": record.deliveries})
    judged = judge_step(receipts, limit, purpose, of)
    ledger = next((each for each in record.checks if each.name == "ledger"), None)
    endless = any(math.isinf(each.value) for each in judged.values) or receipts.counts.ok == 0
    lossy = ledger is not None and ledger.status == "fail"
    if judged.outcome == "exceeded" and endless and lossy and ledger is not None:
        return Judgement("exceeded", f"{LOSS}{ledger.why}", judged.values)
    return judged


def early_receipts(record: Record) -> str:
    """A text saying that senders get receipts long before the others get the message; or ''.

    A limit on receipts would hide that.
    """
    found = figures.deliveries(record)
    if found is None:
        return ""
    receipt, delivery = (each.percentile(0.95) for each in (figures.latency(record), found))
    if receipt.value is None or delivery.value is None or receipt.above or delivery.above:
        return ""
    if receipt.value >= EARLY_SHARE * delivery.value:
        return ""
    return (
        f"p95 of receipts {format_duration(receipt.value)}, of deliveries"
        f" {format_duration(delivery.value)}: a receipt says little about when others get it"
    )


def receipts_only(record: Record) -> Record:
    """Return a broadcast's record as its senders see it, without the outcome of the deliveries.

    A message that was lost to some receiver says nothing about the time of receipts; the checks of
    the original record report the loss.
    """
    counts = record.counts
    failed = {name: n for name, n in counts.failed.items() if name not in OF_DELIVERIES}
    others = sum(counts.failed.values()) - sum(failed.values())
    fewer = {
        "failed": failed,
        "issued": counts.issued - others,
        "scheduled": counts.scheduled - others,
    }
    return judge(
        record.model_copy(update={"counts": counts.model_copy(update=fewer), "deliveries": None})
    )


def _measured(part: Threshold, record: Record) -> LimitValue:
    share = figures.percentile_share(part.metric)
    within = None
    if share is not None and share < 1:
        sample = figures.of_percentile(part.metric, record)
        # The seconds of a broadcast are those of its receipts.
        seconds = record.whole_seconds() if record.deliveries is None else ()
        within = percentile_interval(sample, seconds, share).between
    value = figures.metric_value(part.metric, record)
    few = figures.is_too_few(part.metric, record)
    return LimitValue(part, value, within, figures.without_time(record.counts), few)


def _is_served_beyond(record: Record, beyond: Sequence[LimitValue]) -> bool:
    """Whether a percentile is beyond its limit even without what our side added.

    Judged by round trips or, if these are not known, by service times.
    """
    served = figures.served(record)
    for found in beyond:
        share = figures.percentile_share(found.threshold.metric)
        if share is not None and record.trouble is None:
            at = served.percentile(share)
            if at.value is not None and not found.threshold.holds(at.value):
                return True
    return False


def _our_fault(record: Record, failed: Mapping[str, Check]) -> str | None:
    """Return what our own side did to a step; None if nothing that matters."""
    if record.trouble is not None:
        return record.trouble.what
    for name in failed:
        if name in OURS:
            return f"{name}: {failed[name].why}"
    short = failed.get("rate-reached")
    if short is not None and (record.generator.saturation or 0.0) >= GENERATOR_FULL:
        # A generator with time to spare that misses the rate waited for free connections, and so
        # for the server.
        busy = format_share(record.generator.saturation or 0.0)
        return f"rate-reached: {short.why}, and the generator was busy for {busy}"
    return None


def confirming_messages(limit: Condition, samples: int, per_s: float | None) -> int:
    """Return the number of messages that confirm a broadcast at ``per_s`` settled messages.

    It is enough for a narrow interval of the percentile, unless that takes longer than a confirming
    run may.
    """
    wanted = max(CONFIRM_TIMES_MOST * samples, CONFIRM_SAMPLES * max(map(_samples, limit.parts)))
    in_time = (per_s or 0.0) * STEP_S["confirm"][1]
    return math.ceil(max(min(wanted, in_time), CONFIRM_SAMPLES * samples))


def step_ns(limit: Condition, per_s: float | None, purpose: Purpose) -> int:
    """Return the length of a step that its percentiles' intervals need, in ns.

    ``per_s`` is the rate of requests, None if not yet known. The length stays within the bounds of
    its purpose.
    """
    low_s, high_s = STEP_S[purpose]
    samples = max(map(_samples, limit.parts)) * (CONFIRM_SAMPLES if purpose == "confirm" else 1)
    seconds = samples / per_s if per_s else low_s
    return round(min(max(seconds, low_s), high_s) * NS_PER_S)


def _samples(part: Threshold) -> float:
    share = figures.percentile_share(part.metric)
    if share is not None:
        return samples_for(share)
    if part.metric == "errors" and part.limit > 0:
        return BEYOND_MIN / part.limit
    return BEYOND_MIN
