"""The user's own ``kubectl``, run to its end within a time limit, and its refusals as errors.

How: each call is a process of its own with nothing on its stdin that it could ask. It takes cluster
and user from the current context of the kubeconfig. Its stderr is matched against one table: the
first row with a phrase that occurs decides. If none matches, the user gets its last line.
"""

from __future__ import annotations

import json
import re
from typing import Any

from trueload.errors import UserError
from trueload.places.copying import Copying, run_fed
from trueload.places.host_facts import ScriptResult
from trueload.places.ssh.refusals import Rows, by_rows, last_line

PROGRAM = "kubectl"
INSTALL = "install it and put it on the PATH: https://kubernetes.io/docs/tasks/tools/"
ASK_S = 5.0  # for the API server to answer
END_S = 8.0  # for kubectl to end by itself, with its own words, after that
RBAC = "docs/hosts.md has the Role that trueload needs"
CONTEXTS = "`kubectl config get-contexts` lists what your kubeconfig has; KUBECONFIG names its file"
_PREFIX = re.compile(r'^(error: |Error from server \(\w+\): |error when creating "STDIN": )+')
# Phrases of kubectl and of the API server; what they mean; what to do. `{last}` is the last line.
ROWS: Rows = (
    (("(Forbidden)",), "the cluster refuses: {last}", RBAC),
    (
        (
            *("context was not found", "current-context is not set", "error loading config file"),
            "connection to the server localhost:8080 was refused",  # asked without a kubeconfig
        ),
        "kubectl has no cluster to ask: {last}",
        CONTEXTS,
    ),
    (("(Unauthorized)", "must be logged in"), "the cluster refuses: {last}", CONTEXTS),
    (
        ("statefulsets.apps",),
        "the cluster refuses: {last}",
        "`kubectl get statefulsets --namespace {namespace}` lists those there are",
    ),
    (
        ("namespaces", "is terminating"),
        "the cluster refuses: {last}",
        "name a namespace that exists: k8s:NAMESPACE",
    ),
    (
        ("",),
        "the cluster cannot be asked: {last}",
        "`kubectl get pods --namespace {namespace}` must work",
    ),
)
# Phrases of an API server that may be back soon.
NOT_YET = ("was refused", "connection refused", "Unable to connect", "ServiceUnavailable")


class Kubectl:
    """``kubectl`` for one namespace."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace

    def argv(self, *words: str) -> list[str]:
        """The command line of a call."""
        return [PROGRAM, "--namespace", self.namespace, *words]

    def run(self, *words: str, data: bytes = b"") -> str:
        """Run a call and return what it printed. Raises ``UserError``, a ``HostError`` if that may
        pass."""
        ended = self._end(*words, data=data)
        if ended.code == 0:
            return ended.out
        how = f"took more than {END_S:g} s" if ended.code is None else f"ended with {ended.code}"
        raise self.refusal(ended.err, f"`kubectl {words[0]}` {how}")

    def get(self, kind: str, *words: str) -> dict[str, Any]:
        """Return what the cluster has of a kind. Raises as ``run``."""
        out = self.run("get", kind, *words, "--output", "json")
        try:
            found = json.loads(out)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise UserError(f"`kubectl get {kind}` has not printed JSON", "try it by hand")
        return found

    def may(self, verb: str, resource: str, *more: str) -> bool:
        """Whether the user may do something in the namespace; True if the cluster does not say."""
        return not self._end("auth", "can-i", verb, resource, *more).out.startswith("no")

    def _end(self, *words: str, data: bytes = b"") -> ScriptResult:
        argv = [*self.argv(*words), f"--request-timeout={ASK_S:g}s"]
        return run_fed(argv, data, Copying(), timeout_s=END_S, hint=INSTALL)

    def refusal(self, output: str, otherwise: str = "") -> UserError:
        """The error for a call that has failed, from what it wrote to stderr."""
        return refused(output, self.namespace, otherwise)


def refused(output: str, namespace: str, otherwise: str = "") -> UserError:
    """The error for a text of kubectl's; ``otherwise`` stands for an empty text. Pure."""
    return by_rows(output, own_words(output) or otherwise, ROWS, NOT_YET, namespace=namespace)


def own_words(output: str) -> str:
    """The last line of kubectl's stderr, without what says that it is an error."""
    return _PREFIX.sub("", last_line(output))
