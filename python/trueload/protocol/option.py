"""How an option is declared: once, as a field of ``Settings``, for every surface that has it.

How: ``option()`` makes the field. Its name without the unit at its end is its name on every
surface: ``timeout_ns`` is ``--timeout``, the key ``timeout`` of a suite, ``timeout=`` in Python and
TRUELOAD_HTTP_TIMEOUT in the environment. A command has the options of the settings that it
reads (``commands.declarations``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

from trueload.errors import UserError
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
Number = TypeVar("Number", int, float)


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
    if it has one. ``texts`` are the helps of commands whose text is another. ``omitted``: a plan
    leaves it out if it is None.
    """

    unit: Unit
    help: str
    brief: str = ""
    default: Any = None
    short: str = ""
    unset: str = ""
    group: str = ""
    several: bool = False
    off: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    omitted: bool = False

    @property
    def choices(self) -> list[str]:
        """The words of which a value is one; empty if it may be anything."""
        return [] if self.unit.keyword else self.unit.metavar.strip("<>").split("|")

    @property
    def is_flag(self) -> bool:
        """Whether it has no value."""
        return self.unit is FLAG

    @property
    def default_text(self) -> str:
        """The default value as text for people; empty if there is none."""
        if self.default is None or self.default is False or self.default == ():
            return self.unset
        return self.unit.show(self.default)

    def help_of(self, command: str) -> str:
        """The help of a command."""
        return self.texts.get(command, self.help)

    def text(self, command: str = "") -> str:
        """The help of a command, with the default."""
        shown = self.default_text
        said = self.help_of(command)
        return f"{said}  [default: {shown}]" if shown else said


def option(unit: Unit, meaning: str, brief: str = "", **more: Any) -> Any:
    """Return a field that is an option; ``more`` are further fields of ``Option``."""
    made = Option(unit, meaning, brief, **more)
    unset = () if made.several else False if made.is_flag and not made.off else None
    return replace(made, default=unset) if made.default is None else made


@dataclass_transform(kw_only_default=True)
class Settings:
    """Settings that are given one by one, as parsed values; None, and False of a flag, are not
    given. ``group`` is the title of those that name no other; a class gives it.

    ``given`` has the values that were given, by field and in the order of the fields. A ``Model``
    can have the fields of settings, too (``model.py``). Nothing is validated: a command's help
    would wait for that, and a text may hold bytes that are no UTF-8.
    """

    group: ClassVar[str] = ""
    own_options: ClassVar[Mapping[str, Option]]

    def __init_subclass__(cls, *, group: str = "", **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.group = group or cls.group
        own = {name: each for name, each in vars(cls).items() if isinstance(each, Option)}
        for name, each in own.items():
            delattr(cls, name)
            own[name] = replace(each, group=each.group or cls.group)
        cls.own_options = own

    def __init__(self, **values: Any) -> None:
        self.given: dict[str, Any] = {}
        for name, one in options_of(type(self)).items():
            value = values.pop(name, None)
            if value is not None and not (value is False and one.is_flag and not one.off):
                self.given[name] = tuple(value) if one.several else value
            vars(self)[name] = self.given.get(name, one.default)
        vars(self).update(values)  # groups of settings

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(self.given.items()))

    def over(self, base: Self) -> Self:
        """These settings, and those of ``base`` where none was given."""
        return type(self)(**{**base.given, **self.given})

    @property
    def values(self) -> dict[str, Any]:
        """All values, by field."""
        return {name: getattr(self, name) for name in options_of(type(self))}

    def gave(self, field: str) -> bool:
        """Whether a setting was given."""
        return field in self.given

    def refuse_beside(self, flag: str, *fields: str, hint: str = "keep one of them") -> None:
        """Raise ``UserError`` for the first of these settings that was given beside ``flag``."""
        refuse_beside(flag, {flag_of(name): self.gave(name) for name in fields}, hint)

    def only(self, model: type[Given]) -> Given:
        """Return those settings that ``model`` declares."""
        own = options_of(model)
        return model(**{name: value for name, value in self.given.items() if name in own})

    def without(self, model: type[Settings]) -> Self:
        """Return the settings without those that ``model`` declares."""
        others = options_of(model)
        return type(self)(**{name: v for name, v in self.given.items() if name not in others})


def refuse_beside(
    flag: str, others: Mapping[str, object], hint: str = "keep one of them", why: str = ""
) -> None:
    """Raise ``UserError`` for the first of ``others``, by flag, that was given beside ``flag``."""
    reason = f": {why}" if why else ""
    for other, is_given in others.items():
        if is_given:
            raise UserError(f"{flag} and {other} cannot be used together{reason}", hint)


def options_of(
    model: type, *, only: Iterable[str] | None = None, without: Iterable[str] = ()
) -> dict[str, Option]:
    """The options of a class's fields, by field, in their order. ``only`` keeps the settings of
    these names, ``without`` leaves out those."""
    every = _options_of(model)
    if only is None and not without:
        return every
    names = set(map(name_of, every) if only is None else only) - set(without)
    return {field: option for field, option in every.items() if name_of(field) in names}


@cache
def _options_of(model: type) -> dict[str, Option]:
    return {
        field: each
        for declaring in reversed(model.__mro__)
        for field, each in vars(declaring).get("own_options", {}).items()
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
        raise ValueError(f"'{text}' must be greater than 0")
    return ns


def any_span(text: str) -> int:
    """Parse a time in ns; a number alone is seconds, as elsewhere. Raises ``ValueError``."""
    return parse_duration(f"{text.strip()}s" if _NUMBER.fullmatch(text.strip()) else text)


def show_span(ns: int) -> str:
    """A time as one would type it."""
    return format_span(ns) if ns else "0"


def within(
    parse: Callable[[str], Number], least: float, most: float, wrong: str
) -> Callable[[str], Number]:
    """A parser of values from ``least`` to ``most``; others are ``wrong``: ``more than 1s``."""

    def parse_within(text: str) -> Number:
        value = parse(text)
        if not least <= value <= most:
            raise ValueError(f"'{text}' is {wrong}")
        return value

    return parse_within


def positive_count(maximum: int) -> Callable[[str], int]:
    """A parser of counts from 1 to ``maximum``."""
    return within(parse_count, 1, maximum, f"not from 1 to {maximum:,}")


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


def _written(what: str) -> Unit:
    def parse_file(text: str) -> Path:
        if re.match("[a-z]+://", text, re.IGNORECASE):
            raise ValueError(f"it takes {what}, and a URL follows it")
        return Path(text)

    return Unit("FILE", parse_file, keyword="Name")


FLAG = Unit("", keyword="Flag")
"""It is given or not."""
SPAN = Unit("TIME", positive_span, show_span, keyword="Duration")
FILE = Unit("FILE", Path, keyword="Name")
OUT_FILE, JSON_FILE = _written("a FILE"), _written("a FILE, or - for stdout")
"""A file that is written, and one of JSON."""
CPUS = Unit("LIST", parse_cpu_list, format_cpu_list, keyword="Numbers")
