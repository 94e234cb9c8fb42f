"""What tests of Pods as places share: a front that knows the cluster as a stranger does, who has a
kubeconfig of the one Role, and looks at what runs in the Pods.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness import Finished, Server, Trueload, start_server
from waiting import wait_until

from k8s.cluster import Cluster

ENGINE = "trueload-engine"
CONNECTIONS = 2  # of each Pod


@dataclass(frozen=True)
class Front:
    """Runs trueload with the service account's kubeconfig, against a server that Pods reach."""

    trueload: Trueload
    cluster: Cluster
    server: Server

    def env(self, kubeconfig: Path | None = None) -> dict[str, str]:
        found = kubeconfig or self.cluster.kubeconfig()
        return {"PATH": self.cluster.path(), "KUBECONFIG": str(found)}

    def serve(self, service: str) -> Server:
        """Start a server of another protocol."""
        address = self.cluster.network.address
        return start_server(self.trueload, service=service, address=address)

    def run(self, *argv: str, kubeconfig: Path | None = None) -> Finished:
        """Run a command to its end."""
        return self.trueload.run(*argv, env=self.env(kubeconfig))

    def http(self, place: str, *more: str, pods: int = 2) -> list[str]:
        """The words of a run that measures HTTP/1.1 from so many Pods."""
        connections = ("-c", str(CONNECTIONS * pods), "--warmup", "0s")
        return ["http", f"{self.server.url}/", *connections, "--place", place, *more]

    def start(
        self, place: str, *more: str, pods: int = 2, joining: int = 0
    ) -> subprocess.Popen[str]:
        """Start a run; every Pod is connected when this returns, and so many more may be about to
        join. Stderr goes to stdout."""
        argv = self.http(place, "-d", "60s", *more, pods=pods)
        process = self.trueload.start(*argv, env=self.env(), stderr=subprocess.STDOUT)
        try:
            wait_until(
                lambda: process.poll() is not None or self.connected() == CONNECTIONS * pods,
                "every Pod is connected",
            )
            assert process.poll() is None
            assert pods <= self.engines() <= pods + joining
        except AssertionError as error:
            process.kill()
            raise AssertionError(f"{error}: {process.communicate()[0]}") from None
        return process

    def connected(self) -> int:
        """The number of connections that all Pods have to the server."""
        words = (
            "ss",
            "-Htn",
            "state",
            "established",
            "dst",
            f"{self.server.host}:{self.server.port}",
        )
        hosts = self.cluster.network.hosts
        return sum(len(host.run(*words).stdout.splitlines()) for host in hosts)

    def engines(self) -> int:
        """The number of engines that run in Pods."""
        networks = {os.readlink(f"/proc/{host.pid}/ns/net") for host in self.cluster.network.hosts}
        count = 0
        for entry in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                is_engine = (entry / "comm").read_text().strip() == ENGINE
                count += is_engine and os.readlink(entry / "ns/net") in networks
        return count

    def wait_quiet(self) -> None:
        """Wait until no Pod has an engine, and no Job is there."""
        wait_until(lambda: self.engines() == 0, "the engines have gone")
        wait_until(lambda: not self.jobs(), "the Job has gone")

    def jobs(self) -> list[str]:
        """The names of all Jobs."""
        return [job["metadata"]["name"] for job in self.cluster.get("jobs")["items"]]
