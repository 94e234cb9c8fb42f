"""What does a start cost? CPU time of helps, mistakes, lists and small runs.

Each round runs every command once, in an order that `--seed` shuffles, and a bare interpreter
(`python -c pass`) beside them. CPU time is that of the whole process and of its children, without
the engine. The two rounds before those that count fill the caches of bytecode and files.

Targets, as medians: 0.25 s for the help of every command, a mistyped option or
command, `runs list` with 100 runs, and `doctor --quick`; 0.5 s for `http -n 10`.

Prints Markdown with marks. Exit code 1 if a target is missed, 2 if it cannot measure.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import median

from commanded import COSTED, read_costs, run_http
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from process import BenchError
from servers import reference
from setting import SERVER_CPU, Quiet, SettingError, find_setting
from trueload.cli.app import build_command
from trueload.record.removed_fields import read_record
from trueload.store.runs import Store

ROUNDS, WARM_UPS = 11, 2
RUNS = 100
URL = "URL"
"""What stands for the server's URL in a command."""
PATIENCE_S = 60.0
BARE = "python -c pass"
QUICK, MEASURED = Limit(0.25, unit=" s"), Limit(0.5, unit=" s")


@dataclass(frozen=True)
class Command:
    """A command line after `trueload`, the exit codes that are expected, and its target."""

    words: tuple[str, ...]
    codes: tuple[int, ...] = (0,)
    limit: Limit = QUICK

    def __str__(self) -> str:
        return f"trueload {' '.join(self.words)}"


def commands() -> list[Command]:
    """Return what is measured: every help there is, and the others of the targets."""
    helps = [Command((*path, "--help")) for path in [(), *_paths(build_command(), ())]]
    return [
        *helps,
        Command(("http", "-h")),
        Command(("http", URL, "--duratoin", "10s"), (2,)),
        Command(("suite", "run", "--subject", "nginx"), (2,)),
        Command(("htpp", URL), (2,)),
        Command(("runs", "list")),
        Command(("doctor", "--quick")),
        Command(("http", URL, "-n", "10", "--quiet"), (0, 4), MEASURED),
    ]


def _paths(node: object, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    children: Mapping[str, object] = getattr(node, "commands", {})
    for name, child in children.items():
        yield (*path, name)
        yield from _paths(child, (*path, name))


def fill_store(path: Path, binary: Path, url: str) -> None:
    """Put runs of one trial into a store, as `trueload http -n 10` saves them."""
    measured = run_http(binary, url, ("-n", "10"), PATIENCE_S).record
    record = read_record(json.dumps(measured))
    with Store.open(path) as store:
        for _ in range(RUNS):
            run = store.new_run(kind="http", title=url, command=["trueload", "http", url])
            store.add_record(run, record)
            store.end_run(run)


def cpu_s(argv: Sequence[str], codes: Sequence[int], environment: Mapping[str, str]) -> float:
    """Run a program to its end; return its CPU seconds and those of its children, less what the
    engines among them took. Raises `BenchError` for another exit code."""
    costs = Path(environment["BENCH_COST"])
    costs.unlink(missing_ok=True)
    with tempfile.TemporaryFile() as out:
        process = subprocess.Popen(
            argv, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in codes:
            out.seek(0)
            said = out.read().decode(errors="replace")[-1000:]
            raise BenchError(f"`{' '.join(argv)}` ended with {process.returncode}:\n{said}")
    engines = sum(float(part) for line in read_costs(costs) for part in line.split())
    return used.ru_utime + used.ru_stime - engines


def measure(
    asked: Sequence[Command], url: str, environment: Mapping[str, str], rounds: int, seed: int
) -> dict[str, list[float]]:
    """Return the CPU seconds of each command, and of a bare interpreter, in each round."""
    lines: dict[str, tuple[list[str], tuple[int, ...]]] = {
        BARE: ([sys.executable, "-c", "pass"], (0,))
    }
    for each in asked:
        words = [url if word == URL else word for word in each.words]
        lines[str(each)] = [sys.executable, "-m", "trueload", *words], each.codes
    found: dict[str, list[float]] = {name: [] for name in lines}
    random = Random(seed)
    for number in range(-WARM_UPS, rounds):
        for name in random.sample(list(lines), len(lines)):
            argv, codes = lines[name]
            used_s = cpu_s(argv, codes, environment)
            if number >= 0:
                found[name].append(used_s)
    return found


def judge(asked: Sequence[Command], found: Mapping[str, Sequence[float]]) -> list[Mark]:
    """Judge the medians; all helps together, by the dearest of them. Pure."""
    medians = {str(command): median(found[str(command)]) for command in asked}
    helps = [command for command in asked if command.words[-1] in ("--help", "-h")]
    dearest = max(helps, key=lambda command: medians[str(command)])
    marked = []
    for command in (dearest, *(each for each in asked if each not in helps)):
        what = f"`{command}`" + (" (the dearest help)" if command is dearest else "")
        used_s = medians[str(command)]
        shown = f"{used_s:.3f} s, {used_s / median(found[BARE]):.1f} x the bare interpreter"
        marked.append(mark(f"CPU of {what}", command.limit, used_s, shown))
    return marked


def table(found: Mapping[str, Sequence[float]]) -> list[str]:
    """Markdown with a row for each command, by its median. Pure."""
    bare_s = median(found[BARE])
    lines = ["| command | CPU, s | least to most | x bare |", "|---|--:|---|--:|"]
    for name, used in sorted(found.items(), key=lambda each: median(each[1])):
        middle, span = median(used), f"{min(used):.3f} to {max(used):.3f}"
        lines.append(f"| `{name}` | {middle:.3f} | {span} | {middle / bare_s:.1f} |")
    return lines


def main() -> int:
    """Measure, print Markdown, and judge the targets."""
    parser = argparse.ArgumentParser(description="CPU time of commands that do little.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds ({ROUNDS})")
    parser.add_argument("--seed", type=int, default=1, help="order of the commands (1)")
    options = parser.parse_args()
    quiet = Quiet()
    try:
        binary = find_setting()
        with reference(binary, SERVER_CPU) as server, tempfile.TemporaryDirectory() as folder:
            url, store = f"http://127.0.0.1:{server.port}/", Path(folder, "store.sqlite3")
            fill_store(store, binary, url)
            named = {"TRUELOAD_ENGINE": COSTED, "BENCH_ENGINE": binary, "TRUELOAD_STORE": store}
            named |= {"BENCH_COST": Path(folder, "cost")}
            environment = {**os.environ, "TRUELOAD_CONFIG": "", "NO_COLOR": "1"}
            environment |= {name: str(path) for name, path in named.items()}
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            asked = commands()
            found = measure(asked, url, environment, options.rounds, options.seed)
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    marked = judge(asked, found)
    print(describe(), f"\n{RUNS} stored runs; rounds: {options.rounds}. {quiet}\n", sep="\n")
    print(*table(found), "", *mark_table(marked), sep="\n")
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
