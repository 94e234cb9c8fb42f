"""Checks the fields of one entry of a user's file, such as a target or a step. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueload.errors import UserError


def check_keys(fields: dict[str, Any], known: Sequence[str], where: str = "") -> None:
    """Refuse a key that is not known. Raises ``UserError``."""
    for key in fields:
        if key not in known:
            raise UserError(f"{key!r} is not a key{where}", f"keys are {', '.join(known)}")


def text_of(fields: dict[str, Any], key: str, assign: str) -> str | None:
    """Return the text of a field, or None if there is none. ``assign`` shows how the file's format
    gives a key its value. Raises ``UserError``."""
    value = fields.get(key)
    if value is not None and not isinstance(value, str):
        raise UserError(f"'{key}' is not a text", f"write it in quotes: {assign}")
    return value
