"""What goes wrong with hosts, made on purpose: how soon it is noticed, who is blamed, what is kept.

Three hosts (namespaces on this machine) load the reference server, entered by ssh, by a command
(`exec:`) and by Ray. In the middle of a run something happens to the second host, to its
connection, to the head of the cluster, or to the front. Runs in which a host is slow or busy, or
its clock is wrong, go on to their end: there a check must name the host, or nothing may go wrong.
Short runs without a fault show how far apart the hosts begin.

Targets: noticed within 2.5 s, the guilty one named, everything heard saved, nothing left running
3 s later; starts within 3 ms. Prints Markdown with marks. Exit code 1 if a target is missed, 2 if
it cannot measure. Needs root, iproute2, openssh-server and Ray.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import socketserver
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from machine import describe
from marks import Mark, exit_code, mark_table
from page import RELIABILITY, write_section
from psutil import process_iter
from setting import ROOT, Quiet, SettingError, find_setting
from ways import (
    CONNECTIONS,
    PROXY,
    STRUCK,
    WAYS,
    Run,
    Way,
    World,
    by_jump_host,
    by_proxy,
    engines_of,
    open_world,
    running,
    saved_record,
    send_signal,
)

sys.path.insert(0, str(ROOT / "tests"))

from hosts.network import missing, missing_ssh
from hosts.raylets import RAYLET
from waiting import wait_until

NOTICED_MOST_S, LEFT_MOST_S = 2.5, 3.0
LONG, SHORT = ("-d", "60s"), ("-d", "6s")
STOPPED_S = 4.0
"""How long the front is paused: longer than its engines wait for it (2 s)."""
ANSWER_S, SLOWER_S = 0.01, 0.15
CLOCK_BOUND_MOST_MS = 5.0
STARTS, APART_MOST_MS = 15, 3.0
HOGS = 2
EVERY = ("ssh", "exec", "ray")

Strike = Callable[[World], None]


@dataclass(frozen=True)
class Outcome:
    """What was seen of a fault; `failings` are the targets that were missed, in words."""

    shown: str
    failings: tuple[str, ...] = ()
    printed: str = ""
    """What the command printed."""


@dataclass(frozen=True)
class Fault:
    """A fault, the ways to hosts with which it is tried, and the function that tries it."""

    key: str
    what: str
    ways: tuple[str, ...]
    play: Callable[[World, Way], Outcome]
    limit: str = f"≤ {NOTICED_MOST_S:g} s, named"
    """What is asked for, in words."""
    spoils: bool = False
    """The Ray cluster does not survive it."""
    late: bool = False
    """The struck host's clocks are wrong."""


def lost(strike: Strike, blamed: str = "") -> Callable[[World, Way], Outcome]:
    """A host, or what `blamed` matches, is lost: the run ends and is kept."""

    def play(world: World, way: Way) -> Outcome:
        pattern = blamed or rf"host lost: .*{re.escape(way.label)}"
        with running(world, way, *LONG) as run:
            struck_s = time.monotonic()
            strike(world)
            code = run.end()
            ended_s = time.monotonic()
            left_s = seconds_until_gone(world, ended_s)
            world.network.fix()
            return judge_lost(run, pattern, struck_s, left_s, saved_record(world), code)

    return play


def judge_lost(
    run: Run, pattern: str, struck_s: float, left_s: float, record: dict[str, Any], code: int
) -> Outcome:
    """Hold what was seen of a loss against the targets."""
    said_s = run.said_s(pattern)
    told_s = (said_s or run.lines[-1][0]) - struck_s
    seen = re.search(r"seen (?:at once|after ([\d.]+) s)", run.text)
    noticed_s = float(seen[1] or 0) if seen else told_s
    kept = [host["ok"] for host in record["hosts"]]
    failings = {
        f"noticed after {noticed_s:.1f} s": noticed_s > NOTICED_MOST_S,
        "the guilty one is not named": said_s is None,
        f"exit code {code}": code != 4,
        f"not kept: {record['verdict']}, answers by host {kept}": not (
            record["partial"] and record["verdict"] == "invalid" and kept and all(kept)
        ),
        f"engines left for {left_s:.1f} s": left_s > LEFT_MOST_S,
        "a traceback": "Traceback" in run.text,
    }
    shown = f"{noticed_s:.1f} s, told after {told_s:.1f} s; nothing left {left_s:.1f} s later"
    shown += f"; {sum(kept):,} answers kept"
    return outcome_of(shown, failings, run.text)


