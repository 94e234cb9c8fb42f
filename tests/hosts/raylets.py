"""Ray on the hosts of a ``Network``: a node on each, the first of them the head.

How: ``ray start``, as a user would run it on each host, which has its own folder for Ray's files.
All of it ends with the host. Must not know trueload.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from waiting import wait_until

from hosts.network import Host, Network, lines_of

RAY = Path(sys.executable).parent / "ray"
PORT, CLIENT_PORT = 6379, 10001
RAYLET = "raylet/raylet"
ENVIRONMENT = {
    **os.environ,
    "RAY_USAGE_STATS_ENABLED": "0",
    # Start no worker processes in advance: a request for hosts would wait for them.
    "RAY_prestart_worker_first_driver": "0",
    # At Ray's niceness (15) three nodes would take over half a minute to start beside the other
    # tests: these hosts have no CPUs of their own.
    "RAY_worker_niceness": "0",
}


@dataclass(frozen=True)
class Raylets:
    """A cluster over the hosts of a network."""

    network: Network

    @property
    def address(self) -> str:
        """The address at which a front outside the cluster joins it."""
        return f"ray://{self.network.hosts[0].address}:{CLIENT_PORT}"

    def connections(self, address: str, port: int) -> int:
        """The connections that the hosts have to a server."""
        words = ("ss", "-Htn", "state", "established", "dst", f"{address}:{port}")
        return sum(len(host.run(*words).stdout.splitlines()) for host in self.network.hosts)


def start_ray(network: Network, nodes: int | None = None) -> Raylets:
    """Start Ray on every host, or on the first ``nodes`` of them; each has one CPU to book."""
    head = network.hosts[0]
    start_node(head, "--head", f"--port={PORT}", f"--ray-client-server-port={CLIENT_PORT}")
    raylets = Raylets(network)
    for host in network.hosts[1:nodes]:
        add_node(raylets, host)
    wait_until(lambda: takes_clients(raylets), "the head takes clients")
    return raylets


def add_node(raylets: Raylets, host: Host) -> None:
    """Start Ray on one more host."""
    start_node(host, f"--address={raylets.network.hosts[0].address}:{PORT}")


def takes_clients(raylets: Raylets) -> bool:
    """Whether the head listens for clients, the last of its parts that does."""
    with contextlib.suppress(OSError):
        socket.create_connection((raylets.network.hosts[0].address, CLIENT_PORT), 1.0).close()
        return True
    return False


def start_node(host: Host, *flags: str) -> subprocess.Popen[str]:
    """Start one node; it has joined the cluster when this returns."""
    Path("/tmp/ray").mkdir(exist_ok=True)
    host.run("mount", "-t", "tmpfs", "tmpfs", "/tmp/ray")
    words = [f"--node-ip-address={host.address}", f"--node-name={host.name}", "--num-cpus=1"]
    words += ["--object-store-memory=80000000", *flags]
    if "--head" in flags:
        words.append("--include-dashboard=false")
    process = host.start(RAY, "start", "--block", *words, env=ENVIRONMENT)
    lines_of(process, "This command will now block")
    return process
