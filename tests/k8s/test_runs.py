"""Runs from Pods of a real control plane, as the service account that has exactly the Role."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from typing import Any

import pytest
from waiting import wait_until

from k8s.conftest import NODES
from k8s.front import Front
from k8s.objects import LABELS, generator, statefulset

SELECTOR = ",".join(f"{key}={value}" for key, value in LABELS.items())
SET, LABEL, MADE = "k8s:load/statefulset/generators", f"k8s:load?{SELECTOR}", "k8s:load"


def record_of(out: str) -> Any:
    """The record that ``--json -`` has printed, behind other lines."""
    return json.loads(out[out.index('{"') :])


def test_a_stranger_with_a_kubeconfig_measures_from_eight_pods_by_one_command(
    front: Front,
) -> None:
    argv = front.http(MADE, "--hosts", "8", "--requests", "4000", "--json", "-", pods=8)
    ended = front.run(*argv)
    assert ended.code in (0, 4), ended  # a busy machine may make it invalid
    record = ended.json()
    assert record["trouble"] is None, ended.err
    names = [host["place"] for host in record["hosts"]]
    assert len(set(names)) == 8
    assert all(name.startswith("load/trueload-") for name in names)
    assert record["counts"]["scheduled"] == record["counts"]["ok"] == 4000
    assert "on the same node" not in ended.err
    front.wait_quiet()
    wait_until(lambda: not front.cluster.pods(), "the Pods have gone")


@pytest.mark.parametrize("place", [SET, LABEL])
def test_each_pod_of_a_set_or_with_a_label_is_a_host(front: Front, place: str) -> None:
    front.cluster.create(statefulset("generators", replicas=3))
    front.cluster.wait_pods(SELECTOR, 3)
    ended = front.run(*front.http(place, "--requests", "600", "--json", "-", pods=3))
    assert ended.code in (0, 4), ended
    record = ended.json()
    assert record["trouble"] is None, ended.err
    names = [host["place"] for host in record["hosts"]]
    assert names == [f"load/generators-{number}" for number in range(3)]
    assert len(front.cluster.pods(SELECTOR)) == 3, "what was there stays"
    front.wait_quiet()


def test_pods_that_share_a_node_are_warned_of(front: Front) -> None:
    for number in range(2):
        pod = generator(f"generators-{number}")
        pod["spec"]["nodeName"] = "node-0"
        front.cluster.create(pod)
    front.cluster.wait_pods(SELECTOR, 2)
    ended = front.run(*front.http(LABEL, "--requests", "100"))
    shared = "load/generators-0 and load/generators-1 are on the same node, node-0"
    assert f"warning: {shared}" in ended.err, ended


@pytest.mark.parametrize(
    ("service", "words"),
    [
        ("tcp", ["tcp", "{address}"]),
        ("udp", ["udp", "{address}"]),
        ("ws", ["ws", "ws://{address}/echo", "--mode", "echo"]),
    ],
)
def test_other_protocols_come_from_pods_by_the_same_code(
    front: Front, service: str, words: list[str]
) -> None:
    server = front.serve(service)
    argv = [word.format(address=f"{server.host}:{server.port}") for word in words]
    argv += ["-c", "4", "--requests", "400", "--warmup", "0s", "--json", "-"]
    ended = front.run(*argv, "--place", MADE, "--hosts", "2")
    assert ended.code in (0, 4), ended
    record = ended.json()
    assert record["trouble"] is None, ended.err
    assert record["counts"]["ok"] == 400
    assert len(record["hosts"]) == 2


def test_a_search_has_the_same_pods_for_all_its_steps(front: Front) -> None:
    search = ("--limit", "p99<1ms", "--rate", "200/s", "-d", "1s", "--seed", "7")
    running = front.trueload.start(
        *front.http(MADE, "--hosts", "2", *search), env=front.env(), stderr=subprocess.STDOUT
    )
    wait_until(lambda: len(front.cluster.pods()) == 2, "the Pods are there")
    made = {pod["metadata"]["name"] for pod in front.cluster.pods()}
    out, _ = running.communicate()
    assert running.returncode in (0, 4), out
    assert len(made) == 2
    front.wait_quiet()


def test_a_pod_that_replaces_a_lost_one_joins(front: Front) -> None:
    front.cluster.create(statefulset("generators", replicas=2))
    front.cluster.wait_pods(SELECTOR, 2)
    more = ("--hosts", "2..3", "--allow-lost", "1", "--rate", "200/s", "--json", "-")
    running = front.start(SET, "-d", "25s", *more)
    front.cluster.delete("generators-1", grace_s=0)
    out, _ = running.communicate()
    assert "host lost: load/generators-1: its Pod was deleted" in out, out
    record = record_of(out)
    first, lost, joined = record["hosts"]
    assert (first["lost"], first["joined_s"], lost["joined_s"]) == (None, None, None)
    assert joined["place"] == "load/generators-1"
    assert joined["joined_s"] > 0
    assert joined["ok"] > 0
    front.wait_quiet()


def test_a_made_pod_that_is_lost_is_replaced_and_the_new_one_joins(front: Front) -> None:
    more = ("--hosts", "2..3", "--allow-lost", "1", "--rate", "200/s", "--json", "-")
    running = front.start(MADE, "-d", "25s", *more, joining=1)
    lost = front.cluster.pods()[0]["metadata"]["name"]
    front.cluster.delete(lost)
    out, _ = running.communicate()
    assert f"host lost: load/{lost}: its Pod was deleted" in out, out
    joined = [host["place"] for host in record_of(out)["hosts"] if host["joined_s"] is not None]
    # The third of the Job joins, too, unless it was there from the start.
    place, _ = lost.rsplit("-", 1)
    assert len([name for name in joined if name.startswith(f"load/{place}-")]) == 1, joined
    assert len(joined) <= 2, joined
    front.wait_quiet()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_deletes_the_job(front: Front, number: signal.Signals) -> None:
    running = front.start(MADE, "--hosts", "2")
    os.kill(running.pid, number)
    out, _ = running.communicate()
    assert running.returncode == 130, out
    front.wait_quiet()
    wait_until(lambda: not front.cluster.pods(), "the Pods have gone")


def test_the_cluster_ends_the_job_of_a_killed_front_by_its_deadline(front: Front) -> None:
    running = front.start(MADE, "--hosts", "2")
    running.kill()
    running.communicate()
    wait_until(lambda: front.engines() == 0, "the engines have ended with their front")
    (name,) = front.jobs()
    assert front.cluster.get("job", name)["spec"]["activeDeadlineSeconds"] < 30 * 60
    short = {"activeDeadlineSeconds": 1, "ttlSecondsAfterFinished": 1}
    front.cluster.kubectl("patch", "job", name, f"--patch={json.dumps({'spec': short})}")
    front.wait_quiet()
    wait_until(lambda: not front.cluster.pods(), "the Pods have gone")


def test_the_printed_manifest_is_one_that_the_cluster_takes(front: Front) -> None:
    printed = front.run(*front.http(MADE, "--hosts", str(NODES), "--dry-run", pods=NODES))
    assert printed.code == 0, printed
    assert front.jobs() == []
    front.cluster.create(printed.json())
    front.cluster.wait_pods("app.kubernetes.io/name=trueload", NODES)
    nodes = {pod["spec"]["nodeName"] for pod in front.cluster.pods()}
    assert len(nodes) == NODES
