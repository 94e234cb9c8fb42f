"""Turns the options of a declaration into those of a command; one function serves every setting.

Must not know: any of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from trueload.commands.options import option_parser
from trueload.protocol.option import Given, Option, flag_of, name_of, options_of


def reader_of(
    model: type[Given],
    *,
    only: Iterable[str] | None = None,
    without: Iterable[str] = (),
    by_default: bool = True,
) -> Callable[..., Given]:
    """Return a function whose parameters are the options of a model's fields.

    It returns the model with the given values. ``by_default``: the fields' defaults apply if
    nothing is given, and are shown.
    """
    offered = options_of(model, only=only, without=without)

    def read(**given: Any) -> Given:
        return model(**{field: given.get(name_of(field)) for field in offered})

    parameters = []
    for field, option in offered.items():
        default = option.default_text(model.model_fields[field].default) if by_default else ""
        offer = typer.Option(
            *([option.short] if option.short else []),
            flag_of(field),
            metavar=option.unit.metavar,
            parser=option_parser(option.unit.parse),
            help=option.help + (f"  [default: {default}]" if default else ""),
            autocompletion=_choices_of(option),
        )
        parameters.append(
            inspect.Parameter(
                name_of(field),
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                # The parser makes the value; typer only needs a text type.
                annotation=Annotated[str | None, offer],
            )
        )
    read.__dict__["__signature__"] = inspect.Signature(parameters)
    return read


def _choices_of(option: Option) -> Callable[[], list[str]] | None:
    """Return the choices that a shell offers: all values, if the help lists them."""
    choices = option.unit.metavar.strip("<>").split("|")
    return (lambda: choices) if len(choices) > 1 else None