def outcome_of(shown: str, failings: Mapping[str, bool], printed: str) -> Outcome:
    """Keep the failings that are true."""
    return Outcome(shown, tuple(text for text, is_so in failings.items() if is_so), printed)


def seconds_until_gone(world: World, since_s: float) -> float:
    """Wait until no engine runs on any host; return when that was, in seconds."""
    wait_until(lambda: world.engines() == 0, "the engines have gone")
    return max(0.0, time.monotonic() - since_s)


def strike_engine(number: int) -> Strike:
    """Send a signal to the struck host's engine."""

    def strike(world: World) -> None:
        pids = engines_of(world.struck)
        send_signal(pids, number)
        struck(len(pids))

    return strike


def strike_process(containing: str, *, on_head: bool = False) -> Strike:
    """Kill a process of the struck host, or of the cluster's head."""
    return lambda world: struck(world.network.hosts[0 if on_head else STRUCK].kill(containing))


def pull_links(world: World) -> None:
    """Pull the cables of all hosts."""
    for host in world.network.hosts:
        host.link("down")


def jump_host_killed(world: World, _: Way) -> Outcome:
    """Kill the ssh sessions of the host through which all the others are reached."""
    return lost(strike_process("sshd: root"), ALL_LOST)(world, by_jump_host(world))


def command_killed(world: World, _: Way) -> Outcome:
    """Kill the command here by which the struck host was entered."""
    way = by_proxy(world)

    def strike(world: World) -> None:
        lines = {each: " ".join(each.info["cmdline"] or ()) for each in process_iter(["cmdline"])}
        found = [each for each, line in lines.items() if PROXY[-1] in line and way.label in line]
        for each in found:
            each.kill()
        struck(len(found))

    return lost(strike, rf"host lost: .*{way.label}.*the command here, .* was killed")(world, way)


def pull_link(index: int = STRUCK) -> Strike:
    """Pull a host's cable."""
    return lambda world: world.network.hosts[index].link("down")


def struck(processes: int) -> None:
    """Make sure that a fault was made."""
    assert processes > 0, "there was nothing to strike"


def front_killed(world: World, way: Way) -> Outcome:
    """Kill the front: nothing may be left on any host."""
    with running(world, way, *LONG) as run:
        os.kill(run.process.pid, signal.SIGKILL)
        left_s = seconds_until_gone(world, time.monotonic())
    late = (f"engines left for {left_s:.1f} s",) if left_s > LEFT_MOST_S else ()
    return Outcome(f"nothing left after {left_s:.1f} s", late)


def front_stopped(world: World, way: Way) -> Outcome:
    """Stop the front for a while: the load ends, and no host is blamed for it."""
    with running(world, way, *LONG) as run:
        os.kill(run.process.pid, signal.SIGSTOP)
        left_s = seconds_until_gone(world, time.monotonic())
        time.sleep(max(0.0, STOPPED_S - left_s))
        os.kill(run.process.pid, signal.SIGCONT)
        code = run.end()
        record = saved_record(world)
    kept = [host["ok"] for host in record["hosts"]]
    failings = {
        f"engines left for {left_s:.1f} s": left_s > LEFT_MOST_S,
        f"exit code {code}": code != 4,
        "a host is blamed": "host lost" in run.text,
        "it does not say so": "was paused" not in run.text,
        f"not kept: answers by host {kept}": not (record["partial"] and all(kept)),
    }
    shown = f"nothing left after {left_s:.1f} s; {sum(kept):,} answers kept"
    return outcome_of(shown, failings, run.text)


def flap(down_s: float) -> Callable[[World, Way], Outcome]:
    """Pull the struck host's cable for so long: the run goes on, or the host is named as lost."""

    def play(world: World, way: Way) -> Outcome:
        with running(world, way, *SHORT) as run:
            struck_s = time.monotonic()
            world.struck.link("down")
            time.sleep(down_s)
            world.struck.link("up")
            code = run.end()
            record = saved_record(world)
        if record["trouble"] is not None:
            pattern = rf"host lost: .*{re.escape(way.label)}"
            return judge_lost(run, pattern, struck_s, 0.0, record, code)
        kept = [host["ok"] for host in record["hosts"]]
        failings = () if all(kept) and not record["partial"] else (f"answers by host {kept}",)
        return Outcome(f"no host lost; {sum(kept):,} answers kept", failings)

    return play


