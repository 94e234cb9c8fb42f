"""What is told of a Pod that is lost in a run, and of a cluster that is: in the cluster's words."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest
from waiting import wait_until

from k8s.cluster import Cluster
from k8s.front import Front
from k8s.objects import LABELS, generator, statefulset

SELECTOR = ",".join(f"{key}={value}" for key, value in LABELS.items())
SET, LABEL, MADE = "k8s:load/statefulset/generators", f"k8s:load?{SELECTOR}", "k8s:load"
LOST = "generators-1"


def end_by_deadline(cluster: Cluster, pod: str) -> None:
    """End the Job of a Pod as its deadline does."""
    (job,) = cluster.get("jobs")["items"]
    patch = json.dumps({"spec": {"activeDeadlineSeconds": 1}})
    cluster.kubectl("patch", "job", job["metadata"]["name"], f"--patch={patch}")


EVICTED = "its Pod was evicted: The node was low on resource: memory"
OOM = "its Pod was OOMKilled: its memory limit is 512Mi"
# With restartPolicy Never, and of a StatefulSet, which starts it again.
FAULTS: list[tuple[str, Callable[[Cluster, str], None], bool, str]] = [
    ("deleted", lambda cluster, pod: cluster.delete(pod, grace_s=1), False, "its Pod was deleted"),
    ("forced", lambda cluster, pod: cluster.delete(pod, grace_s=0), False, "its Pod was deleted"),
    ("evicted", Cluster.evict, False, EVICTED),
    ("oom", Cluster.oom_kill, False, OOM),
    ("oom-restarted", Cluster.oom_kill, True, f"{OOM}, and was started again"),
]


def has_pods(front: Front, *, of_set: bool) -> str:
    """Have two Pods, and return their place."""
    if of_set:
        front.cluster.create(statefulset("generators", replicas=2))
    else:
        for number in range(2):
            front.cluster.create(generator(f"generators-{number}"))
    front.cluster.wait_pods(SELECTOR, 2)
    return SET if of_set else LABEL


def ended(front: Front, running: subprocess.Popen[str]) -> str:
    """Wait for the end of a run that was spoiled, and return what it has printed."""
    out, _ = running.communicate()
    assert running.returncode == 4, out
    return out


@pytest.mark.parametrize(
    ("strike", "of_set", "why"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS]
)
def test_a_lost_pod_is_named_with_the_clusters_words(
    front: Front, strike: Callable[[Cluster, str], None], of_set: bool, why: str
) -> None:
    running = front.start(has_pods(front, of_set=of_set))
    strike(front.cluster, LOST)
    out = ended(front, running)
    assert f"host lost: load/{LOST}: {why}" in out, out
    assert "load/generators-0: its Pod" not in out
    front.wait_quiet()


def test_a_node_that_is_gone_is_silent_until_the_cluster_knows_it(front: Front) -> None:
    running = front.start(has_pods(front, of_set=False))
    front.cluster.node_not_ready(front.cluster.node_of(LOST))
    out = ended(front, running)
    assert f"host lost: load/{LOST}: no word from its Pod for " in out, out


def test_a_kubelet_that_is_gone_leaves_what_became_of_the_engine_unknown(front: Front) -> None:
    running = front.start(has_pods(front, of_set=False))
    front.cluster.kill_kubelet(front.cluster.node_of(LOST))
    out = ended(front, running)
    assert f"host lost: load/{LOST}: the command here, `kubectl …`, ended with exit code" in out, (
        out
    )


def test_a_drained_node_evicts_its_pods(front: Front) -> None:
    running = front.start(MADE, "--hosts", "2")
    pod = front.cluster.pods()[0]
    name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
    front.cluster.kubectl("drain", node, "--force", "--delete-emptydir-data")
    try:
        out = ended(front, running)
    finally:
        front.cluster.kubectl("uncordon", node)
    assert f"host lost: load/{name}: its Pod was evicted: Eviction API: evicting" in out, out


def test_a_lost_api_server_is_the_one_cause_and_blames_no_pod(front: Front) -> None:
    running = front.start(MADE, "--hosts", "8", pods=8)
    front.cluster.stop_apiserver()
    out = ended(front, running)
    assert "the API server of the cluster is gone: " in out, out
    assert "host lost" not in out
    assert "could not be deleted" in out
    assert "it ends by its deadline, or by `kubectl delete job" in out
    wait_until(lambda: front.engines() == 0, "the engines have gone")


def test_a_job_that_ends_by_its_deadline_says_so(front: Front) -> None:
    running = front.start(MADE, "--hosts", "2")
    end_by_deadline(front.cluster, "")
    out = ended(front, running)
    assert "its Pod was deleted: DeadlineExceeded: " in out, out
    front.wait_quiet()
