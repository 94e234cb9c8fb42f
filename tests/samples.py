"""Records of an ordinary trial, of which a test changes one thing.

``good_record`` is what a quiet machine with the CPUs kept apart gives; it must be valid.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field, TypeAdapter
from trueload import hdr
from trueload.machine.accounting import ProcessSample, TreeSample
from trueload.protocol.connections import Slots
from trueload.protocol.exchange import ExpectPlan, RequestPlan
from trueload.protocol.flow import Flow
from trueload.protocol.lateness import Lateness
from trueload.protocol.plan import (
    Closed,
    Duration,
    Generate,
    Histograms,
    Open,
    Phase,
    ToEngine,
)
from trueload.protocol.tick import Counts, Second
from trueload.record.account import TrialFacts
from trueload.record.accounts.generator_times import GeneratorTime, GeneratorTimes
from trueload.record.schema import (
    SCHEMA,
    Check,
    Connections,
    CpuWait,
    Environment,
    Generator,
    Host,
    Lifetime,
    Record,
    RecordPlan,
    Server,
    Throughput,
    Warmup,
    Window,
)
from trueload.stats import (
    HIGHEST_NS,
    SIGNIFICANT_DIGITS,
    Distribution,
    decode_histogram,
    summarise,
)
from trueload.verdict import judge


def flat(lines: Iterable[str]) -> str:
    """The words of lines that may be wrapped, with one space between them."""
    return " ".join(" ".join(lines).split())


TO_ENGINE: TypeAdapter[ToEngine] = TypeAdapter(Annotated[ToEngine, Field(discriminator="type")])
"""Reads what the engine is told, as the engine does."""

URL = "http://127.0.0.1:8080/"
OK = 10_000
SLOTS = 10
STAMPED = 1_000  # answers on the one connection whose receive times are sampled
WINDOW_NS = 1_000_000_000
NO_COUNTS = Counts(
    scheduled=0, unsent=0, issued=0, ok=0, stale=0, cancelled=0, failed={}, statuses={}
)

ENVIRONMENT = Environment(
    kernel="Linux 6.1", cpu_model="A CPU", cpu_count=2, governor=None, limits={}, versions={}
)
GENERATOR = Generator(
    driver="epoll",
    threads=1,
    cpus=(1,),
    allowed_cpus=(1,),
    cpu_s=0.5,
    cpu_share=0.5,
    saturation=0.5,
    peak_rss_bytes=2_000_000,
    send_lag_p99_ns=None,
    lateness=Lateness(waited_ns=20_000_000),
    waited=CpuWait(share=0.02, for_others=0.001),
)
SERVER = Server(
    source="found",
    cpu_s=0.6,
    user_s=0.1,
    system_s=0.5,
    saturation=0.6,
    peak_rss_bytes=3_000_000,
    threads=1,
    lifetime=Lifetime(user_s=1.0, system_s=2.0),
    pids=(4242,),
    allowed_cpus=(0,),
    waited=CpuWait(share=0.03, for_others=0.002),
)


def distribution(encoded: str | None) -> Distribution:
    """The figures of a histogram."""
    return summarise(decode_histogram(encoded))


def histogram(*values_and_counts: tuple[int, int]) -> str:
    """Encode a histogram of values (ns), each with its count."""
    ordered = sorted(values_and_counts)
    return hdr.encode(ordered, HIGHEST_NS, SIGNIFICANT_DIGITS)


GOOD_HOST = Host(
    place="local",
    generator=GENERATOR,
    environment=ENVIRONMENT,
    clock_offset_ns=None,
    clock_bound_ns=None,
)


def check_of(record: Record, name: str) -> Check:
    """A check of a record by its name."""
    return next(check for check in record.checks if check.name == name)


def trial_facts(window: Any, **more: Any) -> TrialFacts:
    """What an account is made from: of a good record, but for this measurement."""
    return TrialFacts(window=window, **{"generate": good_record().plan.generate, **more})


def good_record(**changes: Any) -> Record:
    """10,000 answers of 1 ms each on 10 connections in 1 s; ``changes`` replace whole fields."""
    latency = histogram((1_000_000, OK))
    fields: dict[str, Any] = {
        "schema": SCHEMA,
        "id": "01a1fa73-8e40-79e7-b0d7-dfb4f0bd954d",
        "started_at": "2026-11-20T19:33:59.488Z",
        "plan": RecordPlan(
            url="http://127.0.0.1:8080/", generate=plan(), warmup=None, window=PHASE
        ),
        "partial": False,
        "verdict": "invalid",
        "checks": (),
        "counts": counts(),
        "warmup": Warmup(counts=NO_COUNTS, wall_s=0.0),
        "throughput": Throughput(ok_per_s=OK, bytes_in_per_s=1_300_000.0, bytes_out_per_s=4e5),
        "latency_ns": distribution(latency),
        "service_ns": distribution(latency),
        "connect_ns": distribution(histogram((50_000, SLOTS))),
        "first_byte_ns": distribution(latency),
        "total_ns": Distribution(),
        "histograms": Histograms(
            latency=latency,
            service=latency,
            connect=histogram((50_000, SLOTS)),
            first_byte=latency,
            total=None,
            send_lag=histogram((4_000, OK)),
            receive_lag=histogram((6_000, STAMPED)),
            round_trip=histogram((990_000, STAMPED)),
        ),
        "client_ns": GeneratorTimes(
            send=GeneratorTime(count=OK, p50=4_000, p99=4_000, max=4_000),
            receive=GeneratorTime(count=STAMPED, p50=6_000, p99=6_000, max=6_000),
        ),
        "round_trip_ns": distribution(histogram((990_000, STAMPED))),
        "connections": connections(),
        "slots": slots(),
        "series": (Second(t_s=0, ok=OK, failed=0, latency={100: OK}),),
        "flow": flow(),
        "generator": GENERATOR,
        "server": SERVER,
        "hosts": (GOOD_HOST,),
        "environment": ENVIRONMENT,
        "window": Window(
            window_ns=WINDOW_NS,
            drain_ns=1_000_000,
            connect_wall_s=0.01,
            wall_s=2.1,
            host_idle_share=0.5,
            others_share=0.01,
            stolen_share=0.0,
        ),
        "trouble": None,
    }
    return judge(Record(**{**fields, **changes}))


PHASE = Phase(id="window", load=Closed(), connections=None, stop=Duration(ns=WINDOW_NS), at_ns=None)


def staged(*rates: tuple[float, float], **changes: Any) -> Phase:
    """A window with an open loop of one stage per (from, to), all equally long.

    ``changes`` replace fields of the load.
    """
    stages = [{"ns": WINDOW_NS // len(rates), "from": first, "to": last} for first, last in rates]
    load = {"stages": stages, "arrivals": "constant", "seed": 1, **changes}
    return PHASE.model_copy(update={"load": Open.model_validate(load)})


def plan(**changes: Any) -> Generate:
    """The plan that the engine was given."""
    fields: dict[str, Any] = {
        "addresses": ("127.0.0.1:8080",),
        "local_addresses": (),
        "request": RequestPlan(
            method="GET", path="/", headers=(("Host", "127.0.0.1:8080"),), body_sha256=None
        ),
        "expect": ExpectPlan(statuses=None, body_sha256=None),
        "connections": SLOTS,
        "pipeline": 1,
        "close": False,
        "threads": 1,
        "cpus": (1,),
        "timeout_ns": 5 * WINDOW_NS,
        "connect_rate_per_s": 5_000,
    }
    return Generate(**{**fields, **changes})


def counts(**changes: Any) -> Counts:
    """10,000 requests, all of them answered."""
    fields: dict[str, Any] = {
        "scheduled": OK,
        "unsent": 0,
        "issued": OK,
        "ok": OK,
        "stale": 0,
        "cancelled": 0,
        "failed": {},
        "statuses": {"200": OK},
    }
    return Counts(**{**fields, **changes})


def connections(**changes: Any) -> Connections:
    """Ten connections that were up all the time."""
    fields: dict[str, Any] = {
        "requested": SLOTS,
        "established": SLOTS,
        "failed": {},
        "reconnects": 0,
        "starved": 0,
        "jain": 1.0,
        "least_ok": 1_000,
        "most_ok": 1_000,
        "down": 0,
        "outages": 0,
        "outage_ns": 0,
        "family": "ipv4",
        "address": "127.0.0.1:8080",
    }
    return Connections(**{**fields, **changes})


def index_of(value: int) -> int:
    """The index of a value in the engine's sparse histogram."""
    exponent = max(0, value.bit_length() - 7)
    return 64 * exponent + (value >> exponent)


