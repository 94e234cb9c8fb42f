"""``trueload http URL``: load an HTTP server and say what it carried.

How: the flags become one ``Job`` (checked as a whole; nothing is sent before), the job becomes
trials, each trial is saved as soon as it has ended, and the exit code follows from the records.
Must not know how a trial works.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import typer

from trueload.cli import options
from trueload.cli.flags import command, with_flags_of
from trueload.cli.job import Job, Saved, check_writable, tell_nothing_measured, write_json
from trueload.cli.load_flags import LoadFlags, choose_load
from trueload.cli.request_flags import read_asked
from trueload.cli.search import SearchFlags, choose_search, run_search, started
from trueload.engine import find_engine
from trueload.errors import ExitCode, UserError
from trueload.interrupt import Interrupt
from trueload.record import SCHEMA, Claim, Record
from trueload.report.live import live_view
from trueload.report.result import repeated_lines, result_lines
from trueload.spec import NS_PER_S, TrialSpec, repetition
from trueload.stats import parse_percentile
from trueload.thresholds import Condition, Crossed, crossed, parse_condition
from trueload.trial import run_trial
from trueload.verdict import decide, worst_checks

TIMEOUT_NS = 5 * NS_PER_S
CONNECT_RATE_PER_S = 5_000

HELP = """Load an HTTP/1.1 server and say what it carried, and whether that can be trusted.

Each connection sends its next request as soon as its answer is there (a closed loop); with --rate
or --stages requests are sent by a schedule, and latency counts from it (an open loop). No redirects
are followed: an answer counts as it comes. With --body and no --method, the method is POST;
{counter} and {random} in path, header values and body are filled in for each request. With
--limit the largest load that keeps to it is searched, and confirmed by a run of its own.

Example: trueload http http://127.0.0.1:8080/ -c 64 -d 10s --fail-on 'p99>20ms'
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("http", help=HELP)(command(read_job, run_job))


@with_flags_of(read_asked, without=())
def read_job(
    connections: options.ConnectionsOption = None,
    duration: options.DurationOption = None,
    requests: options.RequestsOption = None,
    rate: options.RateOption = None,
    arrivals: options.ArrivalsOption = None,
    seed: options.SeedOption = None,
    stages: options.StagesOption = None,
    stages_of: options.StagesOfOption = None,
    pipeline: options.PipelineOption = None,
    refill: options.RefillOption = None,
    timeout: options.TimeoutOption = None,
    warmup: options.WarmupOption = None,
    threads: options.ThreadsOption = None,
    cpus: options.CpusOption = None,
    driver: options.DriverOption = None,
    spin: options.SpinOption = None,
    connect_rate: options.ConnectRateOption = None,
    repeat: options.RepeatOption = None,
    limit: options.LimitOption = None,
    search: options.SearchOption = None,
    fail_on: options.FailOnOption = None,
    strict: options.StrictOption = False,
    json_path: options.JsonOption = None,
    no_save: options.NoSaveOption = False,
    **asked_flags: Any,
) -> Job:
    """What the flags mean, checked as a whole; nothing has been sent."""
    asked = read_asked(**asked_flags)
    thresholds = tuple(parse_condition(text) for text in fail_on or ())
    load = LoadFlags(
        connections=connections,
        duration_ns=duration,
        requests=requests,
        warmup_ns=warmup,
        rate_per_s=rate,
        arrivals=arrivals,
        seed=seed,
        random=asked.has_random,
        stages=stages,
        stages_of=stages_of,
    )
    plan = choose_search(SearchFlags(limit, search, repeat), load)
    chosen = choose_load(started(load, plan))
    spec = TrialSpec(
        url=asked.url,
        addresses=(),  # asked for last: a mistake in any flag must not even ask for a name
        request=asked.request,
        expect=asked.expect,
        targets=asked.targets,
        seed=load.the_seed,
        connections=chosen.connections,
        pipeline=_pipeline(pipeline, asked.close),
        close=asked.close,
        load=chosen.load,
        stop=chosen.stop,
        warmup=chosen.warmup,
        timeout_ns=timeout or TIMEOUT_NS,
        connect_timeout_ns=timeout or TIMEOUT_NS,
        connect_rate_per_s=int(connect_rate or CONNECT_RATE_PER_S),
        threads=_threads(threads, chosen.connections),
        cpus=options.check_cpus(cpus),
        local_addresses=asked.local_addresses,
        tls=asked.tls,
        claim=Claim(percentile=claimed_percentile(thresholds)),
        driver=options.driver_name(driver),
        spin_ns=spin or 0,
        refill=_refill(refill, pipeline or 1),
    )
    return Job(
        spec=spec,
        target=asked.target,
        route=asked.route,
        repeat=repeat or 1,
        thresholds=thresholds,
        strict=strict,
        json_path=json_path,
        save=not no_save,
        search=plan,
    )


