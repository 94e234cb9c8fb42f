"""Runs for tests of reports: real ones, as `trueload runs export --format json` wrote them.

They are in ``golden_report/``, one file per kind of run. They were measured on one machine with
little other load, and kept small only by short trials. A test changes what it needs and puts them
into its own store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from trueload.record.schema import Record
from trueload.report.html.gather import gather
from trueload.report.html.make import HtmlReport, make, page
from trueload.store.rows import Row, Run
from trueload.store.runs import Store

FOLDER = Path(__file__).parent / "golden_report"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))

# What a hostile server, manifest or user may put into texts that are shown.
HOSTILE = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "</title></style><script>window.hacked=1</script>",
    "]]><svg onload=window.hacked=1>",
    "javascript:window.hacked=1",
    "\x1b]0;owned\x07\x1b[31mred\x9b2J",
    "\u202egnp.exe\u2066 \u2028 \x00 \x85",
    "url(http://evil.example/x) }*{background:url(//evil.example)}",
    "{{ 7907 * 7919 }}{% raw %}${7907*7919}",
    "--><iframe src=http://evil.example></iframe>",
    "=cmd|' /C calc'!A0",
    "x" * 3000,
)
# Fields whose text comes from somebody else.
TEXTS = frozenset(
    {"why", "reason", "detail", "title", "kernel", "cpu_model", "governor", "url", "address"}
    | {"place", "what", "driver_note", "cipher", "server_name", "started_at", "result"}
)
# Fields whose keys come from somebody else.
KEYED = frozenset({"failed", "reasons", "statuses", "versions"})


def read(name: str) -> dict[str, Any]:
    """Read an exported run by its name."""
    value: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return value


def put(store: Store, value: dict[str, Any]) -> Run:
    """Put an exported run, changed by a test or not, into the store."""
    run = store.new_run(
        kind=value["kind"],
        title=value["title"],
        plan=value["plan"],
        seed=value["seed"],
        command=value["command"],
    )
    for row in value["rows"]:
        if row["record"] is not None:
            record = Record.model_validate_json(json.dumps(row["record"]))
            store.add_record(run, record, key=row["key"], labels=row["labels"])
        else:
            more = {"key": row["key"], "labels": row["labels"], "detail": row["detail"]}
            store.add_row(run, row["outcome"], row["reason"] or "", **more)
    return store.end_run(run, value["state"])


def put_records(store: Store, records: Sequence[Record], **of_run: Any) -> Run:
    """Put records into the store as the run of a single command."""
    fields = {"kind": "http", "title": "http://127.0.0.1:8080/", "command": ("trueload", "http")}
    run = store.new_run(**{**fields, **of_run})
    for record in records:
        store.add_record(run, record)
    return store.end_run(run)


def made(store: Store, *runs: Run) -> HtmlReport:
    """Make the report of the runs."""
    return make(store, runs)


def html(store: Store, *runs: Run) -> str:
    """Render the page of the runs."""
    return page(make(store, runs))


def report_of(store: Store, run: Run) -> Any:
    """Gather the report's data of a run."""
    return gather(run, store.rows(run))


def rows(store: Store, run: Run) -> list[Row]:
    """Return the rows that can be read."""
    return [row for row in store.rows(run) if isinstance(row, Row)]


def hostile(value: dict[str, Any], payload: str) -> dict[str, Any]:
    """Put a payload into every text that somebody else may choose.

    Names of subjects are replaced everywhere, so that rows still belong to the plan.
    """
    subjects = [each["name"] for each in (value["plan"] or {}).get("subjects", ())]

    def text(found: str) -> str:
        for number, name in enumerate(subjects):
            found = found.replace(name, f"{payload}{number}")
        return found

    changed: dict[str, Any] = _walk(value, text, payload)
    changed["command"] = ["trueload", "http", payload]
    return changed


def _walk(value: Any, text: Callable[[str], str], payload: str, field: str = "") -> Any:
    if isinstance(value, dict):
        return {
            (f"{key} {payload}" if field in KEYED else key): _walk(each, text, payload, key)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_walk(each, text, payload, field) for each in value]
    if isinstance(value, str):
        return f"{value[:1]}{payload}" if field in TEXTS else text(value)
    return value


def run_of(record: Record) -> tuple[Run, list[Row]]:
    """A run with this one trial."""
    run = Run(1, "r", "http", "t", (), None, None, record.started_at, "finished", None, 1)
    return run, [Row(1, 1, "", {}, "measured", None, None, record.started_at, record)]
