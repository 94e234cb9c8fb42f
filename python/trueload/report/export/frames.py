"""Rows as tables of pandas and polars, which are optional extras: imported when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trueload.extras import require

if TYPE_CHECKING:
    import pandas
    import polars


def to_pandas(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> pandas.DataFrame:
    require("pandas", "to_pandas()", "pandas")
    import pandas

    return pandas.DataFrame(list(rows), columns=list(columns))


def to_polars(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> polars.DataFrame:
    require("polars", "to_polars()", "polars")
    import polars

    # Every column in all rows: the first row may lack a value that others have.
    whole = [{name: row.get(name) for name in columns} for row in rows]
    return polars.DataFrame(whole, schema=list(columns), infer_schema_length=None)


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    """Return nested objects as flat columns: ``figures.p99_ms`` becomes ``figures_p99_ms``.

    Lists become text.
    """
    found: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}_")
        elif isinstance(value, list | tuple):
            found[f"{prefix}{name}"] = "; ".join(map(str, value))
        else:
            found[f"{prefix}{name}"] = value
    return found
