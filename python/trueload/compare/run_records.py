"""One side of a comparison: the records of a run, from the store or from a file, in rows.

How: a file is one that ``runs export --format json`` or ``--json`` wrote. Its records are grouped
into rows under names that a later run of the same command produces, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trueload.errors import UserError
from trueload.record.schema import Record
from trueload.search.decide import SafeLoad
from trueload.search.execute import outcome
from trueload.search.result import deciding, read_plan, read_steps
from trueload.store.rows import Row
from trueload.store.run_files import (
    HINT,
    NOT_UNDERSTOOD,
    is_file,
    not_understood,
    read_json,
    to_record,
)
from trueload.store.runs import Store
from trueload.suites.http import PlannedHttp, http_labels, labelled_http
from trueload.suites.pools import PlannedPools, labelled_pools, pool_labels
from trueload.suites.window import PlannedStages
from trueload.units import close_text, counted, format_rate, idle_text

# The labels that name a row of a suite; repetition and digest are not among them.
CELL_LABELS = (
    *("subject", "connections", "close", "idle", "pipeline", "streams", "tls", "path", "rate"),
    "cores",
)


@dataclass(frozen=True)
class RunRecords:
    """A run as one side: the name to show, and its records by the name of their row."""

    name: str
    rows: dict[str, list[Record]]


@dataclass(frozen=True)
class _Kept:
    """A measured row, from the store or from a file."""

    labels: Mapping[str, str]
    record: Record


def read_side(selector: str, store: Store | None) -> RunRecords:
    """Read a run of the store, or a file. Raises ``UserError``.

    ``selector`` is a file if it ends in ``.json``, contains a slash or names an existing file, and
    if there is no store.
    """
    if store is None or is_file(selector):
        return _from_file(Path(selector))
    run = store.find_run(selector)
    kept = [
        _Kept(row.labels, row.record)
        for row in store.rows(run)
        if isinstance(row, Row) and row.record is not None and _stands_alone(run.kind, row.labels)
    ]
    return _side(run.id, run.kind, run.plan, kept)


def _stands_alone(kind: str, labels: Mapping[str, str]) -> bool:
    """Whether a row can be compared: not a step of a suite's search, nor a suite's reference."""
    return kind != "suite" or "step" not in labels


def _from_file(path: Path) -> RunRecords:
    value = read_json(path)
    try:
        kind, plan, kept = _understood(value)
    except NOT_UNDERSTOOD:
        raise not_understood(path) from None
    return _side(str(path), kind, plan, kept)


def _understood(value: Any) -> tuple[str, Any, list[_Kept]]:
    """Return kind, plan and rows of an exported run, or of the JSON of a result."""
    if "rows" in value and "kind" in value:
        return value["kind"], value["plan"], list(_rows(value["rows"]))
    if "steps" in value:
        steps = [{k: v for k, v in each.items() if k != "step"} for each in value["steps"]]
        kept = [
            _Kept(
                {"load": str(each["step"]["load"]), "stage": each["step"]["stage"]}, to_record(one)
            )
            for each, one in zip(value["steps"], steps, strict=True)
        ]
        return "search", value["search"], kept
    if "suite" in value:
        return "suite", None, list(_cells(value))
    if "a" in value and "b" in value:
        return "ab", None, list(_sides(value))
    trials = value.get("trials", [value])
    return "http", None, [_Kept({}, to_record(each)) for each in trials]


def _rows(values: Iterable[Any]) -> Iterator[_Kept]:
    for value in values:
        if value["record"] is not None and _stands_alone("suite", value["labels"]):
            yield _Kept(dict(value["labels"]), to_record(value["record"]))


def _cells(value: Any) -> Iterator[_Kept]:
    """Yield each record of a suite's ``--json``, with the labels of its row."""
    labels = {id_: _cell_labels(row) for row in value["rows"] for id_ in row["record_ids"]}
    for each in value["trials"]:
        if each["id"] in labels:  # any other record is a step of a search
            yield _Kept(labels[each["id"]], to_record(each))


def _cell_labels(row: Any) -> dict[str, str]:
    """Return the labels of a row of ``--json`` in the store's form."""
    variant = f":{row['name']}" if row["name"] else ""
    rate, pools, http = row.get("rate_per_s"), row.get("pools"), row.get("http")
    stages = row.get("stages")
    return {
        "subject": f"{row['language']}/{row['framework']}{variant}",
        "connections": str(row["connections"]),
        "pipeline": str(row["pipeline"]),
        "rate": "" if rate is None else format_rate(rate),
        **({} if stages is None else {"rate": PlannedStages.model_validate(stages).title}),
        "cores": row["cores"],
        "close": close_text(row.get("close")),
        "idle": idle_text(row.get("idle") or ()),
        **({} if pools is None else pool_labels(PlannedPools.model_validate(pools))),
        **({} if http is None else http_labels(PlannedHttp.model_validate(http))),
    }


def _sides(value: Any) -> Iterator[_Kept]:
    """Yield each record of the JSON of ``compare``, with the name of its side."""
    for each in value["trials"]:
        one = {name: part for name, part in each.items() if name not in ("pair", "side")}
        yield _Kept({"subject": value[each["side"]]}, to_record(one))


def _side(name: str, kind: str, plan: Any, kept: list[_Kept]) -> RunRecords:
    if kind == "search":
        kept = _deciding(name, plan, kept)
    rows: dict[str, list[Record]] = {}
    for each in kept:
        if not each.record.partial:
            rows.setdefault(row_name(each.labels), []).append(each.record)
    if not rows:
        raise UserError(f"{name} contains no complete measurement", HINT)
    return RunRecords(name, rows)


def row_name(labels: Mapping[str, str]) -> str:
    """Return the name of a row, equal on both sides.

    A row of servers is ``go/fasthttp, 64 connections, single``, and a row of clients
    ``rust/reqwest, 4 pools of 256, 1,024 at once``. Empty for a command that measures one thing.
    """
    found = {name: labels[name] for name in CELL_LABELS if labels.get(name)}
    if (pools := labelled_pools(labels)) is not None:
        return f"{found['subject']}, {pools.title}"
    parts = [
        found.get("subject", ""),
        counted(int(found["connections"]), "connection") if "connections" in found else "",
        {"close": "one per request", "kept": "kept"}.get(found.get("close", ""), ""),
        f"{found['idle']} idle" if "idle" in found else "",
        f"pipeline {found['pipeline']}" if found.get("pipeline", "1") != "1" else "",
        labelled_http(labels).title,
        found.get("rate", ""),
        f"{found['cores']} core" if "cores" in found else "",
    ]
    return ", ".join(part for part in parts if part)


def _deciding(name: str, plan: Any, kept: list[_Kept]) -> list[_Kept]:
    """Keep only the deciding step of a search, which ran under the load that was found."""
    try:
        read = read_plan(plan)
        taken = read_steps(read, [(each.labels, each.record) for each in kept])
    except (ValueError, KeyError, TypeError):
        raise UserError(f"the search in {name} cannot be read by this version", HINT) from None
    # Any other step ran under a load that is not confirmed.
    if not taken or not isinstance(outcome(read, taken), SafeLoad):
        raise UserError(
            f"the search in {name} has confirmed no load", "compare searches that found one"
        )
    return [_Kept({}, deciding(read, taken).record)]
