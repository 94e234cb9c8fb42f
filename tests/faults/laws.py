"""The seven laws that hold for every run against every peer, however broken, and a row's own `out`.

Every live test ends here, whether it drove the engine or the command line: both produce a `Seen`.
Law 5 is about exit codes, so it is checked only where there is one. Must not know how the run was
made.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness import Finished, Trueload, spoiled
from hdrh.histogram import HdrHistogram

from faults.cases import Case, Out
from faults.engine_lines import EngineRun
from faults.peer import Peer

RSS_BYTES_MOST: Final = 64 * 1024 * 1024
"""Law 4. The most that a row may cost the engine: a cap on a head is 256 KiB, and rows have few
connections, so this is an order of magnitude above what is needed and far below a leak."""

START_S_MOST: Final = 8.0
"""Law 3 is about the engine; this allows for starting Python on a loaded machine."""

NEVER_SENT: Final = ("connect.", "local.", "dns", "ws.handshake")
"""Requests charged with a connection that did not come about reach no server."""

MAYBE_SENT: Final = (
    *("closed_pipelined", "unsolicited", "reset", "empty", "timeout.first_byte", "timeout.tls"),
    *("tls.protocol", "tls.cert", "tls.eof", "tls.alpn", "tls.alert", "tls.version"),
)
"""Requests on a connection that the peer gave up or never read from may not have reached it."""


WHILE_UPGRADING: Final = (
    *("truncated", "limit", "timeout.total", "mismatch"),
    *("ws.protocol", "ws.payload", "ws.closed"),
)
"""… or before its connection was upgraded, which is no request."""


@dataclass(frozen=True)
class Seen:
    """What a run reports, warm-up and window together, and what was observed from outside."""

    scheduled: int
    unsent: int
    issued: int
    ok: int
    stale: int
    stale_resets: int
    cancelled: int
    failed: Mapping[str, int]
    statuses: Mapping[str, int]
    reconnects: int
    timed: int
    """Requests in the histograms of latencies that were kept."""
    ok_timed: int
    """Requests that ended well in the phases whose histograms were kept."""
    peak_rss_bytes: int | None
    exit_code: int | None = None
    verdict: str | None = None
    checks: Mapping[str, str] | None = None


def count_of(encoded: str | None) -> int:
    """The number of values in an encoded histogram; 0 for null."""
    if encoded is None:
        return 0
    total: int = HdrHistogram.decode(encoded).get_total_count()
    return total


def of_engine(run: EngineRun) -> Seen:
    """Summarise a run of the engine alone."""
    parts = list(run.measurements.values())
    counts = [part["counts"] for part in parts]
    return Seen(
        **_sum_counts(counts),
        reconnects=sum(part["connections"]["reconnects"] for part in parts),
        timed=sum(count_of(part["histograms"]["latency"]) for part in parts),
        ok_timed=sum(part["counts"]["ok"] for part in parts),
        peak_rss_bytes=max(part["generator"]["peak_rss_bytes"] for part in parts),
    )


def of_record(record: Mapping[str, Any], exit_code: int) -> Seen:
    """Summarise the JSON record of a command."""
    return Seen(
        **_sum_counts([record["counts"], record["warmup"]["counts"]]),
        reconnects=record["connections"]["reconnects"],
        # The record keeps no histogram of the warm-up.
        timed=count_of(record["histograms"]["latency"]),
        ok_timed=record["counts"]["ok"],
        peak_rss_bytes=record["generator"]["peak_rss_bytes"],
        exit_code=exit_code,
        verdict=record["verdict"],
        checks={check["name"]: check["status"] for check in record["checks"]},
    )


def _sum_counts(parts: list[Mapping[str, Any]]) -> dict[str, Any]:
    total: dict[str, Any] = {"failed": {}, "statuses": {}}
    for name in ("scheduled", "unsent", "issued", "ok", "stale", "stale_resets", "cancelled"):
        total[name] = sum(part[name] for part in parts)
    for name in ("failed", "statuses"):
        for part in parts:
            for key, count in part[name].items():
                total[name][key] = total[name].get(key, 0) + count
    return total


def assert_laws(
    seen: Seen,
    *,
    requests_at_peer: int | None,
    protocol: str = "http",
) -> None:
    """Check the seven laws of design §7.

    Law 3 is checked by the timeout of the command or engine, which is `give_up_s`.
    `requests_at_peer` is the count of a counting server. `protocol` is the one spoken: only HTTP
    answers have statuses, which are counted separately.
    """
    failed = sum(seen.failed.values())
    assert seen.issued == seen.ok + failed + seen.cancelled, f"law 1: {seen}"
    assert seen.scheduled == seen.issued + seen.unsent, f"law 1, what was asked for: {seen}"
    answered = sum(seen.statuses.values())
    settled = seen.ok + seen.failed.get("status", 0) + seen.failed.get("mismatch", 0)
    # An answer that was settled and then charged with `unsolicited` had a status, too.
    surplus = seen.failed.get("unsolicited", 0) + seen.failed.get("tls.protocol", 0)
    counted = settled <= answered <= settled + surplus
    assert counted or protocol != "http", f"law 2: {seen}"
    if seen.peak_rss_bytes is not None:
        assert seen.peak_rss_bytes <= RSS_BYTES_MOST, f"law 4: {seen}"
    if seen.exit_code is not None:
        assert_exit_agrees(seen)
    assert seen.timed == seen.ok_timed, f"law 6: {seen}"
    if requests_at_peer is not None:
        assert_counts_agree(seen, requests_at_peer, upgraded=protocol == "ws")


def assert_exit_agrees(seen: Seen) -> None:
    """Check law 5: the exit code agrees with the verdict."""
    assert seen.checks is not None
    worst = {
        "invalid": "fail" in seen.checks.values(),
        "suspect": "warn" in seen.checks.values() and "fail" not in seen.checks.values(),
        "valid": not {"fail", "warn"} & set(seen.checks.values()),
    }
    assert worst[str(seen.verdict)], f"law 5, verdict and checks: {seen}"
    if seen.exit_code in (0, 4):
        assert (seen.exit_code == 4) == (seen.verdict == "invalid"), f"law 5: {seen}"
    else:
        assert seen.exit_code in (3, 130), f"law 5, no such exit here: {seen}"


def assert_counts_agree(seen: Seen, requests_at_peer: int, *, upgraded: bool = False) -> None:
    """Check law 7: the server counted what was sent, give or take what was in flight."""
    never = sum(n for name, n in seen.failed.items() if name.startswith(NEVER_SENT))
    names = (*MAYBE_SENT, *(WHILE_UPGRADING if upgraded else ()))
    maybe = sum(seen.failed.get(name, 0) for name in names)
    most = seen.issued + seen.stale - never
    least = most - maybe - seen.cancelled - seen.stale
    assert least <= requests_at_peer <= most, f"law 7: the peer counted {requests_at_peer}: {seen}"


def assert_out(seen: Seen, case: Case, *, apart: bool = False) -> None:
    """Check the row's own expectation; `apart` if the peer's bytes came with gaps."""
    out = case.out if not apart or case.apart is None else case.apart
    assert seen.scheduled == case.requests, f"asked for: {seen}"
    _assert_endings(seen, out)
    assert seen.stale in out.stale, f"stale {out.stale}: {seen}"
    assert seen.stale_resets in out.stale_resets, f"stale resets {out.stale_resets}: {seen}"
    assert seen.unsent in out.unsent, f"unsent {out.unsent}: {seen}"
    assert seen.cancelled == 0, f"cancelled: {seen}"
    if out.reconnects is not None:
        assert seen.reconnects in out.reconnects, f"reconnects {out.reconnects}: {seen}"
    if out.statuses is not None:
        assert dict(seen.statuses) == dict(out.statuses), f"statuses: {seen}"
    if seen.exit_code is not None:
        assert_exit(seen, out.exits)
        _assert_checks(seen)


def assert_exit(seen: Seen, exits: Collection[int]) -> None:
    """Check the exit code: one that the outcome allows, or 4 if the test machine spoiled it."""
    assert seen.checks is not None
    also = {4} if spoiled(seen.checks) else set()
    assert seen.exit_code in {*exits, *also}, f"exit {exits}: {seen}"


def _assert_endings(seen: Seen, out: Out) -> None:
    if out.each:
        endings = {name for name, count in seen.failed.items() if count}
        endings |= {"ok"} if seen.ok else set()
        assert endings <= set(out.each), f"each ends as {' or '.join(out.each)}: {seen}"
        return
    assert seen.ok in out.ok, f"ok {out.ok}: {seen}"
    for name in {*seen.failed, *out.failed}:
        count, expected = seen.failed.get(name, 0), out.failed.get(name)
        assert count == 0 if expected is None else count in expected, f"{name} {expected}: {seen}"


def _assert_checks(seen: Seen) -> None:
    """Check the two checks that faults decide directly; the thresholds are those of design §6."""
    assert seen.checks is not None
    surplus = seen.failed.get("unsolicited", 0) > 0
    assert (seen.checks["unsolicited"] == "fail") == surplus, f"unsolicited: {seen}"
    if seen.issued and sum(seen.failed.values()) > 0.01 * seen.issued:
        assert seen.checks["errors"] == "fail", f"errors: {seen}"
    if not seen.failed and seen.issued:
        assert seen.checks["errors"] == "pass", f"errors: {seen}"


def give_up_s(case: Case) -> float:
    """Law 3: the longest time that a row may take, in seconds.

    Each request that ended well did so within its timeout. A run bound by requests then has its
    patience: three timeouts and 2 s since the last that ended well. Law 3 adds the timeout + 2 s.
    """
    timeout_s = case.timeout_ms / 1000
    return timeout_s * (case.requests + 3) + 2 + timeout_s + 2 + START_S_MOST


def run_lawfully(
    trueload: Trueload, case: Case, peer: Peer, words: Sequence[str]
) -> tuple[Finished, Seen]:
    """Run a command for a row, check the laws, and return its output and summary."""
    finished = trueload.run(*words, timeout_s=give_up_s(case))
    peer.settle()
    seen = of_record(json.loads(finished.out), finished.code)
    assert "Traceback" not in finished.err, finished.err
    assert_laws(seen, requests_at_peer=peer.requests)
    return finished, seen
