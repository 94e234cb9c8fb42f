"""Hosts on this machine, reached by ssh, with a reference server that they send load to.

The network is that of the tests (`tests/hosts`): namespaces joined by a bridge, each with its own
sshd. Needs root, iproute2 and openssh-server.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from setting import ROOT, SettingError
from trueload.engines.engine import Engine, await_listening, find_engine
from trueload.places import EngineHost
from trueload.places.ssh import SshPlace
from trueload.protocol.plan import Serve

sys.path.insert(0, str(ROOT / "tests"))

from hosts.network import Host, Network, missing, missing_ssh
from hosts.sshd import start_ssh

READY_S = 30.0


@dataclass(frozen=True)
class Lab:
    """Hosts that load comes from, and the address of the server that they reach."""

    hosts: list[Host]
    places: tuple[EngineHost, ...]
    address: str

    def log_out(self) -> None:
        """End the connections to all hosts; the next use logs in again."""
        for host in self.places:
            assert isinstance(host.place, SshPlace)
            host.place.close()


@contextmanager
def open_lab(count: int) -> Iterator[Lab]:
    """Create `count` hosts, and remove them when the block ends. Raises ``SettingError``."""
    if why := missing() or missing_ssh():
        raise SettingError(why, "run it as root, with iproute2 and openssh-server installed")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lab", dir="/tmp")))
        network = stack.enter_context(Network(folder / "hosts", count))
        ssh = start_ssh(network, folder / "ssh")
        os.environ["PATH"] = ssh.env["PATH"]
        server = stack.enter_context(Engine.start())
        server.send(Serve(listen=f"{network.address}:0", threads=1, cpus=()))
        address = await_listening(server, READY_S)
        places = [stack.enter_context(SshPlace(host.name)) for host in network.hosts]
        for place in places:
            place.prepare(find_engine())
        yield Lab(network.hosts, tuple(EngineHost(place) for place in places), address)
