"""Runs `trueload http` against servers with the CPUs kept apart, and counts verdicts.

An ordinary run on a quiet machine, 64 connections for 5 s, must be valid in at least 19 of 20 runs.
One server is the reference server: it needs as much CPU as the generator, so that its throughput is
a lower bound. The others, nginx and some subjects, need more. A machine whose CPUs change their
speed (the check `cpu-speed`), or move between caches during a run, is not quiet: such runs are
printed but not counted, and further runs replace them, up to twice as many in all.

`bench/ordinary.py [TIMES [FLAGS…]]`; the server has CPU 0, the generator CPU 1. `--only nginx`
measures one server. Exit code 1 if fewer are valid; a server that cannot be built is left out.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from counted import add_count
from marks import Limit, Mark, exit_code, mark, mark_table
from process import BenchError
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
RUN_FLAGS = ("-c", "64", "-d", "5s", "--cpus", str(GENERATOR_CPU), "--json", "-", "--no-save")


@contextmanager
def reference_url(trueload: Trueload, folder: Path) -> Iterator[str]:
    """Start the reference server as users do; it ends with `trueload`."""
    yield start_server(trueload, "--cpus", str(SERVER_CPU)).url


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


SERVERS = {
    "the reference server": reference_url,
    "nginx": nginx_url,
    "fasthttp": subject_url("go/fasthttp"),
    "actix-web": subject_url("rust/actix-web"),
    "node-http": subject_url("javascript/node-http"),
}


def count_valid(
    trueload: Trueload, url: str, times: int, flags: Sequence[str]
) -> tuple[int, Counter[str]]:
    """Run against one server, printing a line for each run.

    Returns how many of the counted runs were valid, and how often each check warned or failed.
    """
    valid = counted = 0
    reasons: Counter[str] = Counter()
    for number in range(1, RUNS_MOST * times + 1):
        if counted == times:
            break
        record = trueload.run("http", url, *RUN_FLAGS, *flags).json()
        crossed = [check for check in record["checks"] if check["status"] in ("warn", "fail")]
        names = {check["name"] for check in crossed}
        reasons.update(names)
        moved = have_moved(record)
        if "cpu-speed" not in names and not moved:
            counted += 1
            valid += record["verdict"] == "valid"
        why = [f"{check['name']}: {check['why']}" for check in crossed]
        why += ["not counted: the CPUs moved"] if moved else []
        print(f"{number:>3} {record['verdict']:<8} {'; '.join(why)}", flush=True)
    return valid, reasons


def have_moved(record: dict[str, Any]) -> bool:
    """Whether the host moved the CPUs of generator and server during a run."""
    found = record.get("cpu_distance")
    return bool(found and moved_text([CoreLatency.model_validate(found)]))


def count_against(name: str, times: int, flags: Sequence[str]) -> Mark:
    """Start one server, run against it and judge the result."""
    print(f"\n{name}", flush=True)
    what = f"an ordinary run on a quiet machine against {name}: valid"
    limit = Limit(math.ceil(VALID_SHARE * times), at_least=True, unit=f" of {times}")
    with tempfile.TemporaryDirectory() as folder:
        # nginx's worker runs as another user.
        Path(folder).chmod(0o755)
        trueload = Trueload(Path(folder))
        try:
            with SERVERS[name](trueload, Path(folder)) as url:
                valid, reasons = count_valid(trueload, url, times, flags)
        except BenchError as error:
            return mark(what, limit, None, str(error))
        finally:
            trueload.close()
    shown = f"{valid} of {times}; crossed checks: {dict(reasons) or 'none'}"
    return mark(what, limit, valid, shown)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Counts the valid ones of ordinary runs.")
    parser.add_argument("--only", choices=SERVERS, action="append", help="one server")
    add_count(parser, "TIMES", TIMES)
    parser.add_argument("flags", nargs=argparse.REMAINDER, help="of trueload http, behind TIMES")
    return parser.parse_args()


def main() -> int:
    """Run against each server, and print the results."""
    options = _options()
    quiet = Quiet()
    names = options.only or SERVERS
    marked = [count_against(name, options.count, options.flags) for name in names]
    print("\n".join(["", str(quiet), "", *mark_table(marked)]))
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
