"""What the cluster says of a Pod, as a phrase: from answers that were recorded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from scripted_kubectl import recorded
from trueload.places.k8s.kubectl import refused
from trueload.places.k8s.pods import Pod, parse_cpus, parse_pod, why_lost, why_node


def raw(state: str) -> dict[str, Any]:
    """The Pod of a recorded answer."""
    found: dict[str, Any] = recorded(f"get_pods_{state}")["stdout"]["items"][0]
    return found


def pod(state: str) -> Pod:
    return parse_pod(raw(state))


THEN = pod("running")


def test_a_pod_that_runs_has_no_fault() -> None:
    assert (THEN.name, THEN.container) == ("generators-0", "generator")
    assert str(THEN.node).startswith("node-")
    assert THEN.runs
    assert THEN.ready
    assert THEN.fault is None
    assert why_lost(THEN, THEN) is None


@pytest.mark.parametrize(
    ("state", "phrase"),
    [
        ("evicted", "was evicted: The node was low on resource: memory. Threshold quantity: 100Mi"),
        ("oom_killed", "was OOMKilled: its memory limit is "),
        ("oom_restarted", "was OOMKilled: its memory limit is "),
        ("deleting", "was deleted"),
        ("image_pull_error", "(ErrImagePull): failed to pull"),
        ("image_pull_backoff", "(ImagePullBackOff): Back-off pulling image"),
        ("unschedulable", "is pending: 0/3 nodes are available: 3 Insufficient cpu."),
        ("no_node_left", "is pending: 0/3 nodes are available: 3 node(s) didn't match pod anti-"),
        ("starting", "is being created"),
    ],
)
def test_a_lost_pod_says_why_in_the_clusters_words(state: str, phrase: str) -> None:
    now = pod(state)
    restarts = 0 if state == "oom_restarted" else now.restarts
    found = why_lost(replace(THEN, uid=now.uid, restarts=restarts), now)
    assert found is not None, state
    assert phrase in found
    assert "\n" not in found
    assert len(found) < 400, "one line"


def test_a_pod_that_is_not_there_was_deleted() -> None:
    assert why_lost(THEN, None) == "was deleted"
    other = replace(THEN, uid="another")
    assert why_lost(THEN, other) == "was deleted, and another has its name now"


def test_a_pod_that_was_deleted_has_not_ended_by_itself() -> None:
    found = raw("deleting")
    ended = {"exitCode": 143, "reason": "Error"}
    found["status"]["containerStatuses"][0]["state"] = {"terminated": ended}
    assert parse_pod(found).fault == "was deleted"


def test_a_container_that_was_started_again_before_is_not_lost_for_that() -> None:
    now = pod("oom_restarted")
    assert now.runs
    assert why_lost(now, now) is None, "it was so before the engine ran"
    before = replace(now, restarts=now.restarts - 1)
    assert "and was started again" in str(why_lost(before, now))


@pytest.mark.parametrize(
    ("reason", "message", "phrase"),
    [
        ("EvictionByEvictionAPI", "Eviction API: evicting", "was evicted: Eviction API: evicting"),
        ("PreemptionByScheduler", "default-scheduler: preempting", "was preempted: default-"),
        ("SomethingNew", "so it is", "is disrupted (SomethingNew): so it is"),
    ],
)
def test_a_disruption_is_told_by_its_reason(reason: str, message: str, phrase: str) -> None:
    found = raw("deleting")
    condition = {"type": "DisruptionTarget", "status": "True", "reason": reason}
    found["status"]["conditions"].append({**condition, "message": message})
    assert phrase in str(parse_pod(found).fault)


@pytest.mark.parametrize("state", ["image_pull_error", "image_pull_backoff"])
def test_an_image_that_cannot_be_had_is_hopeless(state: str) -> None:
    assert pod(state).hopeless
    assert not pod("starting").hopeless
    assert not pod("unschedulable").hopeless


def test_a_container_that_cannot_be_started_is_hopeless_and_says_why() -> None:
    found = raw("starting")
    message = 'exec: "sh": executable file not found in $PATH: unknown'
    ended = {"exitCode": 128, "reason": "StartError", "message": message}
    found["status"]["containerStatuses"][0]["state"] = {"terminated": ended}
    assert parse_pod(found).hopeless
    assert parse_pod(found).fault == f"ended with exit code 128 (StartError): {message}"


def test_a_lost_node_takes_readiness_from_a_pod_and_leaves_it_to_its_containers() -> None:
    lost = pod("node_not_ready")
    assert (lost.runs, lost.ready) == (True, False)
    node = recorded("get_node_not_ready")["stdout"]
    expected = (
        f"is on the node {lost.node}, which is not ready: Kubelet stopped posting node status"
    )
    assert why_node(node) == expected
    assert why_node(recorded("get_node_ready")["stdout"]) is None


def test_the_container_is_the_one_that_kubectl_would_take() -> None:
    found = raw("running")
    second = {"name": "sidecar", "image": "proxy", "resources": {"limits": {"cpu": "250m"}}}
    found["spec"]["containers"].insert(0, second)
    status = {"name": "sidecar", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    found["status"]["containerStatuses"].insert(0, status)
    assert not parse_pod(found).runs, "the first one"
    named = {"kubectl.kubernetes.io/default-container": "generator"}
    found["metadata"]["annotations"] = named
    assert parse_pod(found).runs
    assert parse_pod(found).container == "generator"


@pytest.mark.parametrize(
    ("quantity", "cpus"),
    [("500m", 0.5), ("2", 2.0), ("1.5", 1.5), (2, 2.0), (None, None), ("lots", None)],
)
def test_a_quantity_of_cpus(quantity: object, cpus: float | None) -> None:
    assert parse_cpus(quantity) == cpus


def test_words_that_a_terminal_would_obey_are_taken_out() -> None:
    found = raw("evicted")
    found["status"]["message"] = "\x1b[31mred\nand a second line"
    assert parse_pod(found).fault == "was evicted: red and a second line"


@pytest.mark.parametrize(
    ("answer", "message", "hint"),
    [
        ("no_kubeconfig", "has no cluster to ask: The connection to the server", "KUBECONFIG"),
        ("no_context", "nowhere", "`kubectl get pods"),
        ("api_server_gone", "The connection to the server 127.0.0.1:6443 was refused", "kubectl"),
        ("list_forbidden", 'the cluster refuses: pods is forbidden: User "system:', "the Role"),
        ("create_forbidden", "the cluster refuses: jobs.batch is forbidden: User", "the Role"),
        ("exec_forbidden", 'the cluster refuses: pods "generators-0" is forbidden', "the Role"),
        ("no_statefulset", 'statefulsets.apps "nothing" not found', "kubectl get statefulsets"),
        ("no_namespace_create", 'namespaces "other" not found', "k8s:NAMESPACE"),
    ],
)
def test_a_refusal_has_the_clusters_words_and_a_hint(answer: str, message: str, hint: str) -> None:
    found = refused(recorded(answer)["stderr"], "load")
    assert message in found.message
    assert hint in found.hint
    assert "\n" not in found.message + found.hint
