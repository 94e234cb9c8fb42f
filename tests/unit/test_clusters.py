"""The files of docs/clusters work as they are.

Ray's own launcher accepts its files, commands use flags that Ray has, and versions agree. The page
has the rights in Kubernetes that the tests run with.
"""

from __future__ import annotations

import importlib
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import ray
import yaml
from trueload.places.names import K8sPods

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "clusters"
LAUNCHED = ("lab.yaml", "aws.yaml")
PAGE = (ROOT / "docs" / "hosts.md").read_text()


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


def starts_in(line: str) -> list[list[str]]:
    found = re.search(r"(?:^|/|\s)ray start (.*)", line)
    return [shlex.split(found[1])] if found else []


def test_what_ray_is_started_with_are_flags_that_it_has() -> None:
    command = importlib.import_module("ray.scripts.scripts").start
    known = {flag for option in command.params for flag in option.opts}
    found = list(ray_commands())
    assert len(found) == 4
    for name, words in found:
        flags = [word.partition("=")[0] for word in words if word.startswith("--")]
        assert flags, name
        assert set(flags) <= known, name


def test_the_pods_are_those_of_the_place_that_the_file_names() -> None:
    namespace, made = documents("pods.yaml")
    assert (made["apiVersion"], made["kind"]) == ("apps/v1", "StatefulSet")
    assert made["metadata"]["namespace"] == namespace["metadata"]["name"]
    named = K8sPods(namespace["metadata"]["name"], statefulset=made["metadata"]["name"])
    assert f" --place {named.name}\n" in (FOLDER / "pods.yaml").read_text()
    spec = made["spec"]
    pod = spec["template"]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    (rule,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert rule["labelSelector"]["matchLabels"] == spec["selector"]["matchLabels"]
    (container,) = pod["containers"]
    mounts = {mount["name"] for mount in container["volumeMounts"]}
    assert mounts == {volume["name"] for volume in pod["volumes"]}


def test_every_file_names_the_version_of_ray_that_is_locked() -> None:
    (locked,) = re.findall(r"^ray==([0-9.]+)", (ROOT / "requirements-dev.lock").read_text(), re.M)
    for name in LAUNCHED:
        found = re.findall(r"(?:ray:|==)(\d+\.\d+\.\d+)", (FOLDER / name).read_text())
        assert set(found) == {locked}, name


def test_every_file_is_linked_from_the_page() -> None:
    for path in FOLDER.iterdir():
        assert f"(clusters/{path.name})" in PAGE, path.name


def test_the_rights_on_the_page_are_those_that_the_tests_run_with() -> None:
    (shown,) = re.findall(r"(?ms)^```yaml\n(.*?)^```", PAGE)
    assert shown == (ROOT / "tests" / "k8s" / "role.yaml").read_text()
