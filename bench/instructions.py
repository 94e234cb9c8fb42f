"""The instructions that a request takes, now and at an earlier commit: exact where CPU time is not.

Plays loads of `crates/sim/examples/instructions.rs` under callgrind: the generator in virtual time,
over the simulated kernel, from both trees. A request's cost is the additional instructions of a
longer run ÷ its additional answers, in lines of the crates that an engine is made of. Libraries are
left out: most of their instructions belong to the simulated kernel and its peers, whose compiled
code differs with every change. Needs Debian's valgrind, and builds both trees below
target/instructions/. Nothing needs to be idle. Exit code 2 when it cannot count.

    python bench/instructions.py REV [LOAD…]
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from process import BenchError, built, run
from setting import GENERATOR_CPU

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "target" / "instructions"
EXAMPLE = Path("crates/sim/examples/instructions.rs")
LOADS = ("depth-1", "depth-16", "http2-1", "http2-10", "open", "close", "sessions")
LENGTHS = (5_000, 15_000)
FILES_SHOWN = 8
# Inlined code keeps its lines, and both trees build in a few minutes.
PROFILE = (
    "CARGO_PROFILE_RELEASE_LTO=off",
    "CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16",
    "CARGO_PROFILE_RELEASE_DEBUG=line-tables-only",
)
BUILD_S, PLAY_S = 1_800.0, 600.0

# The format is in callgrind's manual: names are written once, and then their numbers alone.
_FILE = re.compile(r"(c?)f[lie]=\((\d+)\)(?: (.*))?")
_COST = re.compile(r"[-+*\d]\S* (\d+)$")
_OF_THE_ENGINE = re.compile(r"crates/(?!sim/)(?!.*\bfake)")


@dataclass(frozen=True)
class Run:
    """One run: its answers, and its instructions by source file."""

    answers: int
    files: Counter[str]


def read_costs(text: str) -> Counter[str]:
    """Sum the instructions in callgrind's output by source file, without those of calls."""
    names: dict[str, str] = {}
    costs: Counter[str] = Counter()
    file, is_call = "", False
    for line in text.splitlines():
        if named := _FILE.match(line):
            called, number, name = named.groups()
            if name:
                names[number] = re.sub(r"^.*/(?=crates/|library/|registry/)", "", name)
            if not called:
                file = names.get(number, "")
        elif line.startswith("calls="):
            is_call = True
        elif cost := _COST.match(line):
            if not is_call:
                costs[file] += int(cost[1])
            is_call = False
    return costs


def play(program: Path, load: str, requests: int) -> Run:
    """Play a load under callgrind. Raises `BenchError` if it does not end well."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={out}"]
        words = [str(program), load, str(requests)]
        ended = run([*command, *words], cpu=GENERATOR_CPU, timeout_s=PLAY_S)
        return Run(int(ended.out), read_costs(out.read_text()))


def per_request(program: Path, load: str) -> dict[str, float]:
    """Return the instructions of a request by source file."""
    short, long = (play(program, load, requests) for requests in LENGTHS)
    answers = long.answers - short.answers
    return {
        file: (long.files[file] - short.files[file]) / answers
        for file in long.files.keys() | short.files.keys()
        if _OF_THE_ENGINE.match(file)
    }


def build(tree: Path, name: str) -> Path:
    """Build the example of a tree.

    Each tree has a folder of its own: cargo names artifacts alike in both, and takes those of the
    tree that was written last for fresh.
    """
    folder = TARGET / name
    command = ["env", f"CARGO_TARGET_DIR={folder}", *PROFILE]
    command += ["cargo", "build", "--release", "--locked", "--quiet"]
    built([*command, "--package", "trueload-sim", "--example", EXAMPLE.stem], tree, BUILD_S)
    return folder / "release/examples" / EXAMPLE.stem


@contextmanager
def checked_out(revision: str) -> Iterator[Path]:
    """A tree of this revision, with the example of the present one."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        built(["git", "worktree", "add", "--detach", str(tree), revision], ROOT)
        try:
            (tree / EXAMPLE).parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / EXAMPLE, tree / EXAMPLE)
            yield tree
        finally:
            built(["git", "worktree", "remove", "--force", str(tree)], ROOT)


def report(loads: list[str], revision: str) -> Iterator[str]:
    """Yield the lines of the table."""
    with checked_out(revision) as tree:
        before = build(tree, "before")
    now = build(ROOT, "now")
    yield f"| load | instructions/request | at {revision} | ratio | most of the difference |"
    yield "|---|--:|--:|--:|---|"
    for load in loads:
        here, there = per_request(now, load), per_request(before, load)
        change = {file: here.get(file, 0) - there.get(file, 0) for file in here.keys() | there}
        most = sorted(change, key=lambda file: -abs(change[file]))[:FILES_SHOWN]
        where = ", ".join(f"{change[file]:+.0f} {file}" for file in most if abs(change[file]) >= 1)
        sums = sum(here.values()), sum(there.values())
        yield f"| {load} | {sums[0]:,.0f} | {sums[1]:,.0f} | {sums[0] / sums[1]:.4f} | {where} |"


def main() -> int:
    """Count, and print Markdown."""
    parser = argparse.ArgumentParser(description="Instructions of a request, now and before.")
    parser.add_argument("revision", help="an earlier commit")
    parser.add_argument("loads", nargs="*", metavar="LOAD", help=f"of {', '.join(LOADS)}")
    options = parser.parse_args()
    try:
        for line in report(options.loads or list(LOADS), options.revision):
            print(line, flush=True)
    except (BenchError, FileNotFoundError) as error:
        print(f"error: {error}\nhint: it takes Debian's valgrind, git and cargo", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
