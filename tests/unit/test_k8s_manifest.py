"""The Job that is made: what stands in it, and when the cluster ends it."""

from __future__ import annotations

import json
import re

import pytest
from harness import ROOT
from trueload.places.k8s import make_manifest
from trueload.places.k8s.manifest import UNKNOWN_S, deadline_s, manifest
from trueload.places.k8s.reserve import selector_of
from trueload.places.names import K8sPods, NewPods

MIN_NS = 60 * 10**9


def test_a_job_of_sleeping_pods_one_on_each_node() -> None:
    found = manifest("trueload-x", "busybox", 8, 2, 900)
    spec, pod = found["spec"], found["spec"]["template"]["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 8, 8)
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (0, 900)
    assert spec["ttlSecondsAfterFinished"] > 0
    assert pod["restartPolicy"] == "Never"
    (apart,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert apart["topologyKey"] == "kubernetes.io/hostname"
    labels = spec["template"]["metadata"]["labels"]
    assert apart["labelSelector"]["matchLabels"].items() <= labels.items()
    assert labels["app.kubernetes.io/instance"] == "trueload-x"
    (container,) = pod["containers"]
    assert container["image"] == "busybox"
    assert container["resources"] == {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}
    assert json.loads(json.dumps(found)) == found


def test_a_pod_that_fails_is_replaced_and_ends_no_other() -> None:
    rules = manifest("x", "busybox", 2, 1, 900)["spec"]["podFailurePolicy"]["rules"]
    assert {rule["action"] for rule in rules} == {"Ignore"}
    assert [sorted(rule.keys() - {"action"}) for rule in rules] == [
        ["onPodConditions"],
        ["onExitCodes"],
    ]


def test_a_pod_has_no_rights() -> None:
    pod = manifest("x", "busybox", 2, 1, 900)["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    inside = pod["containers"][0]["securityContext"]
    assert inside == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_each_job_has_a_name_of_its_own() -> None:
    found = [make_manifest(K8sPods("load"), 3, NewPods(image="alpine")) for _ in range(2)]
    names = {each["metadata"]["name"] for each in found}
    assert len(names) == 2
    assert all(re.fullmatch(r"trueload-[a-z0-9]{6}", name) for name in names)
    assert {each["metadata"]["namespace"] for each in found} == {"load"}


@pytest.mark.parametrize(
    ("planned_min", "wait_min", "seconds"),
    [(10, 2, (2 * 10 + 2 + 15) * 60), (0, 0, 15 * 60), (None, 2, UNKNOWN_S)],
)
def test_the_cluster_ends_a_job_that_nobody_ends(
    planned_min: int | None, wait_min: int, seconds: int
) -> None:
    planned_ns = None if planned_min is None else planned_min * MIN_NS
    assert deadline_s(planned_ns, wait_min * MIN_NS) == seconds


def test_the_selector_of_a_set_is_written_as_kubectl_takes_it() -> None:
    found = selector_of(
        {
            "matchLabels": {"app": "generator"},
            "matchExpressions": [
                {"key": "zone", "operator": "In", "values": ["a", "b"]},
                {"key": "old", "operator": "DoesNotExist"},
                {"key": "new", "operator": "Exists"},
            ],
        }
    )
    assert found == "app=generator,zone in (a,b),!old,new"


def test_the_page_has_the_role_that_the_tests_on_a_cluster_run_with() -> None:
    role = (ROOT / "tests" / "k8s" / "role.yaml").read_text()
    assert f"```yaml\n{role}```" in (ROOT / "docs" / "hosts.md").read_text()
