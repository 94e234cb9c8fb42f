"""Rows of data that fill placeholders of requests, mirrored from the engine's protocol/data.rs."""

from __future__ import annotations

from typing import Literal

from trueload.protocol.model import Model, left_out

DataFormat = Literal["csv", "tsv", "jsonl"]
"""How data is written; the first row of ``csv`` and ``tsv`` names the columns."""
DataOrder = Literal["sequential", "shuffled", "unique"]
"""Which row a request takes: the next, one in random order, or the next until none is left."""


class DataPlan(Model):
    """Data: each request with a column's name as a placeholder takes one row. ``path`` is a file of
    the engine's machine; without one its content comes as ``blobs``, in this order. ``columns`` are
    those that requests use."""

    path: str | None
    blobs: tuple[str, ...] = left_out(())
    format: DataFormat
    columns: tuple[str, ...]
    order: DataOrder


class DataUse(Model):
    """The rows of data, and how many were taken since the engine began, counted again each time.
    ``spent``: each was to be taken once, none was left for the next request, and the phase ended.
    """

    rows: int
    taken: int
    spent: bool
