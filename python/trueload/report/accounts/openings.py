"""Connections that the load opened: when each step was done, from the schedule."""

from __future__ import annotations

from operator import attrgetter

from trueload.protocol import openings as protocol
from trueload.record.accounts.openings import Openings
from trueload.report.account import AccountView, Lines, times_columns
from trueload.report.times import times_text
from trueload.stats import Distribution
from trueload.units import counted


def _texts(found: Openings) -> Lines:
    full, resumed = found.full_handshake_ns, found.resumed_handshake_ns
    return [
        ("connect", _times(found.connect_ns)),
        ("full TLS", _times(full, f"({counted(full.count, 'handshake')})")),
        ("resumed TLS", _times(resumed, f"({counted(resumed.count, 'handshake')})")),
        ("first byte", _times(found.first_byte_ns)),
    ]


def _times(found: Distribution, *counted: str) -> str:
    return times_text(found, *counted, most="max of those done" if found.slower else "max")


OPENINGS = AccountView(
    name="openings",
    after="rate",
    order=2,
    texts=_texts,
    columns=tuple(
        column
        for step in protocol.Openings.model_fields
        if step != "sessions"
        for column in times_columns(f"opening_{step}", attrgetter(f"{step}_ns"))
    ),
)
