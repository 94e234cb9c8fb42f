"""What a reference server of HTTP does wrong on purpose; ``plan`` has the rest of the protocol."""

from __future__ import annotations

from trueload.protocol.model import Model


class Faults(Model):
    """Deliberate faults. Each request meets at most one, drawn from the seed; the shares add up to
    at most 1.

    ``error_share``: status 500. ``reset_share``: a reset instead of an answer. ``stall_share``: the
    answer is ``stall_ns`` late, or never comes if that is None. ``slow_share``: the body comes in
    pieces over ``slow_ns``. ``cut_share``: the answer ends half way. A stream stalls and is cut
    half way. Besides, connections end after ``close_after`` requests, announced or not, and each
    request takes ``work_ns`` of CPU time beside its answer.

    For HTTP/2 only. ``refuse_share``: the stream is refused. ``goaway_after``: GOAWAY after so many
    requests. ``stall_window``: the windows of streams are never enlarged. ``settings_delay_ns``:
    SETTINGS comes late, with everything behind it.
    """

    seed: int = 0
    error_share: float = 0.0
    reset_share: float = 0.0
    stall_share: float = 0.0
    stall_ns: int | None = None
    slow_share: float = 0.0
    slow_ns: int = 0
    cut_share: float = 0.0
    close_after: int | None = None
    close_silently: bool = False
    work_ns: int = 0
    refuse_share: float = 0.0
    goaway_after: int | None = None
    stall_window: bool = False
    settings_delay_ns: int = 0

    @property
    def spoil(self) -> bool:
        """Whether anything is done wrong: work alone makes the server slower."""
        return self != Faults(seed=self.seed, work_ns=self.work_ns)
