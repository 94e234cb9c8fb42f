"""Answers that came before their requests can have been read, also in the warm-up."""

from __future__ import annotations

from trueload.protocol.plan import NO_EARLY
from trueload.protocol.sums import add_up
from trueload.record.account import Account

EARLY = Account(
    "early", "early", lambda _, told: add_up([NO_EARLY, *(each.early for each in told.phases)])
)
