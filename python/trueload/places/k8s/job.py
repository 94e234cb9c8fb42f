"""The Job that is made for a run: made, asked for, and deleted again, however the run ends."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Self

from trueload.errors import UserError
from trueload.places.k8s.kubectl import RBAC, Kubectl

# What is needed once the Job is there. Whether it can be made shows when it is.
RIGHTS = (
    ("list", "pods"),
    ("create", "pods", "--subresource=exec"),
    ("delete", "jobs.batch"),
)


class Job:
    """A Job. A context manager that makes it and deletes it, and says so if that is for an error.
    Raises ``UserError`` if it cannot be made; nothing is if it is known beforehand that its Pods
    would be of no use."""

    def __init__(
        self, kubectl: Kubectl, manifest: Mapping[str, Any], announce: Callable[[str], object]
    ) -> None:
        self.name = str(manifest["metadata"]["name"])
        self._kubectl = kubectl
        self._manifest = manifest
        self._announce = announce

    def __enter__(self) -> Self:
        self._check_rights()
        data = json.dumps(self._manifest).encode()
        try:
            self._kubectl.run("create", "--filename", "-", "--validate=false", data=data)
        except BaseException:
            self._delete()  # without an answer it may be there
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._delete() and kind is not None:
            self._announce(f"the Job {self} has been deleted")

    def __str__(self) -> str:
        return f"{self._kubectl.namespace}/{self.name}"

    def why_gone(self) -> str | None:
        """Why the cluster has ended its Pods; None if it has not."""
        with contextlib.suppress(UserError):
            status = self._kubectl.get("job", self.name).get("status") or {}
            for each in status.get("conditions") or ():
                if each.get("type") in ("Failed", "FailureTarget"):
                    return f"{each.get('reason')}: {each.get('message')}"
        return None

    def _check_rights(self) -> None:
        with ThreadPoolExecutor(len(RIGHTS), "rights") as pool:
            found = list(pool.map(lambda right: self._kubectl.may(*right), RIGHTS))
        for (verb, resource, *sub), is_allowed in zip(RIGHTS, found, strict=True):
            if not is_allowed:
                what = "pods/exec" if sub else resource
                raise UserError(
                    f"the cluster refuses: you cannot {verb} {what} in the namespace"
                    f" {self._kubectl.namespace}",
                    RBAC,
                )

    def _delete(self) -> bool:
        """Delete it, with its Pods; return whether it was there."""
        words = ("delete", "job", self.name, "--wait=false", "--ignore-not-found")
        try:
            return bool(self._kubectl.run(*words).strip())
        except UserError as error:
            command = f"kubectl delete job {self.name} --namespace {self._kubectl.namespace}"
            self._announce(
                f"warning: the Job {self} could not be deleted: {error.message};"
                f" it ends by its deadline, or by `{command}`"
            )
            return False
