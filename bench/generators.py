"""The compared generators, each on CPU 1 with one thread: how to start each and read its output."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import engine
from engine import Work
from process import BenchError, Ended, run
from trueload.units import NS_PER_S

PIPELINE_LUA = Path(__file__).resolve().parent / "pipeline.lua"
# A run may take this much longer than asked for: it also connects and drains.
PATIENCE_S = 30.0
# More than ab can make in the time. It reserves memory for each request, so the number is bounded.
AB_REQUESTS_MAX = 5_000_000


@dataclass(frozen=True)
class Took:
    """What a generator did and what it cost."""

    requests: int
    wall_s: float
    cpu_s: float
    peak_rss_bytes: int | None
    driver: str = ""
    """Of our generator."""

    @property
    def per_s(self) -> float:
        """Throughput by the generator's own count and clock."""
        return self.requests / self.wall_s

    @property
    def cpu_s_per_million(self) -> float:
        """CPU seconds of the generator per million requests."""
        return self.cpu_s / self.requests * 1e6


Generator = Callable[[Work, int, bool], Took]


def ours(binary: Path) -> Generator:
    """Our engine, driven over its own JSON lines."""

    def measure(work: Work, cpu: int, memory: bool) -> Took:
        ended = run(
            [str(binary)],
            cpu=cpu,
            timeout_s=work.duration_s + PATIENCE_S,
            memory=memory,
            talk=lambda stdin, stdout: engine.measure(work, stdin, stdout),
        )
        measured = json.loads(ended.out)
        if measured["counts"]["failed"]:
            raise BenchError(f"our generator failed requests: {measured['counts']}")
        return Took(
            requests=measured["counts"]["ok"],
            wall_s=measured["window_ns"] / NS_PER_S,
            cpu_s=ended.cpu_s,
            peak_rss_bytes=ended.peak_rss_bytes,
            driver=measured["generator"]["driver"],
        )

    return measure


def our_requests(output: str) -> int:
    """Read the number of answered requests from the engine's measurement (JSON)."""
    answered: int = json.loads(output)["counts"]["ok"]
    return answered


def wrk_command(work: Work) -> list[str]:
    """The command of wrk; pipelining takes a script that sends several requests at once."""
    command = ["wrk", "-t1", f"-c{work.connections}", f"-d{whole_s(work)}s", work.url]
    if work.depth > 1:
        command[1:1] = ["-s", str(PIPELINE_LUA)]
        command += ["--", str(work.depth)]
    return command


def wrk_requests(output: str) -> int:
    """Read the number of answered requests from wrk's output."""
    found = re.search(r"(\d+) requests in", output)
    if found is None:
        raise BenchError(f"wrk says:\n{output}")
    return int(found[1])


def wrk(work: Work, cpu: int, memory: bool) -> Took:
    """Run wrk on one thread."""
    return read_wrk(_run(wrk_command(work), work, cpu, memory))


def read_wrk(ended: Ended) -> Took:
    """Parse wrk's output. Raises `BenchError` if it reports errors."""
    if "Socket errors" in ended.out or "Non-2xx" in ended.out:
        raise BenchError(f"wrk met errors:\n{ended.out}")
    found = _search(r"(\d+) requests in ([\d.]+)(ms|s|m),", ended)
    unit_s = {"ms": 0.001, "s": 1.0, "m": 60.0}[found[3]]
    return _took(ended, int(found[1]), float(found[2]) * unit_s)


def ab(work: Work, cpu: int, memory: bool) -> Took:
    """Run ApacheBench: HTTP/1.0 with keep-alive, no pipelining."""
    limit = ["-t", str(whole_s(work)), "-n", str(AB_REQUESTS_MAX)]
    command = ["ab", "-q", "-k", "-c", str(work.connections), *limit, work.url]
    return read_ab(_run(command, work, cpu, memory))


def read_ab(ended: Ended) -> Took:
    """Parse ab's output. Raises `BenchError` if it reports errors."""
    if int(_search(r"Failed requests:\s+(\d+)", ended)[1]) or "Non-2xx" in ended.out:
        raise BenchError(f"ab met errors:\n{ended.out}")
    requests = int(_search(r"Complete requests:\s+(\d+)", ended)[1])
    return _took(ended, requests, float(_search(r"Time taken for tests:\s+([\d.]+)", ended)[1]))


def h2load(work: Work, cpu: int, memory: bool) -> Took:
    """Run h2load over HTTP/1.1, where `-m` is the pipelining depth."""
    return _h2load(work, cpu, memory, "--h1")


def h2load_http2(work: Work, cpu: int, memory: bool) -> Took:
    """Run h2load over HTTP/2, where `-m` is the number of streams per connection."""
    return _h2load(work, cpu, memory)


def _h2load(work: Work, cpu: int, memory: bool, *flags: str) -> Took:
    load = ["-t1", f"-c{work.connections}", f"-m{work.depth}", f"-D{whole_s(work)}"]
    ended = _run(["h2load", *flags, *load, work.url], work, cpu, memory)
    return read_h2load(ended, float(whole_s(work)))


