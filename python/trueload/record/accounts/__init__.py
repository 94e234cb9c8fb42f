"""All accounts of a result, one to a module.

To add one, declare an `Account` in a module of this package, and its field in `record/schema.py`.
"""

from __future__ import annotations

from trueload.record.account import Account, declared

ACCOUNTS = {each.name: each for each in declared(__name__, __path__, Account)}
"""Each account, by its field of the record."""
MESSAGES = {each.message: each for each in ACCOUNTS.values() if each.message is not None}
"""The accounts that engines report, by the name of the field of a ``Measurement``."""