def slow_host(world: World, way: Way) -> Outcome:
    """A server that answers the struck host 150 ms later than the others."""
    with slow_server(world) as url:
        return judged(world, way, url, "host-bias")


def busy_host(world: World, way: Way) -> Outcome:
    """Programs that compete with the struck host's engine for its CPU."""
    with running(world, way, *SHORT) as run:
        for host in world.network.hosts:
            for pid in engines_of(host):
                pin(pid, 1 if host is world.struck else 0)
        spin = "import os\nos.sched_setaffinity(0, {1})\nwhile True: pass"
        hogs = [world.struck.start(sys.executable, "-c", spin) for _ in range(HOGS)]
        run.end()
        struck(world.struck.kill("while True: pass"))
        for hog in hogs:
            hog.wait()
    return named_by(saved_record(world), way, run.text)


def pin(pid: int, cpu: int) -> None:
    """Keep each thread of a process on a CPU."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), {cpu})


def judged(world: World, way: Way, url: str, *checks: str) -> Outcome:
    """Run to the end, and look for a check that names the struck host."""
    done = world.trueload.run(
        *("http", url, "-c", str(CONNECTIONS), *SHORT, *way.flags), env=world.ssh.env
    )
    return named_by(saved_record(world), way, done.out + done.err, *checks)


def named_by(record: dict[str, Any], way: Way, printed: str, *checks: str) -> Outcome:
    """Look for a check (one of these, if there are any) that names the struck host."""
    crossed = [check for check in record["checks"] if check["status"] in ("warn", "fail")]
    # All hosts here are one machine, in networks of their own.
    told = [each for each in crossed if each["name"] != "one-machine"]
    named = [each["name"] for each in told if way.label in each["why"]]
    right = any(not checks or name in checks for name in named)
    shown = f"named by {', '.join(f'`{name}`' for name in named) or 'no check'}"
    return outcome_of(shown, {"the guilty one is not named": not right}, printed)


def wrong_clock(world: World, way: Way) -> Outcome:
    """Clocks that are 25 hours ahead on the struck host: the run is as any other."""
    done = world.trueload.run(
        *("http", f"{world.server.url}/", "-c", str(CONNECTIONS), *SHORT, *way.flags),
        env=world.ssh.env,
    )
    record = saved_record(world)
    answers = [host["ok"] for host in record["hosts"]]
    bound_ms = max(host["clock_bound_ns"] for host in record["hosts"]) / 1e6
    failings = {
        f"{record['trouble']}": record["trouble"] is not None,
        f"answers by host {answers}": not all(answers),
        "the clocks are not known": bound_ms > CLOCK_BOUND_MOST_MS,
    }
    shown = f"clocks known to {bound_ms:.2f} ms; {sum(answers):,} answers kept"
    return outcome_of(shown, failings, done.out + done.err)


def starts_together(world: World, way: Way) -> Outcome:
    """Short runs without a fault: how far apart the hosts begin, on the front's clock."""
    words = ("http", f"{world.server.url}/", "-c", str(CONNECTIONS), "-d", "500ms")
    apart_ms = []
    for _ in range(STARTS):
        world.trueload.run(*words, *way.flags, env=world.ssh.env)
        apart_ms.append(max(host["start_ns"] for host in saved_record(world)["hosts"]) / 1e6)
    middle_ms = median(apart_ms)
    shown = f"{middle_ms:.2f} ms ({min(apart_ms):.2f} to {max(apart_ms):.2f})"
    return outcome_of(shown, {"they begin too far apart": middle_ms > APART_MOST_MS}, "")


