"""Starts ``trueload`` without the half second that Python takes to load its modules.

A parent that has loaded them forks for each command; what the fork does from there on is what
``python -m trueload`` does: a process of its own, in a session of its own, with its own arguments,
environment, folder, standard streams and umask. The fork is made a child of who asked for it, who
waits for it and signals it as for any other. That the command starts by itself, too, is tested
where it is installed (``test_wheel.py``) and wherever a test asks for an interpreter of its own.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
REQUEST_BYTES = 1 << 18
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
# What an interpreter reads before any module of ours: a fork comes too late for these.
OF_THE_INTERPRETER = ("PYTHON", "LANG", "LC_", "FORCE_COLOR", "TERMINAL_WIDTH", "GITHUB_ACTIONS")


class Preloaded(subprocess.Popen[str]):
    """A command that was forked. Its pipes, its end and its signals are `Popen`'s own matter."""

    def __init__(self, parent: Parent, args: list[str], **options: Any) -> None:
        self._parent = parent
        super().__init__(args, **options)

    # The one place where `Popen` starts a process: the parameters are CPython's.
    def _execute_child(self, args: Any, *rest: Any) -> None:
        cwd, env = rest[4], rest[5]
        pipes = rest[9:15]
        given = [
            end if end >= 0 else number for number, end in enumerate((pipes[0], pipes[3], pipes[5]))
        ]
        try:
            self.pid = self._parent.fork(args, env, cwd, given)
            self._child_created = True
        finally:
            closing = vars(subprocess.Popen)["_close_pipe_fds"]
            closing(self, *pipes)


class Parent:
    """The process that has loaded everything and forks, as seen by who asks it."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", __file__, str(theirs.fileno())],
                env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._socket = ours
        self._libc = ctypes.CDLL(None)

    def fork(self, args: list[str], env: Mapping[str, str], cwd: str, streams: list[int]) -> int:
        """Start a command with these standard streams; its pid."""
        umask = os.umask(0)
        os.umask(umask)
        asked = json.dumps({"args": args, "env": dict(env), "cwd": str(cwd), "umask": umask})
        # Only for as long as it takes: other orphans are no children of ours.
        self._libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            socket.send_fds(self._socket, [asked.encode()], streams)
            return int(self._socket.recv(32))
        finally:
            self._libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def load() -> None:
    """Import what commands import once they run, and build the validators that most of them use."""
    importlib.import_module("trueload.cli.app").build_app()
    plan = importlib.import_module("trueload.protocol.plan")
    done = plan.Done(type="done", why="finished")
    plan.parse_from_engine(plan.to_line(done))
    plan.parse_to_engine(plan.to_line(plan.Stop(type="stop")))
    importlib.import_module("trueload.record.schema").Record.model_rebuild()
    gc.freeze()  # what no command frees is not looked through by each


def serve(asked: socket.socket) -> Callable[[], NoReturn] | None:
    """Fork for each request. Returns in every fork, with what it is to run; None at the end."""
    while True:
        request, streams, _, _ = socket.recv_fds(asked, REQUEST_BYTES, 3)
        if not request:
            return None  # who asks has ended
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            # The command is an orphan at once, and who asked takes it on.
            if os.fork():
                os._exit(0)
            os.setsid()
            os.write(writing, str(os.getpid()).encode())
            for fd in (reading, writing, asked.detach()):
                os.close(fd)
            return as_command(json.loads(request), streams)
        os.waitpid(between, 0)
        for fd in (writing, *streams):
            os.close(fd)
        asked.send(os.read(reading, 32))
        os.close(reading)


def as_command(request: dict[str, Any], streams: list[int]) -> Callable[[], NoReturn]:
    """Give this process what the request says; what it is to run then."""
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    for fd in streams:
        if fd > 2:
            os.close(fd)
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, closefd=False, errors="backslashreplace")
    sys.argv = [str(ROOT / "python/trueload/__main__.py"), *request["args"]]
    main: Callable[[], NoReturn] = importlib.import_module("trueload.cli.app").main
    return main


if __name__ == "__main__":
    load()
    command = serve(socket.socket(fileno=int(sys.argv[1])))
    if command:
        command()