def bare_http2(program: Path) -> Generator:
    """A loop that sends requests over HTTP/2 and counts the ends of streams (bare_http2.c)."""

    def measure(work: Work, cpu: int, memory: bool) -> Took:
        numbers = (work.port, work.connections, work.depth, round(work.duration_s * 1e3))
        ended = _run([str(program), *map(str, numbers)], work, cpu, memory)
        result = json.loads(ended.out)
        return _took(ended, result["answers"], result["wall_ns"] / NS_PER_S)

    return measure


def read_h2load(ended: Ended, wall_s: float) -> Took:
    """Parse h2load's output. Raises `BenchError` if it reports errors."""
    found = _search(r"requests: .* (\d+) done, (\d+) succeeded, (\d+) failed", ended)
    if int(found[1]) != int(found[2]) or "0 3xx, 0 4xx, 0 5xx" not in ended.out:
        raise BenchError(f"h2load met errors:\n{ended.out}")
    return _took(ended, int(found[2]), wall_s)


def oha(binary: Path) -> Generator:
    """oha on one thread; by default it takes one per core, even when it is pinned."""
    command = ["env", "TOKIO_WORKER_THREADS=1", str(binary), "--no-tui", "--output-format", "json"]

    def measure(work: Work, cpu: int, memory: bool) -> Took:
        load = ["-z", f"{whole_s(work)}s", "-c", str(work.connections)]
        return read_oha(_run([*command, *load, work.url], work, cpu, memory))

    return measure


def read_oha(ended: Ended) -> Took:
    """Parse oha's JSON. Raises `BenchError` if it reports errors."""
    result = json.loads(ended.out)
    codes: dict[str, int] = result["statusCodeDistribution"]
    errors: dict[str, int] = result["errorDistribution"]
    # Requests still open at the end are no failures: oha gives them up at its deadline, as told.
    failed = {what for what in errors if "deadline" not in what}
    if failed or set(codes) - {"200"}:
        raise BenchError(f"oha met errors: {codes} {errors}")
    return _took(ended, codes.get("200", 0), float(result["summary"]["total"]))


def hey(work: Work, cpu: int, memory: bool) -> Took:
    """Run hey on one CPU."""
    load = ["-z", f"{whole_s(work)}s", "-c", str(work.connections), "-cpus", "1"]
    return read_hey(_run(["hey", *load, work.url], work, cpu, memory))


def read_hey(ended: Ended) -> Took:
    """Parse hey's output. Raises `BenchError` if it reports errors."""
    codes = dict(re.findall(r"^\s+\[(\d{3})\]\s+(\d+) responses", ended.out, re.MULTILINE))
    if "Error distribution" in ended.out or set(codes) != {"200"}:
        raise BenchError(f"hey met errors:\n{ended.out[-500:]}")
    wall_s = float(_search(r"Total:\s+([\d.]+) secs", ended)[1])
    return _took(ended, int(codes["200"]), wall_s)


def k6(binary: Path, folder: Path) -> Generator:
    """k6 on one thread, with a virtual user for each connection; `folder` gets its script."""
    command = ["env", "GOMAXPROCS=1", str(binary), "run", "--quiet", "--no-usage-report"]

    def measure(work: Work, cpu: int, memory: bool) -> Took:
        script, summary = folder / "k6.js", folder / "k6.json"
        script.write_text(
            'import http from "k6/http";\n'
            f"export const options = {{ discardResponseBodies: true, vus: {work.connections},"
            f' duration: "{whole_s(work)}s" }};\n'
            f'export default function () {{ http.get("{work.url}"); }}\n'
        )
        summary.unlink(missing_ok=True)  # left by the run before
        ended = _run([*command, "--summary-export", str(summary), str(script)], work, cpu, memory)
        return read_k6(ended, summary.read_text())

    return measure


def read_k6(ended: Ended, summary: str) -> Took:
    """Parse k6's summary (JSON). Raises `BenchError` if it reports errors."""
    metrics = json.loads(summary)["metrics"]
    sent, failed = metrics["http_reqs"], metrics["http_req_failed"]["passes"]
    if failed or not sent["count"]:
        raise BenchError(f"k6 failed {failed} of {sent['count']} requests")
    return _took(ended, int(sent["count"]), sent["count"] / sent["rate"])


def whole_s(work: Work) -> int:
    """The duration rounded to whole seconds, as the other generators take no fractions."""
    return max(1, round(work.duration_s))


def _run(command: list[str], work: Work, cpu: int, memory: bool) -> Ended:
    return run(command, cpu=cpu, timeout_s=work.duration_s + PATIENCE_S, memory=memory)


def _search(pattern: str, ended: Ended) -> re.Match[str]:
    found = re.search(pattern, ended.out)
    if found is None:
        raise BenchError(f"no `{pattern}` in:\n{ended.out}")
    return found


def _took(ended: Ended, requests: int, wall_s: float) -> Took:
    if requests == 0:
        raise BenchError(f"no request was answered:\n{ended.out}")
    return Took(requests, wall_s, ended.cpu_s, ended.peak_rss_bytes)
