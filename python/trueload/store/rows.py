"""Runs and rows as values, and as fields of the store's tables. Pure but for the database."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from trueload.record.head import RecordHead, read_head
from trueload.store.file import VALUE_BYTES_MAX

if TYPE_CHECKING:
    from trueload.record.schema import Record

Outcome = Literal["measured", "skipped", "failed", "unsupported"]


RunState = Literal["running", "finished", "partial", "interrupted", "deleted"]
"""``partial``: it ended by itself, but less was measured than was planned."""


UNREADABLE = "it cannot be read"


SEQ_MAX = 2**63 - 1


RUN_COLUMNS = (
    "seq, id, kind, title, command, plan, seed, started_at, state, ended_at, row_count, checksum"
)


ROW_COLUMNS = (
    "seq, run_seq, number, key, labels, outcome, reason, detail, added_at, record, checksum"
)


@dataclass(frozen=True)
class Run:
    """One execution of a suite or of a single command.

    ``kind`` is the verb (``http``, ``suite``); ``plan`` is JSON; ``command`` holds no secret.
    """

    seq: int
    id: str
    kind: str
    title: str
    command: tuple[str, ...]
    plan: Any
    seed: int | None
    started_at: str
    state: RunState
    ended_at: str | None
    row_count: int


@dataclass(frozen=True)
class Row:
    """One cell of a run: measured (it has a ``record``), or not (it has a ``reason``).

    ``key`` names the cell within the plan (for resuming), ``labels`` describe it for tables,
    ``detail`` has more than one line, such as the tail of a log.
    """

    seq: int
    number: int
    key: str
    labels: dict[str, str]
    outcome: Outcome
    reason: str | None
    detail: str | None
    added_at: str
    record: Record | None


@dataclass(frozen=True)
class DamagedRow:
    """A row that is not as it was written; ``number`` is None if not even that can be read."""

    number: int | None
    why: str

    def __str__(self) -> str:
        number = "a row" if self.number is None else f"row {self.number}"
        return f"{number} is damaged: {self.why}"


def insert_run(db: sqlite3.Connection, run: Run) -> None:
    _insert(db, "runs", RUN_COLUMNS, run_fields(run))


def insert_row(db: sqlite3.Connection, run: Run, row: Row) -> None:
    _insert(db, "rows", ROW_COLUMNS, _row_fields(run.seq, row))


def _insert(db: sqlite3.Connection, table: str, columns: str, fields: tuple[Any, ...]) -> None:
    marks = ", ".join("?" * (len(fields) + 1))
    db.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", (*fields, checksum_of(fields)))


def to_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def checksum_of(fields: tuple[Any, ...]) -> bytes:
    """SHA-256 over every column with its type and length, so that no two rows hash alike."""
    digest = hashlib.sha256()
    for field in fields:
        raw = field if isinstance(field, bytes) else repr(field).encode()
        digest.update(f"{type(field).__name__}:{len(raw)}:".encode() + raw)
    return digest.digest()


def run_fields(run: Run) -> tuple[Any, ...]:
    """The values of the columns but the checksum; fields are in the same order as columns."""
    texts = {"command": to_text(run.command), "plan": to_text(run.plan)}
    return tuple((run.__dict__ | texts).values())


def _row_fields(run_seq: int, row: Row) -> tuple[Any, ...]:
    record = None if row.record is None else zlib.compress(row.record.model_dump_json().encode())
    seq, *others = (row.__dict__ | {"labels": to_text(row.labels), "record": record}).values()
    return (seq, run_seq, *others)


def to_run(fields: tuple[Any, ...]) -> Run | DamagedRow:
    if checksum_of(fields[:-1]) != fields[-1]:
        return DamagedRow(None, "its content does not match its checksum")
    seq, id_, kind, title, command, plan, *others = fields[:-1]
    try:
        words, planned = tuple(json.loads(command)), json.loads(plan)
    except (ValueError, RecursionError) as error:
        return DamagedRow(None, f"it cannot be read by this version: {error}")
    return Run(seq, id_, kind, title, words, planned, *others)


def _in_one_line(error: Exception) -> str:
    """The first mistake, and where it is: a record of another version may lack dozens of fields."""
    from pydantic import ValidationError  # imported late, as the records

    if not isinstance(error, ValidationError):
        return str(error)
    first, *rest = error.errors(include_url=False)
    place = ".".join(str(part) for part in first["loc"])
    more = f", and {len(rest)} more" if rest else ""
    return f"{place}: {first['msg']}{more}"


def _unpack(record: bytes) -> bytes:
    """Decompress a record. Raises ``ValueError`` and ``zlib.error``."""
    unpacking = zlib.decompressobj()
    text = unpacking.decompress(record, VALUE_BYTES_MAX)
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise ValueError("it is cut short, or larger than any record")
    return text


def to_row(fields: tuple[Any, ...]) -> Row | DamagedRow:
    from trueload.record.removed_fields import read_record  # imported late: lists need no records

    seq, _, number, key, labels, outcome, reason, detail, added_at, record = fields[:-1]
    if checksum_of(fields[:-1]) != fields[-1]:
        return DamagedRow(None, "its content does not match its checksum")
    try:
        parsed = None if record is None else read_record(_unpack(record))
    except (ValueError, zlib.error) as error:  # of another version: the checksum is right
        return DamagedRow(
            number, f"its record cannot be read by this version: {_in_one_line(error)}"
        )
    return Row(seq, number, key, json.loads(labels), outcome, reason, detail, added_at, parsed)


def to_head(fields: tuple[Any, ...]) -> RecordHead | None:
    """Return what a list shows of a row; None if nothing was measured, or it cannot be read."""
    *columns, record, checksum = fields
    if record is None or checksum_of((*columns, record)) != checksum:
        return None
    try:
        return read_head(_unpack(record))
    except (ValueError, zlib.error):
        return None
