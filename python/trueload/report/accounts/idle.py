"""Idle connections: how many were held, and what they cost."""

from __future__ import annotations

from trueload.record.accounts.idle import Idle, IdleStep
from trueload.record.schema import Record
from trueload.report.account import AccountView, Lines
from trueload.units import counted, format_count, format_rate, format_size


def idle_text(record: Record) -> str:
    """A text such as `` beside 10,000 idle ones``; empty without idle connections."""
    idle = record.plan.window.idle
    return f" beside {counted(idle, 'idle one')}" if idle else ""


def _texts(found: Idle) -> Lines:
    held = "" if found.held is None else f"{format_count(found.held)} of "
    text = f"{held}{format_count(found.connections)} held to the end"
    each = found.server_bytes_per_connection
    if each is not None:
        text += f", {format_size(each)} of the server's memory each"
    elif found.steps[-1].server_rss_bytes is not None:
        text += "; the server's memory did not grow: it had room for them"
    return [("idle", text), ("memory", ", ".join(filter(None, map(step_text, found.steps))))]


def step_text(step: IdleStep) -> str:
    """A text: ``10,000 idle: 31.2 MiB``, with the rate of connecting; empty without a sample."""
    if step.server_rss_bytes is None:
        return ""
    rate = step.connect_rate_per_s if step.idle else None
    came = f" (connected at {format_rate(rate)})" if rate is not None else ""
    return f"{format_count(step.idle)} idle: {format_size(step.server_rss_bytes)}{came}"


IDLE = AccountView(name="idle", after="idle ends", texts=_texts)
