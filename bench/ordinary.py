"""Runs `trueload http` against servers with the CPUs kept apart, and counts verdicts.

An ordinary run on a quiet machine must come out valid in at least 19 of 20: against the reference
server, which costs a core what the generator costs another, and against nginx, which costs more.

`bench/ordinary.py [TIMES [FLAGS…]]`; the server has CPU 0, the generator CPU 1. Exit code 1 if
fewer are valid, 2 where there is no nginx.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from counted import add_count
from marks import Limit, Mark, exit_code, mark, mark_table
from process import BenchError
from servers import nginx
from setting import GENERATOR_CPU, SERVER_CPU, Quiet

sys.path[:0] = [
    str(Path(__file__).resolve().parent.parent / folder) for folder in ("tests", "python")
]

from harness import Trueload, start_server  # noqa: E402

TIMES = 20
VALID_SHARE = 0.95
RUN_FLAGS = ("-d", "2s", "--cpus", str(GENERATOR_CPU), "--json", "-", "--no-save")


@contextmanager
def reference_url(trueload: Trueload, folder: Path) -> Iterator[str]:
    """The reference server, as users start it; it ends with `trueload`."""
    yield start_server(trueload, "--cpus", str(SERVER_CPU)).url


@contextmanager
def nginx_url(trueload: Trueload, folder: Path) -> Iterator[str]:
    """nginx with one worker."""
    with nginx(folder, SERVER_CPU) as server:
        yield f"http://127.0.0.1:{server.port}/"


SERVERS = {"the reference server": reference_url, "nginx": nginx_url}


def count_valid(
    trueload: Trueload, url: str, times: int, flags: Sequence[str]
) -> tuple[int, Counter[str]]:
    """The runs against one server, a line each: how many were valid, and the checks that the
    others crossed."""
    valid = 0
    reasons: Counter[str] = Counter()
    for number in range(1, times + 1):
        record = trueload.run("http", url, *RUN_FLAGS, *flags).json()
        crossed = [check for check in record["checks"] if check["status"] in ("warn", "fail")]
        valid += record["verdict"] == "valid"
        reasons.update(check["name"] for check in crossed)
        why = "; ".join(f"{check['name']}: {check['why']}" for check in crossed)
        print(f"{number:>3} {record['verdict']:<8} {why}", flush=True)
    return valid, reasons


def count_against(name: str, times: int, flags: Sequence[str]) -> Mark:
    """The mark of one server, which lives as long as its runs."""
    print(f"\n{name}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        # nginx's worker is another user's.
        Path(folder).chmod(0o755)
        trueload = Trueload(Path(folder))
        try:
            with SERVERS[name](trueload, Path(folder)) as url:
                valid, reasons = count_valid(trueload, url, times, flags)
        finally:
            trueload.close()
    limit = Limit(math.ceil(VALID_SHARE * times), at_least=True, unit=f" of {times}")
    shown = f"{valid} of {times}; crossed checks: {dict(reasons) or 'none'}"
    return mark(f"an ordinary run on a quiet machine against {name}: valid", limit, valid, shown)


def _options() -> tuple[int, list[str]]:
    parser = argparse.ArgumentParser(description="Counts the valid ones of ordinary runs.")
    add_count(parser, "TIMES", TIMES)
    parser.add_argument("flags", nargs=argparse.REMAINDER, help="of trueload http, behind TIMES")
    options = parser.parse_args()
    return options.count, options.flags


def main() -> int:
    """The runs against each server, and what stood against them."""
    times, flags = _options()
    quiet = Quiet()
    try:
        marked = [count_against(name, times, flags) for name in SERVERS]
    except BenchError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(["", str(quiet), "", *mark_table(marked)]))
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
