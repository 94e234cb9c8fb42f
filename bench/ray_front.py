"""What does each host of a Ray cluster cost the front?

The hosts are namespaces on this machine with a Ray node each. The front runs outside the cluster
(`ray://`) or on its head (`ray`), and sends 1,000 requests/s from two hosts or from twelve. The CPU
time of the front's process is taken over some seconds of the window. What each host more costs is
the difference, in the median of the rounds.

Target: each host more takes at most 0.004 cores of the front. Prints Markdown. Exit code 1 if the
target is missed, 2 if it cannot measure. Needs root, iproute2 and Ray.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from page import ACCURACY, write_section
from setting import ROOT, Quiet, SettingError, find_setting

sys.path.insert(0, str(ROOT / "tests"))

from harness import Server, Trueload, kill_group, start_server
from hosts.network import Network, missing
from hosts.raylets import PORT, Raylets, start_ray
from waiting import wait_until

FEW, MANY = 2, 12
ROUNDS = 3
SETTLED_S, WATCHED_S = 2.0, 8.0
START_S = 120.0
EACH_MOST = Limit(0.004, unit=" cores")
PLACES = {"ray://": "`ray://`", "ray": "`ray`, on the head"}
"""Where the front runs: outside the cluster or on its head; and how the page names it."""


@dataclass(frozen=True)
class Cluster:
    """The hosts, and a server that they reach."""

    raylets: Raylets
    trueload: Trueload
    server: Server

    def connected(self) -> int:
        """The connections that the hosts have to the server."""
        return self.raylets.connections(self.server.host, self.server.port)

    def start(self, place: str, hosts: int) -> subprocess.Popen[str]:
        """Start a front that loads the server from so many hosts."""
        head, outside = self.raylets.network.hosts[0], place != "ray"
        where = ("--place", self.raylets.address if outside else place, "--hosts", str(hosts))
        load = ("-c", str(MANY), "--rate", "1k/s", "-d", "60s")
        words = (sys.executable, "-m", "trueload", "http", f"{self.server.url}/", *load, *where)
        address = {} if outside else {"RAY_ADDRESS": f"{head.address}:{PORT}"}
        return subprocess.Popen(
            words if outside else head.inside(*words),
            env=self.trueload.env(address),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def front_cores(self, place: str, hosts: int) -> float:
        """Return the CPU use of a front over so many hosts, in cores."""
        process = self.start(place, hosts)
        try:
            wait_until(lambda: self.connected() == MANY, "all have connected", START_S)
            front = psutil.Process(process.pid)
            if place == "ray":  # what enters the host's namespaces waits for the front
                (front,) = front.children()
            time.sleep(SETTLED_S)
            before, began_s = sum(front.cpu_times()[:2]), time.monotonic()
            time.sleep(WATCHED_S)
            used_s = sum(front.cpu_times()[:2]) - before
            cores = used_s / (time.monotonic() - began_s)
            front.terminate()
            process.wait(START_S)
            return cores
        finally:
            kill_group(process)
            wait_until(lambda: self.connected() == 0, "the engines have gone")


@contextmanager
def open_cluster() -> Iterator[Cluster]:
    """Create the hosts, and remove them at the end. Raises ``SettingError``."""
    if why := missing():
        raise SettingError(why, "run it as root, with iproute2 installed")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ray", dir="/tmp")))
        network = stack.enter_context(Network(folder / "hosts", MANY))
        trueload = Trueload(folder / "world")
        stack.callback(trueload.close)
        trueload.folder.mkdir(parents=True, exist_ok=True)
        server = start_server(trueload, "--threads", "1", address=network.address)
        yield Cluster(start_ray(network), trueload, server)


Rounds = Mapping[tuple[str, int], Sequence[float]]


def measure(cluster: Cluster, rounds: int) -> Rounds:
    """Measure from both places with few hosts and with many, in turn."""
    found: dict[tuple[str, int], list[float]] = {}
    for number in range(rounds):
        for place in PLACES:
            for hosts in (FEW, MANY):
                cores = cluster.front_cores(place, hosts)
                found.setdefault((place, hosts), []).append(cores)
                print(f"round {number + 1}: {place}, {hosts}: {cores:.3f}", file=sys.stderr)
    return found


def report(found: Rounds) -> tuple[list[Mark], list[str]]:
    """Judge what each host more costs; return a Markdown table with a row for each place, too."""
    lines = [
        f"| place | front's CPU, {FEW} hosts | {MANY} hosts | for each host more |",
        "|---|--:|--:|--:|",
    ]
    marks = []
    for place, name in PLACES.items():
        few, many = (median(found[place, hosts]) for hosts in (FEW, MANY))
        each = (many - few) / (MANY - FEW)
        lines.append(f"| {name} | {few:.3f} cores | {many:.3f} cores | {each:.4f} cores |")
        what = f"{name}: front's CPU for each host more"
        marks.append(mark(what, EACH_MOST, each, f"{each:.4f} cores"))
    return marks, lines


def main() -> int:
    """Measure, print Markdown, and judge."""
    parser = argparse.ArgumentParser(description="What hosts of a Ray cluster cost the front.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="times to measure each place")
    parser.add_argument("--no-page", action="store_true", help="leave the page alone")
    options = parser.parse_args()
    try:
        find_setting()
        quiet = Quiet()
        with open_cluster() as cluster:
            found = measure(cluster, options.rounds)
    except SettingError as error:
        print(error, file=sys.stderr)
        return 2
    what = f"The median of {options.rounds} rounds, {WATCHED_S:g} s of a window each. {quiet}"
    marks, table = report(found)
    lines = [str(describe()), "", what, "", *mark_table(marks), "", *table]
    print("\n".join(lines))
    if not options.no_page:
        write_section(ACCURACY, "ray", lines)
    return exit_code(marks)


if __name__ == "__main__":
    sys.exit(main())
