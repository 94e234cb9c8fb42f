"""Rows as Parquet, for pandas, polars, DuckDB and Spark: the columns of the CSV export, typed.

How: rows are written a few thousand at a time, so that a large run fits into memory. pyarrow is an
optional extra. Text only loses its control characters, as nothing runs formulas in Parquet.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from trueload.extras import require
from trueload.files.outputs import output
from trueload.report.account import Column
from trueload.text import plain

ROWS_AT_ONCE = 5_000


def write_parquet(
    columns: Sequence[Column], rows: Iterable[Mapping[str, object]], path: Path
) -> None:
    """Write rows, each with its values by column.

    Raises ``UserError`` without pyarrow, or if the file cannot be written.
    """
    require("parquet", "Parquet", "pyarrow")
    import pyarrow
    import pyarrow.parquet

    types = {
        "text": pyarrow.string(),
        "int": pyarrow.int64(),
        "float": pyarrow.float64(),
        "bool": pyarrow.bool_(),
    }
    schema = pyarrow.schema([(column.name, types[column.type]) for column in columns])
    with (
        output(path) as file,
        pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        left = iter(rows)
        while some := list(itertools.islice(left, ROWS_AT_ONCE)):
            whole = [{name: _cell(each.get(name)) for name in schema.names} for each in some]
            writer.write_table(pyarrow.Table.from_pylist(whole, schema=schema))


def _cell(value: object) -> object:
    return plain(value) if isinstance(value, str) else value
