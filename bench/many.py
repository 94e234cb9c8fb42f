"""100,000 connections from one process, where a process may have 20,000 open files.

Both ends use io_uring, which needs no file descriptor per connection. The ports of one address do
not suffice, so the generator connects from several. It runs once, by the command line, as a user
would.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from commanded import run_http
from marks import Limit, Mark, mark
from process import OPEN_FILES, BenchError, vm_hwm_bytes
from servers import by_command
from setting import SERVER_CPU
from trueload.machine.processes import descendants

CONNECTIONS = 100_000
PEAK_MOST = Limit(50, unit=" MB")
MB = 1_000_000
# By default Linux has 28,232 ports for each address. When half of them (the even or the odd ones)
# are taken, each further connect searches all of those first, which takes it milliseconds.
ADDRESSES = tuple(f"127.0.0.{number}" for number in range(2, 12))
DURATION_S = 5
TIMEOUT_S = 150.0
DRIVER = ("--driver", "io_uring")


@dataclass(frozen=True)
class Many:
    """The result of the run. `least_ok`: answers of the connection that had the fewest."""

    established: int
    least_ok: int
    failed: dict[str, int]
    driver: str
    peak_bytes: int
    server_peak_bytes: int
    ended: bool
    """By itself, and not because it was killed."""


def measure(binary: Path) -> Many:
    """Run it. Raises `BenchError` with the reason when nothing could be measured."""
    flags = ["-c", str(CONNECTIONS), "-d", f"{DURATION_S}s", "--timeout", "20s", *DRIVER]
    flags += [word for address in ADDRESSES for word in ("--local-address", address)]
    with by_command("reference", binary, SERVER_CPU, *DRIVER) as server:
        done = run_http(binary, f"http://127.0.0.1:{server.port}/", flags, TIMEOUT_S)
        server_peak = max(vm_hwm_bytes(pid) for pid in _engines(server.pid, binary))
    record, connections = done.record, done.record["connections"]
    return Many(
        established=connections["established"],
        least_ok=connections["least_ok"] or 0,
        failed=record["counts"]["failed"],
        driver=record["generator"]["driver"],
        peak_bytes=record["generator"]["peak_rss_bytes"],
        server_peak_bytes=server_peak,
        ended=done.cpu_s is not None,
    )


def _engines(pid: int, binary: Path) -> list[int]:
    """The pids of the engines below a front, or the front's own if there are none."""
    name = binary.name[:15]
    comms = {each: _comm(each) for each in descendants(pid)}
    return [each for each, comm in comms.items() if comm == name] or [pid]


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


SERVED = f"{CONNECTIONS:,} connections, {OPEN_FILES:,} open files: each served at least once"
MEMORY = f"{CONNECTIONS:,} connections: peak memory"
ALL = Limit(CONNECTIONS, at_least=True)


def marks(binary: Path) -> tuple[list[Mark], list[str]]:
    """Return the targets, and a line about the rest."""
    try:
        return judge(measure(binary))
    except (BenchError, OSError, ValueError, KeyError) as error:
        # Catch every kind of failure: it must not lose what was measured before.
        why = str(error)
        return [mark(SERVED, ALL, None, why), mark(MEMORY, PEAK_MOST, None, why)], []


def judge(many: Many) -> tuple[list[Mark], list[str]]:
    """Judge the result; returns the same as `marks`. Pure."""
    reached = many.established >= CONNECTIONS
    served = many.established if many.least_ok > 0 else 0
    least = f"{many.established:,} established, {many.least_ok} answers or more for each"
    shown = f"{many.peak_bytes / MB:.1f} MB"
    marked = [
        mark(SERVED, ALL, served, least),
        # The peak is judged only if all connections were established.
        mark(MEMORY, PEAK_MOST, many.peak_bytes / MB if reached else None, shown),
    ]
    line = f"{CONNECTIONS:,} connections: driver {many.driver}; peak memory {shown}, of the server"
    line += f" {many.server_peak_bytes / MB:.1f} MB; failed {many.failed or 'none'}."
    if not many.ended:
        line += " It did not end by itself when it was told to, and was killed."
    return marked, [line]
