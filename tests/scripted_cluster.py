"""A cluster of Kubernetes as ``scripted_kubectl`` plays it: what the tests write into its folder.

How: ``ScriptedCluster(folder)`` puts an executable named kubectl into ``folder/bin``; a test puts
that at the front of PATH. A state of a Pod or a node is the name of a recorded answer.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from scripted_kubectl import end_processes, recorded, write

TESTS = Path(__file__).resolve().parent
PROGRAM = """#!{python} -IS
import sys
sys.path.insert(0, {tests!r})
from scripted_kubectl import main
main({folder!r})
"""


class ScriptedCluster:
    """A folder that answers as a cluster. Without any call below it has no Pod."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        kubectl = self.bin / "kubectl"
        kubectl.write_text(
            PROGRAM.format(python=sys.executable, tests=str(TESTS), folder=str(folder))
        )
        kubectl.chmod(0o755)
        self.play_instead({})
        self.deny()
        self.job_pods("get_pods_running")

    def path(self) -> str:
        """A PATH where kubectl is this one."""
        return f"{self.bin}:{os.environ['PATH']}"

    def calls(self, verb: str = "") -> list[list[str]]:
        """The command lines that kubectl was called with, those of one verb or all."""
        log = self.folder / "calls.jsonl"
        lines = log.read_text().splitlines() if log.exists() else []
        return [argv for argv in map(json.loads, lines) if not verb or verb in argv]

    def add_pod(
        self,
        name: str,
        state: str = "get_pods_running",
        *,
        namespace: str = "load",
        labels: Mapping[str, str] | None = None,
        node: str | None = None,
        image: str | None = None,
        resources: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a Pod, or put one into another state; what is not given stays as recorded."""
        pod: dict[str, Any] = recorded(state)["stdout"]["items"][0]
        pod["metadata"] |= {"name": name, "namespace": namespace, "uid": f"uid-of-{name}"}
        if labels is not None:
            pod["metadata"]["labels"] = dict(labels)
        if node is not None:
            pod["spec"]["nodeName"] = node
        if image is not None:
            pod["spec"]["containers"][0]["image"] = image
        if resources is not None:
            pod["spec"]["containers"][0]["resources"] = dict(resources)
        write(self._object("pods", name), pod)

    def set_pod(self, name: str, state: str) -> None:
        """Give a Pod the status that was recorded; its processes live on."""
        pod = json.loads(self._object("pods", name).read_text())
        other = recorded(state)["stdout"]["items"][0]
        pod["status"] = other["status"]
        for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            if key in other["metadata"]:
                pod["metadata"][key] = other["metadata"][key]
        write(self._object("pods", name), pod)

    def end_processes(self, name: str) -> None:
        """Kill what runs in a Pod."""
        end_processes(self.folder, name)

    def remove_pod(self, name: str) -> None:
        """Delete a Pod: it is gone, and what ran there is killed."""
        self._object("pods", name).unlink()
        self.end_processes(name)

    def lose_pod(self, name: str, state: str) -> None:
        """Put a Pod into a state in which nothing runs: evicted, OOM-killed."""
        self.set_pod(name, state)
        self.end_processes(name)

    def add_statefulset(self, name: str, labels: Mapping[str, str]) -> None:
        """Add a StatefulSet that selects Pods by labels; its Pods are added by ``add_pod``."""
        found = recorded("get_statefulset")["stdout"]
        found["metadata"]["name"] = name
        found["spec"]["selector"] = {"matchLabels": dict(labels)}
        write(self._object("statefulsets", name), found)

    def add_node(self, name: str, state: str = "get_node_ready") -> None:
        """Add a node, or put one into another state, as ``get_node_not_ready``."""
        node = recorded(state)["stdout"]
        node["metadata"]["name"] = name
        write(self._object("nodes", name), node)

    def job_pods(self, *states: str) -> None:
        """Set the states of the Pods that a Job makes, the first one's first, over and over."""
        write(self.folder / "job_pods.json", states)

    def deny(self, *rights: str) -> None:
        """Answer no to ``auth can-i`` for these, such as ``create pods/exec``."""
        write(self.folder / "denied.json", rights)

    def play_instead(self, answers: Mapping[str, str]) -> None:
        """Play a recorded answer: by verb (``exec``), verb and kind (``get pods``), or ``*``.

        ``during exec`` and ``watching`` end commands that run already.
        """
        write(self.folder / "instead.json", dict(answers))

    def lose_api_server(self) -> None:
        """The API server is gone: running commands end, and the next ones do not reach it."""
        gone = {"get": "api_server_gone", "*": "exec_no_api_server"}
        self.play_instead(
            gone | {"during exec": "exec_api_server_gone", "watching": "api_server_gone"}
        )

    def objects(self, kind: str) -> Iterator[dict[str, Any]]:
        """The objects of a kind (``pods``, ``jobs``) that there are now."""
        for path in sorted((self.folder / "objects" / kind).glob("*.json")):
            yield json.loads(path.read_text())

    def _object(self, kind: str, name: str) -> Path:
        return self.folder / "objects" / kind / f"{name}.json"
