"""A Ray cluster for tests: several Ray nodes on this machine.

How: run as a program (``python tests/ray_cluster.py``) it holds the cluster. That is a separate
process, because a front must be able to join the cluster from outside. It reads ``host NAME
[KEY=VALUE]`` from stdin and answers each with a line of JSON: the node's name and its raylet's
process id. When its input ends, it ends the cluster. ``RayCluster`` is the other end.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

# 80 MB is small for Ray, and five times what an engine needs.
OBJECT_STORE_BYTES = 80 * 2**20


@dataclass(frozen=True)
class Node:
    """One host (Ray node) of the cluster."""

    name: str
    raylet_pid: int


class RayCluster:
    """A cluster whose head offers no CPU; the tests add its hosts."""

    def __init__(self, folder: Path) -> None:
        environment = {
            **os.environ,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": str(folder),
        }
        self._log = (folder / "cluster.log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            start_new_session=True,
        )
        self.address: str = self._answer()["address"]

    def __enter__(self) -> RayCluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()

    def add(self, name: str, **labels: str) -> Node:
        """Add a host with one CPU."""
        assert self._process.stdin is not None
        words = ["host", name, *(f"{key}={value}" for key, value in labels.items())]
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        return Node(name, self._answer()["raylet_pid"])

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the cluster has ended: {Path(self._log.name).read_text()[-2000:]}"
        return json.loads(line)


def hold() -> None:
    """Hold the cluster until standard input ends."""
    from ray.cluster_utils import Cluster  # takes a second, so not at the top

    cluster = Cluster()
    cluster.add_node(num_cpus=0, object_store_memory=OBJECT_STORE_BYTES, include_dashboard=False)
    print(json.dumps({"address": cluster.address}), flush=True)
    for line in sys.stdin:
        _, name, *labels = line.split()
        node = cluster.add_node(
            num_cpus=1,
            object_store_memory=OBJECT_STORE_BYTES,
            node_name=name,
            labels=dict(label.split("=") for label in labels),
        )
        raylet = node.all_processes["raylet"][0].process.pid
        print(json.dumps({"raylet_pid": raylet}), flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    hold()
