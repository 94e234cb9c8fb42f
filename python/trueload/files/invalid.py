"""Says in words what is wrong with the values of a user's file.

How: a library finds the mistake; here it becomes a place in the file, and what must be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

SHOWN_MAX = 60

# By pydantic's error types, docs.pydantic.dev/latest/errors/validation_errors.
_MUST_BE: Mapping[str, str] = {
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_type", "float_parsing", "finite_number"), "a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "true or false"),
    "string_type": 'text, like "this"',
    **dict.fromkeys(("tuple_type", "list_type"), "a list, like [1, 2]"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "a table"),
    "literal_error": "{expected}",
    "greater_than": "more than {gt}",
    "greater_than_equal": "{ge} or more",
    "less_than": "less than {lt}",
    "less_than_equal": "{le} or less",
    "string_pattern_mismatch": "of the form {pattern}",
    **dict.fromkeys(("too_short", "string_too_short"), "longer: it is too short"),
}


@dataclass(frozen=True)
class Mistake:
    """The first mistake of a file: the keys on the way to it, what is wrong there, and whether the
    key is unknown or missing."""

    keys: tuple[int | str, ...]
    what: str
    is_unknown: bool = False
    is_missing: bool = False

    @property
    def place(self) -> str:
        """``loads[0].connections``."""
        return place_of(self.keys)

    def sentence(self) -> str:
        """``loads[0].connections must be a whole number, not 'x'``."""
        if self.is_missing or self.what.startswith("must be "):
            return f"{self.place} {self.what}".strip()
        return f"{self.place}: {self.what}" if self.keys else self.what


def first_mistake(error: ValidationError) -> Mistake:
    """The mistake to report of all that a library found. An unknown key comes before a missing one,
    since it may be that one, misspelt."""
    found = error.errors(include_url=False)
    first = next((each for each in found if each["type"] == "extra_forbidden"), found[0])
    match first["type"]:
        case "extra_forbidden":
            return Mistake(first["loc"], "is not a key", is_unknown=True)
        case "missing":
            return Mistake(first["loc"], "is missing", is_missing=True)
    return Mistake(first["loc"], _what(first))


def _what(error: ErrorDetails) -> str:
    wanted = _MUST_BE.get(error["type"])
    if wanted is None:
        return error["msg"].removeprefix("Value error, ")
    given: Any = error["input"]
    shown = repr(given) if isinstance(given, str | int | float | bool) else "that"
    text = shown if len(shown) <= SHOWN_MAX else f"{shown[:SHOWN_MAX]}…"
    return f"must be {wanted.format(**error.get('ctx', {}))}, not {text}"


def place_of(keys: Iterable[int | str]) -> str:
    """Keys as one writes them: ``loads[0].connections``."""
    parts = (f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys)
    return "".join(parts).removeprefix(".")
