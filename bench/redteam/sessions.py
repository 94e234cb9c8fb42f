"""Attacks on `trueload http --scenario`: log-ins that fail, data that runs out, and drawn times.

The server is that of the tests. It counts log-ins and notes its times, so the truth is known
whatever trueload says.
"""

from __future__ import annotations

import re
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
from process import BenchError
from redteam.demands import CLOSE, Answer, Demand, Seen, is_close
from redteam.stage import Stage, command
from session_server import SessionServer

OWN = 'headers = { Authorization = "Bearer {token}", X-Id = "{id}" }'
SCENARIO = f"""
[[step]]
name = "log in"
request = {{ method = "POST", url = "/login", body = '{{"user":"{{user}}"}}' }}
take = {{ token = "json:/token", id = "header:X-Id" }}
[[step]]
name = "list"
request = {{ url = "/items?page={{repeat}}&of={{user}}", {OWN} }}
repeat = 4
"""


@dataclass(frozen=True)
class Sessions:
    """Sessions of a log-in and four pages with a file of so many users, against a server that
    refuses every so many-th log-in."""

    flags: str
    users: int = 1000
    fail_every: int = 0

    def play(self, stage: Stage) -> Seen:
        """Run it."""
        scenario, users = self._files(stage)
        with SessionServer(fail_every=self.fail_every) as server:
            return self._run(stage, server.url, scenario, users)

    def _files(self, stage: Stage) -> tuple[Path, Path]:
        scenario, users = stage.folder / "shop.toml", stage.folder / "users.csv"
        scenario.write_text(SCENARIO)
        users.write_text("user\n" + "".join(f"user {row}\n" for row in range(self.users)))
        return scenario, users

    def _run(self, stage: Stage, url: str, scenario: Path, users: Path) -> Seen:
        files = ("--scenario", str(scenario), "--data", str(users))
        with command(stage, "http", url, "--no-save", *files, *self.flags.split()) as running:
            return running.seen()


SESSION = "the whole session"
SLOW_SHARE = 0.1
"""The share of pages that are slow. At a tenth, the p50 is a quick page and the p95 a slow one."""


class TimedServer(SessionServer):
    """The server, which takes a drawn time for each request and notes how long it took."""

    def __init__(self) -> None:
        super().__init__()
        self._chance = Random(26)
        self._took_ms: dict[str, list[float]] = {"log in": [], "list": []}
        self._sums_ms: dict[str, float] = defaultdict(float)

    def reply(
        self, method: str, path: str, headers: dict[str, str], body: str
    ) -> tuple[int, list[tuple[str, str]], str]:
        """Answer after the time of the step."""
        began_s = time.perf_counter()
        step = "log in" if path == "/login" else "list"
        time.sleep(self._drawn_s(step))
        status, fields, text = super().reply(method, path, headers, body)
        took_ms = (time.perf_counter() - began_s) * 1e3
        self._took_ms[step].append(took_ms)
        # A session has one request under way.
        self._sums_ms[headers.get("X-Id") or dict(fields)["X-Id"]] += took_ms
        return status, fields, text

    def _drawn_s(self, step: str) -> float:
        if step == "log in":
            return self._chance.uniform(0.04, 0.08)
        slow = self._chance.random() < SLOW_SHARE
        return self._chance.uniform(0.1, 0.14) if slow else self._chance.uniform(0.02, 0.06)

    @property
    def served_ms(self) -> Mapping[str, Sequence[float]]:
        """The times of each step, and of whole sessions."""
        return {**self._took_ms, SESSION: list(self._sums_ms.values())}


class SlowLogIns(TimedServer):
    """A server where each page takes 20 ms, and so does a log-in, but for 8 % of them."""

    slow_s = 1.8

    def _drawn_s(self, step: str) -> float:
        slow = step == "log in" and self._chance.random() < SLOW_LOG_INS
        return self.slow_s if slow else 0.02


SLOW_LOG_INS = 0.08


@dataclass(frozen=True)
class CutSessions(Sessions):
    """Sessions of which 8 % take so long that the window's end cuts many."""

    slow_s: float = 1.8

    def play(self, stage: Stage) -> Seen:
        """Run it."""
        scenario, users = self._files(stage)
        server = SlowLogIns()
        server.slow_s = self.slow_s
        with server:
            return self._run(stage, server.url, scenario, users)


def p95_at_least(least_ms: float) -> Demand:
    """Require that the session's p95 is a slow one, or only known to be more than some time."""

    def demand(seen: Seen) -> Answer:
        latency = seen.result["sessions"]["latency_ns"]
        found_ms, above = (latency["p95"] or 0) / 1e6, "p95" in latency["at_least"]
        right = above or least_ms <= found_ms <= 1.1 * least_ms
        return Answer(right, f"p95 {least_ms:,.0f} ms", f"p95 {'> ' * above}{found_ms:,.0f} ms")

    return demand


@dataclass(frozen=True)
class TimedSessions(Sessions):
    """The same against a server that takes a drawn time for each request."""

    def play(self, stage: Stage) -> Seen:
        """Run it."""
        scenario, users = self._files(stage)
        server = TimedServer()
        with server:
            seen = self._run(stage, server.url, scenario, users)
        return replace(seen, served_ms=server.served_ms)


