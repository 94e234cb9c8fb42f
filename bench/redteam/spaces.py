"""Network namespaces: one like a container's, and two with a long path between. Needs root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from process import BenchError
from redteam.stage import Stage

# A network reserved for benchmarks (RFC 2544).
HERE, THERE = "198.18.201.1", "198.18.201.2"


@dataclass(frozen=True)
class Space:
    """A network namespace and its address."""

    name: str
    address: str

    @property
    def enter(self) -> tuple[str, ...]:
        """The prefix of a command that is to run in it."""
        return ("ip", "netns", "exec", self.name)


@contextmanager
def container() -> Iterator[Space]:
    """Create a namespace that a pair of virtual links connects to this machine."""
    with _space("there", THERE) as space:
        link = f"rt{os.getpid()}"
        ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", space.name)
        try:
            ip("address", "add", f"{HERE}/24", "dev", link)
            ip("link", "set", link, "up")
            ip("-n", space.name, "address", "add", f"{THERE}/24", "dev", "eth0")
            ip("-n", space.name, "link", "set", "eth0", "up")
            yield space
        finally:
            ip("link", "delete", link)


@contextmanager
def path(stage: Stage, delay_ms: float) -> Iterator[tuple[Space, Space]]:
    """Create two namespaces; `path.c` carries packets between them with this delay."""
    with ExitStack() as stack:
        ends = (
            stack.enter_context(_space("here", HERE)),
            stack.enter_context(_space("there", THERE)),
        )
        words = [stage.program("path")]
        for space in ends:
            ip("-n", space.name, "tuntap", "add", "dev", "tun0", "mode", "tun")
            ip("-n", space.name, "address", "add", f"{space.address}/24", "dev", "tun0")
            ip("-n", space.name, "link", "set", "tun0", "up")
            words += [space.name, "tun0"]
        process = subprocess.Popen([*words, str(delay_ms)], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise BenchError("there is no path between two networks")
            yield ends
        finally:
            process.kill()
            process.communicate()


@contextmanager
def _space(kind: str, address: str) -> Iterator[Space]:
    name = f"redteam-{kind}-{os.getpid()}"
    ip("netns", "add", name)
    try:
        ip("-n", name, "link", "set", "lo", "up")
        yield Space(name, address)
    finally:
        with suppress(BenchError):
            ip("netns", "delete", name)


def ip(*words: str) -> None:
    """Run `ip WORDS`. Raises `BenchError` with the reason when it fails."""
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise BenchError("there is no ip: install Debian's iproute2") from None
    if done.returncode != 0:
        raise BenchError(f"`ip {' '.join(words)}`: {done.stderr.strip()}")
