"""How a setting is declared: once, beside its field, for every surface that reads or shows it.

How: a field of a model has an ``Option`` in its annotation. Its name without the unit at its end is
its name on every surface: ``timeout_ns`` is ``--timeout``, the key ``timeout`` of a suite and
``timeout=`` in Python. Must not know any setting, nor how a command line is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from pydantic import GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from trueload.protocol.model import Model
from trueload.units import (
    format_cpu_list,
    format_span,
    parse_count,
    parse_cpu_list,
    parse_duration,
)

_UNIT = re.compile(r"_(ns|per_s|bytes)$")
_NUMBER = re.compile(r"\d+(\.\d+)?", re.ASCII)


@dataclass(frozen=True)
class Unit:
    """How the values of a setting are written: the word for one in a help text, how a text is
    parsed (raises ``ValueError``), and how a value is shown."""

    metavar: str
    parse: Callable[[str], Any]
    show: Callable[[Any], str] = str


@dataclass(frozen=True)
class Option:
    """The description of a setting wherever it is offered. ``unset`` is shown as its default if the
    value would mean nothing to people."""

    unit: Unit
    help: str
    short: str = ""
    unset: str = ""

    def default_text(self, default: object) -> str:
        """The default value as text for people; empty if there is none."""
        return self.unset if default is None else self.unit.show(default)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {**handler(schema), "description": self.help}


class Settings(Model):
    """Settings that are given one by one. A value of None is not given; ``model_fields_set`` has
    those that were."""

    @model_validator(mode="before")
    @classmethod
    def _leave_out_none(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        options = options_of(cls)
        return {
            name: each for name, each in given.items() if each is not None or name not in options
        }

    def over(self, base: Self) -> Self:
        """These settings, and those of ``base`` where none was given."""
        return base.model_copy(update={name: getattr(self, name) for name in self.model_fields_set})


Given = TypeVar("Given", bound=Settings)


def options_of(
    model: type[Model], *, only: Iterable[str] | None = None, without: Iterable[str] = ()
) -> dict[str, Option]:
    """The options of a model's fields, by field, in their order. ``only`` keeps the settings of
    these names, ``without`` leaves out those."""
    names = {name_of(field) for field in model.model_fields} if only is None else set(only)
    names -= set(without)
    return {
        field: option
        for field, info in model.model_fields.items()
        for option in info.metadata
        if isinstance(option, Option) and name_of(field) in names
    }


def name_of(field: str) -> str:
    """The name of a field on every surface: ``timeout_ns`` -> ``timeout``."""
    return _UNIT.sub("", field)


def flag_of(field: str) -> str:
    """The flag of a field on a command line: ``timeout_ns`` -> ``--timeout``."""
    return f"--{name_of(field).replace('_', '-')}"


def read_texts(model: type[Given], texts: Mapping[str, object]) -> Given:
    """Parse settings from texts by name. Raises ``ValueError``, which names the setting."""
    fields = {name_of(field): (field, option) for field, option in options_of(model).items()}
    values = {}
    for name, text in texts.items():
        field, option = fields[name]
        try:
            values[field] = option.unit.parse(str(text))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return model(**values)


def positive_span(text: str) -> int:
    """Parse a time of more than zero, in ns. Raises ``ValueError``."""
    ns = any_span(text)
    if ns == 0:
        raise ValueError(f"'{text}' is no time at all")
    return ns


def any_span(text: str) -> int:
    """Parse a time in ns; a number alone is seconds, as elsewhere. Raises ``ValueError``."""
    return parse_duration(f"{text.strip()}s" if _NUMBER.fullmatch(text.strip()) else text)


def show_span(ns: int) -> str:
    """A time as one would type it."""
    return format_span(ns) if ns else "0"


def positive_count(maximum: int) -> Callable[[str], int]:
    """A parser of counts from 1 to ``maximum``."""

    def parse_positive_count(text: str) -> int:
        count = parse_count(text)
        if not 1 <= count <= maximum:
            raise ValueError(f"'{text}' is not from 1 to {maximum:,}")
        return count

    return parse_positive_count


def span_up_to(most_ns: int, why: str) -> Callable[[str], int]:
    """A parser of times from 0 to ``most_ns``; ``why`` says what is wrong with longer ones."""

    def parse_span(text: str) -> int:
        ns = any_span(text)
        if ns > most_ns:
            raise ValueError(f"'{text}' is more than {format_span(most_ns)}, {why}")
        return ns

    return parse_span


def one_of(*choices: str) -> Unit:
    """A unit whose values are one of several words."""

    def parse_choice(text: str) -> str:
        if text not in choices:
            raise ValueError(f"'{text}' is not one of {', '.join(map(repr, choices))}")
        return text

    return Unit(f"<{'|'.join(choices)}>", parse_choice)


def counts_to(maximum: int) -> Unit:
    """A unit of counts from 1 to ``maximum``."""
    return Unit("COUNT", positive_count(maximum))


SPAN = Unit("TIME", positive_span, show_span)
CPUS = Unit("LIST", parse_cpu_list, format_cpu_list)
