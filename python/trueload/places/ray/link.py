"""The way to the hosts of a cluster, which they share, and what is to blame if one is silent.

How: through ``ray://`` every message goes by the head. If the connection to it breaks, or if no
host answers any more, no host is to blame. Every host that is listened to answers twice a second,
so one that is silent alone is lost itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from trueload.deadline import within
from trueload.errors import HostError, UserError
from trueload.places import HostGoneError, WayGoneError

Answer = TypeVar("Answer")
FRESH_S = 1.0  # a host whose last answer is younger is there
CLIENT_BROKE = ("Ray Client is not connected", "release unlocked lock")
"""What Ray's client says after the connection broke, and while it breaks."""
BROKEN = "the connection to its head broke"
SILENT = "none of its hosts answers"
NO_HEAD = "its head cannot be reached"
HINT = "`ray status` on the head says whether it runs, and which hosts the cluster has"


class Way:
    """The hosts that are listened to, and when each was last heard. ``reaches_head`` is asked if
    there is only one host, which has nobody to be compared with."""

    def __init__(self, cluster: str, reaches_head: Callable[[], bool] = lambda: True) -> None:
        self._cluster = cluster
        self._reaches_head = reaches_head
        self._heard_s: dict[str, float] = {}
        self.lost: str | None = None
        """How the way was lost, if it was."""

    def heard(self, host: str) -> None:
        """Note that a host that is listened to has answered."""
        self._heard_s[host] = time.monotonic()

    def forget(self, host: str) -> None:
        """Expect no more answers of a host."""
        self._heard_s.pop(host, None)

    def blame(self, host: str, error: Exception, why: str) -> HostGoneError | WayGoneError:
        """The error for a host whose call failed: it is the host's fault, or the way's."""
        others_s = [heard_s for name, heard_s in self._heard_s.copy().items() if name != host]
        broken = why_way(error, others_s, time.monotonic(), self._reaches_head)
        if broken is None:
            return HostGoneError(f"host {host} is lost: {why}")
        return WayGoneError(self._lose(broken))

    def ask_head(self, seconds: float, work: Callable[..., Answer], *arguments: Any) -> Answer:
        """Call ``work``, which asks the head. Raises ``HostError``, which names the cluster, if
        that fails or takes longer: Ray enforces no time limit of its own on a head that is lost."""
        try:
            return within(seconds, work, *arguments)
        except UserError:
            raise
        except TimeoutError as error:
            raise HostError(self._lose(f"no answer for {seconds:g} s"), HINT) from error
        except Exception as error:  # Ray raises its own kinds, and those of its transport
            if why_way(error, [], 0.0, self._reaches_head) == BROKEN:
                raise HostError(self._lose(BROKEN), HINT) from error
            raise HostError(f"{self._cluster} says: {first_line(error)}", HINT) from error

    def _lose(self, how: str) -> str:
        self.lost = self.lost or f"{self._cluster} is lost: {how}"
        return self.lost


def why_way(
    error: Exception, others_s: list[float], now_s: float, reaches_head: Callable[[], bool]
) -> str | None:
    """What broke on the way, if that made a call fail; None if the host itself did. ``others_s`` is
    when each other host was last heard."""
    is_transport = isinstance(error, ConnectionError) or type(error).__module__.startswith("grpc")
    if is_transport or any(words in str(error) for words in CLIENT_BROKE):
        return BROKEN
    if not isinstance(error, TimeoutError):
        return None
    if others_s:
        return None if any(now_s - each < FRESH_S for each in others_s) else SILENT
    return None if reaches_head() else NO_HEAD


def first_line(error: Exception) -> str:
    """The first line of what Ray says, printable and cut; the kind of error if it says nothing."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "".join(c for c in lines[0] if c.isprintable())[:200] if lines else type(error).__name__
