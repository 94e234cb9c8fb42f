"""How all accounts of a result are shown, one to a module.

To add one, declare a `AccountView` in a module of this package.
"""

from __future__ import annotations

from collections.abc import Iterator

from trueload.record.account import declared
from trueload.report.account import AccountView

ACCOUNTS = tuple(sorted(declared(__name__, __path__, AccountView), key=lambda each: each.order))
"""All accounts, in the order of their columns and tables."""


def following(label: str) -> Iterator[AccountView]:
    """Yield the accounts whose lines come after a line, and those that follow these."""
    for each in ACCOUNTS:
        if each.after == label:
            yield each
            yield from following(each.name)
