"""A Kubernetes cluster on this machine: a real control plane, and nodes whose Pods are namespaces.

How: etcd, the API server, the controllers and the scheduler are real programs on 127.0.0.1; a node
is ``control_plane/node``, which joins the hosts of ``hosts.network`` for Pods. Nothing evicts or
kills by itself: a test makes the node do it, and the node tells it in a kubelet's words.

Needs root, and Debian's etcd-server. Must not know trueload.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from harness import find_free_port
from hosts.network import Host, Network
from hosts.network import missing as missing_network
from waiting import wait_until

from k8s.build import Programs, find_programs
from k8s.certificates import Certificates

COMMAND_S = 60.0
PODS_A_NODE = 2
NAMESPACE = "load"
ROLE = Path(__file__).resolve().parent / "role.yaml"
USER = "trueload"
# What a cluster waits is 50 s; the seconds of the table in docs/hosts.md are with this.
NODE_GRACE_S = 8
CONTROLLERS = (
    "job-controller",
    "ttl-after-finished-controller",
    "statefulset-controller",
    "node-lifecycle-controller",
    "taint-eviction-controller",
    "garbage-collector-controller",
    "pod-garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
)


def missing() -> str | None:
    """Return why this machine can have no cluster, in one line; None if it can."""
    if shutil.which("etcd") is None:
        return "etcd is missing: install Debian's etcd-server"
    if not find_programs().exist():
        return "Kubernetes is not built: `make test-k8s` builds it"
    return missing_network()


@dataclass
class Node:
    """One node: its program, and the hosts that its Pods get."""

    name: str
    port: int
    hosts: list[Host]


class Cluster:
    """The cluster; a context manager that ends it, with everything in it."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder = folder
        self.programs: Programs = find_programs()
        self.network = Network(folder / "hosts", nodes * PODS_A_NODE)
        self.certificates = Certificates(folder / "certificates")
        self.port = find_free_port()
        self.server = f"https://127.0.0.1:{self.port}"
        admin = str(self.certificates.admin)
        self.admin = self.certificates.kubeconfig(
            folder / "admin.kubeconfig",
            self.server,
            {"client-certificate": admin, "client-key": admin},
            NAMESPACE,
        )
        self.bin = folder / "bin"
        self.bin.mkdir()
        kubectl = self.bin / "kubectl"
        kubectl.write_text(
            f"#!/bin/sh\nKUBECACHEDIR=${{KUBECACHEDIR-{folder / 'cache'}}}"
            f' exec {self.programs.control_plane} kubectl "$@"\n'
        )
        kubectl.chmod(0o755)
        self._etcd_port = find_free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._nodes = nodes
        self.nodes: dict[str, Node] = {}

    def __enter__(self) -> Cluster:
        try:
            self.network.__enter__()
            self._start("etcd", self._etcd())
            self.start_apiserver()
            self._start("controllers", self._controllers())
            self._start("scheduler", self._scheduler())
            for number in range(self._nodes):
                self._add_node(number)
            for name in self.nodes:
                self.wait_ready(name)
            self.kubectl("create", "namespace", NAMESPACE)
            self.kubectl("create", "serviceaccount", USER)
            self.kubectl("create", "--filename", str(ROLE))
            self._bind()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in list(self._processes):
            self._kill(name)
        self.network.__exit__(kind, error, trace)

    # --- what tests look at -----------------------------------------------------------------------

    def path(self) -> str:
        """A PATH where kubectl is the one of this cluster's version."""
        return f"{self.bin}:{os.environ['PATH']}"

    def kubeconfig(self, user: str = USER, namespace: str = NAMESPACE) -> Path:
        """Return a kubeconfig for a service account; ``trueload`` has exactly the Role."""
        path = self.folder / f"{user}-{namespace}.kubeconfig"
        if not path.exists():
            token = self.kubectl("create", "token", user, "--duration=24h").stdout.strip()
            self.certificates.kubeconfig(path, self.server, {"token": token}, namespace)
        return path

    def run(self, kubeconfig: Path, *argv: str, said: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl to its end, whatever its exit code."""
        return subprocess.run(
            [str(self.bin / "kubectl"), f"--kubeconfig={kubeconfig}", *argv],
            input=said,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )

    def kubectl(self, *argv: str, said: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl as the cluster's administrator; it must succeed."""
        done = self.run(self.admin, f"--namespace={NAMESPACE}", *argv, said=said)
        assert done.returncode == 0, f"kubectl {' '.join(argv)}: {done.stderr}"
        return done

    def get(self, *what: str) -> Any:
        """Return an object, or a list of objects."""
        return json.loads(self.kubectl("get", *what, "--output=json").stdout)

    def pods(self, selector: str = "") -> list[dict[str, Any]]:
        """Return the Pods with such labels."""
        found: list[dict[str, Any]] = self.get("pods", f"--selector={selector}")["items"]
        return found

    def node_of(self, pod: str) -> str:
        """Return the name of the node that a Pod runs on."""
        name: str = self.get("pod", pod)["spec"]["nodeName"]
        return name

    def create(self, manifest: object) -> None:
        """Create an object."""
        self.kubectl("create", "--filename=-", said=json.dumps(manifest))

    def wait_pods(self, selector: str, count: int, phase: str = "Running") -> list[str]:
        """Wait until as many Pods are in a phase, and return their names."""

        def names() -> list[str]:
            found = [one for one in self.pods(selector) if one["status"]["phase"] == phase]
            return [one["metadata"]["name"] for one in found]

        return wait_until(
            lambda: found if len(found := names()) >= count else [],
            lambda: (
                f"{count} Pods are {phase}: {self.kubectl('get', 'pods', '--output=wide').stdout}"
            ),
        )

    # --- faults -----------------------------------------------------------------------------------

    def delete(self, pod: str, *, grace_s: int | None = None) -> None:
        """Delete a Pod, and return at once: it lives on for its time of grace."""
        grace = [] if grace_s is None else [f"--grace-period={grace_s}"]
        self.kubectl("delete", "pod", pod, "--wait=false", *grace)

    def evict(self, pod: str) -> None:
        """End a Pod as a kubelet does when its node is short of memory."""
        self._fault("evict", pod)

    def oom_kill(self, pod: str) -> None:
        """End a Pod's container as the kernel does at its memory limit."""
        self._fault("oom", pod)

    def node_not_ready(self, name: str) -> None:
        """Take a node away without a word: its network is cut, and it tells nothing any more."""
        os.kill(self._processes[name].pid, signal.SIGSTOP)
        for host in self.nodes[name].hosts:
            host.link("down")
            host.kill("")

    def kill_kubelet(self, name: str) -> None:
        """Kill what serves a node, and leave its Pods and its network."""
        self._kill(name)

    def stop_apiserver(self) -> None:
        """Kill the API server."""
        self._kill("apiserver")

    def start_apiserver(self) -> None:
        """Start the API server, again with the port and the data that it had, and wait for it."""
        if "apiserver" not in self._processes:
            self._start("apiserver", self._apiserver())
        self._wait_running("apiserver", lambda: self._ready())

    def fix(self) -> None:
        """Undo faults: the API server answers, every node is ready, no Pod or Job is left."""
        self.start_apiserver()
        for node in self.nodes.values():
            if self._is_stopped(node):
                self._restart(node)
        for name in self.nodes:
            self.wait_ready(name)
        for kind in ("jobs", "statefulsets", "pods"):
            force = ["--force", "--grace-period=0"] if kind == "pods" else []
            self.kubectl("delete", kind, "--all", "--cascade=background", *force)
        wait_until(lambda: not self.pods(), "no Pod is left")

    def wait_ready(self, name: str, status: str = "True") -> None:
        """Wait until a node is ready, or ``Unknown``."""
        wait_until(lambda: self._node_status(name) == status, f"{name} is {status}")

    # --- its programs -----------------------------------------------------------------------------

    def _start(self, name: str, argv: Sequence[str]) -> None:
        """Start a program that ends with this process, however that ends."""
        log = (self.folder / f"{name}.log").open("ab")
        self._processes[name] = subprocess.Popen(
            ["setpriv", "--pdeathsig=KILL", *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=self.folder,
            process_group=0,  # Ctrl-C must reach only the test
        )

    def _kill(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait(COMMAND_S)

    def _wait_running(self, name: str, look: Callable[[], bool]) -> None:
        process = self._processes[name]
        wait_until(lambda: look() or process.poll() is not None, f"{name} answers")
        assert process.poll() is None, f"{name} has ended: see {self.folder / name}.log"

    def _etcd(self) -> list[str]:
        mine = f"https://127.0.0.1:{self._etcd_port}"
        peers = f"https://127.0.0.1:{find_free_port()}"
        cert, ca = str(self.certificates.server), str(self.certificates.authority)
        return [
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            f"--listen-client-urls={mine}",
            f"--advertise-client-urls={mine}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            *(f"--{who}cert-file={cert}" for who in ("", "peer-")),
            *(f"--{who}key-file={cert}" for who in ("", "peer-")),
            *(f"--{who}trusted-ca-file={ca}" for who in ("", "peer-")),
            *(f"--{who}client-cert-auth" for who in ("", "peer-")),
        ]

    def _apiserver(self) -> list[str]:
        made = self.certificates
        etcd = f"https://127.0.0.1:{self._etcd_port}"
        return [
            str(self.programs.control_plane),
            "kube-apiserver",
            f"--etcd-servers={etcd}",
            f"--etcd-cafile={made.authority}",
            f"--etcd-certfile={made.admin}",
            f"--etcd-keyfile={made.admin}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--tls-cert-file={made.server}",
            f"--tls-private-key-file={made.server}",
            f"--client-ca-file={made.authority}",
            f"--kubelet-client-certificate={made.admin}",
            f"--kubelet-client-key={made.admin}",
            "--kubelet-preferred-address-types=InternalIP",
            "--authorization-mode=RBAC",
            "--service-account-issuer=https://127.0.0.1",
            f"--service-account-key-file={made.service_accounts}",
            f"--service-account-signing-key-file={made.service_accounts}",
            "--service-cluster-ip-range=198.19.0.0/24",
            "--endpoint-reconciler-type=none",
        ]

    def _controllers(self) -> list[str]:
        return [
            str(self.programs.control_plane),
            "kube-controller-manager",
            f"--kubeconfig={self.admin}",
            f"--controllers={','.join(CONTROLLERS)}",
            f"--service-account-private-key-file={self.certificates.service_accounts}",
            "--leader-elect=false",
            "--secure-port=0",
            f"--node-monitor-grace-period={NODE_GRACE_S}s",
            "--node-monitor-period=1s",
        ]

    def _scheduler(self) -> list[str]:
        program = str(self.programs.control_plane)
        alone = ["--leader-elect=false", "--secure-port=0"]
        return [program, "kube-scheduler", f"--kubeconfig={self.admin}", *alone]

    def _ready(self) -> bool:
        return self.run(self.admin, "get", "--raw=/readyz").stdout == "ok"

    def _bind(self) -> None:
        account = f"--serviceaccount={NAMESPACE}:{USER}"
        self.kubectl("create", "rolebinding", USER, "--role=trueload", account)
        self.kubectl("create", "clusterrolebinding", USER, "--clusterrole=trueload-nodes", account)

    # --- its nodes --------------------------------------------------------------------------------

    def _add_node(self, number: int) -> None:
        hosts = self.network.hosts[number * PODS_A_NODE :][:PODS_A_NODE]
        node = Node(f"node-{number}", find_free_port(), hosts)
        self.nodes[node.name] = node
        self._start_node(node)

    def _start_node(self, node: Node) -> None:
        hosts = ",".join(f"{host.pid}={host.address}" for host in node.hosts)
        argv = [
            str(self.programs.node),
            f"--name={node.name}",
            f"--port={node.port}",
            f"--kubeconfig={self.admin}",
            f"--cert={self.certificates.admin}",
            f"--ca={self.certificates.authority}",
            f"--hosts={hosts}",
        ]
        self._start(node.name, argv)

    def _restart(self, node: Node) -> None:
        """Start a node again; what the cluster thinks runs there does not."""
        if node.name in self._processes:
            self._kill(node.name)
        for host in node.hosts:
            host.kill("")
            host.link("up")
        pods = self.get("pods", f"--field-selector=spec.nodeName={node.name}")["items"]
        for pod in pods:
            self.delete(pod["metadata"]["name"], grace_s=0)
        self._start_node(node)

    def _is_stopped(self, node: Node) -> bool:
        if node.name not in self._processes:
            return True
        stat = Path(f"/proc/{self._processes[node.name].pid}/stat").read_text()
        return stat.rpartition(")")[2].split()[0] in "TZ"

    def _node_status(self, name: str) -> str | None:
        found = self.get("nodes")["items"]
        for node in found:
            if node["metadata"]["name"] == name:
                for condition in node["status"].get("conditions", []):
                    if condition["type"] == "Ready":
                        return str(condition["status"])
        return None

    def _fault(self, fault: str, pod: str) -> None:
        port = self.nodes[self.node_of(pod)].port
        context = ssl.create_default_context(cafile=str(self.certificates.authority))
        context.load_cert_chain(self.certificates.admin)
        url = f"https://127.0.0.1:{port}/{fault}/{NAMESPACE}/{pod}"
        request = urllib.request.Request(url, method="POST")
        with urllib.request.urlopen(request, context=context, timeout=COMMAND_S) as answer:
            assert answer.status == 200
