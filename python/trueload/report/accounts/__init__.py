"""How all accounts of a result are shown, one to a module.

To add one, declare a `AccountView` in a module of this package.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from trueload.report.account import AccountView


def _declared() -> tuple[AccountView, ...]:
    names = sorted(each.name for each in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    found = [value for module in modules for value in vars(module).values()]
    mine = {value.name: value for value in found if isinstance(value, AccountView)}
    return tuple(sorted(mine.values(), key=lambda each: each.order))


ACCOUNTS: tuple[AccountView, ...] = _declared()
"""All accounts, in the order of their columns and tables."""


def following(label: str) -> Iterator[AccountView]:
    """Yield the accounts whose lines come after a line, and those that follow these."""
    for each in ACCOUNTS:
        if each.after == label:
            yield each
            yield from following(each.name)
