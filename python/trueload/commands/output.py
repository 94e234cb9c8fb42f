"""What commands that measure tell the user beside the result, and how they end.

Notes and errors go to stderr. Nothing here measures.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from trueload.commands.job import Job
from trueload.commands.web import ShowReport, web_page
from trueload.errors import ExitCode, UserError, unsaved
from trueload.files import outputs
from trueload.interrupt import Interrupt
from trueload.metrics.exports import exporting
from trueload.record.certainty import Ruling
from trueload.record.schema import Record
from trueload.record.shortage import memory_fault
from trueload.record.thresholds import direction_note
from trueload.report.live import Watch, stop_key, watch
from trueload.report.tls import reasons_text, tls_hint
from trueload.request.redact import redact_url
from trueload.text import plain

ORIGINS_SHOWN = 3  # a hint is one line


@contextlib.contextmanager
def at_terminal(job: Job, command: str) -> Iterator[tuple[Interrupt, Watch, ShowReport]]:
    """Let the user watch and stop what is measured, and programs read its metrics."""
    with (
        Interrupt() as interrupt,
        stop_key(interrupt.request, wanted=job.live),
        exporting(job.metrics, {"command": command}, interrupt, notes_of(job)) as exports,
        web_page(job.given.web, interrupt, announce) as (page, show_report),
    ):
        yield interrupt, exports.beside(watch(live=job.live, page=page)), show_report


def code_after(show: Callable[[], bool], code: ExitCode, *, interrupted: bool) -> ExitCode:
    """Show a result; return the exit code. ``show`` returns whether all is saved and written."""
    # A terminal that hung up cannot be written to; what was measured is saved.
    with contextlib.suppress(*([OSError] if interrupted else [])):
        if not show():
            return unsaved(code)
    return code


def exit_code(
    records: Sequence[Record], rulings: Sequence[Ruling], *, interrupted: bool, strict: bool = False
) -> ExitCode:
    """Return the exit code of the command.

    If several apply, the first of 130, 71, 3, 4, 74, 1, 0 is taken. But where conditions were given
    and all are decided, 1 or 0 comes before 4, whatever the verdict.
    """
    if interrupted:
        return ExitCode.INTERRUPTED
    if any(memory_fault(record) for record in records):
        return ExitCode.MACHINE
    if all(record.connections.established == 0 for record in records):
        return ExitCode.NOTHING_MEASURED
    states = {ruling.state for ruling in rulings}
    bad = {"invalid", "suspect"} if strict else {"invalid"}
    is_bad = any(record.verdict in bad for record in records)
    if "undecided" in states or (is_bad and (strict or not states)):
        return ExitCode.INVALID
    return ExitCode.THRESHOLD if "crossed" in states else ExitCode.OK


def notes_of(job: Job) -> Callable[[str], None]:
    """Return the function for notes to the user; it does nothing with ``--quiet``."""
    return (lambda _: None) if job.given.quiet else announce


def announce(line: str) -> None:
    """Write a line to stderr, where the reader may have gone."""
    with contextlib.suppress(OSError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def note_directions(job: Job) -> None:
    """Note the conditions that good values would cross, unless the result is for a program."""
    if job.given.quiet or job.format == "json" or str(job.given.json_path) == "-":
        return
    for note in map(direction_note, job.thresholds):
        if note is not None:
            announce(f"note: {plain(note)}")


def note_recording(job: Job) -> None:
    """Note what is replayed and how, unless nothing is to be told."""
    replay = job.spec.traffic.replay
    if replay is not None:
        for note in replay.notes:
            notes_of(job)(f"note: {plain(note)}")


def report_rulings(rulings: Sequence[Ruling]) -> None:
    """Report the conditions that were crossed, undecided, or kept in spite of a disturbance."""
    for ruling in rulings:
        if ruling.why:
            sys.stderr.write(f"threshold {ruling.state}: {plain(ruling.why)}\n")


def report_shortfall(job: Job, records: Sequence[Record]) -> None:
    """Report that the engine ran out of memory, or that no trial had a usable connection.

    Says nothing if the user interrupted the attempts, as that is reported elsewhere.
    """
    spent = [record for record in records if memory_fault(record)]
    if not spent and any(record.connections.established for record in records):
        return
    record = (spent or records)[0]
    if record.partial and record.trouble is None and not record.counts.failed:
        return
    why = nothing_measured(job, record)
    sys.stderr.write(f"error: {why.message}\nhint: {why.hint}\n")


def nothing_measured(job: Job, record: Record) -> UserError:
    """Return the error that explains why no connection became usable."""
    failed, reasons = record.counts.failed, record.connections.reasons
    if (spent := memory_fault(record)) is not None:
        return spent
    if record.trouble is not None:
        why, hint = record.trouble.what, "`trueload doctor` looks at this machine"
    elif "dns" in failed:
        unknown = zip(job.workload.origins, record.plan.generate.origins, strict=True)
        endpoint = next(
            (each for each, found in unknown if not found.addresses), job.workload.endpoint
        )
        endpoint = job.workload.route.next_hop(endpoint)
        why = f"'{endpoint.host}' does not resolve"
        hint = "look for a mistake in the name, or write the address"
    else:
        why = f"no connection became usable: {', '.join(sorted(failed)) or 'none was tried'}"
        if reasons:
            why = f"no connection became usable: {reasons_text(reasons)}"
        hint = (
            _proxy_hint(failed, job)
            or _http2_hint(failed, job)
            or tls_hint(failed, reasons, job.workload.endpoint.unsealed)
            or _ws_hint(failed, job)
            or f"is a server listening on {_asked_for(job)}?"
        )
    return UserError(why, hint, ExitCode.NOTHING_MEASURED)


def _proxy_hint(failed: Mapping[str, int], job: Job) -> str | None:
    proxy = job.workload.route.proxy
    if proxy is None or not any(name.startswith("connect.") for name in failed):
        return None
    if "connect.proxy" in failed:
        return f"does the proxy at {proxy.endpoint.host_port} let CONNECT through, to this port?"
    return f"is a proxy listening on {proxy.endpoint.host_port}?"


def _asked_for(job: Job) -> str:
    shown = [at.host_port for at in job.workload.origins[:ORIGINS_SHOWN]]
    if len(job.workload.origins) > ORIGINS_SHOWN:
        shown.append(f"{len(job.workload.origins) - ORIGINS_SHOWN} others")
    return " or ".join(shown) or job.workload.route.unix or job.workload.endpoint.host_port


def _http2_hint(failed: Mapping[str, int], job: Job) -> str | None:
    spoke = (name for name in failed if not name.startswith(("connect.", "local.", "tls.")))
    http2 = job.spec.traffic.http2
    if http2 is None or not (any(spoke) or "tls.alpn" in failed):
        return None
    if http2.is_chosen and not any(name.startswith("h2.") for name in failed):
        return None
    return f"{_asked_for(job)} does not speak HTTP/2 to us; try --http 1.1"


def _ws_hint(failed: Mapping[str, int], job: Job) -> str | None:
    reached = (name for name in failed if not name.startswith(("connect.", "local.")))
    if job.workload.endpoint.unsealed != "ws" or not any(reached):
        return None
    path = redact_url(job.workload.endpoint.path)
    return f"does the server speak WebSocket at {path}, in this dialect?"


def write_json(path: Path | None, value: Mapping[str, Any]) -> UserError | None:
    """Write the result as one JSON object, if asked for; to stdout for ``-``.

    Returns the error if it could not be written. It is reported last, after the result.
    """
    if path is not None:
        try:
            outputs.write_text(path, json.dumps(value) + "\n")
        except UserError as error:
            return error
    return None
