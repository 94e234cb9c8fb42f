"""Manifests of what tests put into the cluster."""

from __future__ import annotations

from typing import Any

LABELS = {"app": "generator"}


def _template(image: str, cpu: str, memory: str, policy: str) -> dict[str, Any]:
    resources = {"limits": {"cpu": cpu, "memory": memory}, "requests": {"cpu": cpu}}
    container = {
        "name": "generator",
        "image": image,
        "command": ["sleep", "infinity"],
        "resources": resources,
    }
    return {"restartPolicy": policy, "containers": [container]}


def generator(
    name: str, *, image: str = "busybox", cpu: str = "1", memory: str = "512Mi"
) -> dict[str, Any]:
    """A Pod on its own that is not started again."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": LABELS},
        "spec": _template(image, cpu, memory, "Never"),
    }


def statefulset(name: str, replicas: int, *, cpu: str = "1") -> dict[str, Any]:
    """A StatefulSet whose Pods sleep."""
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "serviceName": name,
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": LABELS},
            "template": {
                "metadata": {"labels": LABELS},
                "spec": _template("busybox", cpu, "512Mi", "Always"),
            },
        },
    }


def job(name: str, pods: int, *, image: str = "busybox", namespace: str = "load") -> dict[str, Any]:
    """An Indexed Job of sleeping Pods, one on a node."""
    alone = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"job-name": name}},
    }
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [alone]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "completions": pods,
            "parallelism": pods,
            "completionMode": "Indexed",
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": LABELS},
                "spec": _template(image, "1", "512Mi", "Never") | {"affinity": affinity},
            },
        },
    }
