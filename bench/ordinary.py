"""Runs `trueload http` against servers with the CPUs kept apart, and counts verdicts.

An ordinary run on a quiet machine, 64 connections for 5 s, must be valid in at least 19 of 20 runs.
One server is the reference server: it needs as much CPU as the generator, so that its throughput is
a lower bound. The others, nginx and some subjects, need more. Sessions, a replay, HTTP/2 and
streams are run against the reference server, too. A machine whose CPUs change their speed (the
check `cpu-speed`), or move between caches during a run, is not quiet: such runs are printed but not
counted, and further runs replace them, up to twice as many in all.

`bench/ordinary.py [PART…] [--times 20] [--flags '--driver epoll']`: the server has CPU 0, the
generator CPU 1. All parts take half an hour. A part that takes longer than 20 s for each run is cut
short. Exit code 1 if fewer are valid; a server that cannot be built is left out.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from marks import Limit, Mark, exit_code, mark, mark_table
from process import BenchError
from scenario import SCENARIO
from servers import nginx, subject
from setting import GENERATOR_CPU, SERVER_CPU, Quiet

sys.path[:0] = [
    str(Path(__file__).resolve().parent.parent / folder) for folder in ("tests", "python")
]

from harness import Trueload, start_server  # noqa: E402
from trueload.record.core_latency import moved_text  # noqa: E402
from trueload.record.schema import CoreLatency  # noqa: E402

TIMES = 20
VALID_SHARE = 0.95
RUNS_MOST = 2  # times the number of runs that are to count
RUN_MOST_S = 20.0
RUN_FLAGS = ("--cpus", str(GENERATOR_CPU), "--json", "-", "--no-save")
CLOSED = ("-c", "64", "-d", "5s")
REPLAYED_PER_S, REPLAYED_S = 2_000, 5


@contextmanager
def reference_url(trueload: Trueload, folder: Path) -> Iterator[str]:
    """Start the reference server as users do; it ends with `trueload`."""
    yield start_server(trueload, "--cpus", str(SERVER_CPU), "--http", "2").url


@contextmanager
def nginx_url(trueload: Trueload, folder: Path) -> Iterator[str]:
    """Start nginx with one worker."""
    with nginx(folder, SERVER_CPU) as server:
        yield f"http://127.0.0.1:{server.port}/"


def subject_url(name: str) -> Callable[[Trueload, Path], AbstractContextManager[str]]:
    """Return a function that starts the subject on one CPU."""

    @contextmanager
    def opened(trueload: Trueload, folder: Path) -> Iterator[str]:
        with subject(name, SERVER_CPU) as server:
            yield f"http://127.0.0.1:{server.port}/"

    return opened


def closed(folder: Path) -> Sequence[str]:
    """A closed loop."""
    return CLOSED


def sessions(folder: Path) -> Sequence[str]:
    """Sessions of three requests, the second with a number of the first answer."""
    path = folder / "three.toml"
    path.write_text(SCENARIO)
    return (*CLOSED, "--scenario", str(path))


def replay(folder: Path) -> Sequence[str]:
    """A recording of three paths in turn."""
    path = folder / "recording"
    at = (number / REPLAYED_PER_S for number in range(REPLAYED_PER_S * REPLAYED_S))
    paths = ("/", "/perf", "/item/7")
    lines = ({"at": at_s, "path": paths[turn % 3]} for turn, at_s in enumerate(at))
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return ("-c", "64", "--replay", str(path))


def http2(folder: Path) -> Sequence[str]:
    """Ten streams on each of eight connections."""
    return ("-c", "8", "--http", "2", "--streams", "10", "-d", "5s")


def streams(folder: Path) -> Sequence[str]:
    """Streams of ten parts, one every 20 ms."""
    return (*CLOSED, "--stream", "sse", "--stream-end", "[DONE]")


@dataclass(frozen=True)
class Part:
    """Ordinary runs of one kind: the server, the path that is asked for, and the flags."""

    opened: Callable[[Trueload, Path], AbstractContextManager[str]]
    flags: Callable[[Path], Sequence[str]] = closed
    path: str = ""


PARTS = {
    "reference": Part(reference_url),
    "nginx": Part(nginx_url),
    "fasthttp": Part(subject_url("go/fasthttp")),
    "actix-web": Part(subject_url("rust/actix-web")),
    "node-http": Part(subject_url("javascript/node-http")),
    "sessions": Part(reference_url, sessions),
    "replay": Part(reference_url, replay),
    "http2": Part(reference_url, http2),
    "streams": Part(reference_url, streams, "stream/10/20"),
}


@dataclass
class Tally:
    """The runs of a part: how many counted, how many of those were valid, what the others say."""

    counted: int = 0
    valid: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        crossed = ", ".join(f"{name} {count}" for name, count in self.reasons.most_common())
        return f"{self.valid} of {self.counted}; crossed checks: {crossed or 'none'}"


def count_valid(trueload: Trueload, url: str, times: int, flags: Sequence[str]) -> Tally:
    """Run against one server, printing a line for each run."""
    tally, began_s = Tally(), time.monotonic()
    for number in range(1, RUNS_MOST * times + 1):
        if tally.counted == times or time.monotonic() - began_s > RUN_MOST_S * times:
            break
        record = trueload.run("http", url, *RUN_FLAGS, *flags).json()
        crossed = [check for check in record["checks"] if check["status"] in ("warn", "fail")]
        names = {check["name"] for check in crossed}
        tally.reasons.update(names)
        moved = have_moved(record)
        if "cpu-speed" not in names and not moved:
            tally.counted += 1
            tally.valid += record["verdict"] == "valid"
        why = [f"{check['name']}: {check['why']}" for check in crossed]
        why += ["not counted: the CPUs moved"] if moved else []
        print(f"{number:>3} {record['verdict']:<8} {'; '.join(why)}", flush=True)
    return tally


def have_moved(record: dict[str, Any]) -> bool:
    """Whether the host moved the CPUs of generator and server during a run."""
    found = record.get("cpu_distance")
    return bool(found and moved_text([CoreLatency.model_validate(found)]))


def count_part(name: str, times: int, more: Sequence[str]) -> Mark:
    """Start the server of a part, run against it and judge the result."""
    print(f"\n{name}", flush=True)
    what = f"an ordinary run on a quiet machine, {name}: valid"
    limit = Limit(math.ceil(VALID_SHARE * times), at_least=True, unit=f" of {times}")
    part = PARTS[name]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        # nginx's worker runs as another user.
        folder.chmod(0o755)
        trueload = Trueload(folder)
        try:
            with part.opened(trueload, folder) as url:
                asked = f"{url.removesuffix('/')}/{part.path}"
                tally = count_valid(trueload, asked, times, (*part.flags(folder), *more))
        except BenchError as error:
            return mark(what, limit, None, str(error))
        finally:
            trueload.close()
    return mark(what, limit, tally.valid, str(tally))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Counts the valid ones of ordinary runs.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)} (all)")
    parser.add_argument("--times", type=int, default=TIMES, help=f"runs of each part ({TIMES})")
    parser.add_argument("--flags", default="", help="more flags of trueload http")
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"there is no part {', '.join(sorted(unknown))}; parts: {', '.join(PARTS)}")
    return options


def main() -> int:
    """Run each part, and print the results."""
    options = _options()
    quiet = Quiet()
    names = options.parts or PARTS
    marked = [count_part(name, options.times, shlex.split(options.flags)) for name in names]
    print("\n".join(["", str(quiet), "", *mark_table(marked)]))
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
