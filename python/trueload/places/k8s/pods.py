"""What a cluster says of a Pod: whether it runs, and if not, why, in the cluster's own words.

How: the JSON of a Pod or of a node, as ``kubectl get -o json`` prints it, becomes a value or one
phrase. Such a phrase completes "its Pod …". Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from trueload.text import plain

WORDS_MAX = 300  # of the cluster in one of our lines
GONE = "was deleted"
OOM = "OOMKilled"
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
NO_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
# Why a container waits, if it is in vain: the image, or what it is to run, must be another first.
HOPELESS = (
    *NO_IMAGE,
    *("CreateContainerConfigError", "CreateContainerError", "RunContainerError", "StartError"),
)
# Reasons of the condition DisruptionTarget (k8s.io/api/core/v1), and what they are called.
DISRUPTIONS = {
    "EvictionByEvictionAPI": "was evicted",
    "PreemptionByScheduler": "was preempted",
    "TerminationByKubelet": "was evicted",
    "DeletionByTaintManager": "was evicted",
    "DeletionByPodGC": "was deleted",
}


@dataclass(frozen=True)
class Pod:
    """A Pod. ``runs``: its container can be used. ``fault`` says why it cannot, or not for long;
    it is ``hopeless`` if waiting will not help,
    and the Pod ``is_over`` if it has ended for good. ``killed`` is how its container ended the last
    time, if it was started again. ``ready`` is false if the cluster takes its node for lost.
    ``cpus`` and ``memory`` are the limits of the container, None where there are none."""

    name: str
    uid: str
    container: str
    runs: bool
    node: str | None = None
    fault: str | None = None
    hopeless: bool = False
    is_over: bool = False
    restarts: int = 0
    killed: str | None = None
    ready: bool = True
    cpus: float | None = None
    memory: str | None = None


@dataclass(frozen=True)
class _Raw:
    """The parts of a Pod's JSON that are looked at more than once."""

    meta: Mapping[str, Any]
    spec: Mapping[str, Any]
    status: Mapping[str, Any]
    container: Mapping[str, Any]
    state: Mapping[str, Any] = field(default_factory=dict)
    """The status of the container."""

    @property
    def conditions(self) -> dict[str, Mapping[str, Any]]:
        return {each.get("type", ""): each for each in self.status.get("conditions") or ()}

    @property
    def limits(self) -> Mapping[str, Any]:
        return (self.container.get("resources") or {}).get("limits") or {}


def parse_pod(found: Mapping[str, Any]) -> Pod:
    raw = _split(found)
    state, fault = raw.state.get("state") or {}, _fault(raw)
    reason = next((each.get("reason") for each in state.values() if each), None)
    conditions = raw.conditions
    return Pod(
        name=str(raw.meta.get("name")),
        uid=str(raw.meta.get("uid")),
        container=str(raw.container.get("name", "")),
        runs=fault is None and "running" in state,
        node=raw.spec.get("nodeName"),
        fault=fault,
        hopeless=reason in HOPELESS,
        is_over=raw.status.get("phase") in ("Failed", "Succeeded"),
        restarts=int(raw.state.get("restartCount") or 0),
        killed=_ended(raw, (raw.state.get("lastState") or {}).get("terminated")),
        # A node that is lost takes this from a Pod, and leaves its containers ready.
        ready=not _is(conditions, "Ready", "False") or _is(conditions, "ContainersReady", "False"),
        cpus=parse_cpus(raw.limits.get("cpu")),
        memory=raw.limits.get("memory"),
    )


def why_lost(then: Pod, now: Pod | None) -> str | None:
    """How a Pod that ran ``then`` was lost by ``now``, as a phrase; None if the cluster knows of
    nothing. Absent or replaced by another of its name, it was deleted."""
    if now is None:
        return GONE
    if now.uid != then.uid:
        return "was deleted, and another has its name now"
    if now.restarts > then.restarts and now.killed is not None:
        return f"{now.killed}, and was started again"
    return now.fault


