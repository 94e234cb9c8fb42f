"""The check of answers that were sent before their requests had arrived. Pure."""

from __future__ import annotations

from trueload.record.schema import Record
from trueload.units import format_count
from trueload.verdict.common import Definition, Finding, in_one_line, not_applicable, times

PREDICTED_FAIL = 3  # no honest answer is early; a few more than one rule out a kernel error


def check_predicted(record: Record) -> Finding:
    """Grade the answers that cannot come from their requests, warm-up included."""
    found = record.early
    if found.asked == 0:
        return not_applicable("the kernel was asked about no answer")
    asked = times(found.asked, "answer")
    wrong = max(found.unacknowledged, found.too_soon)
    if wrong == 0:
        why = f"of {asked} of the sample each came after its request had arrived"
        return Finding("pass", why, 0, PREDICTED_FAIL)
    parts = [
        f"{format_count(found.unacknowledged)} of {asked} came before the server's kernel had"
        " acknowledged a byte of their request"
        if found.unacknowledged
        else "",
        f"{format_count(found.too_soon)} of {asked} came sooner than the shortest round trip"
        if found.too_soon
        else "",
    ]
    return Finding(
        "fail" if wrong >= PREDICTED_FAIL else "warn", in_one_line(parts), wrong, PREDICTED_FAIL
    )


PREDICTED = Definition(
    name="predicted",
    order=15,
    compute=check_predicted,
    of_client="the answers are the reference server's",
    fault="subject",
    meaning="An answer that is sent before its request has arrived cannot depend on that request.",
    remedy="Fix the server: it must read a request before it answers.",
)
