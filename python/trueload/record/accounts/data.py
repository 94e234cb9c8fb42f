"""Rows of data that filled requests; every host has the same rows."""

from __future__ import annotations

from collections.abc import Sequence

from trueload.protocol.data import DataUse
from trueload.record.account import Account


def add_data(parts: Sequence[DataUse]) -> DataUse:
    """The rows that all hosts have taken."""
    return DataUse(
        rows=max(part.rows for part in parts),
        taken=sum(part.taken for part in parts),
        spent=any(part.spent for part in parts),
    )


DATA = Account("data", "data", add=add_data)
