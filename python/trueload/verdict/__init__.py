"""The verdict: each check a pure function of a record, all of them in one table.

A check says ``pass``, ``warn``, ``fail`` or, with the reason, ``n/a``; one *fail* makes the verdict
invalid, one *warn* suspect. Every ``why`` is one line with the figures that decided. Thresholds are
constants with their source, beside their check; a client under test has a table of its own, of the
same names. ``EXPLANATIONS`` holds, for people, what each check is for and what to do about it. This
package must not know how a trial is run or shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trueload.record.schema import Check, Record, Verdict
from trueload.units import NS_PER_S
from trueload.verdict.answers import (
    censored_count,
    check_both_ends,
    check_censored,
    check_errors,
    check_ledger,
    check_stale,
    check_unsolicited,
    lower_bounds,
)
from trueload.verdict.audit import check_audit
from trueload.verdict.client import client_checks
from trueload.verdict.client_share import ClientPart, check_client_share, client_parts
from trueload.verdict.explain import EXPLANATIONS, Explanation
from trueload.verdict.flow import (
    check_littles_law,
    check_rate_reached,
    check_send_lag,
    check_steady_state,
    offered_per_s,
    sent_per_s,
)
from trueload.verdict.hosts import SEVERITY, check_clocks, check_host_bias, with_hosts
from trueload.verdict.machine import (
    GENERATOR_FULL,
    check_generator_limit,
    check_hiccup,
    check_noise,
    check_same_host,
    check_server_idle,
    is_loopback,
)
from trueload.verdict.precision import check_quantile_width
from trueload.verdict.slots import (
    check_connections,
    check_fairness,
    check_starvation,
    jain_index,
    starvation_ns,
)

__all__ = [
    "CHECKS",
    "EXPLANATIONS",
    "GENERATOR_FULL",
    "NS_PER_S",
    "SEVERITY",
    "ClientPart",
    "Explanation",
    "censored_count",
    "client_parts",
    "decide",
    "is_loopback",
    "jain_index",
    "judge",
    "lower_bounds",
    "offered_per_s",
    "sent_per_s",
    "starvation_ns",
    "worst_checks",
]

# The order in which checks are listed.
CHECKS: tuple[Callable[[Record], Check], ...] = (
    check_unsolicited,
    check_errors,
    check_stale,
    check_littles_law,
    check_generator_limit,
    check_send_lag,
    check_client_share,
    check_rate_reached,
    check_starvation,
    check_fairness,
    check_connections,
    check_censored,
    check_steady_state,
    check_server_idle,
    check_hiccup,
    check_noise,
    check_same_host,
    check_quantile_width,
    check_ledger,
    check_both_ends,
    check_host_bias,
    check_clocks,
    check_audit,
)


def judge(record: Record) -> Record:
    """The record with its checks and the verdict that follows from them."""
    if record.client is not None:
        checks = client_checks(record, record.client)
    else:
        checks = tuple(check(record) for check in CHECKS)
        checks = with_hosts(checks, record.hosts)
    return record.model_copy(update={"checks": checks, "verdict": decide(checks)})


def decide(checks: Sequence[Check]) -> Verdict:
    """invalid if any check fails, suspect if any warns, else valid."""
    statuses = {check.status for check in checks}
    if "fail" in statuses:
        return "invalid"
    return "suspect" if "warn" in statuses else "valid"


def worst_checks(records: Sequence[Record]) -> tuple[Check, ...]:
    """For several trials: each check as it came out worst, in the order of the table."""
    worst: dict[str, Check] = {}
    for record in records:
        for check in record.checks:
            known = worst.get(check.name)
            if known is None or SEVERITY[check.status] > SEVERITY[known.status]:
                worst[check.name] = check
    return tuple(worst.values())