class QueueOfLogIns(SessionServer):
    """The server, where a log-in takes 25 ms and one waits for another: 40 sessions a second."""

    def __init__(self) -> None:
        super().__init__()
        self._queue = threading.Lock()

    def reply(
        self, method: str, path: str, headers: dict[str, str], body: str
    ) -> tuple[int, list[tuple[str, str]], str]:
        """Answer after waiting for the log-ins before this one."""
        if path == "/login":
            with self._queue:
                time.sleep(1 / SESSIONS_PER_S)
        return super().reply(method, path, headers, body)


SESSIONS_PER_S = 40


@dataclass(frozen=True)
class SearchedSessions(Sessions):
    """A search over sessions; `others` has the page of its report."""

    def play(self, stage: Stage) -> Seen:
        """Run it, save it, and make the page."""
        scenario, users = self._files(stage)
        files = ("--scenario", str(scenario), "--data", str(users))
        page = stage.folder / "page.html"
        with (
            QueueOfLogIns() as server,
            command(stage, "http", server.url, *files, *self.flags.split()) as running,
        ):
            seen = running.seen()
        made = stage.trueload.run("report", "last", "-o", str(page))
        if made.code != 0:
            raise BenchError(f"no page was made: {made.err.strip()}")
        return replace(seen, others={"page": page.read_text()})


def of_sessions(seen: Seen) -> Answer:
    """Require that the found load is the true one, and is of sessions wherever it is shown."""
    result, axis = seen.result["result"], re.compile(r"sessions/s</text>")
    shown = f"{result['load'] or 0:.3g} {result['unit']}"
    right = (
        result["unit"] == "sessions/s"
        and is_close(result["load"], SESSIONS_PER_S, 0.08)
        and re.search(r"[\d.]+ sessions/s", seen.summary) is not None
        and axis.search(seen.others["page"]) is not None
    )
    return Answer(right, f"{SESSIONS_PER_S} sessions/s", shown, "sessions/s in text, JSON and page")


class SlowServer(TimedServer):
    """The same, but a tenth of the sessions has pages that take 2 s."""

    def reply(
        self, method: str, path: str, headers: dict[str, str], body: str
    ) -> tuple[int, list[tuple[str, str]], str]:
        """Answer late if the session is a slow one."""
        digits = "".join(filter(str.isdigit, headers.get("X-Id", ""))) or "1"
        time.sleep(2.0 if int(digits) % 10 == 0 else 0.0)
        return SessionServer.reply(self, method, path, headers, body)


@dataclass(frozen=True)
class SlowSessions(Sessions):
    """Sessions of which a tenth is slow on each page."""

    def play(self, stage: Stage) -> Seen:
        """Run it."""
        scenario, users = self._files(stage)
        with SlowServer() as server:
            return self._run(stage, server.url, scenario, users)


def as_served(step: str, *names: str) -> Demand:
    """Require that these percentiles of a step are those of the server's own record."""

    def demand(seen: Seen) -> Answer:
        whole = step == SESSION
        found = [each for each in seen.result["targets"] if each["name"] == step]
        reported = (seen.result["sessions"] if whole else found[0])["latency_ns"]
        right, truths, shown = True, [], []
        for name in names:
            part = float(f"0.{name.removeprefix('p')}")
            true_ms = float(np.quantile(seen.served_ms[step], part, method="inverted_cdf"))
            reported_ms = None if reported[name] is None else reported[name] / 1e6
            right &= is_close(reported_ms, true_ms)
            truths.append(f"{name} {true_ms:.1f} ms")
            shown.append("none" if reported_ms is None else f"{reported_ms:.1f} ms")
        return Answer(right, f"{step}: {', '.join(truths)}", ", ".join(shown))

    return demand


def failed_share(share: float) -> Demand:
    """Require that this share of the sessions has failed, and that four requests of each count as
    skipped."""

    def demand(seen: Seen) -> Answer:
        sessions, skipped = seen.result["sessions"], seen.result["counts"]["skipped"]
        ended = sessions["ok"] + sessions["failed"]
        found = sessions["failed"] / ended if ended else None
        right = is_close(found, share, 5 * CLOSE) and skipped == 4 * sessions["failed"]
        shown = "none" if found is None else f"{found:.1%}, {skipped:,} skipped"
        return Answer(right, f"{share:.1%} of sessions fail", shown)

    return demand


def never_fast(seen: Seen) -> Answer:
    """Require that no figure is told of a percentile in which requests were not answered."""
    latency = seen.result["latency_ns"]
    told = latency["p99"] is not None and "p99" not in (latency.get("at_least") or ())
    return Answer(not told, "p99 unknown", "p99 is told" if told else "p99 is not told")


def each_row_once(rows: int) -> Demand:
    """Require that each row of data had one whole session."""

    def demand(seen: Seen) -> Answer:
        data, sessions = seen.result["data"], seen.result["sessions"]
        right = data == {"rows": rows, "taken": rows, "spent": True} and sessions["ok"] == rows
        return Answer(right, f"{rows} rows", f"{data['taken']} rows, {sessions['ok']} sessions")

    return demand
