"""The Pods of a place: those that are there, or those of a Job that is made for the run.

How: Pods are found by their labels, which for a StatefulSet are those of its selector. Pods that do
not run yet are waited for, with what the cluster says of them.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from trueload.closeable import Closeable
from trueload.errors import HostError, UserError
from trueload.grouping import grouped
from trueload.places.host_wait import HostWait
from trueload.places.k8s.channel import PodPlace
from trueload.places.k8s.job import Job
from trueload.places.k8s.kubectl import Kubectl
from trueload.places.k8s.manifest import INSTANCE, deadline_s, manifest
from trueload.places.k8s.pod_list import PodList
from trueload.places.k8s.pods import Pod
from trueload.places.names import K8sPods, NewPods
from trueload.text import by_number, listed
from trueload.units import counted

NAME_CHARS = "bcdfghjklmnpqrstvwxz2456789"  # as Kubernetes' own names have: they spell no words
NAME_LENGTH = 6
OLD_S = 3.0  # how old the list may be in which a Pod that joins is looked for


class Reservation(Closeable):
    """Pods that run, and those that may come later; ``most`` of them at a time."""

    def __init__(self, seen: PodList, most: int | None, *, keep: bool) -> None:
        self._seen = seen
        self._most = most
        self._keep = keep
        self._places: list[PodPlace] = []
        self._lock = threading.Lock()

    def take(self, count: int | None, since_s: float) -> list[PodPlace]:
        """Take so many Pods that run and that nobody has; None is all. They are fewer if there are
        not so many, or if as many as may be run already. Raises ``UserError``."""
        with self._lock:
            pods = self._seen.look(since_s).values()
            taken = {place.pod.uid for place in self._places}
            free = sorted((pod for pod in pods if pod.runs and pod.uid not in taken), key=by_name)
            if self._most is not None:
                living = sum(pod.runs and pod.uid in taken for pod in pods)
                free = free[: max(0, self._most - living)]
            found = [PodPlace(self._seen, pod, keep=self._keep) for pod in free[:count]]
            self._places += found
            return found

    def one_more(self) -> PodPlace:
        """Take one more Pod. Raises ``HostError`` as long as there is none."""
        for place in self.take(1, time.monotonic() - OLD_S):
            return place
        raise HostError("no other Pod is running", "`kubectl get pods` lists the Pods")

    def close(self) -> None:
        """Remove the copies that are not to be kept."""
        for place in self._places:
            place.close()


@dataclass(frozen=True)
class PodRequest:
    """The Pods that are asked for. ``least`` of them must run; None is as many as run. ``nothing``
    is the error if there are none. ``replicas``: how many a StatefulSet is to have."""

    seen: PodList
    least: int | None
    nothing: UserError
    replicas: int = 0
    are_made: bool = False

    def expected(self, pods: Sequence[Pod], *, is_patient: bool) -> int:
        """How many must run; all that are to run, if they are waited for."""
        if self.least is not None:
            return self.least
        return max(1, self.replicas, sum(not pod.is_over for pod in pods)) if is_patient else 1

    def why(self, pods: Sequence[Pod], here: int) -> UserError:
        """Why there are no more Pods than ``here``: what the cluster says of one that does not run.
        A ``HostError`` if that may pass."""
        faulty = [pod for pod in pods if not pod.runs]
        if not faulty and here:
            return HostError(f"no other Pod is there than {here} that run", self.nothing.hint)
        if not faulty:
            return self.nothing
        pod = min(faulty, key=lambda pod: (not pod.hopeless, pod.is_over, by_name(pod)))
        why = f"the Pod {self.seen.name_of(pod)} {pod.fault}"
        if self.are_made and pod.hopeless:
            return UserError(why, "name an image with sh that the cluster can have: --k8s-image")
        return HostError(why, "`kubectl describe pod` says more; --hosts-wait waits longer")


def reserve(
    named: K8sPods,
    counts: tuple[int | None, int | None],
    new: NewPods,
    stack: contextlib.ExitStack,
    *,
    keep: bool = True,
    wait: HostWait | None,
    announce: Callable[[str], object],
) -> tuple[Reservation, list[PodPlace]]:
    """Return the Pods of a place: those that run, at least and at most as many as ``counts`` says.
    With ``wait``, those that do not run yet are waited for. The stack deletes what was made.
    Raises ``UserError``."""
    least, most = counts
    kubectl = Kubectl(named.namespace)
    if named.are_made:
        job = stack.enter_context(Job(kubectl, make_manifest(named, most or 1, new), announce))
        asked = _of_job(
            job, PodList(kubectl, f"{INSTANCE}={job.name}", job.why_gone), least or most
        )
    else:
        asked = _found(kubectl, named, least or most)
    pods = await_pods(asked, wait)
    # The copies in a Pod that is made end with it.
    reservation = Reservation(asked.seen, most, keep=keep or named.are_made)
    stack.push(reservation)
    places = reservation.take(None, 0.0)
    if least is None and most is None:
        for pod in sorted((pod for pod in pods if not (pod.runs or pod.is_over)), key=by_name):
            announce(f"note: {asked.seen.name_of(pod)} takes no part: its Pod {pod.fault}")
    for line in (*on_one_node(places), *held(places, new.threads)):
        announce(f"warning: {line}")
    return reservation, places


def await_pods(asked: PodRequest, wait: HostWait | None) -> Sequence[Pod]:
    """Return the Pods once enough of them run. Raises ``UserError``."""
    while True:
        pods = list(asked.seen.look(time.monotonic()).values())
        here = sum(pod.runs for pod in pods)
        expected = asked.expected(pods, is_patient=wait is not None)
        if here >= expected:
            return pods
        error = asked.why(pods, here)
        if wait is None or not isinstance(error, HostError):
            raise error
        if not wait.again(here, expected, error.message):
            raise wait.too_late(here, expected, error)


def make_manifest(named: K8sPods, hosts: int, new: NewPods) -> dict[str, Any]:
    """Return the manifest of a Job with a name that no other has."""
    name = "trueload-" + "".join(secrets.choice(NAME_CHARS) for _ in range(NAME_LENGTH))
    ends_s = deadline_s(new.planned_ns, new.wait_ns)
    found = manifest(name, new.image, hosts, new.threads, ends_s)
    found["metadata"]["namespace"] = named.namespace
    return found


def on_one_node(places: Sequence[PodPlace]) -> Iterator[str]:
    """Yield a line for each node that has several of the Pods. Pure."""
    for node, there in grouped(places, attrgetter("pod.node")).items():
        if node is not None and len(there) > 1:
            names = listed([place.name for place in there])
            yield f"{names} are on the same node, {node}, and take its CPUs from each other"


def held(places: Sequence[PodPlace], threads: int) -> Iterator[str]:
    """Yield a line if the CPU limits of Pods hold engines of so many threads. Pure."""
    tight = [place for place in places if (place.pod.cpus or threads) < threads]
    if tight:
        cpus = min(place.pod.cpus or 0 for place in tight)
        names = listed([place.name for place in tight])
        needs = counted(threads, "thread")
        yield f"the CPU limit of {names} is {cpus:g}, and an engine has {needs}"


def by_name(pod: Pod) -> list[tuple[int, str]]:
    return by_number(pod.name)


def _of_job(job: Job, seen: PodList, least: int | None) -> PodRequest:
    nothing = HostError(
        f"the cluster has made no Pod of the Job {job} yet",
        f"`kubectl describe job {job.name}` says why, if there is a quota for example",
    )
    return PodRequest(seen, least, nothing, are_made=True)


def _found(kubectl: Kubectl, named: K8sPods, least: int | None) -> PodRequest:
    listing = f"`kubectl get pods --namespace {named.namespace} --show-labels` lists the Pods"
    if named.statefulset is None:
        what = f"no Pod in the namespace {named.namespace} has the labels {named.selector}"
        return PodRequest(PodList(kubectl, named.selector or ""), least, HostError(what, listing))
    found = kubectl.get("statefulset", named.statefulset).get("spec") or {}
    what = f"the StatefulSet {named.namespace}/{named.statefulset} has no Pod"
    nothing = HostError(what, "scale it up: `kubectl scale statefulset`")
    replicas = int(found.get("replicas") or 0)
    return PodRequest(
        PodList(kubectl, selector_of(found.get("selector") or {})), least, nothing, replicas
    )


def selector_of(found: Mapping[str, Any]) -> str:
    """The selector of a set as kubectl takes it. Pure."""
    parts = [f"{key}={value}" for key, value in (found.get("matchLabels") or {}).items()]
    for each in found.get("matchExpressions") or ():
        key, operator, values = each["key"], each["operator"], ",".join(each.get("values") or ())
        forms = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        parts.append(forms[operator])
    return ",".join(parts)
