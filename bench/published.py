"""Short runs of the five published benchmarks, in the published columns, for docs/published.md.

`bench/published.py [--only NAME]… [--no-page]` runs each suite over a few subjects that are in the
published table or resemble one there. Each suite has at most five minutes (25 in all); a suite that
takes longer is cut short, and the page says so. The commands are a user's: `trueload suite run`,
then `trueload runs export last --published`. Exit code 1 if a suite could not be run.

`--whole --only NAME [-- OPTIONS]` runs a suite over every subject that runs here instead, with
further options of `trueload suite run`. That may take hours: it goes on with a run that was
interrupted (kept in target/published/), and writes the table to docs/published/whole-NAME.txt.

What `trueload report` draws is written to target/published/: runs are too large for the repository,
except one to try that command on. A release has them all.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from machine import Machine, describe
from page import PUBLISHED, write_section
from setting import Quiet, SettingError, find_setting

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / folder) for folder in ("tests", "python")]

from harness import Trueload  # noqa: E402

BY = "make published"
REPETITIONS = PUBLISHED.with_suffix("")
RUNS = ROOT / "target" / "published"
KEPT = "c10k"  # the smallest of the short runs
# Only these loads of a whole run are shipped for `trueload report`: all six have 22 MB.
SHIPPED_CONNECTIONS = {"http-servers": ("64",)}
BUDGET_S = 300.0  # for each suite; five of them are 25 minutes
SAVE_S = 60.0  # for the running trial to end and be saved
INTERRUPTED = 130
MEASURED = (0, 4, INTERRUPTED)  # ranked, all invalid, cut short

# The arguments of `trueload suite run`. Server and generator get one CPU each: there are only two.
SHORT: dict[str, tuple[str, ...]] = {
    "http-servers": (
        *("--subjects", "c/nginx,go/fasthttp,rust/actix-web"),
        *("-d", "2s", "--repeat", "3", "--cores", "single"),
    ),
    "http-clients": (
        "--subjects",
        "erlang/httpc,c/libcurl-multi,go/net-http-client,java/okhttp,javascript/undici,"
        "python/aiohttp,rust/reqwest",
        *("--pools", "1,4", "--pool-size", "256", "--concurrency", "1024", "--repeat", "6"),
    ),
    "c10k": ("--subjects", "javascript/node-http", "--repeat", "3", "--cores", "single"),
    "ws-broadcast": (
        *("--subjects", "go/gorilla,javascript/ws,!ws:clustered"),
        *("--repeat", "1", "--cores", "single"),
    ),
    "tcp-echo": (
        *(
            "--subjects",
            "c/libev,javascript/node-net,rust/mio,rust/may,!libev:prefork,!mio:prefork",
        ),
        *("-d", "2s", "--repeat", "3", "--cores", "single"),
    ),
}


@dataclass(frozen=True)
class Short:
    """A short run: its published columns as text, a line per repetition, its record as JSON."""

    words: tuple[str, ...]
    table: str
    repetitions: tuple[str, ...]
    record: str
    cut_short: bool


def words_of(name: str) -> tuple[str, ...]:
    """Return the arguments that run a suite."""
    return ("suite", "run", name, *SHORT[name])


def run_short(trueload: Trueload, name: str, budget_s: float) -> Short:
    """Run a suite and export it. Raises ``SettingError`` if it could not be run."""
    words, log = words_of(name), trueload.folder / "log"
    with log.open("w") as log_file:
        nowhere = subprocess.DEVNULL
        process = trueload.start(*words, cwd=ROOT, stdout=nowhere, stderr=log_file.fileno())
        try:
            process.wait(timeout=budget_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=SAVE_S)
    output = log.read_text()
    if process.returncode not in MEASURED:
        raise SettingError(
            f"`trueload {shlex.join(words)}` ended with {process.returncode}:\n{output}",
            "`trueload subjects check` looks into subjects",
        )
    exported = trueload.run("runs", "export", "last", "--published", "--format", "text")
    record = trueload.run("runs", "export", "last", "--format", "json").out
    cut_short = process.returncode == INTERRUPTED
    return Short(words, exported.out, repetitions(output), record, cut_short)


def run_whole(name: str, more: Sequence[str], machine: Machine) -> None:
    """Run a suite over every subject, or go on with such a run, and write its table. Raises
    ``SettingError`` if it could not be run."""
    # The clients' suite gives the CPUs: the server has one, the client the others.
    cores = ("--cores", "single") if "--cores" in SHORT[name] else ()
    words = ("suite", "run", name, *cores, *more)
    folder = RUNS / name
    folder.mkdir(parents=True, exist_ok=True)
    trueload, quiet = Trueload(folder), Quiet()
    command, kept, begun = f"trueload {shlex.join(words)}", folder / "command", False
    if trueload.store.exists() and kept.exists():
        begun, before = True, kept.read_text()
        if before != command:
            raise SettingError(f"`{before}` was begun before", f"rm -r {folder} begins again")
    kept.write_text(command)
    try:
        process = trueload.start(
            *(("suite", "run", "--resume", "last") if begun else words),
            stdout=subprocess.DEVNULL,
            stderr=sys.stderr.fileno(),
        )
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            code = process.wait(timeout=SAVE_S)
        if code not in MEASURED:
            raise SettingError("the suite ended early", f"rm -r {folder} begins again")
        exported = trueload.run("runs", "export", "last", "--published", "--format", "text")
        record = trueload.run("runs", "export", "last", "--format", "json").out
    finally:
        trueload.close()
    ending = " It was interrupted: the same command goes on." if code == INTERRUPTED else ""
    about = section_head(command, machine, f"{quiet}{ending}")
    path = REPETITIONS / f"whole-{name}.txt"
    path.write_text("\n".join([*about, "", *exported.out.splitlines(), ""]))
    shipped = packed(record, SHIPPED_CONNECTIONS.get(name, ()))
    (RUNS / f"whole-{name}.json.xz").write_bytes(shipped)


def packed(exported: str, connections: Sequence[str] = ()) -> bytes:
    """Return an exported run, or its rows with these numbers of connections, without the output of
    builds, which names folders and hosts; as xz, since it has 5 to 68 MB. Pure."""
    run = json.loads(exported)
    if connections:
        run["rows"] = [row for row in run["rows"] if row["labels"]["connections"] in connections]
        run["row_count"] = len(run["rows"])
    for number, row in enumerate(run["rows"], start=1):
        row["number"] = number  # a report takes a gap for rows that were damaged
        row["detail"] = ""
        if row["outcome"] == "skipped":
            row["reason"], _, _ = row["reason"].partition(": ")
    return lzma.compress(json.dumps(run, separators=(",", ":")).encode(), preset=9)


def section_head(command: str, machine: Machine, meanwhile: str) -> tuple[str, str]:
    """Return what was run, and where. Pure."""
    found = f"{machine.cpu_model}, {machine.cpu_count} CPUs, Linux {machine.kernel}"
    return (
        f"`{command}` and `trueload runs export last --published`,",
        f"on {found}, {machine.date}. {meanwhile}",
    )


def repetitions(output: str) -> tuple[str, ...]:
    """Pick the lines about trials from a suite's output. Pure."""
    return tuple(line for line in output.splitlines() if re.match(r"\[ *\d+/\d+\] ", line))


