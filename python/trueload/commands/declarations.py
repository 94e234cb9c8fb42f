"""Turns the options of a declaration into those of a command; one function serves every option.

``offer_of`` makes the parameter that the parser reads, and leaves the declaration there for the
help.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from trueload.commands.flags import with_read
from trueload.protocol.option import FILE, Given, Option, Settings, flag_of, name_of, options_of

Value = TypeVar("Value")
Parsed = TypeVar("Parsed")


def option_parser(parse: Callable[[str], Value]) -> Callable[[str], Value]:
    """Return a parser for typer; an error of ``parse`` becomes a usage error with its text."""

    def parse_option(text: str) -> Value:
        try:
            return parse(text)
        except ValueError as error:
            raise typer.BadParameter(str(error)) from error

    # click shows this name if it has no better word for the type.
    parse_option.__name__ = parse.__name__.removeprefix("parse_").upper()
    return parse_option


def offer_of(field: str, option: Option) -> inspect.Parameter:
    """Return the parameter of a command for an option."""
    choices = option.choices
    offer: Any = typer.Option(
        *([option.short] if option.short else []),
        f"{flag_of(field)}/{option.off}" if option.off else flag_of(field),
        metavar=option.unit.metavar or None,
        parser=None if option.unit is FILE or option.is_flag else option_parser(option.unit.parse),
        help=option.text(),
        autocompletion=(lambda: choices) if choices else None,
    )
    offer.declared = option
    # The parser makes the value; typer only needs a text type.
    kind: Any = Path if option.unit is FILE else bool if option.is_flag else str
    kind = list[kind] | None if option.several else kind | None
    unset = False if option.is_flag and not option.off else None
    return inspect.Parameter(
        name_of(field),
        inspect.Parameter.KEYWORD_ONLY,
        default=unset,
        annotation=Annotated[bool if unset is False else kind, offer],
    )


def reader_of(
    model: type[Given],
    *,
    only: Iterable[str] | None = None,
    without: Iterable[str] = (),
    by_default: bool = True,
) -> Callable[..., Given]:
    """Return a function whose parameters are the options of settings.

    It returns them with the given values. ``by_default``: the fields' defaults apply if
    nothing is given, and are shown.
    """
    offered = options_of(model, only=only, without=without)

    def read(**given: Any) -> Given:
        return model(**{field: given.get(name_of(field)) for field in offered})

    parameters = [
        offer_of(field, option if by_default else replace(option, default=None, unset=""))
        for field, option in offered.items()
    ]
    read.__dict__["__signature__"] = inspect.Signature(parameters)
    return read


def with_options(
    model: type[Settings],
) -> Callable[[Callable[..., Parsed]], Callable[..., Parsed]]:
    """Return a decorator that gives a command the options of a model; it gets them as ``given``."""
    return with_read(given=reader_of(model))