def why_node(found: Mapping[str, Any]) -> str | None:
    """Why a node is not ready, from its JSON, as a phrase; None if it is ready."""
    conditions = (found.get("status") or {}).get("conditions") or ()
    ready: Mapping[str, Any] = next((c for c in conditions if c.get("type") == "Ready"), {})
    if ready.get("status") in ("True", None):
        return None
    name = (found.get("metadata") or {}).get("name")
    return f"is on the node {name}, which is not ready{_words(ready.get('message'))}"


def parse_cpus(quantity: object) -> float | None:
    """A number of CPUs from a quantity such as ``500m`` or ``2``; None if there is none."""
    text = str(quantity)
    try:
        return float(text.removesuffix("m")) / (1000 if text.endswith("m") else 1)
    except ValueError:
        return None


def _split(found: Mapping[str, Any]) -> _Raw:
    meta, spec = found.get("metadata") or {}, found.get("spec") or {}
    status, containers = found.get("status") or {}, spec.get("containers") or [{}]
    wanted = (meta.get("annotations") or {}).get(DEFAULT_CONTAINER)
    container = next((each for each in containers if each.get("name") == wanted), containers[0])
    states = status.get("containerStatuses") or ()
    name = container.get("name")
    state: Mapping[str, Any] = next((each for each in states if each.get("name") == name), {})
    return _Raw(meta, spec, status, container, state)


def _fault(raw: _Raw) -> str | None:
    """Why a Pod does not run, or not for long."""
    status, conditions = raw.status, raw.conditions
    if status.get("reason") == "Evicted":
        return f"was evicted{_words(status.get('message'))}"
    if _is(conditions, "DisruptionTarget", "True"):
        found = conditions["DisruptionTarget"]
        reason = str(found.get("reason"))
        return DISRUPTIONS.get(reason, f"is disrupted ({reason})") + _words(found.get("message"))
    state = raw.state.get("state") or {}
    terminated = state.get("terminated") or {}
    # What is deleted ends by a signal, and a Job keeps it for a while. That ends nothing else.
    if "deletionTimestamp" in raw.meta and terminated.get("reason") != OOM:
        return GONE
    if (ended := _ended(raw, state.get("terminated"))) is not None:
        return ended
    if (waiting := state.get("waiting")) is not None:
        return _waits(raw, waiting)
    if _is(conditions, "PodScheduled", "False"):
        return f"is pending{_words(conditions['PodScheduled'].get('message'))}"
    phase = status.get("phase")
    if phase == "Running" and "running" in state:
        return None
    why = _words(status.get("message") or status.get("reason"))
    return f"is {str(phase).lower()}{why}"


def _ended(raw: _Raw, found: Mapping[str, Any] | None) -> str | None:
    if found is None:
        return None
    reason, code = found.get("reason") or "Error", found.get("exitCode")
    if reason == OOM:
        limit = raw.limits.get("memory")
        return "was OOMKilled" + (f": its memory limit is {limit}" if limit else "")
    message = _words(found.get("message"))
    return f"ended with exit code {code} ({reason}){message}"


def _waits(raw: _Raw, waiting: Mapping[str, Any]) -> str:
    reason, message = waiting.get("reason") or "waiting", _words(waiting.get("message"))
    if reason in NO_IMAGE:
        return f"has no image, {raw.container.get('image')} ({reason}){message}"
    if reason == "ContainerCreating":
        return f"is being created{message}"
    return f"does not start ({reason}){message}"


def _is(conditions: Mapping[str, Mapping[str, Any]], kind: str, status: str) -> bool:
    return conditions.get(kind, {}).get("status") == status


def _words(message: object) -> str:
    """The cluster's own words, behind a colon."""
    text = " ".join(plain(str(message or ""), WORDS_MAX).split()).rstrip(".")
    return f": {text}" if text else ""
