"""Attacks on `trueload http --scenario`: a server that fails some log-ins, and data that runs out.

The server is that of the tests. It counts log-ins, so the truth is known whatever trueload says.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

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
        scenario, users = stage.folder / "shop.toml", stage.folder / "users.csv"
        scenario.write_text(SCENARIO)
        users.write_text("user\n" + "".join(f"user {row}\n" for row in range(self.users)))
        with SessionServer(fail_every=self.fail_every) as server:
            return self._run(stage, server.url, scenario, users)

    def _run(self, stage: Stage, url: str, scenario: Path, users: Path) -> Seen:
        files = ("--scenario", str(scenario), "--data", str(users))
        with command(stage, "http", url, "--no-save", *files, *self.flags.split()) as running:
            return running.seen()


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