@contextmanager
def slow_server(world: World) -> Iterator[str]:
    """An HTTP server in this process; yields its URL."""
    slow = world.struck.address

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            pause_s = ANSWER_S + (SLOWER_S if self.client_address[0] == slow else 0)
            for line in self.rfile:
                if line == b"\r\n":
                    time.sleep(pause_s)
                    self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with socketserver.ThreadingTCPServer((world.network.address, 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{world.network.address}:{server.server_address[1]}/"
        server.shutdown()


ENDED, FLAPPED = f"≤ {LEFT_MOST_S:g} s", "goes on, or named"
CLUSTER_LOST = "the Ray cluster at .* is lost"
ALL_LOST = "the way to all 3 hosts is lost"
FAULTS = (
    Fault("starts", f"{STARTS} starts", ("ssh",), starts_together, f"≤ {APART_MOST_MS:g} ms apart"),
    Fault("kill", "engine killed", EVERY, lost(strike_engine(signal.SIGKILL))),
    Fault("freeze", "engine frozen", EVERY, lost(strike_engine(signal.SIGSTOP))),
    Fault("link", "link down", ("ssh", "ray"), lost(pull_link())),
    Fault("sshd", "sshd's session killed", ("ssh",), lost(strike_process("sshd: root"))),
    Fault("links", "links of all hosts down", ("ssh",), lost(pull_links, ALL_LOST)),
    Fault("jump", "sessions at their jump host killed", ("ssh",), jump_host_killed),
    Fault("command", "command here killed", ("exec",), command_killed),
    Fault("actor", "actor killed", ("ray",), lost(strike_process("ray::Host"))),
    Fault("front-killed", "front killed", EVERY, front_killed, ENDED),
    Fault("front-stopped", f"front stopped for {STOPPED_S:g} s", EVERY, front_stopped, ENDED),
    Fault("flap-short", "link down for 0.5 s", ("ssh", "ray"), flap(0.5), FLAPPED),
    Fault("flap-long", "link down for 1.3 s", ("ssh", "ray"), flap(1.3), FLAPPED),
    Fault("slow", "answers 150 ms later on one host", EVERY, slow_host, "named"),
    Fault("busy", "other programs on one host's CPU", EVERY, busy_host, "named"),
    Fault(
        "clock",
        "clocks 25 h ahead on one host",
        ("ssh", "exec"),
        wrong_clock,
        "nothing lost",
        late=True,
    ),
    Fault("raylet", "raylet killed", ("ray",), lost(strike_process(RAYLET)), spoils=True),
    Fault(
        "head",
        "connection to the head killed",
        ("ray",),
        lost(strike_process("--mode=specific-server", on_head=True), CLUSTER_LOST),
    ),
    Fault(
        "head-link",
        "link of the head down",
        ("ray",),
        lost(pull_link(0), CLUSTER_LOST),
        spoils=True,
    ),
)


def tried(world: World, fault: Fault, name: str) -> Mark:
    """Make a fault; what could not even be made counts as missed."""
    way = WAYS[name](world, late=fault.late)
    try:
        outcome = fault.play(world, way)
    except AssertionError as error:
        outcome = Outcome("it could not be made", ("no result",), str(error))
    finally:
        world.network.fix()
    shown = "; ".join((outcome.shown, *outcome.failings))
    print(f"{fault.key:<14} {name:<5} {shown}", file=sys.stderr, flush=True)
    if outcome.failings:
        print(outcome.printed, file=sys.stderr, flush=True)
    return Mark(f"{fault.what}, {name}", fault.limit, shown, not outcome.failings)


def try_all(faults: Sequence[Fault], ways: Sequence[str]) -> list[Mark]:
    """Make each fault in every way; a cluster that one has broken is replaced."""
    wanted = [(fault, way) for fault in faults for way in fault.ways if way in ways]
    marked: list[Mark] = []
    while wanted:
        with_ray = any(way == "ray" for _, way in wanted)
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="faults", dir="/tmp"))
            world = stack.enter_context(open_world(Path(folder), with_ray=with_ray))
            spoiled = False
            while wanted and not spoiled:
                fault, way = wanted.pop(0)
                marked.append(tried(world, fault, way))
                spoiled = fault.spoils
    return marked


def main() -> int:
    """Make the faults, print Markdown, and judge."""
    parser = argparse.ArgumentParser(description="Faults of hosts, and what a user sees of them.")
    parser.add_argument("--only", action="append", default=[], help="faults whose key begins so")
    parser.add_argument("--way", action="append", choices=EVERY, help="one way to the hosts")
    parser.add_argument("--no-page", action="store_true", help="leave the page alone")
    options = parser.parse_args()
    faults = [each for each in FAULTS if each.key.startswith(tuple(options.only or [""]))]
    try:
        find_setting()
        if why := missing() or missing_ssh():
            raise SettingError(why, "run it as root, with iproute2 and openssh-server installed")
        quiet = Quiet()
        marked = try_all(faults, options.way or EVERY)
    except SettingError as error:
        print(error, file=sys.stderr)
        return 2
    lines = [str(describe()), "", f"Three hosts (namespaces on this machine). {quiet}", ""]
    lines += mark_table(marked)
    print("\n".join(lines))
    if not (options.only or options.way or options.no_page):
        write_section(RELIABILITY, "faults_hosts", lines)
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
