"""``--request-log``: a file with a row for each request of the window."""

from __future__ import annotations

from operator import itemgetter
from pathlib import Path

from trueload.commands.options import check_writable
from trueload.errors import UserError
from trueload.extras import require
from trueload.files.outputs import text_output
from trueload.protocol.option import refuse_beside
from trueload.record.schema import Record
from trueload.report.account import Column
from trueload.request.redact import redact_url
from trueload.request.traffic import Traffic
from trueload.trial.request_log import TIMES, RequestLog

FLAG = "--request-log"
TEXTS = ("host", "target", "class")


def check_request_log(path: Path | None, *, searches: bool, repeats: bool) -> None:
    """Raise ``UserError`` for a file that cannot be written, and for more than one trial."""
    if path is None:
        return
    if path.suffix.lower() not in (".csv", ".parquet"):
        raise UserError(
            f"{FLAG} {path} does not say what to write: its ending is not known",
            "end it with .csv or .parquet",
        )
    why = "a log has the requests of one trial"
    refuse_beside(FLAG, {"--limit": searches}, "leave out --limit", why)
    refuse_beside(FLAG, {"--repeat": repeats}, "leave out --repeat", why)
    check_writable(path, FLAG)
    if path.suffix.lower() == ".parquet":
        require("parquet", f"{FLAG} {path}", "pyarrow")


def write_request_log(
    path: Path | None, log: RequestLog | None, traffic: Traffic, record: Record
) -> UserError | None:
    """Write the log of a trial, if there is one; return the error if that failed."""
    if path is None or log is None:
        return None
    # Imported late: most runs have no log.
    from trueload.report.export.csv import csv_lines
    from trueload.report.export.parquet import write_parquet
    from trueload.report.sheets import Sheet

    targets = [each.name or each.url for each in record.targets or ()]
    if traffic.replay is not None:
        targets = [redact_url(url) for _, url, *_ in traffic.replay.requests]
    names = ("connection", "target", "status", "class", *TIMES, "one_in")
    columns = [
        Column(name, itemgetter(name), "text" if name in TEXTS else "int")
        for name in (*(["host"] if log.has_hosts else []), *names)
    ]
    sheet = Sheet(columns, log.rows(targets))
    try:
        if path.suffix.lower() == ".parquet":
            write_parquet(sheet, path)
        else:
            with text_output(path, newline="") as file:
                file.writelines(csv_lines(sheet))
    except UserError as error:
        return error
    return None
