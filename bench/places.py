"""What does an engine on another host cost more than one here? Its CPU time per request.

One host, a namespace on this machine, runs the same engine in three ways: as a child of the front
(entered by `nsenter`), by ssh, and by Ray. All three reach the reference server over the same link.
A round measures each of the three once, in random order. The engine has one thread on CPU 1; the
server, the front and whatever carries the lines run on CPU 0. Ratios are taken within a round;
their median has a 95 % interval.

Target: the upper end of the 95 % interval at most 1.05, for ssh and for Ray.

Prints Markdown with marks. Exit code 1 if a target is missed, 2 if it cannot measure. Needs root,
iproute2, openssh-server and Ray.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from page import PERFORMANCE, write_section
from setting import GENERATOR_CPU, ROOT, SERVER_CPU, Quiet, SettingError, prepare_setting
from trueload.engines.engine import Engine, EngineError, await_listening, find_engine
from trueload.errors import UserError
from trueload.places import Channel, EngineHost, Place
from trueload.places.local import LocalPlace
from trueload.places.ray import reserve
from trueload.places.ssh import SshPlace
from trueload.protocol.plan import Duration, Serve
from trueload.request.values import Request
from trueload.stats import interval
from trueload.trial.run import run_trial
from trueload.trial.spec import Load, TrialSpec

sys.path.insert(0, str(ROOT / "tests"))

from hosts.network import Host, Network, missing, missing_ssh
from hosts.raylets import start_ray
from hosts.sshd import start_ssh

LOCAL, OTHERS = "local", ("ssh", "ray")
ROUNDS = 30
ROUNDS_MIN = 6  # with fewer the interval is merely the range
CONNECTIONS = 64
SECONDS = 1.0
READY_S = 30.0
NS_PER_S = 1_000_000_000
MOST = Limit(1.05)


class Entered:
    """The host, entered by a child of the front: its lines need no carrier."""

    name = "h1"

    def __init__(self, host: Host) -> None:
        self._host = host

    def open(self, argv: Sequence[str]) -> Channel:
        """Start a process on the host. Raises ``OSError``."""
        return LocalPlace().open(self._host.inside(*argv))


@dataclass(frozen=True)
class World:
    """The three ways to one host, and the address of the server."""

    places: Mapping[str, Place]
    address: str


@contextmanager
def open_world() -> Iterator[World]:
    """Create the world, and remove it at the end. Raises ``SettingError``, ``UserError``."""
    if why := missing() or missing_ssh():
        raise SettingError(why, "run it as root, with iproute2 and openssh-server installed")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="places", dir="/tmp")))
        network = stack.enter_context(Network(folder / "hosts", 1))
        (host,) = network.hosts
        ssh = start_ssh(network, folder / "ssh")
        os.environ["PATH"] = ssh.env["PATH"]
        server = stack.enter_context(Engine.start())
        server.send(Serve(listen=f"{network.address}:0", threads=1, cpus=(SERVER_CPU,)))
        address = await_listening(server, READY_S)
        by_ssh = stack.enter_context(SshPlace(host.name))
        by_ssh.prepare(find_engine())
        reserved = stack.enter_context(reserve(start_ray(network).address, 1))
        (by_ray,) = reserved.places
        yield World({LOCAL: Entered(host), "ssh": by_ssh, "ray": by_ray}, address)


def measure(world: World, place: Place, seconds: float) -> float:
    """Return the CPU time per request, in microseconds. Raises ``EngineError``."""
    record = run_trial(
        TrialSpec(
            url=f"http://{world.address}/",
            addresses=(world.address,),
            request=Request(host=world.address),
            load=Load(
                connections=CONNECTIONS,
                warmup=Duration(ns=NS_PER_S // 5),
                stop=Duration(ns=int(seconds * NS_PER_S)),
            ),
            hosts=(EngineHost(place, cpus=(GENERATOR_CPU,)),),
        )
    )
    if record.trouble is not None or record.generator.cpu_s is None or not record.counts.ok:
        raise EngineError("engine", f"{place.name}: {record.trouble or 'nothing was measured'}")
    return record.generator.cpu_s / record.counts.ok * 1e6


Round = dict[str, float]


def measure_rounds(world: World, rounds: int, seconds: float, seed: int) -> list[Round]:
    """Measure each way once per round, in random order."""
    chance = random.Random(seed)
    done = []
    for _ in range(rounds):
        order = list(world.places)
        chance.shuffle(order)
        done.append({way: measure(world, world.places[way], seconds) for way in order})
    return done


def judge(rounds: Sequence[Round], way: str) -> Mark:
    """Judge a way against a child of the front, by the ratios within each round."""
    ratios = [each[way] / each[LOCAL] for each in rounds]
    around = interval(ratios)
    what = f"{way}: CPU per request against local, upper end of the 95 % interval"
    if around is None or len(ratios) < ROUNDS_MIN:
        return mark(what, MOST, None, f"{len(ratios)} rounds are too few")
    shown = f"{around.high:.3f} ({median(ratios):.3f}, from {around.low:.3f})"
    return mark(what, MOST, around.high, shown)


def table(rounds: Sequence[Round]) -> list[str]:
    """A Markdown table of each way's result."""
    lines = ["| place | CPU per request, median | least | most |", "|---|--:|--:|--:|"]
    for way in (LOCAL, *OTHERS):
        found = [each[way] for each in rounds]
        lines.append(f"| {way} | {median(found):.3f} µs | {min(found):.3f} | {max(found):.3f} |")
    return lines


def main() -> int:
    """Measure, print Markdown, and judge the targets."""
    parser = argparse.ArgumentParser(description="CPU per request of engines on another host.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of all three ({ROUNDS})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"a trial ({SECONDS:g})")
    parser.add_argument("--seed", type=int, default=1, help="of the order (1)")
    parser.add_argument("--no-page", action="store_true", help="leave docs/performance.md alone")
    options = parser.parse_args()
    try:
        prepare_setting()
        with open_world() as world:
            quiet = Quiet()
            rounds = measure_rounds(world, options.rounds, options.seconds, options.seed)
            noise = str(quiet)
    except (EngineError, SettingError, UserError) as error:
        print(error, file=sys.stderr)
        return 2
    marked = [judge(rounds, way) for way in OTHERS]
    about = (
        f"{len(rounds)} rounds of {options.seconds:g} s on one host (a namespace on this machine),"
        f" {CONNECTIONS} connections, one thread. {noise}"
    )
    lines = [str(describe()), "", about, "", *table(rounds), "", *mark_table(marked)]
    print("\n".join(lines))
    if options.rounds >= ROUNDS and not options.no_page:
        write_section(PERFORMANCE, "places", lines)
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
