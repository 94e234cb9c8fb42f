"""What is known of the Pods of a place: one list for all of them, fetched when somebody asks.

How: whoever needs a newer list than there is fetches it, and the others use it too. So hosts that
are lost together cost one call.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from trueload.errors import UserError
from trueload.places.k8s.kubectl import Kubectl
from trueload.places.k8s.pods import GONE, Pod, parse_pod, why_lost, why_node


class PodList:
    """The Pods of a namespace with a label selector. ``why_gone`` says more of Pods that were
    deleted, if it can."""

    def __init__(
        self, kubectl: Kubectl, selector: str, why_gone: Callable[[], str | None] = lambda: None
    ) -> None:
        self.kubectl = kubectl
        self._selector = selector
        self._why_gone = why_gone
        self._pods: dict[str, Pod] = {}
        self._seen_s = self._failed_s = float("-inf")
        self._failure: UserError | None = None
        self._lock = threading.Lock()

    def name_of(self, pod: Pod) -> str:
        return f"{self.kubectl.namespace}/{pod.name}"

    def look(self, since_s: float) -> dict[str, Pod]:
        """The Pods by name, as they were at a time of ``time.monotonic`` or later. Raises
        ``UserError``."""
        with self._lock:
            if self._failure is not None and self._failed_s >= since_s:
                raise self._failure  # who asks meanwhile need not wait for another one
            if self._seen_s < since_s:
                asked_s = time.monotonic()
                try:
                    found = self.kubectl.get("pods", "--selector", self._selector)
                except UserError as error:
                    self._failed_s, self._failure = time.monotonic(), error
                    raise
                pods = map(parse_pod, found.get("items") or ())
                self._pods = {pod.name: pod for pod in pods}
                self._seen_s = asked_s
            return self._pods

    def why_lost(self, then: Pod, since_s: float, *, silent: bool) -> str | None:
        """How a Pod was lost, as a phrase; None if the cluster knows of nothing. The node of one
        that is ``silent`` is asked for, too. Raises ``UserError`` if there is no answer."""
        now = self.look(since_s).get(then.name)
        why = why_lost(then, now)
        if why == GONE and (more := self._why_gone()) is not None:
            return f"{why}: {more}"
        if why is None and then.node is not None and now is not None and (silent or not now.ready):
            try:
                return why_node(self.kubectl.get("node", then.node))
            except UserError:  # without the right to see nodes, the Pod tells
                return None if now.ready else f"is not ready, perhaps for its node {then.node}"
        return why
