"""Reads what earlier releases have stored: records and plans with fields that were removed since.

How: models refuse unknown fields, and stay so strict for what a user or an engine writes. Only what
was stored is read here. Each removed field is a line of ``REMOVED_FIELDS``, and is left out if its
value is one that may be ignored. ``tests/stored`` has runs of each release, as a test.
"""

from __future__ import annotations

import json
from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError

from trueload.record.figures import as_read
from trueload.record.schema import Record

Stored = Literal["record", "suite"]
"""A record, or the plan of a suite's run."""


@dataclass(frozen=True)
class RemovedField:
    """A field that releases before ``since`` have stored.

    ``path`` has the names that lead to it; lists on the way are gone through. A value that is not
    ``ignored`` changes what the figures mean, so it makes the whole unreadable.
    """

    of: Stored
    path: tuple[str, ...]
    since: str
    ignored: Container[object]


REMOVED_FIELDS: tuple[RemovedField, ...] = (
    # How connections began: by an upgrade from HTTP/1.1. All else is HTTP/2 as ever.
    RemovedField("record", ("plan", "generate", "http2", "upgrade"), "0.1.0", (True, False)),
)


def read_record(text: str | bytes) -> Record:
    """Read a stored record. Raises ``ValueError``."""
    try:
        return as_read(Record.model_validate_json(text))
    except ValidationError as error:
        # Looked for only now, so that records of this release are not parsed twice.
        if all(each["type"] != "extra_forbidden" for each in error.errors(include_url=False)):
            raise
    known = without_removed("record", json.loads(text))
    return as_read(Record.model_validate_json(json.dumps(known)))


def without_removed(of: Stored, value: Any) -> Any:
    """Return a stored value without the fields that were removed."""
    for field in REMOVED_FIELDS:
        if field.of == of:
            value = _without(value, field.path, field.ignored)
    return value


def _without(value: Any, path: Sequence[str], ignored: Container[object]) -> Any:
    if isinstance(value, list):
        return [_without(each, path, ignored) for each in value]
    name, *rest = path
    if not isinstance(value, dict) or name not in value:
        return value
    if rest:
        return {**value, name: _without(value[name], rest, ignored)}
    return value if value[name] not in ignored else {k: v for k, v in value.items() if k != name}
