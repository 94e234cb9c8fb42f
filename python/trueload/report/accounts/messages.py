"""Messages of conversations: how many came, how far apart, and how soon."""

from __future__ import annotations

from trueload.record.accounts.messages import Messages
from trueload.record.figures import BRIEF
from trueload.report.account import AccountView, Column, Lines, times_columns
from trueload.report.times import times_text
from trueload.units import format_count


def counts_text(found: Messages) -> str:
    """A text: ``3,000 received, 100/s; 12 of them unexpected``."""
    text = f"{format_count(found.received)} received"
    if found.received_per_s is not None:
        text += f", {format_count(found.received_per_s)}/s"
    return f"{text}; {format_count(found.unexpected)} unexpected" if found.unexpected else text


def _texts(found: Messages) -> Lines:
    return [
        ("messages", counts_text(found)),
        ("gaps", times_text(found.gap_ns, "(from one message to the next)")),
        ("delivery", times_text(found.delivery_ns, "(from {stamp} to each receiver)")),
    ]


MESSAGES = AccountView(
    name="messages",
    after="streams",
    order=4,
    texts=_texts,
    title="Messages of conversations",
    columns=(
        Column("messages_received", lambda found: found.received),
        Column("messages_unexpected", lambda found: found.unexpected),
        *times_columns("message_gap", lambda found: found.gap_ns, (*BRIEF, "max")),
        *times_columns("message_delivery", lambda found: found.delivery_ns, (*BRIEF, "max")),
    ),
)
