"""When do the engines of three hosts begin, how far apart, and how soon is a lost host seen?

Three hosts, namespaces on this machine, are reached by ssh. Each run reports how far apart its
hosts began to send, on the front's clock; this comes from its own comparison of their clocks, whose
bound is shown beside. A host is lost by pulling its link in the window. Timed is from then until
the run has ended with `host lost`, and until no engine is left on any host.

Targets: the skew's median at most 3 ms; a loss seen within 2 s; nothing left after 3 s. Prints
Markdown with marks. Exit code 1 if a target is missed, 2 if it cannot measure.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from lab import Lab, open_lab
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from page import ACCURACY, write_section
from setting import Quiet, SettingError
from trueload.engines.engine import EngineError
from trueload.errors import UserError
from trueload.protocol.plan import Duration
from trueload.record.schema import Record
from trueload.request.values import Request
from trueload.trial.plan import make_phases
from trueload.trial.run import Session, run_trial
from trueload.trial.spec import Load, Progress, TrialSpec

HOSTS = 3
RUNS, LOSSES = 15, 5
CONNECTIONS = 6
NS_PER_MS = 1_000_000
SKEW_MOST = Limit(3.0, unit=" ms")
SEEN_MOST = Limit(2.0, unit=" s")
GONE_MOST = Limit(3.0, unit=" s")
GONE_PATIENCE_S = 20.0


@dataclass(frozen=True)
class Start:
    """The time between the first and the last host's start, and its error bound, in ms."""

    skew_ms: float
    bound_ms: float


@dataclass(frozen=True)
class Loss:
    """Seconds from the pulled link until the run had ended, and until no engine was left."""

    seen_s: float
    gone_s: float


def spec_for(lab: Lab, seconds: float) -> TrialSpec:
    """A trial with a closed loop over a few connections per host."""
    return TrialSpec(
        url=f"http://{lab.address}/",
        addresses=(lab.address,),
        request=Request(host=lab.address),
        load=Load(
            connections=CONNECTIONS,
            warmup=Duration(ns=200 * NS_PER_MS),
            stop=Duration(ns=int(seconds * 1e9)),
        ),
        hosts=lab.places,
    )


def measure_start(lab: Lab) -> Start:
    """Run once, shortly. Raises ``EngineError`` when a host was lost."""
    record = run_trial(spec_for(lab, 0.5))
    starts_ns = [host.start_ns for host in record.hosts if host.start_ns is not None]
    bounds_ns = [host.clock_bound_ns for host in record.hosts if host.clock_bound_ns is not None]
    if record.trouble is not None or len(starts_ns) < HOSTS:
        raise EngineError("lost", str(record.trouble))
    return Start(max(starts_ns) / NS_PER_MS, max(bounds_ns) / NS_PER_MS)


def measure_loss(lab: Lab, number: int) -> Loss:
    """Run once and pull the link of host ``number``.

    Raises ``EngineError`` if the run does not see the loss.
    """
    victim, pulled_s = lab.hosts[number % HOSTS], 0.0

    def pull(progress: Progress) -> None:
        nonlocal pulled_s
        if progress.stage == "window" and progress.tick is not None and not pulled_s:
            victim.link("down")
            pulled_s = time.monotonic()

    spec = spec_for(lab, 60)
    with Session(spec, on_progress=pull) as session:
        record = session.measure(*make_phases(spec), last=True)
        seen_s = time.monotonic() - pulled_s
    check_lost(record, victim.name)
    while any(host.processes("programs/trueload-engine") for host in lab.hosts):
        if time.monotonic() - pulled_s > GONE_PATIENCE_S:
            raise EngineError("engine", "an engine was left on a host")
        time.sleep(0.02)
    gone_s = time.monotonic() - pulled_s
    victim.link("up")
    # Its ssh connection may be about to notice that the link was down: make the next run log in
    # anew.
    lab.log_out()
    return Loss(seen_s, gone_s)


def check_lost(record: Record, name: str) -> None:
    """Raise ``EngineError`` unless the record names this host as lost."""
    if record.trouble is None or f"host lost: ssh:{name}" not in record.trouble.what:
        raise EngineError("engine", f"{name} was lost, and the run says {record.trouble}")


def spread(values: Sequence[float], unit: str) -> str:
    """Format the median, the least and the most."""
    return f"{median(values):.2f} {unit} ({min(values):.2f} to {max(values):.2f})"


def judge(starts: Sequence[Start], losses: Sequence[Loss]) -> list[Mark]:
    """Judge the median of the skew and the slowest of the losses."""
    skews = [start.skew_ms for start in starts]
    seen, gone = [loss.seen_s for loss in losses], [loss.gone_s for loss in losses]
    return [
        mark("three hosts begin within, median", SKEW_MOST, median(skews), spread(skews, "ms")),
        mark("a lost host is seen after, at most", SEEN_MOST, max(seen), spread(seen, "s")),
        mark("no engine is left anywhere after", GONE_MOST, max(gone), spread(gone, "s")),
    ]


def main() -> int:
    """Measure, print Markdown, and judge the targets."""
    parser = argparse.ArgumentParser(description="Starts and losses over three hosts.")
    parser.add_argument("--runs", type=int, default=RUNS, help=f"starts ({RUNS})")
    parser.add_argument("--losses", type=int, default=LOSSES, help=f"pulled links ({LOSSES})")
    parser.add_argument("--no-page", action="store_true", help="leave docs/accuracy.md alone")
    options = parser.parse_args()
    quiet = Quiet()
    try:
        with open_lab(HOSTS) as lab:
            starts = [measure_start(lab) for _ in range(options.runs)]
            losses = [measure_loss(lab, number) for number in range(options.losses)]
    except (EngineError, SettingError, UserError) as error:
        print(error, file=sys.stderr)
        return 2
    marked = judge(starts, losses)
    bounds = spread([start.bound_ms for start in starts], "ms")
    about = (
        f"{options.runs} starts and {options.losses} pulled links over {HOSTS} hosts (namespaces on"
        f" this machine, ssh). The hosts' clocks were known to within {bounds}. {quiet}"
    )
    lines = [str(describe()), "", about, "", *mark_table(marked)]
    print("\n".join(lines))
    if options.runs >= RUNS and options.losses >= LOSSES and not options.no_page:
        write_section(ACCURACY, "starts", lines)
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