def claimed_percentile(conditions: Sequence[Condition]) -> str | None:
    """The highest percentile that a condition names: it must be known well enough to decide."""
    named = {part.metric for condition in conditions for part in condition.parts}
    shares = {name: parse_percentile(name) for name in named}
    return max(named, key=lambda name: shares[name] or 0.0) if any(shares.values()) else None


def _pipeline(pipeline: int | None, close: bool) -> int:
    if close and (pipeline or 1) > 1:
        raise UserError("--close and --pipeline exclude each other", "keep one of them")
    return pipeline or 1


def _refill(refill: int | None, pipeline: int) -> int | None:
    if refill is not None and refill > pipeline:
        raise UserError(
            f"--refill {refill} is more than --pipeline {pipeline} has places",
            f"use at most {pipeline}, or a longer --pipeline",
        )
    return refill


def _threads(threads: int | None, connections: int) -> int:
    if threads is not None and threads > connections:
        raise UserError(
            f"{threads} threads cannot share {connections} connections",
            "use at least a connection per thread",
        )
    return threads or 1


def run_job(job: Job) -> int:
    """Measure, save, show; the exit code follows."""
    if job.search is not None:
        return run_search(job, job.search, "http", job.addresses)
    check_writable(job.json_path)
    find_engine()  # before a run is begun in the store that could measure nothing
    with contextlib.ExitStack() as stack:
        interrupt = stack.enter_context(Interrupt())
        saved = stack.enter_context(Saved.begin(stack, "http", job.spec.url, save=job.save))
        spec = replace(job.spec, addresses=job.addresses())
        records = []
        for number in range(1, job.repeat + 1):
            title = "trueload http" + (f"  {number}/{job.repeat}" if job.repeat > 1 else "")
            one = repetition(spec, number)
            with live_view(one, title) as on_progress:
                record = run_trial(one, on_progress=on_progress, interrupt=interrupt)
            saved.add(record)
            records.append(record)
            if interrupt.requested:
                break
        saved.end(interrupt.requested)
        over = crossed(job.thresholds, records)
        code = exit_code(records, over, interrupted=interrupt.requested, strict=job.strict)
        try:
            _show(job, records, over, saved)
        except OSError:
            # A terminal that hung up cannot be written to; what was measured is saved.
            if not interrupt.requested:
                raise
        return code


def exit_code(
    records: Sequence[Record], over: Sequence[Crossed], *, interrupted: bool, strict: bool = False
) -> ExitCode:
    """What the command ends with; where two apply, in this order: 130, 3, 4, 1, 0."""
    if interrupted:
        return ExitCode.INTERRUPTED
    if all(record.connections.established == 0 for record in records):
        return ExitCode.NOTHING_MEASURED
    bad = {"invalid", "suspect"} if strict else {"invalid"}
    if any(record.verdict in bad for record in records):
        return ExitCode.INVALID
    return ExitCode.THRESHOLD if over else ExitCode.OK


def result_json(records: Sequence[Record], run_id: str | None) -> dict[str, Any]:
    """One trial: its record. Several: one object with the worst of each check, and the trials."""
    if len(records) == 1:
        return records[0].model_dump(mode="json")
    checks = worst_checks(records)
    return {
        "schema": SCHEMA,
        "id": run_id or records[0].id,
        "started_at": records[0].started_at,
        "partial": any(record.partial for record in records),
        "verdict": decide(checks),
        "checks": [check.model_dump(mode="json") for check in checks],
        "trials": [record.model_dump(mode="json") for record in records],
    }


def _show(job: Job, records: Sequence[Record], over: Sequence[Crossed], saved: Saved) -> None:
    to_stdout = job.json_path is not None and str(job.json_path) == "-"
    talk = sys.stderr if to_stdout else sys.stdout
    lines = result_lines(records[0]) if len(records) == 1 else repeated_lines(records)
    if saved.run_id:
        lines.append(f"{'saved':<13}{saved.run_id}   (trueload runs show {saved.run_id})")
    talk.write("\n".join(lines) + "\n")
    talk.flush()
    if job.json_path is not None:
        write_json(job.json_path, result_json(records, saved.run_id))
    for crossing in over:
        sys.stderr.write(f"threshold crossed: {crossing.sentence()}\n")
    if all(record.connections.established == 0 for record in records):
        tell_nothing_measured(job, records[0])
    saved.tell()
