"""Attacks on the verdict by programs whose truth is known.

`make redteam` makes every attack and prints a table: the attack, the truth, what trueload says, and
whether that is right. `ONLY=window` makes those whose key begins with it. `PEERS=1` runs wrk, oha,
hey and k6, where installed, under the same attacks and writes docs/comparison.md. Exit code 1 if a
row is wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

# This folder is a package; the modules of bench/ are imported by their bare names.
TOP = Path(__file__).resolve().parent.parent.parent
sys.path[:1] = [str(TOP / folder) for folder in ("bench", "tests", "python")]

from machine import describe  # noqa: E402
from page import COMPARISON, write_section  # noqa: E402
from process import BenchError  # noqa: E402
from redteam import rivals  # noqa: E402
from redteam.attacks import ATTACKS, Attack  # noqa: E402
from redteam.demands import Row, table  # noqa: E402
from redteam.scenes import Http  # noqa: E402
from redteam.stage import Stage, open_stage  # noqa: E402
from setting import Quiet, SettingError, find_setting  # noqa: E402


def chosen(names: Sequence[str]) -> list[Attack]:
    """Return the attacks whose keys begin with one of the names, or all if there are no names."""
    return [each for each in ATTACKS if not names or each.key.startswith(tuple(names))]


def make_all(attacks: Sequence[Attack], times: int) -> list[Row]:
    """Make every attack `times` times, and print a line when one ends."""
    rows = []
    with open_stage() as stage:
        for attack in attacks:
            for _ in range(times):
                began_s = time.monotonic()
                rows.append(attack.make(stage))
                row, took_s = rows[-1], time.monotonic() - began_s
                line = f"{row.word:<8} {attack.key:<20} {took_s:4.0f} s  {row.truth} | {row.said}"
                print(line, file=sys.stderr, flush=True)
    return rows


def show_rivals(attacks: Sequence[Attack]) -> list[str]:
    """Return the table of what other generators say under the same attacks."""
    found, absent = rivals.find_rivals()
    lines = []
    with open_stage() as stage:
        for attack in attacks:
            scene = attack.scene
            if not isinstance(scene, Http) or rivals.load_of(scene.flags.split()) is None:
                continue
            cells = [_cell(stage, scene, rival) for rival in found]
            ours = attack.make(stage)
            lines.append((attack.what, ours.truth, cells, ours.said))
            print(f"{attack.key:<20} {' | '.join([*cells, ours.said])}", file=sys.stderr)
    missing = [f"{name}: {why}." for name, why in absent.items()]
    return [*rivals.table(lines, [rival.name for rival in found]), "", *missing]


def _cell(stage: Stage, scene: Http, rival: rivals.Rival) -> str:
    try:
        return rivals.cell_of(stage, scene, rival)
    except (BenchError, subprocess.TimeoutExpired) as error:
        return f"nothing: {error}"


def report_rivals(attacks: Sequence[Attack], no_page: bool) -> int:
    """Print that table, and write it into its page."""
    lines = [str(describe()), "", *show_rivals(attacks)]
    print("\n".join(lines))
    if not no_page:
        write_section(COMPARISON, "redteam", lines, by="make redteam PEERS=1")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Attacks on the verdict, with a known truth.")
    parser.add_argument("--only", action="append", default=[], help="attacks whose key begins so")
    parser.add_argument("--times", type=int, default=1, help="how often each is made (1)")
    parser.add_argument("--json", type=Path, help="a file for every row")
    parser.add_argument("--peers", action="store_true", help="run wrk, oha, hey and k6, too")
    parser.add_argument("--no-page", action="store_true", help="leave docs/comparison.md alone")
    return parser.parse_args()


def main() -> int:
    """Print the table; return 1 when one of its rows is wrong, 2 when it cannot be made."""
    options = _options()
    attacks = chosen(options.only)
    if not attacks:
        print(f"no attack is called {', '.join(options.only)}", file=sys.stderr)
        return 2
    quiet = Quiet()
    try:
        find_setting()
        if options.peers:
            return report_rivals(attacks, options.no_page or bool(options.only))
        rows = make_all(attacks, options.times)
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    print("\n".join([*table(rows), "", str(quiet)]))
    return int(any(row.right is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
