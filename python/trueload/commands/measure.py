"""What the options of a command that measures mean: a ``Job``, checked before anything is sent.

A protocol's own options are a ``Workload`` already; here are those that all protocols have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from trueload.commands.connect_open import by_connections, fail_on_form
from trueload.commands.host_duration import check_dry_run
from trueload.commands.job import Job, Workload
from trueload.commands.job_options import JobOptions
from trueload.commands.late_hosts import check_joining
from trueload.commands.load_flags import choose_load
from trueload.commands.measure_options import MeasureOptions
from trueload.commands.place_options import (
    check_allowed_losses,
    check_local_addresses,
    check_pinned,
)
from trueload.commands.replay_flags import check_replay
from trueload.commands.request_log import check_request_log
from trueload.commands.scenario_flags import check_scenario
from trueload.commands.search_flags import choose_search, started
from trueload.commands.slow_connections import check_slow_connections
from trueload.commands.web import check_web
from trueload.commands.weights import check_weights
from trueload.errors import UserError
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.exchange import WindowsPlan
from trueload.protocol.load_options import LoadOptions
from trueload.protocol.option import refuse_beside
from trueload.record.schema import Claim
from trueload.record.thresholds import Condition, parse_condition
from trueload.request.follow import check_load
from trueload.request.origins import check_origins
from trueload.stats import parse_percentile
from trueload.trial.request_log import RequestLog
from trueload.trial.spec import Load, TrialSpec
from trueload.units import counted


def make_job(workload: Workload, options: JobOptions) -> Job:
    """Check what was asked for as a whole, and return it; nothing has been sent. Raises
    ``UserError``."""
    given, of_load, placement = options.given, options.load, options.placement
    check_dry_run(given.dry_run, placement)
    check_web(given)
    engine = options.engine
    if workload.timeout_ns is not None:
        engine = engine.over(EngineOptions(timeout_ns=workload.timeout_ns))
    form = fail_on_form(workload)
    thresholds = tuple(parse_condition(text, form) for text in given.fail_on)
    of_load = by_connections(workload, of_load, engine, given.search)
    check_replay(workload, searches=given.limit is not None)
    check_request_log(
        workload.request_log, searches=given.limit is not None, repeats=(given.repeat or 1) > 1
    )
    traffic = workload.traffic
    plan = choose_search(given, of_load, len(workload.origins), bool(traffic.scenario))
    once = traffic.data is not None and traffic.data.order == "unique"
    if once:
        _check_once(given)
    load, http2 = _load_of(workload, started(of_load, plan), once=once)
    _check_engine(engine, load)
    check_scenario(traffic.scenario, load, engine)
    check_slow_connections(workload, engine)
    check_pinned(engine, placement)
    check_weights(placement, origins=len(workload.origins), replay=traffic.replay is not None)
    given_too = {"--limit": given.limit, "--repeat": (given.repeat or 1) > 1}
    check_joining(placement, traffic, load, given_too)
    local_addresses = check_local_addresses(traffic.local_addresses, placement)
    spec = TrialSpec(
        url=workload.url,
        addresses=(),  # resolved last: with a mistake in any flag no name is looked up
        traffic=replace(traffic, http2=http2, local_addresses=local_addresses),
        seed=of_load.seed,
        load=load,
        engine=engine,
        server_pid=placement.server_pid,
        allow_lost=check_allowed_losses(given.allow_lost, placement, searches=plan is not None),
        claim=Claim(percentile=claimed_percentile(thresholds), same=traffic.expect.same),
        request_log=None if workload.request_log is None else RequestLog(),
    )
    check_origins(
        workload.origins,
        connections=load.connections,
        unix=workload.route.unix is not None,
        server_place=placement.server is not None,
    )
    return Job(
        workload=workload,
        spec=spec,
        given=given,
        format=given.format,
        thresholds=thresholds,
        repeat=given.repeat or 1,
        live=not (given.no_live or given.quiet),
        search=plan,
        placement=placement,
        metrics=options.metrics,
    )


def _load_of(
    workload: Workload, given: LoadOptions, *, once: bool
) -> tuple[Load, WindowsPlan | None]:
    """Choose the load, and what HTTP/2 is told of it. Raises ``UserError``."""
    traffic = workload.traffic
    load = choose_load(
        given, random=traffic.has_random, close=workload.close, once=once, replay=traffic.replay
    )
    load, http2 = with_streams(load, workload)
    load = replace(load, connect_open=workload.connect_open_per_s is not None)
    check_load(traffic.dialogue.follow, connect_open=load.connect_open)
    return load, http2


def _check_once(given: MeasureOptions) -> None:
    """Refuse options that would send rows again which are to be sent once."""
    hint = "it would send each row again: use another order"
    refuse_beside("--limit", {"--data-order unique": given.limit is not None}, hint)
    refuse_beside("--repeat", {"--data-order unique": (given.repeat or 1) > 1}, hint)


def with_streams(load: Load, workload: Workload) -> tuple[Load, WindowsPlan | None]:
    """Return the load with the streams per connection that were asked for.

    ``--pipeline`` is for connections that may speak HTTP/1.1. Raises ``UserError``.
    """
    http2 = workload.traffic.http2
    if http2 is None:
        return load, None
    if http2.is_chosen:
        http2 = http2.model_copy(update={"http1_pipeline": load.pipeline})
    elif load.pipeline > 1:
        raise UserError(
            "--pipeline is for HTTP/1.1, but --http 2 was given", "use --streams N instead"
        )
    refuse_beside("--close", {"--streams": load.close and (workload.streams or 1) > 1})
    return replace(load, pipeline=workload.streams or 1), http2


def claimed_percentile(conditions: Sequence[Condition]) -> str | None:
    """Return the highest percentile in a condition: it must be known well enough to decide."""
    named = {part.metric for condition in conditions for part in condition.parts}
    shares = {name: parse_percentile(name) for name in named}
    return max(named, key=lambda name: shares[name] or 0.0) if any(shares.values()) else None


def _check_engine(engine: EngineOptions, load: Load) -> None:
    if engine.threads > load.connections:
        raise UserError(
            f"{engine.threads} threads cannot share {counted(load.connections, 'connection')}",
            "use at least a connection per thread",
        )
    if engine.refill is not None and engine.refill > load.pipeline:
        raise UserError(
            f"--refill {engine.refill} must be at most --pipeline {load.pipeline}",
            f"use at most {load.pipeline}, or a longer --pipeline",
        )
