"""The scripted ``kubectl``: it answers as the real one did, and what is exec'd really runs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from scripted_cluster import ScriptedCluster
from waiting import wait_until

WAIT_S = 10.0
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "measure"},
    "spec": {
        "completions": 2,
        "template": {
            "metadata": {"labels": {"run": "mine"}},
            "spec": {"containers": [{"name": "engine", "image": "busybox"}]},
        },
    },
}


@pytest.fixture
def cluster(tmp_path: Path) -> ScriptedCluster:
    return ScriptedCluster(tmp_path / "cluster")


def kubectl(
    cluster: ScriptedCluster, *argv: str, said: str = ""
) -> subprocess.CompletedProcess[str]:
    line = [str(cluster.bin / "kubectl"), "--namespace=load", *argv]
    return subprocess.run(
        line, input=said, capture_output=True, text=True, timeout=WAIT_S, check=False
    )


def names(cluster: ScriptedCluster, *argv: str) -> list[str]:
    found = json.loads(kubectl(cluster, "get", "pods", "-o", "json", *argv).stdout)
    return [pod["metadata"]["name"] for pod in found["items"]]


def started(cluster: ScriptedCluster, *argv: str) -> subprocess.Popen[str]:
    line = [str(cluster.bin / "kubectl"), "-n", "load", *argv]
    pipe = subprocess.PIPE
    return subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_pods_are_selected_by_namespace_and_label(cluster: ScriptedCluster) -> None:
    cluster.add_pod("gen-0", labels={"app": "generator"})
    cluster.add_pod("web-0", labels={"app": "web"})
    cluster.add_pod("far-0", labels={"app": "generator"}, namespace="other")
    assert names(cluster) == ["gen-0", "web-0"]
    assert names(cluster, "--selector", "app=generator") == ["gen-0"]


def test_a_command_runs_with_its_input_until_that_ends(cluster: ScriptedCluster) -> None:
    cluster.add_pod("gen-0")
    done = kubectl(cluster, "exec", "-i", "gen-0", "--", "sh", "-c", "cat; exit 7", said="hello\n")
    assert (done.stdout, done.returncode) == ("hello\n", 7)
    assert done.stderr == "command terminated with exit code 7\n"


def test_what_runs_in_a_removed_pod_is_killed(cluster: ScriptedCluster) -> None:
    cluster.add_pod("gen-0")
    with started(cluster, "exec", "-i", "gen-0", "--", "cat") as running:
        wait_until(lambda: any((cluster.folder / "running").glob("gen-0/*")), "it runs")
        cluster.remove_pod("gen-0")
        assert running.wait(WAIT_S) == 137
    gone = kubectl(cluster, "exec", "-i", "gen-0", "--", "cat")
    assert gone.stderr == 'Error from server (NotFound): pods "gen-0" not found\n'


def test_a_job_makes_pods_and_takes_them_with_it(cluster: ScriptedCluster) -> None:
    cluster.job_pods("get_pods_running", "get_pods_unschedulable")
    assert kubectl(cluster, "create", "-f", "-", said=json.dumps(JOB)).returncode == 0
    assert names(cluster, "-l", "run=mine") == ["measure-0-abcde", "measure-1-abcde"]
    kubectl(cluster, "delete", "job", "measure")
    assert names(cluster) == []


def test_a_watch_tells_what_changes(cluster: ScriptedCluster) -> None:
    cluster.add_pod("gen-0")
    with started(cluster, "get", "pods", "--watch", "-o", "json") as watch:
        assert watch.stdout is not None
        told = json.JSONDecoder()
        text = "".join(iter(watch.stdout.readline, "}\n")) + "}"
        assert told.decode(text)["status"]["phase"] == "Running"
        cluster.lose_pod("gen-0", "get_pods_evicted")
        text = "".join(iter(watch.stdout.readline, "}\n")) + "}"
        assert told.decode(text)["status"]["reason"] == "Evicted"
        watch.kill()


def test_a_lost_api_server_ends_what_runs(cluster: ScriptedCluster) -> None:
    cluster.add_pod("gen-0")
    with started(cluster, "exec", "-i", "gen-0", "--", "cat") as running:
        wait_until(lambda: any((cluster.folder / "running").glob("gen-0/*")), "it runs")
        cluster.lose_api_server()
        assert running.wait(WAIT_S) == 1
    assert "was refused" in kubectl(cluster, "get", "pods").stderr
