"""A Pod as a place, and an engine in it as a channel: what ``exec:`` does, by ``kubectl exec``.

How: the command's own place and channel do the work. Only the end is told differently: the cluster
is asked what became of the Pod, and its words are the reason. If the cluster does not answer, no
Pod is to blame. Asking takes time, so it is done in the channel's own threads.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from trueload.errors import HostError, UserError
from trueload.places import ChannelClosedError, HostGoneError, LinkLostError, Sink
from trueload.places.command import CommandChannel, CommandPlace
from trueload.places.copying import Copying
from trueload.places.k8s.kubectl import own_words
from trueload.places.k8s.pod_list import PodList
from trueload.places.k8s.pods import Pod
from trueload.places.local import LocalChannel
from trueload.places.ssh import scripts

WORDS_S = 3.0  # from the end of a container to the cluster's words on it (kubelet: 1 to 2 s)
LOOK_EVERY_S = 0.3
KILLED = 137  # exit code of what signal 9 has ended
UNKNOWN = "and the cluster gives no reason yet"
ENDED = "command terminated with exit code"
NO_SHELL = "executable file not found"


class PodPlace(CommandPlace):
    """A Pod that runs."""

    def __init__(self, seen: PodList, pod: Pod, *, keep: bool = True) -> None:
        self.seen = seen
        self.pod = pod
        into = ("--container", pod.container, pod.name, "--stdin", "--")
        super().__init__(seen.name_of(pod), seen.kubectl.argv("exec", *into), keep=keep)

    def open(self, argv: Sequence[str]) -> PodChannel:
        """Start a copy of the program ``argv[0]``. Raises ``UserError``, ``OSError``."""
        program = self._ready(self._read(Path(argv[0])), Copying())
        return PodChannel(self, program.kept_name, argv[1:])

    def refusal(self, what: str, output: str = "") -> UserError:
        """The error for a Pod that cannot be used, in kubectl's words."""
        if "(Forbidden)" in output:
            return self.seen.kubectl.refusal(output)
        last = own_words(output)
        if NO_SHELL in output:
            return UserError(
                f"{self.name} has no shell, sh: {last}",
                "use an image that has sh, such as busybox (for Pods that are made: --k8s-image)",
            )
        hint = f"`{shlex.join(self._argv)} true` must work"
        return HostError(f"{self.name} {what}{f': {last}' if last else ''}", hint)

    def _folder_hint(self) -> str:
        return "give its container a writable folder, and name that in TRUELOAD_CACHE"

    def why_lost(
        self, since_s: float, until_s: float, *, silent: bool = False
    ) -> HostGoneError | LinkLostError | None:
        """What the cluster knows of the Pod since a time, asked until it knows or until another;
        None if it knows of nothing. Times are of ``time.monotonic``."""
        try:
            while (why := self.seen.why_lost(self.pod, since_s, silent=silent)) is None:
                if (since_s := time.monotonic()) >= until_s:
                    return None
                time.sleep(LOOK_EVERY_S)
        except UserError as error:
            return LinkLostError(f"the API server of the cluster is gone: {error.message}")
        return self.gone(f"its Pod {why}")

    def gone(self, why: str) -> HostGoneError:
        """The error for the loss of this host."""
        return HostGoneError(f"host {self.name} is lost: {why}")


class PodChannel(CommandChannel):
    """An engine in a Pod."""

    def __init__(self, place: PodPlace, kept_name: str, arguments: Sequence[str]) -> None:
        self._pod_place = place
        self._sink: Sink | None = None
        self._lost: ChannelClosedError | None = None
        self._asking = threading.Lock()
        self._suspected = False
        self._heard_s = time.monotonic()
        super().__init__(place, kept_name, arguments)

    def divert(self, sink: Sink) -> None:
        self._sink = sink
        super().divert(self._hand_on)

    def log_tail(self) -> str:
        """The last part of what it wrote to stderr, without kubectl's own words."""
        lines = super().log_tail().splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith(ENDED))

    def suspect(self) -> bool:
        """Ask the cluster why nothing is heard. Returns True: an error will end the channel."""
        if not self._suspected:
            self._suspected = True
            threading.Thread(target=self._end_silent, name="k8s-why", daemon=True).start()
        return True

    def _hand_on(self, line: bytes | ChannelClosedError) -> None:
        assert self._sink is not None
        self._heard_s = time.monotonic()
        self._sink(line)

    def _end_silent(self) -> None:
        now_s = time.monotonic()
        with self._asking:
            if self._lost is None:
                found = self._pod_place.why_lost(now_s, now_s, silent=True)
                silent = f"no word from its Pod for {now_s - self._heard_s:.1f} s"
                self._lost = found or self._pod_place.gone(f"{silent}, {UNKNOWN}")
        if self._sink is not None:
            self._sink(self._lost)

    def _closed(self, error: ChannelClosedError) -> ChannelClosedError:
        """The error for a channel that has ended, with what the cluster says of its Pod."""
        self._suspected = True  # the reason is being asked for
        with self._asking:
            self._lost = self._lost or self._reason(error)
            return self._lost

    def _reason(self, error: ChannelClosedError) -> ChannelClosedError:
        ended_s = time.monotonic()
        told = super()._closed(error)
        code = LocalChannel.wait(self, 0)
        if code is not None and code >= 0 and scripts.ENDED not in LocalChannel.log_tail(self):
            found = self._pod_place.why_lost(ended_s, ended_s + WORDS_S)
            if found is not None:
                return found
        memory = self._pod_place.pod.memory
        if code != KILLED or memory is None:
            return told
        why = f"signal 9 (SIGKILL), perhaps because memory ran out: its memory limit is {memory}"
        return self._pod_place.gone(f"the engine died: {why}")
