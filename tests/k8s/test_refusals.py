"""What cannot be used is refused in the cluster's words, with a hint, and nothing is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from k8s.cluster import NAMESPACE, Cluster
from k8s.conftest import NODES
from k8s.front import Front
from k8s.objects import generator

LABEL = "k8s:load?app=generator"


def refused(front: Front, place: str, *more: str, kubeconfig: Path | None = None) -> list[str]:
    """Run a command that is refused, and return its error and its hint."""
    ended = front.run(*front.http(place, "--requests", "9", *more), kubeconfig=kubeconfig)
    assert ended.code == 2, ended
    assert ended.out == ""
    assert front.jobs() == []
    return ended.err.splitlines()


@pytest.mark.parametrize(
    ("place", "said", "hint"),
    [
        ("k8s:nowhere/statefulset/generators", 'in the namespace "nowhere"', "the Role"),
        ("k8s:nowhere", "in the namespace nowhere", "the Role"),
        ("k8s:load/statefulset/nothing", '"nothing" not found', "kubectl get statefulsets"),
        ("k8s:load?app=nothing", "has the labels app=nothing", "--show-labels"),
    ],
)
def test_what_is_not_there_is_refused(front: Front, place: str, said: str, hint: str) -> None:
    error, hinted = refused(front, place)
    assert error.startswith("error: ")
    assert said in error
    assert hinted.startswith("hint: ")
    assert hint in hinted


def test_a_namespace_that_is_not_there_is_named_to_whom_may_know(front: Front) -> None:
    error, hinted = refused(front, "k8s:nowhere", kubeconfig=front.cluster.admin)
    assert 'namespaces "nowhere" not found' in error
    assert "name a namespace that exists" in hinted


def test_without_a_context_there_is_no_cluster_to_ask(front: Front, tmp_path: Path) -> None:
    empty = tmp_path / "empty.kubeconfig"
    empty.write_text("")
    error, hinted = refused(front, LABEL, kubeconfig=empty)
    assert "kubectl has no cluster to ask: " in error
    assert "KUBECONFIG" in hinted


def test_an_api_server_that_is_gone_is_refused(front: Front) -> None:
    front.cluster.stop_apiserver()
    ended = front.run(*front.http(LABEL, "--requests", "9"))
    assert ended.code == 2, ended
    assert f"{front.cluster.port} was refused" in ended.err


def test_pods_that_do_not_run_are_refused_with_the_schedulers_words(front: Front) -> None:
    front.cluster.create(generator("generators-0", cpu="64"))
    front.cluster.wait_pods("", 1, "Pending")
    error, hinted = refused(front, LABEL)
    assert f"the Pod load/generators-0 is pending: 0/{NODES} nodes are available" in error
    assert "Insufficient cpu" in error
    assert "--hosts-wait" in hinted


def test_an_image_without_sh_is_refused(front: Front) -> None:
    front.cluster.create(generator("generators-0", image="without-sh"))
    front.cluster.wait_pods("", 1)
    error, hinted = refused(front, LABEL)
    assert "load/generators-0 has no shell, sh: " in error
    assert "executable file not found" in error
    assert "use an image that has sh" in hinted


def test_more_pods_than_nodes_are_waited_for_and_refused(front: Front) -> None:
    more = ("--hosts", str(NODES + 1), "--hosts-wait", "10s")
    *_, deleted, error, hinted = refused(front, "k8s:load", *more)
    assert f"{NODES} of {NODES + 1} hosts came within 10s: the Pod load/trueload-" in error
    assert "didn't match pod anti-affinity rules" in error
    assert hinted.startswith("hint: ")
    assert "has been deleted" in deleted


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("missing", "has no image, missing (ErrImagePull): failed to pull"),
        ("without-sh", "has no shell, sh: "),
    ],
)
def test_an_image_that_cannot_be_used_ends_the_job(front: Front, image: str, said: str) -> None:
    lines = refused(front, "k8s:load", "--hosts", "2", "--k8s-image", image)
    assert any(said in line for line in lines), lines
    assert any("--k8s-image" in line for line in lines), lines


@pytest.fixture
def looker(cluster: Cluster) -> Path:
    """The kubeconfig of an account that may only look."""
    if cluster.run(cluster.admin, "get", "role", "looker").returncode:
        cluster.kubectl("create", "serviceaccount", "looker")
        rights = ("--verb=get,list", "--resource=pods,statefulsets.apps,jobs.batch")
        cluster.kubectl("create", "role", "looker", *rights)
        account = f"--serviceaccount={NAMESPACE}:looker"
        cluster.kubectl("create", "rolebinding", "looker", "--role=looker", account)
    return cluster.kubeconfig("looker")


def test_who_may_only_look_is_refused(front: Front, looker: Path) -> None:
    front.cluster.create(generator("generators-0"))
    front.cluster.wait_pods("app=generator", 1)
    error, hinted = refused(front, LABEL, kubeconfig=looker)
    assert 'cannot create resource "pods/exec"' in error
    assert "the Role" in hinted
    error, hinted = refused(front, "k8s:load", "--hosts", "2", kubeconfig=looker)
    assert "you cannot create pods/exec in the namespace load" in error
    assert "the Role" in hinted
