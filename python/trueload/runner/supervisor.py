"""The supervisor: a small program that owns a subject's processes, so that none survives.

How: the runner starts it with a pipe on its stdin, in a session of its own. It is the sub-reaper of
all processes that it starts. So a process that leaves its session, group and parent (setsid, double
fork) becomes its child and is found. It copies their output to a bounded log and goes on reading
when the log is full, so that no pipe ever blocks them. On `stop` it sends SIGTERM to the whole
tree, and SIGKILL after the grace. When its stdin ends (the runner was killed) it kills the tree at
once. If it is killed itself, the kernel kills the programs that it started (PR_SET_PDEATHSIG).

Runs as `python -I -S supervisor.py`, with the standard library alone and nothing of ours. The first
line in has the orders (JSON). Lines out are {"started": [pid, …]}, {"error": why}, {"exited": pid,
"status": wait status} and {"gone": log bytes}.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import selectors
import signal
import time
from typing import Any

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
READ_BYTES = 1 << 20
TAIL_BYTES = 64 * 1024
SHORT_WAIT_S = 0.01
KILL_ROUNDS_MAX = 200  # short waits: do not wait longer for a process in uninterruptible sleep


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class Log:
    """The log: the head of the output is written at once, the tail from memory at the end."""

    def __init__(self, path: str, bytes_max: int) -> None:
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        self.room = max(bytes_max - TAIL_BYTES, 0)
        self.tail = b""
        self.dropped = 0
        self.seen = 0

    def add(self, data: bytes) -> None:
        self.seen += len(data)
        head, rest = data[: self.room], data[self.room :]
        self.room -= len(head)
        self.write(head)
        if rest:
            self.tail += rest
            over = max(len(self.tail) - TAIL_BYTES, 0)
            self.dropped += over
            self.tail = self.tail[over:]

    def write(self, data: bytes) -> None:
        with contextlib.suppress(OSError):  # a full disk must not end the subject
            os.write(self.file, data)

    def close(self) -> None:
        if self.dropped:
            self.write(b"\n[... %d bytes dropped ...]\n" % self.dropped)
        self.write(self.tail)
        self.tail = b""


def descendants(root: int) -> set[int]:
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="latin-1") as file:
                    fields = file.read().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in "ZX":
                children.setdefault(int(fields[1]), []).append(int(name))
    found: set[int] = set()
    pending = list(children.get(root, ()))
    while pending:
        pid = pending.pop()
        if pid not in found:
            found.add(pid)
            pending.extend(children.get(pid, ()))
    return found


def send(**line: Any) -> None:
    with contextlib.suppress(OSError):  # the runner has gone; the end of stdin will show it
        os.write(1, json.dumps(line).encode() + b"\n")


def start(child: dict[str, Any], orders: dict[str, Any], output: int) -> int:
    """Fork and exec; return the pid. Raises OSError if the program cannot be run."""
    reader, writer = os.pipe()  # both ends close on exec: no message means that the program runs
    pid = os.fork()
    if pid == 0:
        try:
            become(child, orders, output)
        except OSError as error:
            os.write(writer, str(error.errno or 1).encode())
        finally:
            os._exit(127)
    os.close(writer)
    why = os.read(reader, 16)
    os.close(reader)
    if why:
        os.waitpid(pid, 0)
        raise OSError(int(why), os.strerror(int(why)))
    return pid


def become(child: dict[str, Any], orders: dict[str, Any], output: int) -> None:
    os.setsid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if orders["cgroup"]:
        with open(os.path.join(orders["cgroup"], "cgroup.procs"), "w") as file:
            file.write("0")
    os.sched_setaffinity(0, child["cpus"] or orders["cpus"])
    if orders["files"]:
        resource.setrlimit(resource.RLIMIT_NOFILE, (orders["files"], orders["files"]))
    os.chdir(orders["cwd"])
    pipes = orders["pipes"]
    os.dup2(pipes[0] if pipes else os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(pipes[1] if pipes else output, 1)
    os.dup2(output, 2)
    for number in (signal.SIGPIPE, signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    os.execvpe(child["argv"][0], child["argv"], orders["env"])


class Supervisor:
    def __init__(self, orders: dict[str, Any]) -> None:
        self.orders = orders
        for fd in orders["pipes"] or ():  # the runner's pipes, for the one program that it talks to
            os.set_inheritable(fd, False)
        if orders["supervisor_cpus"]:
            os.sched_setaffinity(0, orders["supervisor_cpus"])
        self.mine: set[int] = set()
        self.log = Log(orders["log"], orders["log_bytes_max"])
        self.events = selectors.DefaultSelector()
        self.output, self.output_in = os.pipe()
        self.wake, wake_in = os.pipe()
        for fd in (self.output, self.wake, wake_in):
            os.set_blocking(fd, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_in, warn_on_full_buffer=False)

    def run(self) -> None:
        try:
            for child in self.orders["programs"]:
                self.mine.add(start(child, self.orders, self.output_in))
        except OSError as error:
            self.end(0)
            send(error=f"{child['argv'][0]}: {error.strerror}")
            return
        for fd in (self.output_in, *(self.orders["pipes"] or ())):
            os.close(fd)
        send(started=sorted(self.mine))
        self.events.register(0, selectors.EVENT_READ, "orders")
        self.events.register(self.output, selectors.EVENT_READ, "output")
        self.events.register(self.wake, selectors.EVENT_READ, "child")
        grace_s = self.watch()
        self.end(grace_s)
        self.log.close()
        send(gone=self.log.seen)

    def watch(self) -> float:
        """Wait until told to stop; return the grace in seconds, 0 if the runner has gone."""
        while not self.wait():
            pass
        line = os.read(0, 4096)
        return float(line.split()[1]) if line.startswith(b"stop") else 0.0

    def drain(self) -> None:
        try:
            data = os.read(self.output, READ_BYTES)
        except OSError:
            return
        if data:
            self.log.add(data)
        elif self.output in self.events.get_map():
            self.events.unregister(self.output)

    def reap(self) -> None:
        with contextlib.suppress(OSError):
            os.read(self.wake, 4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.mine:
                self.mine.remove(pid)
                send(exited=pid, status=status)

    def end(self, grace_s: float) -> None:
        """Send SIGTERM to all, then SIGKILL to what is left, until nothing is."""
        deadline = time.monotonic() + grace_s
        if grace_s > 0:
            self.signal_all(signal.SIGTERM)
        while descendants(os.getpid()) and time.monotonic() < deadline:
            if self.wait(SHORT_WAIT_S):
                break
        if 0 in self.events.get_map():
            self.events.unregister(0)
        for _ in range(KILL_ROUNDS_MAX):
            self.reap()
            if not descendants(os.getpid()):
                break
            self.kill_group()
            self.signal_all(signal.SIGKILL)
            self.wait(SHORT_WAIT_S)
        self.drain()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for something to do; return whether the runner has gone, or has a word for us."""
        for key, _ in self.events.select(timeout_s):
            if key.data == "output":
                self.drain()
            elif key.data == "child":
                self.reap()
            else:
                return True
        return False

    def signal_all(self, number: int) -> None:
        for pid in descendants(os.getpid()):
            with contextlib.suppress(OSError):
                os.kill(pid, number)

    def kill_group(self) -> None:
        if self.orders["cgroup"]:
            path = os.path.join(self.orders["cgroup"], "cgroup.kill")
            with contextlib.suppress(OSError), open(path, "w") as file:
                file.write("1")


def main() -> None:
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    # Unbuffered, so that input after the orders stays in the pipe for the selector.
    with open(0, "rb", buffering=0, closefd=False) as orders:
        line = orders.readline()
    Supervisor(json.loads(line)).run()


if __name__ == "__main__":
    main()
