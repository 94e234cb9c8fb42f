"""The check of sessions: how many failed, and was the window long enough for them? Pure."""

from __future__ import annotations

from trueload.record.schema import Record
from trueload.units import format_count
from trueload.verdict.answers import ERRORS_FAIL, ERRORS_WARN
from trueload.verdict.common import (
    Definition,
    Finding,
    graded,
    listening_at_end,
    not_applicable,
    times,
)

UNFINISHED_WARN = 0.5
"""Sessions under way at the end for each one that has ended, beyond which too little is known of
long ones: on average, not even two sessions of each user have ended."""
NO_SESSIONS = "the load is not a scenario"


def check_sessions(record: Record) -> Finding:
    """Grade the share of sessions that failed; warn if too few of them ended."""
    sessions = record.sessions
    if sessions is None:
        return not_applicable(NO_SESSIONS)
    ended = sessions.ok + sessions.failed
    # A user that listens until the load ends never ends its session.
    unfinished = sessions.unfinished - listening_at_end(record)
    if ended == 0 and unfinished <= 0:
        return not_applicable("its users listen until the load ends")
    if ended == 0:
        return Finding("fail", f"none of {times(sessions.begun, 'session')} ended in the window")
    share = sessions.failed / ended
    status, limit = graded(share, ERRORS_WARN, ERRORS_FAIL)
    skipped = record.counts.skipped
    more = f", and {times(skipped, 'request')} behind the failures were skipped" if skipped else ""
    why = f"{format_count(sessions.failed)} of {times(ended, 'session')} failed{more}"
    if status == "pass" and unfinished > UNFINISHED_WARN * ended:
        few = f"only {times(ended, 'session')} ended, and {format_count(unfinished)}"
        why = f"{few} were under way: how long they take is hardly known"
        return Finding("warn", why, unfinished / ended, UNFINISHED_WARN)
    return Finding(status, why, share, limit)


def _remedy_where(record: Record) -> str | None:
    """What to do if no session, or too few of them, ended in the window."""
    sessions = record.sessions
    if sessions is None or sessions.failed:
        return None
    return "Measure for longer with --duration: many times the length of a session."


SESSIONS = Definition(
    name="sessions",
    order=21,
    compute=check_sessions,
    of_client=NO_SESSIONS,
    fault="subject",
    meaning=(
        "A request that fails ends its session and spares the server the requests behind it,"
        " so failed sessions count like failed requests."
    ),
    remedy=(
        "Look at the first step that has failures, and at their class. With `extract`, the answer"
        " lacks what the step takes from it; with `encoded`, it cannot be decoded."
    ),
    remedy_where=_remedy_where,
    per_host=True,
)
