"""What every line between front and engine is made of, and every value that is read strictly.

Must not know any of them.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A frozen value that refuses what it does not know."""

    # A validator is built when it is first used: most commands use few of the 130 there are, and
    # building all of them took a third of the start.
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        defer_build=True,
        validate_by_name=True,
        serialize_by_alias=True,
    )
