"""The agent: what stands in for the front on a server's host: looks at processes there, starts a
subject, ends it.

How: it is the front's own code (accounting, supervisor) packed into one file that any Python 3.10
runs, so that a figure of another host is come by as one of this host is. A line in is a call, a
line out its answer. It ends, and with it all that it started, when its input does, or when nothing
has been heard of the front for as long as a lease lasts: a link may be down without anybody being
told.

Must not import anything beyond the standard library and what ``agent_file`` packs. Must not know
subjects or contracts.
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
from trueload.runner.inherited import subject_environment
from trueload.runner.process import Orders, Processes, Program, StartError

LEASE_S = 2.0  # as long as an engine's
READ_BYTES = 1 << 16


class Agent:
    """The calls, each a method by its name; what they return becomes JSON."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "scratch"
        self._folder.mkdir(0o700)
        self._tree: ProcessTree | None = None
        self._processes: Processes | None = None

    def about(self) -> dict[str, Any]:
        """What the front needs to know before it plans."""
        cpus = sorted(os.sched_getaffinity(0))
        return {"pid": os.getpid(), "cpus": cpus, "scratch": str(self._folder)}

    def lease(self) -> None:
        """The front is alive."""

    def watch(self, pid: int) -> None:
        """Account for a process and its children from now on."""
        self._tree = ProcessTree(pid)

    def sample(self) -> dict[str, Any]:
        """What is accounted for."""
        tree = self._processes.tree if self._processes is not None else self._tree
        if tree is None:
            raise ValueError("nothing is watched")
        return sample_json(tree.sample())

    def free_port(self, host: str) -> int:
        """A port that nobody has."""
        return sockets.free_port(host)

    def taken_by(self, host: str, port: int) -> str | None:
        """Who listens there."""
        return sockets.taken_by(host, port, set())

    def start(
        self, programs: list[tuple[list[str], list[int]]], cwd: str, env: dict[str, str], files: int
    ) -> list[int]:
        """Start a subject: commands, each with its CPUs. ``env`` is added to that of whoever logs
        in."""
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
        """How the subject is: on how many sockets its port is listened on, and by whom else."""
        return {**asdict(self._kept().look(host, port)), **self.news()}

    def news(self) -> dict[str, Any]:
        """Whether anything of it is left, and how what has ended did."""
        kept = self._kept()
        alive = kept.alive()
        return {"alive": alive, "exits": [[each.code, each.signal] for each in kept.exits]}

    def elsewhere(self) -> list[str]:
        """Where the subject listens at all."""
        return self._kept().listens_on()

    def log_tail(self) -> str:
        """The end of what it printed."""
        return self._kept().log_tail()

    def end(self, grace_s: float = 0.0) -> None:
        """End the subject. Twice is once."""
        if self._processes is not None:
            self._processes.end(grace_s)

    def _kept(self) -> Processes:
        if self._processes is None:
            raise ValueError("nothing was started")
        return self._processes

    def answer(self, line: bytes) -> dict[str, Any]:
        """Do what a line asks for. The answer repeats the id of the call."""
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
    """Until the input ends, or the lease. The folder is the agent's, for whoever it starts."""
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
        pass  # nobody listens any more
    finally:
        agent.end()
