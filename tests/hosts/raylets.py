"""Ray on the hosts of a ``Network``: a node on each, the first of them the head.

How: ``ray start``, as a user would run it on each host, which has its own folder for Ray's files.
All of it ends with the host. Must not know trueload.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from hosts.network import Host, Network, lines_of

RAY = Path(sys.executable).parent / "ray"
PORT, CLIENT_PORT = 6379, 10001
RAYLET = "raylet/raylet"
CLIENT = "import sys, ray; ray.init(sys.argv[1]); ray.shutdown()"
CLIENT_TRIES = 5
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


def start_ray(network: Network, nodes: int | None = None) -> Raylets:
    """Start Ray on every host, or on the first ``nodes`` of them; each has one CPU to book."""
    head = network.hosts[0]
    start_node(head, "--head", f"--port={PORT}", f"--ray-client-server-port={CLIENT_PORT}")
    raylets = Raylets(network)
    for host in network.hosts[1:nodes]:
        add_node(raylets, host)
    await_clients(raylets)
    return raylets


def add_node(raylets: Raylets, host: Host) -> None:
    """Start Ray on one more host."""
    start_node(host, f"--address={raylets.network.hosts[0].address}:{PORT}")


def await_clients(raylets: Raylets) -> None:
    """Wait until the head takes clients, which it does once all its parts are up."""
    output = ""
    for _ in range(CLIENT_TRIES):
        tried = subprocess.run(
            [sys.executable, "-c", CLIENT, raylets.address],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=90,
        )
        if tried.returncode == 0:
            return
        output = tried.stderr
    raise AssertionError(f"the head of the cluster takes nobody in: {output}")


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
