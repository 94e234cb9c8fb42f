"""Starts ``trueload`` without the half second that Python takes to load its modules.

A parent process that has loaded them forks for each command. From there on the fork does what
``python -m trueload`` does: it has its own process, session, arguments, environment, folder,
standard streams and umask. It becomes a child of the process that asked for it, which waits for it
and signals it like any other child. That the command also starts without this is tested where it is
installed (``test_wheel.py``) and by every test that asks for an interpreter of its own.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import functools
import gc
import importlib
import json
import os
import pkgutil
import resource
import socket
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
REQUEST_BYTES = 1 << 18
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
# The interpreter reads these before any of our modules, so a fork cannot apply them.
OF_THE_INTERPRETER = ("PYTHON", "LANG", "LC_", "FORCE_COLOR", "TERMINAL_WIDTH", "GITHUB_ACTIONS")


class Preloaded(subprocess.Popen[str]):
    """A command that was forked by the parent; `Popen` handles its pipes, end and signals."""

    def __init__(
        self,
        parent: Parent,
        args: list[str],
        *,
        terminal: bool,
        file_bytes_max: int | None,
        **options: Any,
    ) -> None:
        self._parent = parent
        self._begins = {"terminal": terminal, "file_bytes_max": file_bytes_max}
        super().__init__(args, **options)

    # The one method in which `Popen` starts a process; the parameters are CPython's.
    def _execute_child(self, args: Any, *rest: Any) -> None:
        cwd, env = rest[4], rest[5]
        pipes = rest[9:15]
        given = [
            end if end >= 0 else number for number, end in enumerate((pipes[0], pipes[3], pipes[5]))
        ]
        try:
            self.pid = self._parent.fork(args, env, cwd, given, self._begins)
            self._child_created = True
        finally:
            closing = vars(subprocess.Popen)["_close_pipe_fds"]
            closing(self, *pipes)


class Parent:
    """The process that has loaded everything and forks, seen from the test process."""

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

    def fork(
        self,
        args: list[str],
        env: Mapping[str, str],
        cwd: str,
        streams: list[int],
        begins: Mapping[str, int | None],
    ) -> int:
        """Start a command with these standard streams; return its pid."""
        umask = os.umask(0)
        os.umask(umask)
        request = {"args": args, "env": dict(env), "cwd": str(cwd), "umask": umask, **begins}
        asked = json.dumps(request)
        # Only during the fork: this process must not adopt other orphans.
        self._libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            socket.send_fds(self._socket, [asked.encode()], streams)
            return int(self._socket.recv(32))
        finally:
            self._libc.prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def load() -> None:
    """Import what commands import lazily, and build the validators that most of them use."""
    app = importlib.import_module("trueload.cli.app")
    app.build_app()
    plan = importlib.import_module("trueload.protocol.plan")
    done = plan.Done(type="done", why="finished")
    plan.parse_from_engine(plan.to_line(done))
    for module in pkgutil.walk_packages(importlib.import_module("trueload").__path__, "trueload."):
        if module.name != "trueload.__main__":
            importlib.import_module(module.name)
    build_models(importlib.import_module("pydantic").BaseModel)
    build_commands(app)
    gc.freeze()  # so that each command's collections skip what is never freed


def build_models(base: Any) -> None:
    """Build the validators of all models that are there; they are built when first used else."""
    for model in base.__subclasses__():
        if model.__module__.startswith("trueload."):
            model.model_rebuild()
        build_models(model)


def build_commands(app: Any) -> None:
    """Build the parser of each command, with what reads its options, and keep it for the forks."""

    def warm(command: Any) -> None:
        for parameter in command.params:
            parameter.get_runtime_param()
        for verb in getattr(command, "commands", {}).values():
            warm(verb)

    app.build_command = functools.cache(app.build_command)
    for name in app.COMMANDS:
        warm(app.build_command(name).commands[name])


def serve(asked: socket.socket) -> Callable[[], NoReturn] | None:
    """Fork for each request. Returns in each fork the function to run, and None at the end."""
    while True:
        request, streams, _, _ = socket.recv_fds(asked, REQUEST_BYTES, 3)
        if not request:
            return None  # the test process has ended
        reading, writing = os.pipe()
        between = os.fork()
        if between == 0:
            # The command is orphaned at once, so that the test process (a subreaper) adopts it.
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
    """Set this process up as the request says; return the function that it is to run."""
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
    for fd in streams:
        if fd > 2:
            os.close(fd)
    if request["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if (most := request["file_bytes_max"]) is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    os.umask(request["umask"])
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, closefd=False, errors="backslashreplace")
    sys.argv = [str(ROOT / "python/trueload/__main__.py"), *request["args"]]
    main: Callable[[], NoReturn] = importlib.import_module("trueload.__main__").main
    return main


def end_with(command: Callable[[], NoReturn]) -> NoReturn:
    """Run a command, and end without freeing what the fork shares with its parent, which would copy
    all of it."""
    try:
        command()
    except SystemExit as ended:
        code = int(ended.code or 0)
    vars(threading)["_shutdown"]()  # waits for threads, as the interpreter does
    vars(atexit)["_run_exitfuncs"]()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    load()
    command = serve(socket.socket(fileno=int(sys.argv[1])))
    if command:
        end_with(command)
