"""The base of every message between front and engine, and of every value that is read strictly."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from trueload.protocol.option import options_of


class Model(BaseModel):
    """A frozen value that refuses unknown fields."""

    # Build a validator when it is first used: most commands use few of the 130 models, and building
    # all took a third of the start-up time.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
        validate_by_name=True,
        serialize_by_alias=True,
    )

    def __init_subclass__(cls, **more: Any) -> None:
        """The options of ``Settings`` that a model has as another base are its fields."""
        super().__init_subclass__(**more)
        for name, option in options_of(cls).items():
            if name not in inspect.get_annotations(cls):
                made = (left_out if option.omitted else Field)(
                    default=option.default, description=option.help
                )
                made.metadata.append(_default_for_none(option.default))
                setattr(cls, name, made)


def _default_for_none(default: Any) -> BeforeValidator:
    """Null is not given, as in plans that were stored by older releases."""
    return BeforeValidator(lambda value: default if value is None else value)


def left_out(default: Any = None, **more: Any) -> Any:
    """A field that JSON leaves out while it has its default: what is not asked for is not told.
    ``more`` are further arguments of pydantic's ``Field``."""
    return Field(default=default, exclude_if=lambda value: value == default, **more)


def checked_by(parse: Callable[[str], object]) -> AfterValidator:
    """A validator that keeps a text as it is written, if it can be parsed."""

    def check(text: str) -> str:
        parse(text)
        return text

    return AfterValidator(check)
