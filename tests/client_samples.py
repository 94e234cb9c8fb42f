"""What client and server report of a successful order, of which a test changes one thing.

``good_client_record`` is the record of a client on a quiet machine; it must be valid.
"""

from __future__ import annotations

from typing import Any

from samples import ENVIRONMENT
from trueload.assemble.client import ClientObservation, EndSample, make_client_record
from trueload.assemble.observation import HostSample
from trueload.machine.accounting import MachineSample, ProcessSample, ThreadSample, TreeSample
from trueload.machine.noise import NoiseSample, Used
from trueload.protocol.client import Claim, ClientSetup, LatencyUs
from trueload.protocol.server_report import Concurrent, Quantiles, Seen, Span
from trueload.record.client import ClientAsked
from trueload.record.schema import Record

S = 1_000_000_000
MS = 1_000_000
REQUESTS = 20_000
WAIT_MS = 10

SETUP = ClientSetup(
    url="http://127.0.0.1:8080/wait/10",
    concurrency=1024,
    pools=4,
    pool_size=64,
    timeout_ms=10_000,
    pipelining=1,
    keep_alive=True,
)
ASKED = ClientAsked(
    setup=SETUP, requests=REQUESTS, warmup_requests=4_000, wait_ms=WAIT_MS, files=None
)
CLAIM = Claim(
    ok=REQUESTS,
    failed={},
    elapsed_s=0.99,
    latency_us=LatencyUs(p50=51_000, p90=60_000, p99=70_000, max=90_000),
)
LATE = Quantiles(count=REQUESTS, min=0, mean=90_000.0, p50=80_000, p90=100_000, p99=200_000, max=MS)
SEEN = Seen(
    type="seen",
    id="mark 3",
    began_ns=0,
    at_ns=2 * S,
    threads=1,
    requests=REQUESTS,
    answered=REQUESTS,
    ok=REQUESTS,
    statuses={"200": REQUESTS},
    aborted=0,
    dropped=0,
    half_sent=0,
    malformed=0,
    faults={},
    first_request_ns=S // 2,
    last_answer_ns=S // 2 + S,
    bytes_in=REQUESTS * 60,
    bytes_out=REQUESTS * 80,
    accepted=0,
    closed=0,
    connections=Concurrent(now=256, peak=256, mean=256.0),
    open_requests=Concurrent(now=0, peak=256, mean=200.0),
    requests_per_connection=None,
    used_once=0,
    unused=0,
    gap_ns=None,
    delay_error_ns=LATE,
    span_ns=S // 4,
    series=tuple(
        Span(
            began_ns=number * S // 4,
            ns=S // 4,
            requests=REQUESTS // 4,
            answered=REQUESTS // 4 if 2 <= number < 6 else 0,
            connections_peak=256,
            connections_mean=256.0,
            open_requests_peak=256,
            open_requests_mean=200.0,
        )
        for number in range(8)
    ),
)


def tree(pid: int, cpu: int, busy_ns: int, at_ns: int) -> TreeSample:
    """A process tree of one process with one thread that has used this much CPU time."""
    process = ProcessSample(
        pid=pid,
        parent_pid=1,
        start_ticks=7,
        cpu_ns=busy_ns,
        user_ns=busy_ns // 2,
        system_ns=busy_ns // 2,
        waited_user_ns=0,
        waited_system_ns=0,
        peak_rss_bytes=50_000_000,
        threads={pid: ThreadSample(run_ns=busy_ns, wait_ns=0)},
        cpus=frozenset({cpu}),
    )
    return TreeSample(at_ns=at_ns, processes={process.identity: process}, group=None)


def look(at_ns: int, client_ns: int, server_ns: int, *, server_cpu: int = 0) -> EndSample:
    """Samples of both ends at one moment, with the CPU time that each has used so far."""
    return EndSample(
        host=HostSample(
            machine=MachineSample(at_ns=at_ns, cpus={}),
            server=tree(20, server_cpu, server_ns, at_ns),
            processes=NoiseSample(
                at_ns=at_ns,
                processes={(10, 7): Used(1, client_ns, 0), (20, 7): Used(1, server_ns, 0)},
                programs_ns=client_ns + server_ns,
                cpus=2,
            ),
        ),
        client=tree(10, 1, client_ns, at_ns),
    )


def observation(**changes: Any) -> ClientObservation:
    """The observation of a successful order of one second."""
    fields: dict[str, Any] = {
        "id": "01a1fa73-8e40-79e7-b0d7-dfb4f0bd954d",
        "started_at": "2026-11-20T19:33:59.488Z",
        "asked": ASKED,
        "claim": CLAIM,
        "seen": SEEN,
        "warmup": [CLAIM.model_copy(update={"ok": 4_000})],
        "before": look(0, 0, 0),
        "after": look(S, 9 * S // 10, S // 2),
        "wall_s": 1.0,
        "ready_wall_s": 0.2,
        "cpus": (1,),
        "server_cpus": (),
        "front_pid": 1,
        "environment": ENVIRONMENT,
    }
    return ClientObservation(**{**fields, **changes})


def good_client_record(**changes: Any) -> Record:
    """The record of that observation; ``changes`` replace fields of the observation."""
    return make_client_record(observation(**changes))
