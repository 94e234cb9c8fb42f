"""Record what kubectl answers, for ``scripted_kubectl``: ``python tests/k8s/record.py``.

How: a cluster is brought into each state, one after the other; each answer becomes a file of
``recorded_kubectl/``, and a JSON answer keeps only what a place in Kubernetes may look at. The API
server's port becomes 6443, the cluster's folder ``/cluster``. Needs what ``make test-k8s`` needs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS))

from scripted_kubectl import RECORDED  # noqa: E402
from waiting import wait_until  # noqa: E402

from k8s.cluster import NAMESPACE, Cluster, missing  # noqa: E402
from k8s.objects import generator, job, statefulset  # noqa: E402

PORT = "6443"
POD = "generators-0"
LIST = ("get", "pods", f"--namespace={NAMESPACE}", "--output=json")
EXEC = ("exec", "--stdin", f"--namespace={NAMESPACE}", POD, "--")
JOB = "trueload-1"
WAIT_S = 60.0
KEPT = {
    "metadata": (
        "name",
        "namespace",
        "uid",
        "labels",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "ownerReferences",
    ),
    "spec": (
        "nodeName",
        "containers",
        "restartPolicy",
        "terminationGracePeriodSeconds",
        "taints",
        "replicas",
        "selector",
    ),
    "container": ("name", "image", "command", "resources"),
}


class Recorder:
    """Runs kubectl against a cluster, and keeps its answers."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def keep(self, name: str, *argv: str, said: str = "", user: Path | None = None) -> None:
        """Run a command, by default as the user with exactly the Role, and keep its answer."""
        done = self.cluster.run(user or self.cluster.kubeconfig(), *argv, said=said)
        self.write(name, argv, done.stdout, done.stderr, done.returncode)

    def write(self, name: str, argv: tuple[str, ...], out: str, err: str, code: int) -> None:
        stdout: Any = out
        if out.startswith("{"):
            stdout = trimmed(json.loads(out))
        plain = [self._plain(word) for word in argv]
        answer = {"argv": plain, "rc": code, "stderr": self._plain(err), "stdout": stdout}
        path = RECORDED / f"{name}.json"
        path.write_text(json.dumps(answer, indent=1) + "\n")
        print(f"{name}: {code}: {err.strip().splitlines()[-1:]}", flush=True)

    def keep_cut(self, name: str, *argv: str) -> Cut:
        """Start a command, and keep its answer once something has ended it."""
        return Cut(self, name, argv)

    def _plain(self, text: str) -> str:
        port, folder = f":{self.cluster.port}", str(self.cluster.folder)
        return text.replace(port, f":{PORT}").replace(folder, "/cluster")


