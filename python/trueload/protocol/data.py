"""Rows of data that fill placeholders of requests, mirrored from the engine's protocol/data.rs."""

from __future__ import annotations

from typing import Literal

from trueload.protocol.model import Model, left_out
from trueload.protocol.request_options import DataOrder

DataFormat = Literal["csv", "ssv", "tsv", "jsonl"]
"""How data is written; ``ssv`` is CSV with semicolons. The first row of all but ``jsonl`` names the
columns."""


class DataPlan(Model):
    """Data: each request with a column's name as a placeholder takes one row."""

    path: str | None
    """A file of the engine's machine; null if the content comes as blobs."""
    blobs: tuple[str, ...] = left_out(())
    """The SHA-256 of each piece of the content, in order."""
    format: DataFormat
    columns: tuple[str, ...]
    """The columns that requests use."""
    order: DataOrder


class DataUse(Model):
    """The rows of data that requests took."""

    rows: int
    """The number of rows in the file."""
    taken: int
    """The number of times that a row was taken since the engine began."""
    spent: bool
    """Whether the phase ended because each row is taken once and none was left."""
