"""A catalogue of tiny scripted subjects for tests of the runner: one program, many ways to fail.

Every process of a world carries a mark in its environment, so that a test can see whether anything
of it is left, whatever session or parent it has moved to, while other tests run beside it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness import ROOT, Finished, Trueload
from waiting import wait_until

MARK = "TRUELOAD_TEST_MARK"

# A threaded HTTP/1.1 server in a page. Its first argument says how it misbehaves.
PROGRAM = """
import os, signal, socket, sys, threading

how, host, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
BODY = b"Hello, World!" if how != "wrong" else b"Hello, Moon!!"
served = 0

def reply(path):
    status, body = (b"200 OK", BODY) if path == b"/" else (b"404 Not Found", b"no")
    head = b"HTTP/1.1 " + status + b"\\r\\nContent-Type: text/plain\\r\\nContent-Length: "
    one = head + str(len(body)).encode() + b"\\r\\n\\r\\n" + body
    return one * 2 if how == "twice" and served > 8 or how == "always-twice" else one

def serve(connection):
    global served
    pending = b""
    with connection:
        while True:
            data = connection.recv(65536)
            if not data:
                return
            pending += data
            while b"\\r\\n\\r\\n" in pending:
                head, _, pending = pending.partition(b"\\r\\n\\r\\n")
                served += 1
                # Six requests are the contract's; the next is the first under load.
                if how == "dies-after-ready" and served > 6:
                    os._exit(3)
                if how == "dies-in-mid-run" and served > 60:
                    os._exit(3)
                if how == "killed" and served > 60:
                    os.kill(os.getpid(), 9)
                connection.sendall(reply(head.split(b" ")[1]))

def listen(port):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if how == "prefork":
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("0.0.0.0" if how == "everywhere" else host, port))
    listener.listen(256)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()

if how == "exits-at-once":
    print("nothing to do here")
    sys.exit(0)
if how == "never-listens":
    signal.pause()
if how == "ignores-sigterm":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if how == "leaves-a-child" and os.fork() == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pause()
if how == "daemonises":
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
if how == "prints":
    sys.stdout.write(("x" * 1023 + "\\n") * 1024 * 64)
    sys.stdout.flush()
if how == "closes-stdout":
    os.close(1)
    os.close(2)
if how == "litters":
    open("left-about.txt", "w").write("here")
    open(os.path.join(os.environ["TMPDIR"], "left-there.txt"), "w").write("there")
listen(0 if how == "elsewhere" else port)
"""


class World:
    """A folder with ``subjects/`` of its own; suites and contracts are the checkout's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.subjects = folder / "subjects"
        self.cache = folder / "cache"
        self.mark = uuid.uuid4().hex
        self.trueload = Trueload(folder / "trueload")

    def add(self, name: str, how: str = "fine", *, language: str = "python", **keys: Any) -> Path:
        """A subject that behaves as ``how`` says; ``keys`` are more of its manifest."""
        folder = self.subjects / language / name
        folder.mkdir(parents=True)
        (folder / "program.py").write_text(PROGRAM)
        manifest = {
            "role": "server",
            "about": f"it {how}",
            "category": "platform",
            "contracts": ["http-plaintext"],
            "run": ["python3", "program.py", how, "{host}", "{port}"],
            "ready_s": 20,
            **keys,
        }
        lines = [f"{key} = {_toml(value)}" for key, value in manifest.items()]
        (folder / "subject.toml").write_text("\n".join(lines) + "\n")
        return folder

    @property
    def env(self) -> dict[str, str]:
        return {
            "TRUELOAD_HOME": str(ROOT),
            "TRUELOAD_CACHE": str(self.cache),
            MARK: self.mark,
        }

    def run(self, *args: str, env: Mapping[str, str] | None = None) -> Finished:
        """Run a command in the world."""
        return self.trueload.run(*args, cwd=self.folder, env={**self.env, **(env or {})})

    def run_suite(self, *args: str) -> Finished:
        """A short run of ``quick`` over all subjects of the world."""
        short = ("--requests", "200", "-c", "4", "--repeat", "1", "--share-cpus")
        subjects = () if "--subjects" in args else ("--subjects", "python")
        return self.run("suite", "run", "quick", *short, *subjects, *args)

    def marked(self) -> dict[int, str]:
        """Processes of this world that are alive, with their command lines."""
        mark = f"{MARK}={self.mark}".encode()
        found = {}
        for path in Path("/proc").iterdir():
            if not path.name.isdigit():
                continue
            try:
                if mark in (path / "environ").read_bytes().split(b"\0"):
                    command = (path / "cmdline").read_bytes().replace(b"\0", b" ")
                    found[int(path.name)] = command.decode(errors="replace")
            except OSError:
                continue
        return found

    def wait_for_trial(self, begun: str = "program.py") -> None:
        """Until a subject of the world is running, or another program."""
        wait_until(
            lambda: any(begun in command for command in self.marked().values()),
            f"{begun} was started",
        )

    def wait_until_nothing_is_left(self) -> None:
        """Waits until no process of the world is alive; fails with their names."""
        wait_until(lambda: not self.marked(), lambda: f"gone: {self.marked()}")


def _toml(value: Any) -> str:
    """JSON is TOML for strings, numbers, booleans and lists; a table needs '='."""
    if isinstance(value, dict):
        inner = ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items())
        return f"{{ {inner} }}"
    return json.dumps(value)