def spread(lines: Sequence[str]) -> tuple[str, float] | None:
    """Find the row whose repetitions differ most, without invalid ones.

    Returns the row and its highest rate / its lowest; None if no row has two repetitions. Pure.
    """
    rates: dict[str, list[float]] = {}
    for line in lines:
        found = re.fullmatch(r"\[[^]]*\] (.*), r\d+: ([\d,]+) requests/s, (valid|suspect)", line)
        if found is not None and (rate := float(found[2].replace(",", ""))) > 0:
            rates.setdefault(found[1], []).append(rate)
    times = {row: max(some) / min(some) for row, some in rates.items() if len(some) > 1}
    return max(times.items(), key=lambda each: each[1], default=None)


def section(name: str, short: Short, machine: Machine, meanwhile: str) -> list[str]:
    """Return the lines of one suite's section of the page. Pure."""
    cut = f" It was cut short after {BUDGET_S:.0f} s." if short.cut_short else ""
    command, where = section_head(f"trueload {shlex.join(short.words)}", machine, meanwhile)
    record = run_of(name).relative_to(ROOT)
    drawn = f"`trueload report {record} -o {name}.html` draws this run."
    return [
        "",
        f"[A short run](published/{table_of(name)}), {command}",
        f"{where}{cut}",
        f"[Each repetition](published/{file_of(name)}) has a line of its own{_most(short)}.",
        *([drawn] if name == KEPT else []),
    ]


def run_of(name: str) -> Path:
    """The file with the record of a suite's short run."""
    return (REPETITIONS if name == KEPT else RUNS) / f"{name}.json"


def file_of(name: str) -> str:
    """The name of the file with a suite's repetitions, in docs/published/."""
    return f"repetitions-{name}.txt"


def table_of(name: str) -> str:
    """The name of the file with a suite's short run, in docs/published/."""
    return f"short-{name}.txt"


def _most(short: Short) -> str:
    most = spread(short.repetitions)
    if most is None:
        return ""
    row, times = most
    return (
        f"; in one row, those that are not invalid differ by a factor of {times:.1f} at most: {row}"
    )


def main(arguments: Sequence[str]) -> int:
    """Run the chosen suites, print the results, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", action="append", choices=sorted(SHORT), metavar="NAME")
    parser.add_argument("--no-page", action="store_true", help="Print, and leave the page alone.")
    parser.add_argument("--whole", action="store_true", help="Every subject, however long.")
    parser.add_argument("more", nargs="*", help="With --whole: options of `trueload suite run`.")
    asked = parser.parse_args(arguments)
    if asked.whole and len(asked.only or ()) != 1:
        parser.error("--whole needs one suite: --only NAME")
    try:
        find_setting()
    except SettingError as error:
        print(error, file=sys.stderr)
        return 1
    status, machine = 0, describe()
    if asked.whole:
        try:
            run_whole(asked.only[0], asked.more, machine)
        except SettingError as error:
            print(error, file=sys.stderr)
            status = 1
        return status
    for name in asked.only or SHORT:
        with tempfile.TemporaryDirectory() as folder:
            trueload = Trueload(Path(folder))
            quiet = Quiet()
            print(f"{name}: {BUDGET_S:.0f} s at most", file=sys.stderr)
            try:
                short = run_short(trueload, name, BUDGET_S)
            except SettingError as error:
                print(error, file=sys.stderr)
                status = 1
                continue
            finally:
                trueload.close()
            lines = section(name, short, machine, str(quiet))
        print("\n".join([f"## {name}", *lines, "", short.table]), flush=True)
        if not asked.no_page:
            REPETITIONS.mkdir(exist_ok=True)
            RUNS.mkdir(parents=True, exist_ok=True)
            (REPETITIONS / table_of(name)).write_text(short.table)
            (REPETITIONS / file_of(name)).write_text("\n".join([*short.repetitions, ""]))
            run_of(name).write_text(short.record)
            write_section(PUBLISHED, name, lines, by=BY)
    return status


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main(sys.argv[1:]))
