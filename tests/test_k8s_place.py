"""Pods as places: whole runs, what is told of a lost one, and what is left of a Job that was made.

`kubectl` is a program that answers from a folder; what is exec'd in a Pod runs as a local process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from harness import Server, Trueload
from scripted_cluster import ScriptedCluster
from scripted_kubectl import recorded
from waiting import wait_until

LABELS = {"app": "generator"}
SET, LABEL, MADE = "k8s:load/statefulset/generators", "k8s:load?app=generator", "k8s:load"


@pytest.fixture
def cluster(tmp_path: Path) -> ScriptedCluster:
    """A cluster with two Pods of a set, each on a node of its own."""
    found = ScriptedCluster(tmp_path / "cluster")
    for number in range(2):
        found.add_pod(f"generators-{number}", labels=LABELS, node=f"node-{number}")
        found.add_node(f"node-{number}")
    found.add_statefulset("generators", LABELS)
    return found


@pytest.fixture
def env(cluster: ScriptedCluster, tmp_path: Path) -> dict[str, str]:
    return {"PATH": cluster.path(), "TRUELOAD_CACHE": str(tmp_path / "cache")}


def words(server: Server, place: str, *more: str) -> list[str]:
    return ["http", f"{server.url}/", "-c", "6", "--warmup", "0s", "--place", place, *more]


def is_connected(cluster: ScriptedCluster, pod: str) -> bool:
    """Whether the engine in a Pod has connections."""
    for mark in (cluster.folder / "running" / pod).glob("*"):
        try:
            tree = psutil.Process(int(mark.name))
            if any(each.net_connections() for each in [tree, *tree.children(recursive=True)]):
                return True
        except psutil.Error:
            continue
    return False


def started(
    trueload: Trueload,
    cluster: ScriptedCluster,
    env: dict[str, str],
    argv: list[str],
    pods: tuple[str, ...] = ("generators-0", "generators-1"),
) -> subprocess.Popen[str]:
    """A run whose engines have connected."""
    running = trueload.start(*argv, env=env, stderr=subprocess.STDOUT)

    def all_are() -> bool:
        assert running.poll() is None, running.communicate()[0]
        return all(is_connected(cluster, pod) for pod in pods)

    wait_until(all_are, "all engines have connected")
    return running


def job_of(cluster: ScriptedCluster) -> dict[str, Any]:
    (found,) = cluster.objects("jobs")
    return found


@pytest.mark.parametrize("place", [SET, LABEL])
def test_each_pod_of_a_set_or_with_a_label_is_a_host(
    trueload: Trueload, server: Server, env: dict[str, str], place: str
) -> None:
    ended = trueload.run(*words(server, place, "--requests", "301", "--json", "-"), env=env)
    assert ended.code in (0, 4), ended  # a busy machine may make it invalid
    record = ended.json()
    assert record["trouble"] is None
    names = [host["place"] for host in record["hosts"]]
    assert names == ["load/generators-0", "load/generators-1"]
    assert record["counts"]["scheduled"] == 301
    assert "warning: the CPU limit" not in ended.err
    assert "on the same node" not in ended.err


def test_pods_that_hold_each_other_or_themselves_are_warned_of_and_what_does_not_run_named(
    trueload: Trueload, server: Server, env: dict[str, str], cluster: ScriptedCluster
) -> None:
    cluster.add_pod("generators-1", labels=LABELS, node="node-0")
    cluster.add_pod("generators-2", "get_pods_unschedulable", labels=LABELS)
    ended = trueload.run(*words(server, SET, "--requests", "300", "--threads", "2"), env=env)
    assert ended.code in (0, 4), ended
    both = "load/generators-0 and load/generators-1"
    assert f"warning: {both} are on the same node, node-0, and take its CPUs" in ended.err
    assert f"warning: the CPU limit of {both} is 1, and an engine has 2 threads" in ended.err
    assert "note: load/generators-2 takes no part: its Pod is pending: 0/3 nodes" in ended.err


def test_a_number_of_pods_is_taken_and_waited_for(
    trueload: Trueload, server: Server, env: dict[str, str], cluster: ScriptedCluster
) -> None:
    argv = words(server, SET, "--requests", "300", "--json", "-", "--hosts", "1")
    assert [host["place"] for host in trueload.run(*argv, env=env).json()["hosts"]] == [
        "load/generators-0"
    ]
    cluster.add_pod("generators-2", "get_pods_starting", labels=LABELS, node="node-2")
    argv = words(server, LABEL, "--requests", "300", "--hosts", "3")
    refused = trueload.run(*argv, env=env)
    assert refused.code == 2
    assert "error: the Pod load/generators-2 is being created" in refused.err
    waiting = trueload.start(*argv, "--hosts-wait", "60s", env=env)
    assert waiting.stderr is not None
    line = waiting.stderr.readline()
    assert line.startswith("waiting for hosts: 2 of 3 are there"), line
    cluster.set_pod("generators-2", "get_pods_running")
    out, _ = waiting.communicate()
    assert "hosts        3" in out


def test_pods_are_made_for_a_run_and_deleted_after_it(
    trueload: Trueload, server: Server, env: dict[str, str], cluster: ScriptedCluster
) -> None:
    argv = words(server, MADE, "-d", "3s", "--hosts", "2", "--k8s-image", "alpine:3")
    pods: list[str] = []

    def are_made() -> bool:
        pods[:] = [each["metadata"]["name"] for each in cluster.objects("pods")]
        pods[:] = [name for name in pods if name.startswith("trueload-")]
        return len(pods) == 2

    running = trueload.start(*argv, env=env, stderr=subprocess.STDOUT)
    wait_until(are_made, "the Job has its Pods")
    spec = job_of(cluster)["spec"]
    assert spec["completions"] == 2
    # The window, the timeout of a request and 10 s, twice, 2 min of waiting and 15 min.
    assert spec["activeDeadlineSeconds"] == 2 * (3 + 5 + 10) + 120 + 15 * 60
    assert spec["template"]["spec"]["containers"][0]["image"] == "alpine:3"
    out, _ = running.communicate()
    assert running.returncode in (0, 4), out
    assert all(f"load/{name}" in out for name in pods)
    assert list(cluster.objects("jobs")) == []


def test_ctrl_c_while_pods_are_waited_for_deletes_the_job(
    trueload: Trueload, server: Server, env: dict[str, str], cluster: ScriptedCluster
) -> None:
    cluster.job_pods("get_pods_running", "get_pods_no_node_left")
    running = trueload.start(*words(server, MADE, "--hosts", "2"), env=env)
    assert running.stderr is not None
    line = running.stderr.readline()
    assert line.startswith("waiting for hosts: 1 of 2 are there, "), line
    assert "is pending: 0/3 nodes are available: 3 node(s) didn't match pod anti-affinity" in line
    running.send_signal(signal.SIGINT)
    _, err = running.communicate()
    assert running.returncode == 130, err
    assert "has been deleted" in err
    assert list(cluster.objects("jobs")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_run_deletes_the_job(
    trueload: Trueload,
    server: Server,
    env: dict[str, str],
    cluster: ScriptedCluster,
    number: signal.Signals,
) -> None:
    argv = words(server, MADE, "-d", "60s", "--hosts", "1")
    running = trueload.start(*argv, env=env, stderr=subprocess.STDOUT)

    def is_there() -> bool:
        names = [each["metadata"]["name"] for each in cluster.objects("pods")]
        return any(is_connected(cluster, each) for each in names if each.startswith("trueload-"))

    wait_until(is_there, "its engine has connected")
    running.send_signal(number)
    out, _ = running.communicate()
    assert running.returncode == 130, out
    assert list(cluster.objects("jobs")) == []


def test_a_killed_front_leaves_a_job_that_the_cluster_ends_and_no_engine(
    trueload: Trueload, server: Server, env: dict[str, str], cluster: ScriptedCluster
) -> None:
    argv = words(server, MADE, "-d", "60s", "--hosts", "1")
    running = trueload.start(*argv, env=env, stderr=subprocess.STDOUT)
    name = ""

    def is_there() -> bool:
        nonlocal name
        names = [each["metadata"]["name"] for each in cluster.objects("pods")]
        name = next((each for each in names if each.startswith("trueload-")), "")
        return bool(name) and is_connected(cluster, name)

    wait_until(is_there, "its engine has connected")
    running.kill()
    running.communicate()
    wait_until(lambda: not is_connected(cluster, name), "its engine has ended")
    assert job_of(cluster)["spec"]["activeDeadlineSeconds"] < 30 * 60


def silent(cluster: ScriptedCluster) -> None:
    """A node that is gone: its Pods are not ready, and nothing is heard of them."""
    cluster.set_pod("generators-1", "get_pods_node_not_ready")
    cluster.add_node("node-1", "get_node_not_ready")
    for mark in (cluster.folder / "running" / "generators-1").glob("*"):
        os.killpg(int(mark.name), signal.SIGSTOP)


FAULTS: list[tuple[Callable[[ScriptedCluster], None], str]] = [
    (lambda cluster: cluster.remove_pod("generators-1"), "its Pod was deleted"),
    (
        lambda cluster: cluster.lose_pod("generators-1", "get_pods_evicted"),
        "its Pod was evicted: The node was low on resource: memory.",
    ),
    (
        lambda cluster: cluster.lose_pod("generators-1", "get_pods_oom_killed"),
        "its Pod was OOMKilled: its memory limit is 512Mi",
    ),
    (
        lambda cluster: cluster.lose_pod("generators-1", "get_pods_oom_restarted"),
        "its Pod was OOMKilled: its memory limit is 512Mi, and was started again",
    ),
    (
        silent,
        "its Pod is on the node node-1, which is not ready: Kubelet stopped posting node status",
    ),
]


@pytest.mark.parametrize(("fault", "why"), FAULTS, ids=[why[:24] for _, why in FAULTS])
def test_a_lost_pod_is_named_with_the_clusters_words(
    trueload: Trueload,
    server: Server,
    env: dict[str, str],
    cluster: ScriptedCluster,
    fault: Callable[[ScriptedCluster], None],
    why: str,
) -> None:
    argv = words(server, SET, "-d", "60s", "--json", "-")
    running = started(trueload, cluster, env, argv)
    fault(cluster)
    out, _ = running.communicate()
    cluster.end_processes("generators-1")
    assert running.returncode == 4, out
    record = json.loads(out[out.index('{"') :])
    lost = record["hosts"][1]["lost"]
    assert lost.startswith(why), lost
    assert record["trouble"]["what"] == f"host lost: load/generators-1: {lost}"
    assert record["hosts"][0]["lost"] is None


def test_a_lost_api_server_is_the_one_cause_and_blames_no_pod(
    trueload: Trueload, server: Server, env: dict[str, str], cluster: ScriptedCluster
) -> None:
    running = started(trueload, cluster, env, words(server, SET, "-d", "60s"))
    cluster.lose_api_server()
    out, _ = running.communicate()
    assert running.returncode == 4, out
    assert (
        "the API server of the cluster is gone: the cluster cannot be asked: The connection" in out
    )
    assert "host lost" not in out
    record = trueload.run("runs", "show", "last", "--json").json()["rows"][0]["record"]
    why = next(check["why"] for check in record["checks"] if check["name"] == "hosts-lost")
    assert why.startswith("2 of 2 hosts lost: the API server of the cluster is gone: the cluster")
    assert "generators" not in why


def test_a_pod_that_replaces_a_lost_one_joins(
    trueload: Trueload, server: Server, env: dict[str, str], cluster: ScriptedCluster
) -> None:
    more = ("-d", "20s", "--hosts", "2..3", "--allow-lost", "1", "--rate", "600/s", "--json", "-")
    running = started(trueload, cluster, env, words(server, LABEL, *more))
    cluster.remove_pod("generators-1")
    cluster.add_pod("generators-9", labels=LABELS, node="node-1")
    out, _ = running.communicate()
    assert "host lost: load/generators-1: its Pod was deleted" in out
    assert "load/generators-9 joins: from second " in out
    assert "each of 2 hosts has 1/2 of the load" in out
    record = json.loads(out[out.index('{"') :])
    first, lost, joined = record["hosts"]
    assert [host["joined_s"] for host in (first, lost)] == [None, None]
    assert joined["place"] == "load/generators-9"
    assert joined["ok"] > 0
    assert (first["connections"], joined["connections"]) == (3, 3)


@pytest.mark.parametrize(
    ("place", "answers", "said", "hint"),
    [
        (SET, {"get statefulsets": "no_statefulset"}, "not found", "kubectl get statefulsets"),
        (SET, {"*": "no_kubeconfig"}, "kubectl has no cluster to ask", "KUBECONFIG"),
        (SET, {"*": "api_server_gone"}, "127.0.0.1:6443 was refused", "must work"),
        (SET, {"get pods": "list_forbidden"}, "pods is forbidden: User", "the Role"),
        (SET, {"exec": "exec_forbidden"}, 'cannot create resource "pods/exec"', "the Role"),
        (SET, {"exec": "exec_no_sh"}, "has no shell, sh: ", "an image that has sh"),
        ("k8s:load?app=none", {}, "no Pod in the namespace load has the labels", "show-labels"),
        (MADE, {"create": "no_namespace_create"}, "namespaces ", "exists"),
        (MADE, {"create": "create_forbidden"}, "jobs.batch is forbidden", "the Role"),
    ],
)
def test_bad_input_is_refused_with_the_clusters_words_and_a_hint(
    trueload: Trueload,
    server: Server,
    env: dict[str, str],
    cluster: ScriptedCluster,
    place: str,
    answers: dict[str, str],
    said: str,
    hint: str,
) -> None:
    cluster.play_instead(answers)
    ended = trueload.run(*words(server, place, "--requests", "9"), env=env)
    assert ended.code == 2, ended
    assert ended.out == ""
    error, hinted = ended.err.splitlines()
    assert error.startswith("error: ")
    assert said in error
    assert hinted.startswith("hint: ")
    assert hint in hinted
    assert list(cluster.objects("jobs")) == []


def test_without_kubectl_it_is_named(
    trueload: Trueload, server: Server, env: dict[str, str], tmp_path: Path
) -> None:
    ended = trueload.run(*words(server, SET), env={**env, "PATH": str(tmp_path)})
    assert ended.code == 2
    assert "error: kubectl cannot be started: No such file or directory" in ended.err
    assert "hint: install it" in ended.err


@pytest.mark.parametrize("right", ["create pods/exec", "delete jobs.batch", "list pods"])
def test_without_a_right_nothing_is_made(
    trueload: Trueload,
    server: Server,
    env: dict[str, str],
    cluster: ScriptedCluster,
    right: str,
) -> None:
    cluster.deny(right)
    ended = trueload.run(*words(server, MADE, "--hosts", "2"), env=env)
    assert ended.code == 2
    assert f"error: the cluster refuses: you cannot {right} in the namespace load" in ended.err
    assert "the Role that trueload needs" in ended.err
    assert not any("--filename" in argv for argv in cluster.calls())


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("get_pods_image_pull_backoff", "has no image, nothing-there (ImagePullBackOff): Back-off"),
        ("get_pods_image_pull_error", "has no image, nothing-there (ErrImagePull): failed to pull"),
    ],
)
def test_an_image_that_cannot_be_had_ends_the_wait_and_deletes_the_job(
    trueload: Trueload,
    server: Server,
    env: dict[str, str],
    cluster: ScriptedCluster,
    state: str,
    said: str,
) -> None:
    cluster.job_pods(state)
    argv = words(server, MADE, "--hosts", "2", "--k8s-image", "nothing-there")
    ended = trueload.run(*argv, env=env)
    assert ended.code == 2, ended
    assert said in ended.err
    assert "hint: name an image with sh that the cluster can have: --k8s-image" in ended.err
    assert "has been deleted" in ended.err
    assert list(cluster.objects("jobs")) == []


def test_a_dry_run_prints_the_job_and_makes_nothing(
    trueload: Trueload, server: Server, env: dict[str, str], cluster: ScriptedCluster
) -> None:
    argv = words(server, MADE, "-d", "10m", "--hosts", "8", "--threads", "2", "--dry-run")
    ended = trueload.run(*argv, env=env)
    assert ended.code == 0, ended
    job = json.loads(ended.out)
    assert (job["kind"], job["spec"]["completions"]) == ("Job", 8)
    assert job["spec"]["activeDeadlineSeconds"] > 20 * 60
    limits = job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert limits == {"cpu": "3"}
    assert cluster.calls() == []
    refused = trueload.run(*words(server, SET, "--dry-run"), env=env)
    assert refused.code == 2
    assert "--dry-run prints the Job of Pods that are made" in refused.err


def test_only_what_the_role_allows_is_asked_of_the_cluster(
    trueload: Trueload, server: Server, env: dict[str, str], cluster: ScriptedCluster
) -> None:
    for place in (SET, LABEL, MADE):
        trueload.run(*words(server, place, "--requests", "60"), env=env)
    asked = {" ".join(argv[2:4]) for argv in cluster.calls() if "exec" not in argv[2:3]}
    assert asked == {
        *("get statefulset", "get pods", "auth can-i"),
        *("create --filename", "delete job"),
    }
    assert recorded("list_forbidden")["rc"] == 1


def test_a_lab_names_pods_and_how_many(
    trueload: Trueload, server: Server, env: dict[str, str], tmp_path: Path
) -> None:
    lab = tmp_path / "places.toml"
    lab.write_text(f'hosts = 2\n[[generators]]\nplace = "{MADE}"\n')
    argv = ["http", f"{server.url}/", "-c", "4", "--requests", "60", "--lab", str(lab)]
    ended = trueload.run(*argv, "--json", "-", env=env)
    assert ended.code in (0, 4), ended
    assert [host["place"][:14] for host in ended.json()["hosts"]] == ["load/trueload-"] * 2
    refused = trueload.run("serve", "http", "--server-place", MADE, env=env)
    assert refused.code == 2
