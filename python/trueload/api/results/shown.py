"""What all results have in common: their text, and their rows as data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trueload.report.export import frames

if TYPE_CHECKING:
    import pandas
    import polars


class Shown:
    """A result that can be printed, and turned into a data frame."""

    def summary(self) -> str:
        """The text that the command line would print."""
        raise NotImplementedError

    def _framed(self) -> tuple[Sequence[Mapping[str, object]], Sequence[str]]:
        """The rows of data frames, and their columns."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a data frame. Raises ``UserError`` without pandas."""
        return frames.to_pandas(*self._framed())

    def to_polars(self) -> polars.DataFrame:
        """The rows as a data frame. Raises ``UserError`` without polars."""
        return frames.to_polars(*self._framed())

    def __str__(self) -> str:
        return self.summary()

    def __rich__(self) -> str:
        from rich.markup import escape

        return escape(self.summary())
