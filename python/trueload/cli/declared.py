"""The options of a declaration as those of a command: one function for every setting there is.

Must not know any of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Annotated, Any

import typer

from trueload.cli.options import option_parser
from trueload.protocol.option import Given, Option, flag_of, name_of, options_of


def reader_of(model: type[Given], without: Iterable[str] = ()) -> Callable[..., Given]:
    """A function whose parameters are the options of a model's fields, and that returns what was
    given of them."""
    offered = options_of(model, without)

    def read(**given: Any) -> Given:
        return model(**{field: given.get(name_of(field)) for field in offered})

    parameters = [
        inspect.Parameter(
            name_of(field),
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[str | None, _typed(field, option, model)],
        )
        for field, option in offered.items()
    ]
    read.__dict__["__signature__"] = inspect.Signature(parameters)
    return read


def _typed(field: str, option: Option, model: type[Given]) -> Any:
    default = option.default_text(model.model_fields[field].default)
    return typer.Option(
        *([option.short] if option.short else []),
        flag_of(field),
        metavar=option.unit.metavar,
        # What it returns is no text; the annotation has the word that typer can do least with.
        parser=option_parser(option.unit.parse),
        help=option.help + (f"  [default: {default}]" if default else ""),
    )
