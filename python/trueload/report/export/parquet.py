"""Sheets as Parquet, for pandas, polars, DuckDB and Spark: the columns of CSV, typed.

How: rows are written a few thousand at a time, so that a large run fits into memory. pyarrow is an
optional extra. Text only loses its control characters, as nothing runs formulas in Parquet.
"""

from __future__ import annotations

import itertools
from pathlib import Path

from trueload.extras import require
from trueload.files.outputs import output
from trueload.report.sheets import Sheet
from trueload.text import plain

ROWS_AT_ONCE = 5_000


def write_parquet(sheet: Sheet, path: Path) -> None:
    """Write a sheet. Raises ``UserError`` without pyarrow, or if the file cannot be written."""
    require("parquet", "Parquet", "pyarrow")
    import pyarrow
    import pyarrow.parquet

    types = {
        "text": pyarrow.string(),
        "int": pyarrow.int64(),
        "float": pyarrow.float64(),
        "bool": pyarrow.bool_(),
    }
    schema = pyarrow.schema([(column.name, types[column.type]) for column in sheet.columns])
    with (
        output(path) as file,
        pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        left = iter(sheet.rows)
        while some := list(itertools.islice(left, ROWS_AT_ONCE)):
            whole = [{name: _cell(each.get(name)) for name in schema.names} for each in some]
            writer.write_table(pyarrow.Table.from_pylist(whole, schema=schema))


def _cell(value: object) -> object:
    return plain(value) if isinstance(value, str) else value
