"""The files of docs/clusters work as they are.

Ray's own launcher accepts its files, those for Kubernetes have the shape of KubeRay's, commands use
flags that Ray has, and versions agree.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import ray
import yaml
from trueload.places.lab import read_lab
from trueload.places.named import CommandHost, parse_place

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "clusters"
LAUNCHED = ("lab.yaml", "aws.yaml")
KUBERNETES = ("kubernetes.yaml", "kubernetes-job.yaml")
KINDS = {".sh": "sh", ".toml": "toml", ".yaml": "yaml"}
# The fields in use, as in KubeRay's reference of ray.io/v1.
CLUSTER_KEYS = {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
HEAD_KEYS = {"rayStartParams", "template"}
WORKER_KEYS = {*HEAD_KEYS, "groupName", "replicas", "minReplicas", "maxReplicas"}
JOB_KEYS = {
    *("entrypoint", "backoffLimit", "shutdownAfterJobFinishes", "ttlSecondsAfterFinished"),
    "rayClusterSpec",
}


def documents(name: str) -> list[Any]:
    return list(yaml.safe_load_all((FOLDER / name).read_text()))


@pytest.mark.parametrize("name", LAUNCHED)
def test_rays_launcher_accepts_its_file(name: str) -> None:
    (config,) = documents(name)
    schema = Path(ray.__file__).parent / "autoscaler" / "ray-schema.json"
    jsonschema.validate(config, json.loads(schema.read_text()))
    if config["provider"]["type"] == "local":  # for other providers it asks the cloud
        util = importlib.import_module("ray.autoscaler._private.util")
        prepared = util.prepare_config(config)
        util.validate_config(prepared)
        assert prepared["max_workers"] == len(config["provider"]["worker_ips"])


def ray_commands() -> Iterator[tuple[str, list[str]]]:
    """Yield the words after ``ray start`` in every file."""
    for name in LAUNCHED:
        (config,) = documents(name)
        for key in ("head_start_ray_commands", "worker_start_ray_commands"):
            yield from ((name, after) for line in config[key] for after in starts_in(line))
    script = (FOLDER / "laptop.sh").read_text()
    yield from (("laptop.sh", after) for line in script.splitlines() for after in starts_in(line))


def starts_in(line: str) -> list[list[str]]:
    found = re.search(r"(?:^|/|\s)ray start (.*)", line)
    return [shlex.split(found[1])] if found else []


def test_what_ray_is_started_with_are_flags_that_it_has() -> None:
    command = importlib.import_module("ray.scripts.scripts").start
    known = {flag for option in command.params for flag in option.opts}
    found = list(ray_commands())
    assert len(found) == 5
    for name, words in found:
        flags = [word.partition("=")[0] for word in words if word.startswith("--")]
        assert flags, name
        assert set(flags) <= known, name


@pytest.mark.parametrize("name", KUBERNETES)
def test_what_kubernetes_gets_has_the_shape_of_kuberay(name: str) -> None:
    namespace, made = documents(name)
    assert namespace["kind"] == "Namespace"
    assert made["metadata"]["namespace"] == namespace["metadata"]["name"]
    assert made["apiVersion"] == "ray.io/v1"
    spec = made["spec"]
    if made["kind"] == "RayJob":
        assert set(spec) == JOB_KEYS
        assert spec["backoffLimit"] == 0
        spec = spec["rayClusterSpec"]
    assert set(spec) == CLUSTER_KEYS
    assert set(spec["headGroupSpec"]) == HEAD_KEYS
    (workers,) = spec["workerGroupSpecs"]
    assert set(workers) == WORKER_KEYS
    assert workers["minReplicas"] == workers["replicas"] == workers["maxReplicas"]


@pytest.mark.parametrize("name", KUBERNETES)
def test_every_pod_has_a_node_and_its_network_for_itself(name: str) -> None:
    spec = documents(name)[1]["spec"]
    spec = spec.get("rayClusterSpec", spec)
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())
        pod = group["template"]["spec"]
        assert pod["hostNetwork"] is True
        assert pod["dnsPolicy"] == "ClusterFirstWithHostNet"
        rules = pod["affinity"]["podAntiAffinity"]
        (rule,) = rules["requiredDuringSchedulingIgnoredDuringExecution"]
        assert rule["topologyKey"] == "kubernetes.io/hostname"
        assert rule["labelSelector"]["matchLabels"] == group["template"]["metadata"]["labels"]
        (container,) = pod["containers"]
        assert {"name", "image", "env", "resources"} <= set(container)
        assert all(isinstance(each["value"], str) for each in container["env"])


def test_the_pods_are_those_of_the_lab_and_of_the_job() -> None:
    namespace, made = documents("pods.yaml")
    assert (made["apiVersion"], made["kind"]) == ("apps/v1", "StatefulSet")
    assert made["metadata"]["namespace"] == namespace["metadata"]["name"] == "trueload"
    spec = made["spec"]
    pod = spec["template"]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    (rule,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["labelSelector"]["matchLabels"] == spec["selector"]["matchLabels"]
    (container,) = pod["containers"]
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}
    expected = [
        CommandHost(
            ("kubectl", "exec", "-i", "--namespace", "trueload", f"generators-{number}", "--")
        )
        for number in range(spec["replicas"])
    ]
    lab = read_lab(FOLDER / "pods.toml")
    assert [each.place for each in lab.generators] == expected
    job = documents("pods-job.yaml")[-1]
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "Job")
    (front,) = job["spec"]["template"]["spec"]["containers"]
    asked = [word.partition("=") for word in front["args"]]
    assert [parse_place(text) for flag, _, text in asked if flag == "--place"] == expected
    accounts = {each["metadata"]["name"] for each in documents("pods-job.yaml")[:3]}
    assert accounts == {job["spec"]["template"]["spec"]["serviceAccountName"]}


def test_every_file_names_the_version_of_ray_that_is_locked() -> None:
    (locked,) = re.findall(r"^ray==([0-9.]+)", (ROOT / "requirements-dev.lock").read_text(), re.M)
    pattern = r"(?:ray:|==|rayVersion: \")(\d+\.\d+\.\d+)"
    for name in (*LAUNCHED, *KUBERNETES, "Dockerfile"):
        assert set(re.findall(pattern, (FOLDER / name).read_text())) == {locked}, name


def test_the_script_for_a_laptop_is_one_of_the_shell() -> None:
    assert subprocess.run(["sh", "-n", FOLDER / "laptop.sh"], check=False).returncode == 0


def test_every_file_is_linked_from_the_page() -> None:
    page = (ROOT / "docs" / "clusters.md").read_text()
    for path in FOLDER.iterdir():
        assert f"(clusters/{path.name})" in page, path.name


@pytest.mark.parametrize(
    "name", ["laptop.sh", *LAUNCHED, "kubernetes.yaml", "pods.yaml", "pods.toml"]
)
def test_the_page_shows_the_file_as_it_is(name: str) -> None:
    page = (ROOT / "docs" / "clusters.md").read_text()
    assert f"```{KINDS[Path(name).suffix]}\n{(FOLDER / name).read_text()}```" in page
