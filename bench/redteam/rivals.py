"""wrk, oha, hey and k6 under the same attacks: what each says, beside the truth of its own run.

They are asked for what their options can express: a closed loop for a time, and a rate where they
have one. None of them has a verdict, so they print a wrong figure without a warning.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from built import find_built
from process import BenchError, prepare
from redteam.demands import LATE_MS, is_close
from redteam.scenes import Http, Played
from redteam.stage import Stage, adversary
from setting import GENERATOR_CPU
from trueload.units import parse_duration, parse_rate

PATIENCE_S = 40.0
WITHIN = 0.05
"""The truth is shown beside a figure that differs by more than this share."""
K6 = """
import http from "k6/http";
export const options = { discardResponseBodies: true, scenarios: { load: SCENARIO } };
export default function () { http.get("URL"); }
"""
WRK_MS = {"us": 1e-3, "ms": 1.0, "s": 1e3, "m": 6e4}


@dataclass(frozen=True)
class Load:
    """The load that a generator is asked for."""

    connections: int
    seconds: float
    rate_per_s: float | None


@dataclass(frozen=True)
class Figures:
    """The figures that it printed."""

    per_s: float
    p99_ms: float


@dataclass(frozen=True)
class Rival:
    """A generator: the command for a load, and the parser of its output.

    `whole`: it takes whole seconds only; `least_s`: its shortest run.
    """

    name: str
    command: Callable[[Load, str, Path], list[str]]
    read: Callable[[str, Path], Figures]
    has_rate: bool = True
    whole: bool = False
    least_s: float = 0.0


def find_rivals() -> tuple[list[Rival], dict[str, str]]:
    """Return the tools that are installed, and for each other tool why it is not."""
    found, absent = [], {}
    if shutil.which("wrk"):
        found.append(Rival("wrk", _wrk, read_wrk, has_rate=False, whole=True))
    else:
        absent["wrk"] = "not installed (Debian: wrk)"
    try:
        found.append(Rival("oha", _oha(find_built("oha", build=False)), read_oha))
    except BenchError as error:
        absent["oha"] = str(error)
    if shutil.which("hey"):
        found.append(Rival("hey", _hey, read_hey, has_rate=False))
    else:
        absent["hey"] = "not installed (Debian: hey)"
    if shutil.which("k6"):
        found.append(Rival("k6", _k6, read_k6, least_s=1.0))
    else:
        absent["k6"] = "not installed"
    return found, absent


def load_of(flags: Sequence[str]) -> Load | None:
    """The load that flags of `trueload http` ask for; None if the others have no options for it."""
    pairs = dict(zip(flags[::2], flags[1::2], strict=False))
    if not set(pairs) <= {"-c", "-d", "--warmup", "--rate"} or "-d" not in pairs:
        return None
    rate = parse_rate(pairs["--rate"]) if "--rate" in pairs else None
    return Load(int(pairs["-c"]), parse_duration(pairs["-d"]) / 1e9, rate)


def cell_of(stage: Stage, scene: Http, rival: Rival) -> str:
    """Run a rival under an attack; return its cell of the table."""
    load = load_of(scene.flags.split())
    if load is None or (load.rate_per_s is not None and not rival.has_rate):
        return "cannot be asked"
    seconds = max(1, round(load.seconds)) if rival.whole else max(rival.least_s, load.seconds)
    load = Load(load.connections, seconds, load.rate_per_s)
    with ExitStack() as stack:
        server = stack.enter_context(adversary(stage, scene.server.split()))
        process = subprocess.Popen(
            rival.command(load, server.url, stage.folder),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            preexec_fn=prepare(GENERATOR_CPU),
        )
        stack.callback(process.kill)
        if scene.hindrance is not None:
            pid = process.pid
            scene.hindrance.begin(Played(stage, stack, server, pid, lambda: pid))
        out, _ = process.communicate(timeout=load.seconds + PATIENCE_S)
        truth = server.truth(server.end(), 0, load.seconds)
    true_per_s = scene.true_per_s if scene.true_per_s is not None else truth.per_s
    return cell(rival.read(out, stage.folder), true_per_s, truth.percentile_ms(0.99), load)


def cell(figures: Figures, true_per_s: float, true_p99_ms: float, load: Load) -> str:
    """Format the figures, with the true ones in brackets where they differ. Pure.

    Latency of an open loop counts from the schedule, which the server does not know, so it has no
    truth here.
    """
    near = is_close(figures.per_s, true_per_s, WITHIN)
    rate = f"{figures.per_s:,.4g}/s" + ("" if near else f" (true {true_per_s:,.4g})")
    if load.rate_per_s is not None:
        return f"{rate}, p99 {figures.p99_ms:.3g} ms"
    close = true_p99_ms * (1 - WITHIN) <= figures.p99_ms <= true_p99_ms * (1 + WITHIN) + LATE_MS
    p99 = f"p99 {figures.p99_ms:.3g} ms" + ("" if close else f" (true {true_p99_ms:.3g})")
    return f"{rate}, {p99}"


def _wrk(load: Load, url: str, folder: Path) -> list[str]:
    flags = [f"-c{load.connections}", f"-d{load.seconds:.0f}s", "--timeout", "20s", "--latency"]
    return ["wrk", "-t1", *flags, url]


def read_wrk(out: str, folder: Path) -> Figures:
    """Parse what wrk prints."""
    per_s = re.search(r"Requests/sec:\s+([\d.]+)", out)
    p99 = re.search(r"99%\s+([\d.]+)(us|ms|s|m)", out)
    if per_s is None or p99 is None:
        raise BenchError("wrk prints no p99")
    return Figures(float(per_s[1]), float(p99[1]) * WRK_MS[p99[2]])


def _oha(binary: Path) -> Callable[[Load, str, Path], list[str]]:
    def command(load: Load, url: str, folder: Path) -> list[str]:
        flags = ["-c", str(load.connections), "-z", f"{load.seconds:g}s"]
        if load.rate_per_s is not None:
            flags += ["-q", f"{load.rate_per_s:g}", "--latency-correction"]
        return [str(binary), "--no-tui", "--output-format", "json", *flags, url]

    return command


def read_oha(out: str, folder: Path) -> Figures:
    """Parse the JSON of oha."""
    result = json.loads(out)
    p99_s = result["latencyPercentiles"]["p99"]
    if p99_s is None:
        raise BenchError("oha prints no p99")
    return Figures(result["summary"]["requestsPerSec"], p99_s * 1e3)


def _hey(load: Load, url: str, folder: Path) -> list[str]:
    return ["hey", "-z", f"{load.seconds:g}s", "-c", str(load.connections), url]


def read_hey(out: str, folder: Path) -> Figures:
    """Parse what hey prints."""
    per_s = re.search(r"Requests/sec:\s+([\d.]+)", out)
    p99 = re.search(r"99%+ in ([\d.]+) secs", out)
    if per_s is None or p99 is None:
        raise BenchError("hey prints no p99")
    return Figures(float(per_s[1]), float(p99[1]) * 1e3)


def _k6(load: Load, url: str, folder: Path) -> list[str]:
    time = {"duration": f"{round(load.seconds * 1000)}ms"}
    if load.rate_per_s is None:
        how = {"executor": "constant-vus", "vus": load.connections, **time}
    else:
        rate = {"rate": round(load.rate_per_s), "preAllocatedVUs": load.connections}
        how = {"executor": "constant-arrival-rate", **rate, **time}
    script = folder / "script.js"
    script.write_text(K6.replace("SCENARIO", json.dumps(how)).replace("URL", url))
    (folder / "k6.json").unlink(missing_ok=True)  # left by the run before
    summary = ["--summary-export", str(folder / "k6.json"), "--summary-trend-stats", "p(99)"]
    return ["k6", "run", "--quiet", *summary, str(script)]


def read_k6(out: str, folder: Path) -> Figures:
    """Parse the summary file of k6."""
    try:
        metrics = json.loads((folder / "k6.json").read_text())["metrics"]
    except FileNotFoundError:
        raise BenchError("k6 writes no summary") from None
    return Figures(metrics["http_reqs"]["rate"], metrics["http_req_duration"]["p(99)"])


def table(rows: Sequence[tuple[str, str, Sequence[str], str]], names: Sequence[str]) -> list[str]:
    """Markdown: attack, truth, the cell of each rival, and of trueload. Pure."""
    head = ["attack", "truth", *names, "trueload"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    for what, truth, cells, ours in rows:
        shown = (each.replace("|", "¦") for each in (what, truth, *cells, ours))
        lines.append(f"| {' | '.join(shown)} |")
    return lines
