"""The agent: stands in for the front on a server's host.

It samples processes there, starts a subject and ends it.

How: it is the front's own code (accounting, supervisor), packed into one file that any Python 3.10
runs. So a figure from another host is measured exactly as one from this host. A line in is a call,
and a line out is its answer.

The agent ends, and with it all that it started, when its input ends. It also ends if the front
sends nothing for the length of a lease: a link may be down without any notice.

Must not import anything beyond the standard library and what ``agent_file`` packs.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from trueload.machine.accounting import ProcessTree, sample_json
from trueload.runner import sockets
from trueload.runner.environment import subject_environment
from trueload.runner.process import Orders, Processes, Program, StartError

LEASE_S = 2.0  # as long as an engine's
READ_BYTES = 1 << 16


class Agent:
    """The calls: each is a method by its name, and its result becomes JSON."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "scratch"
        self._folder.mkdir(0o700)
        self._tree: ProcessTree | None = None
        self._processes: Processes | None = None

    def about(self) -> dict[str, Any]:
        """Return what the front needs to know before it plans."""
        cpus = sorted(os.sched_getaffinity(0))
        return {"pid": os.getpid(), "cpus": cpus, "scratch": str(self._folder)}

    def lease(self) -> None:
        """Do nothing: any call shows that the front is alive."""

    def watch(self, pid: int) -> None:
        """Account for a process and its children from now on."""
        self._tree = ProcessTree(pid)

    def sample(self) -> dict[str, Any]:
        """Return what the watched processes have used."""
        tree = self._processes.tree if self._processes is not None else self._tree
        if tree is None:
            raise ValueError("nothing is watched")
        return sample_json(tree.sample())

    def free_port(self, host: str) -> int:
        """Return a port that nobody uses."""
        return sockets.free_port(host)

    def taken_by(self, host: str, port: int) -> str | None:
        """Return the process that listens there, as a text; None if there is none."""
        return sockets.taken_by(host, port, set())

    def start(
        self, programs: list[tuple[list[str], list[int]]], cwd: str, env: dict[str, str], files: int
    ) -> list[int]:
        """Start a subject: commands, each with its CPUs.

        ``env`` is added to the login environment on this host.
        """
        orders = Orders(
            programs=tuple(Program(tuple(argv), tuple(cpus)) for argv, cpus in programs),
            cwd=Path(cwd),
            env=subject_environment(env),
            log=self._folder.parent / "log",
            files=files,
        )
        self.end()
        processes = Processes(orders)
        processes.__enter__()
        self._processes = processes
        return list(processes.started)

    def look(self, host: str, port: int) -> dict[str, Any]:
        """Return how many sockets listen on its port, who else listens, and ``news``."""
        return {**asdict(self._kept().look(host, port)), **self.news()}

    def news(self) -> dict[str, Any]:
        """Return whether any of its processes is left, and how the ended ones ended."""
        kept = self._kept()
        alive = kept.alive()
        return {"alive": alive, "exits": [[each.code, each.signal] for each in kept.exits]}

    def elsewhere(self) -> list[str]:
        """Return all addresses that the subject listens on."""
        return self._kept().listens_on()

    def log_tail(self) -> str:
        return self._kept().log_tail()

    def end(self, grace_s: float = 0.0) -> None:
        """End the subject. Idempotent: calling it again does nothing."""
        if self._processes is not None:
            self._processes.end(grace_s)

    def _kept(self) -> Processes:
        if self._processes is None:
            raise ValueError("nothing was started")
        return self._processes

    def answer(self, line: bytes) -> dict[str, Any]:
        """Carry out the call in a line. The answer repeats the id of the call."""
        asked = json.loads(line)
        number, name = asked.pop("id"), asked.pop("call")
        return {"id": number, **self._outcome(name, asked)}

    def _outcome(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if name.startswith("_") or name == "answer":
            return {"error": f"there is no call {name}"}
        call: Callable[..., Any] = getattr(self, name)
        try:
            return {"result": call(**arguments)}
        except StartError as error:
            return {"error": str(error), "start": True}
        except (OSError, ValueError) as error:
            return {"error": str(error)}


def main(folder: Path) -> None:
    """Answer calls until the input ends, or the lease.

    ``folder`` belongs to the agent; whoever starts it makes the folder.
    """
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    agent = Agent(folder)
    pending = b""
    try:
        while select.select([0], [], [], LEASE_S)[0]:
            data = os.read(0, READ_BYTES)
            if not data:
                break
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                sys.stdout.buffer.write(json.dumps(agent.answer(line)).encode() + b"\n")
                sys.stdout.buffer.flush()
    except OSError:
        pass  # nobody reads the answers any more
    finally:
        agent.end()
