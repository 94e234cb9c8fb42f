"""A run as Parquet, for pandas, polars, DuckDB and Spark: the columns of the CSV export, typed.

How: rows are written a few thousand at a time, so that a large run fits into memory. pyarrow is an
optional extra. Text only loses its control characters, as nothing runs formulas in Parquet.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from trueload.extras import require
from trueload.files.outputs import output
from trueload.report.export import CSV_COLUMNS, row_values
from trueload.store.runs import Damaged, Row, Run
from trueload.text import plain

ROWS_AT_ONCE = 5_000
TEXTS = frozenset(
    {
        *("run", "key", "labels", "outcome", "reason", "verdict", "started_at", "url"),
        *("failed_by_class", "latency_at_least", "latency_at_most", "latency_too_few"),
        *("service_at_least", "arrivals", "checks"),
    }
)
FLOATS = frozenset(
    {
        *("ok_per_s", "bytes_in_per_s", "bytes_out_per_s", "latency_mean_ns", "rate_per_s"),
        *("generator_cpu_s", "generator_saturation", "server_cpu_s", "server_saturation"),
    }
)


def write_parquet(run: Run, rows: Iterable[Row | Damaged], path: Path) -> None:
    """Write the run's rows.

    Raises ``UserError`` without pyarrow, or if the file cannot be written.
    """
    require("parquet", "Parquet", "pyarrow")
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, _type(pyarrow, name)) for name in CSV_COLUMNS])
    with (
        output(path) as file,
        pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        left = iter(rows)
        while some := list(itertools.islice(left, ROWS_AT_ONCE)):
            values = [{"run": run.id, **row_values(row)} for row in some]
            whole = [{name: _cell(each.get(name)) for name in CSV_COLUMNS} for each in values]
            writer.write_table(pyarrow.Table.from_pylist(whole, schema=schema))


def _type(pyarrow: Any, name: str) -> Any:
    if name in ("partial", "lower_bound"):
        return pyarrow.bool_()
    if name in TEXTS:
        return pyarrow.string()
    return pyarrow.float64() if name in FLOATS else pyarrow.int64()


def _cell(value: object) -> object:
    return plain(value) if isinstance(value, str) else value