def slots(**changes: Any) -> Slots:
    """Slots among which the work is spread evenly."""
    fields: dict[str, Any] = {
        "asked": SLOTS,
        "never_answered": 0,
        "answers_sum": OK,
        "answers_sum_squares": OK * OK // SLOTS,
        "answers_min": OK // SLOTS,
        "answers_max": OK // SLOTS,
        "means": ((index_of(1_000_000), 896, SLOTS),),
        "long_waits_ns": (),
        "permitted_ns": SLOTS * WINDOW_NS,
    }
    return Slots(**{**fields, **changes})


def flow(*answered: int, window_ns: int = WINDOW_NS, **changes: Any) -> Flow:
    """The flow of answers over the window: 20 in each of 500 parts unless given."""
    parts = answered or (OK // 500,) * 500
    fields: dict[str, Any] = {
        "whole_ns": window_ns,
        "part_ns": window_ns // len(parts),
        "answered": parts,
        "gaps": {},
        "backlog": None,
    }
    return Flow(**{**fields, **changes})


def sparse_index(ns: int) -> int:
    """The index of a time in the engine's sparse histogram."""
    exponent = max(0, ns.bit_length() - 7)
    return 64 * exponent + (ns >> exponent)


def server_tree(at_ns: int = 0, **changes: Any) -> TreeSample:
    """A server of one process that has used nothing, except for the given changes."""
    used = {"cpu_ns": 0, "user_ns": 0, "system_ns": 0, "waited_user_ns": 0, "waited_system_ns": 0}
    defaults: dict[str, Any] = {**used, "peak_rss_bytes": 0, "threads": {}, "cpus": frozenset()}
    process = ProcessSample(pid=7, parent_pid=1, start_ticks=0, **{**defaults, **changes})
    return TreeSample(at_ns=at_ns, processes={process.identity: process}, group=None)
