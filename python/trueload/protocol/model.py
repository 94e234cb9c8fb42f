"""The base of every message between front and engine, and of every value that is read strictly."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


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
