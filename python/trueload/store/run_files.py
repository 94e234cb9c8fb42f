"""Runs in files: what ``runs export --format json`` wrote, read back as runs of a store.

A file may be compressed by xz, as those of whole published suites are, or by gzip.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueload.errors import UserError
from trueload.files.compressed import UnpackError, unpacked
from trueload.store.rows import DamagedRow, Row, Run
from trueload.store.runs import Store

if TYPE_CHECKING:
    from trueload.record.schema import Record

HINT = "name a run (`trueload runs list`), or a file of `trueload runs export --format json`"
FILE_BYTES_MAX = 256 * 2**20  # thousands of trials; parsed, it takes several times that
NOT_UNDERSTOOD = (ValueError, KeyError, TypeError, AttributeError)


def is_file(selector: str) -> bool:
    """Whether a word for a run names a file: it ends in ``.json``, has a slash, or exists."""
    return selector.endswith(".json") or "/" in selector or Path(selector).is_file()


def read_json(path: Path) -> Any:
    """Read a JSON file, or a pipe. Raises ``UserError``."""
    try:
        return json.loads(_read(path))
    except UnpackError as error:
        raise UserError(f"{path} {error}", error.hint) from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", HINT) from error
    except (ValueError, RecursionError):
        raise UserError(f"{path} is not JSON", HINT) from None


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = None
        if not path.is_char_device():
            content = unpacked(file, FILE_BYTES_MAX).read(FILE_BYTES_MAX + 1)
    if content is None or len(content) > FILE_BYTES_MAX:
        raise UserError(f"{path} is too large, or has no end", HINT)
    return content


def not_understood(path: Path) -> UserError:
    """The error about a file whose JSON is no run."""
    return UserError(f"{path} holds no run that this version can read", HINT)


def to_record(value: Any) -> Record:
    """Read the JSON of a record. Raises one of ``NOT_UNDERSTOOD``."""
    from trueload.record.removed_fields import read_record  # imported late: few runs are of files

    # Parsed from JSON text, as strict models accept lists for tuples only there.
    return read_record(json.dumps(value))


def restore(path: Path, store: Store) -> Run:
    """Put the run of an exported file into a store. Raises ``UserError``."""
    value = read_json(path)
    try:
        run = _to_run(value)
        rows = list(_to_rows(value["rows"]))
    except NOT_UNDERSTOOD:
        raise not_understood(path) from None
    return store.restore_run(run, rows)


def _to_run(value: Any) -> Run:
    texts = {name: _text(value[name]) for name in ("id", "kind", "title", "started_at")}
    state = value["state"]
    if state not in ("finished", "partial"):  # nobody adds to a file
        state = "interrupted"
    return Run(
        seq=0,
        **texts,
        command=tuple(_text(word) for word in value["command"]),
        plan=value["plan"],
        seed=value["seed"],
        state=state,
        ended_at=value["ended_at"],
        row_count=int(value["row_count"]),
    )


def _to_rows(values: Any) -> Iterator[Row | DamagedRow]:
    for value in values:
        if value["outcome"] == "damaged":
            yield DamagedRow(value["number"], _text(value["reason"]))
            continue
        record = value["record"]
        yield Row(
            seq=0,
            number=int(value["number"]),
            key=_text(value["key"]),
            labels={_text(name): _text(label) for name, label in value["labels"].items()},
            outcome=value["outcome"],
            reason=value["reason"],
            detail=value["detail"],
            added_at=_text(value["added_at"]),
            record=None if record is None else to_record(record),
        )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
