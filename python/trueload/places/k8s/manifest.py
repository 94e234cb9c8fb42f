"""The Job of sleeping Pods that trueload makes, as ``kubectl create -f -`` takes it. Pure."""

from __future__ import annotations

from typing import Any

from trueload.units import NS_PER_S

LABEL = "app.kubernetes.io/name"
OURS = "trueload"
INSTANCE = "app.kubernetes.io/instance"
CONTAINER = "generator"
FOLDER = "/trueload"
HOSTNAME = "kubernetes.io/hostname"
# The shell is the first process, which gets no signal that it does not ask for. What ends by a
# signal has failed, so that the Pod is replaced.
SLEEP = "trap 'exit 143' TERM INT; while :; do sleep 3600 & wait $!; done"
KEPT_S = 60  # a Job that has ended is removed after so long
GRACE_S = 5  # for the shell to end
NOBODY = 65532  # a user without rights, as distroless images have it
UNKNOWN_S = 24 * 3600  # for what has no planned length
MARGIN, MARGIN_S = 2, 15 * 60
"""By judgement: connecting, draining and settling come on top, and builds of a suite."""


def deadline_s(planned_ns: int | None, wait_ns: int) -> int:
    """Return after how many seconds the cluster ends the Pods of whatever is to last so long, and
    may wait so long for hosts. A front that lives has ended them before."""
    if planned_ns is None:
        return UNKNOWN_S
    return (MARGIN * planned_ns + wait_ns) // NS_PER_S + MARGIN_S


def manifest(name: str, image: str, hosts: int, cpus: int, ends_s: int) -> dict[str, Any]:
    """Return an Indexed Job of ``hosts`` Pods, each on a node of its own, for an engine of ``cpus``
    threads.

    Each Pod is guaranteed so many CPUs, and may use one more. It has no rights: it fulfils the Pod
    Security Standard "restricted". A Pod that fails is replaced without being counted; by
    ``backoffLimit: 0`` alone the first to fail would end the others.
    """
    labels = {LABEL: OURS, INSTANCE: name}
    ignored = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": [0]}},
    ]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "completionMode": "Indexed",
            "completions": hosts,
            "parallelism": hosts,
            "backoffLimit": 0,
            "podFailurePolicy": {"rules": ignored},
            "activeDeadlineSeconds": ends_s,
            "ttlSecondsAfterFinished": KEPT_S,
            "template": {"metadata": {"labels": labels}, "spec": _pod(image, cpus)},
        },
    }


def _pod(image: str, cpus: int) -> dict[str, Any]:
    apart = {"labelSelector": {"matchLabels": {LABEL: OURS}}, "topologyKey": HOSTNAME}
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": GRACE_S,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        "affinity": {
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
        },
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "fsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": CONTAINER,
                "image": image,
                "command": ["sh", "-c", SLEEP],
                "env": [{"name": "TRUELOAD_CACHE", "value": FOLDER}],
                "resources": {"requests": {"cpu": str(cpus)}, "limits": {"cpu": str(cpus + 1)}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
                "volumeMounts": [{"name": "programs", "mountPath": FOLDER}],
            }
        ],
        "volumes": [{"name": "programs", "emptyDir": {}}],
    }
