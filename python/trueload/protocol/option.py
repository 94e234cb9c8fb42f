"""How an option is declared: once, as a field of a model, for every surface that has it.

How: ``option()`` makes the field. Its name without the unit at its end is its name on every
surface: ``timeout_ns`` is ``--timeout``, the key ``timeout`` of a suite, ``timeout=`` in Python and
TRUELOAD_HTTP_TIMEOUT in the environment. A command has the options of the models that it reads
(``commands.declared``).
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

from pydantic import Field, model_validator

from trueload.protocol.model import Model, left_out
from trueload.units import (
    NUMBER,
    format_cpu_list,
    format_span,
    parse_count,
    parse_cpu_list,
    parse_duration,
)

_UNIT = re.compile(r"_(ns|per_s|bytes|path)$")
_NUMBER = re.compile(NUMBER, re.ASCII)


Given = TypeVar("Given", bound="Settings")


@dataclass(frozen=True)
class Unit:
    """How the values of an option are written: the word for one in a help text, how a text is
    parsed (raises ``ValueError``), and how a value is shown. ``keyword`` is the type of a Python
    argument (api/options.py); empty for one of the words in ``metavar``."""

    metavar: str
    parse: Callable[[str], Any] = str
    show: Callable[[Any], str] = str
    keyword: str = "Text"


@dataclass(frozen=True)
class Option:
    """The description of an option wherever it is offered.

    ``brief`` is its line in the short help (``-h``); an option without one is in ``--help`` alone.
    ``unset`` is shown as its default if the value would mean nothing to people. ``group`` is the
    title that it is listed under. ``several``: it can be repeated. ``off`` is the flag for False,
    if it has one. ``texts`` are the helps of commands whose text is another.
    """

    unit: Unit
    help: str
    brief: str = ""
    short: str = ""
    unset: str = ""
    group: str = ""
    several: bool = False
    off: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)

    @property
    def choices(self) -> list[str]:
        """The words of which a value is one; empty if it may be anything."""
        return [] if self.unit.keyword else self.unit.metavar.strip("<>").split("|")

    @property
    def is_flag(self) -> bool:
        """Whether it has no value."""
        return self.unit is FLAG

    def default_text(self, default: object) -> str:
        """The default value as text for people; empty if there is none."""
        if default is None or default is False or default == ():
            return self.unset
        return self.unit.show(default)

    def help_of(self, command: str) -> str:
        """The help of a command."""
        return self.texts.get(command, self.help)

    def text(self, default: object, command: str = "") -> str:
        """The help of a command, with the default."""
        shown = self.default_text(default)
        said = self.help_of(command)
        return f"{said}  [default: {shown}]" if shown else said


def option(
    unit: Unit,
    meaning: str,
    brief: str = "",
    *,
    default: Any = None,
    omitted: bool = False,
    **more: Any,
) -> Any:
    """Return a field that is an option; ``more`` are further fields of ``Option``.

    ``omitted``: a plan leaves it out if it is None.
    """
    made = Option(unit, meaning, brief, **more)
    if default is None and made.several:
        default = ()
    if default is None and made.is_flag and not made.off:
        default = False
    found = (left_out if omitted else Field)(default=default, description=meaning)
    found.metadata.append(made)
    return found


class Settings(Model):
    """Settings that are given one by one. A value of None is not given; ``model_fields_set`` has
    those that were. ``group`` is the title of those that name no other; a class gives it."""

    group: ClassVar[str] = ""

    def __init_subclass__(cls, *, group: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.group = group or cls.group

    @model_validator(mode="before")
    @classmethod
    def _leave_out_none(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        options = options_of(cls)
        return {
            name: each for name, each in given.items() if each is not None or name not in options
        }

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Return the settings of parsed values by field; None and False are not given."""
        given: dict[str, Any] = {}
        for name, one in options_of(cls).items():
            value = values.get(name)
            if value is not None and not (value is False and one.is_flag and not one.off):
                given[name] = tuple(value) if one.several else value
        # Not validated: a text may hold bytes that are no UTF-8, and no validator has to be built.
        return cls.model_construct(**given)

    def over(self, base: Self) -> Self:
        """These settings, and those of ``base`` where none was given."""
        return base.model_copy(update=self.given)

    @property
    def given(self) -> dict[str, Any]:
        """The values that were given, by field and in the order of the fields."""
        given = self.model_fields_set
        return {name: getattr(self, name) for name in type(self).model_fields if name in given}

    def gave(self, field: str) -> bool:
        """Whether a setting was given."""
        return field in self.model_fields_set

    def only(self, model: type[Given]) -> Given:
        """Return those settings that ``model`` declares."""
        return model.of({name: self.given.get(name) for name in model.model_fields})

    def without(self, model: type[Settings]) -> Self:
        """Return the settings without those that ``model`` declares."""
        return self.of({n: value for n, value in self.given.items() if n not in model.model_fields})


def options_of(
    model: type[Model], *, only: Iterable[str] | None = None, without: Iterable[str] = ()
) -> dict[str, Option]:
    """The options of a model's fields, by field, in their order. ``only`` keeps the settings of
    these names, ``without`` leaves out those."""
    every = _options_of(model)
    names = set(map(name_of, every) if only is None else only) - set(without)
    return {field: option for field, option in every.items() if name_of(field) in names}


@cache
def _options_of(model: type[Model]) -> dict[str, Option]:
    return {
        field: option if option.group else replace(option, group=_group_of(model, field))
        for field, info in model.model_fields.items()
        for option in info.metadata
        if isinstance(option, Option)
    }


def _group_of(model: type[Model], field: str) -> str:
    """The title of the class that declares a field."""
    declaring = (each for each in model.__mro__ if field in inspect.get_annotations(each))
    return str(getattr(next(declaring), "group", ""))


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
        raise ValueError(f"'{text}' must be greater than 0")
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

    return Unit(f"<{'|'.join(choices)}>", parse_choice, keyword="")


def counts_to(maximum: int) -> Unit:
    """A unit of counts from 1 to ``maximum``."""
    return Unit("COUNT", positive_count(maximum), keyword="Number")


def _out_file(text: str) -> Path:
    if re.match("[a-z]+://", text, re.IGNORECASE):
        raise ValueError("it takes a FILE, and a URL follows it")
    return Path(text)


FLAG = Unit("", keyword="Flag")
"""It is given or not."""
SPAN = Unit("TIME", positive_span, show_span, keyword="Duration")
FILE = Unit("FILE", Path, keyword="Name")
OUT_FILE = Unit("FILE", _out_file, keyword="Name")
"""A file that is written."""
CPUS = Unit("LIST", parse_cpu_list, format_cpu_list, keyword="Numbers")
