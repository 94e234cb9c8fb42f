"""All accounts of a result, one to a module.

To add one, declare an `Account` in a module of this package, and its field in `record/schema.py`.
"""

from __future__ import annotations

import importlib
import pkgutil

from trueload.record.account import Account


def _declared() -> dict[str, Account]:
    names = sorted(each.name for each in pkgutil.iter_modules(__path__))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    found = [value for module in modules for value in vars(module).values()]
    return {value.name: value for value in found if isinstance(value, Account)}


ACCOUNTS: dict[str, Account] = _declared()
"""Each account, by its field of the record."""
MESSAGES: dict[str, Account] = {
    each.message: each for each in ACCOUNTS.values() if each.message is not None
}
"""The accounts that engines report, by the name of the field of a ``Measurement``."""
