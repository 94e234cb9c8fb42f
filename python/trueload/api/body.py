"""The keyword argument ``body``: text and bytes as they are, dicts and lists as JSON. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from trueload.errors import UserError

CONTENT_TYPE = "Content-Type: application/json"
_HINT = "give a str, bytes, or a dict or list that JSON can hold"


def with_json_body(options: Mapping[str, object]) -> dict[str, object]:
    """Return the options of a command, with a dict or list in ``body`` converted to JSON text.

    That adds a Content-Type, unless there is one. Raises ``UserError`` for a value that cannot be a
    body.
    """
    found = dict(options)
    for name, value in options.items():
        match name.rstrip("_"):
            case "expect_body" if not isinstance(value, str | bytes | None):
                raise UserError(
                    f"expect_body cannot be a {type(value).__name__}",
                    "give the exact bytes of a good answer, as str or bytes",
                )
            case "body" if isinstance(value, dict | list):
                found[name] = _to_json(value)
                found |= _with_content_type(found)
            case "body" if not isinstance(value, str | bytes | None):
                raise UserError(f"body cannot be a {type(value).__name__}", _HINT)
    return found


def _to_json(value: object) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"body cannot be written as JSON: {error}", _HINT) from error


def _with_content_type(options: Mapping[str, object]) -> dict[str, object]:
    name = next((name for name in options if name.rstrip("_") == "header"), "header")
    lines = list(_header_lines(options.get(name)))
    if any(line.partition(":")[0].strip().lower() == "content-type" for line in lines):
        return {}
    return {name: [*lines, CONTENT_TYPE]}


def _header_lines(given: object) -> Iterable[str]:
    """Return header lines in the form of a command's option."""
    match given:
        case None:
            return ()
        case Mapping():
            return (f"{name}: {value}" for name, value in given.items())
        case list() | tuple() | set() | frozenset():
            return map(_as_text, given)
    return (_as_text(given),)


def _as_text(line: object) -> str:
    return line.decode("utf-8", "surrogateescape") if isinstance(line, bytes) else str(line)