class Cut:
    """A command that runs while its block runs; what it said and its exit code are kept."""

    def __init__(self, recorder: Recorder, name: str, argv: tuple[str, ...]) -> None:
        self.recorder, self.name, self.argv = recorder, name, argv

    def __enter__(self) -> None:
        cluster, pipe = self.recorder.cluster, subprocess.PIPE
        line = [str(cluster.bin / "kubectl"), f"--kubeconfig={cluster.kubeconfig()}", *self.argv]
        self.process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("it runs\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "it runs\n"

    def __exit__(self, *_: object) -> None:
        self.process.wait(WAIT_S)  # with its input open: the fault is to end it
        out, err = self.process.communicate()
        self.recorder.write(self.name, self.argv, out, err, self.process.returncode)


def trimmed(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object, or a list of objects, with what may be looked at."""
    if value["kind"] == "List":
        return value | {"items": [trimmed(item) for item in value["items"]]}
    kept = {"apiVersion": value["apiVersion"], "kind": value["kind"]}
    for part in ("metadata", "spec"):
        kept[part] = {key: value[part][key] for key in KEPT[part] if key in value[part]}
    kept["status"] = value["status"]
    if "containers" in kept["spec"]:
        keys = KEPT["container"]
        kept["spec"]["containers"] = [
            {key: one[key] for key in keys if key in one} for one in kept["spec"]["containers"]
        ]
    return kept


def pod_that_works(keep: Recorder) -> None:
    cluster = keep.cluster
    cluster.create(statefulset("generators", replicas=1))
    cluster.wait_pods("app=generator", 1)
    keep.keep("get_pods_running", *LIST)
    keep.keep("get_pods_none", *LIST, "--selector=app=nothing")
    keep.keep("get_statefulset", "get", "statefulset", "generators", *LIST[2:])
    keep.keep("no_statefulset", "get", "statefulset", "nothing", *LIST[2:])
    keep.keep("exec_exit_code", *EXEC, "sh", "-c", "exit 7")
    with keep.keep_cut("exec_api_server_gone", *EXEC, "cat"):
        cluster.stop_apiserver()
    keep.keep("api_server_gone", *LIST)
    no_cache = f"--cache-dir={cluster.folder / 'no-cache'}"
    keep.keep("api_server_gone_at_first", no_cache, *LIST)
    keep.keep("exec_no_api_server", *EXEC, "cat")
    cluster.start_apiserver()
    with keep.keep_cut("exec_oom_killed", *EXEC, "cat"):
        cluster.oom_kill(POD)
    wait_until(
        lambda: cluster.get("pod", POD)["status"]["containerStatuses"][0]["restartCount"], POD
    )
    keep.keep("get_pods_oom_restarted", *LIST)
    with keep.keep_cut("exec_pod_deleted", *EXEC, "cat"):
        cluster.delete(POD, grace_s=3)
        keep.keep("get_pods_deleting", *LIST)
    cluster.fix()
    keep.keep("exec_no_pod", *EXEC, "cat")


def pods_that_do_not_start(keep: Recorder) -> None:
    cluster = keep.cluster

    def record(pod: dict[str, Any], name: str, reason: str, *further: str) -> None:
        cluster.create(pod)
        wait_until(lambda: reason in json.dumps(cluster.get("pod", POD)["status"]), reason)
        keep.keep(name, *LIST)
        for command in further:
            keep.keep(command, *EXEC, "cat")
        cluster.fix()

    record(generator(POD, cpu="64"), "get_pods_unschedulable", "Insufficient", "exec_not_scheduled")
    slow = generator(POD, image="slow")
    record(slow, "get_pods_starting", "ContainerCreating", "exec_not_running")
    record(generator(POD, image="missing"), "get_pods_image_pull_error", "ErrImagePull")
    record(generator(POD, image="missing"), "get_pods_image_pull_backoff", "ImagePullBackOff")
    cluster.create(job(JOB, len(cluster.nodes) + 1))
    wait_until(lambda: "anti-affinity" in json.dumps(cluster.pods()), "no node is left")
    keep.keep("get_pods_no_node_left", *LIST, "--field-selector=status.phase=Pending")
    cluster.fix()


def pods_that_end(keep: Recorder) -> None:
    cluster = keep.cluster
    for fault, name in ((cluster.evict, "evicted"), (cluster.oom_kill, "oom_killed")):
        cluster.create(generator(POD))
        cluster.wait_pods("app=generator", 1)
        fault(POD)
        cluster.wait_pods("app=generator", 1, "Failed")
        keep.keep(f"get_pods_{name}", *LIST)
        if fault == cluster.evict:
            keep.keep("exec_completed", *EXEC, "cat")
        cluster.fix()
    cluster.create(generator(POD))
    cluster.wait_pods("app=generator", 1)
    node = cluster.node_of(POD)
    keep.keep("get_node_ready", "get", "node", node, "--output=json")
    cluster.node_not_ready(node)
    cluster.wait_ready(node, "Unknown")
    keep.keep("get_node_not_ready", "get", "node", node, "--output=json")
    keep.keep("get_pods_node_not_ready", *LIST)
    cluster.fix()


def what_is_refused(keep: Recorder) -> None:
    cluster = keep.cluster
    cluster.kubectl("create", "serviceaccount", "looker")
    cluster.kubectl("create", "role", "looker", "--verb=get,list", "--resource=pods")
    account = f"--serviceaccount={NAMESPACE}:looker"
    cluster.kubectl("create", "rolebinding", "looker", "--role=looker", account)
    cluster.create(generator(POD, image="without-sh"))
    cluster.wait_pods("app=generator", 1)
    keep.keep("exec_no_sh", *EXEC, "sh", "-c", "true")
    keep.keep("exec_forbidden", *EXEC, "cat", user=cluster.kubeconfig("looker"))
    keep.keep("list_forbidden", "get", "pods", "--namespace=other", "--output=json")
    keep.keep("no_context", "--context=nowhere", *LIST)
    none = cluster.folder / "no.kubeconfig"
    none.write_text("")
    keep.keep("no_kubeconfig", *LIST, user=none)
    admin = cluster.admin
    keep.keep("no_namespace_list", "get", "pods", "--namespace=nowhere", *LIST[3:], user=admin)


def a_job(keep: Recorder) -> None:
    text = json.dumps(job(JOB, 2))
    create = ("create", "--filename=-", f"--namespace={NAMESPACE}")
    keep.keep("create_job", *create, said=text)
    keep.keep("create_job_again", *create, said=text)
    keep.keep("get_job", "get", "job", JOB, *LIST[2:])
    delete = ("delete", "job", JOB, f"--namespace={NAMESPACE}", "--wait=false")
    keep.keep("delete_job", *delete)
    keep.keep("delete_no_job", *delete)
    elsewhere = ("create", "--filename=-", "--namespace=other")
    other = json.dumps(job(JOB, 2, namespace="other"))
    keep.keep("create_forbidden", *elsewhere, said=other)
    admin = keep.cluster.admin
    keep.keep("no_namespace_create", *elsewhere, said=other, user=admin)


def main() -> int:
    """Record all answers. Returns an exit code."""
    if why := missing():
        print(why, file=sys.stderr)
        return 1
    with (
        tempfile.TemporaryDirectory(prefix="trueload-k8s-") as folder,
        Cluster(Path(folder), nodes=3) as cluster,
    ):
        recorder = Recorder(cluster)
        for states in (
            pod_that_works,
            pods_that_do_not_start,
            pods_that_end,
            what_is_refused,
            a_job,
        ):
            states(recorder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
