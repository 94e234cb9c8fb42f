"""What a reference server of HTTP does wrong on purpose; ``plan`` has the rest of the protocol."""

from trueload.protocol.model import Model


class Faults(Model):
    """Deliberate faults. Each request meets at most one, drawn from the seed; the shares add up to
    at most 1."""

    seed: int = 0
    error_share: float = 0.0
    """These requests are answered with status 500."""
    reset_share: float = 0.0
    """Instead of an answer, their connection is reset, or over HTTP/2 their stream."""
    stall_share: float = 0.0
    """Their answers are late by ``stall_ns``; a stream stalls half way."""
    stall_ns: int | None = None
    """Null for answers that never come."""
    slow_share: float = 0.0
    """Their bodies come in pieces over ``slow_ns``."""
    slow_ns: int = 0
    cut_share: float = 0.0
    """Their answers end half way."""
    close_after: int | None = None
    """Connections end after so many requests."""
    close_silently: bool = False
    """They end unannounced."""
    work_ns: int = 0
    """CPU time that each request takes besides its answer."""
    refuse_share: float = 0.0
    """Their streams are refused. This and the rest are of HTTP/2."""
    goaway_after: int | None = None
    """GOAWAY comes after so many requests of a connection."""
    stall_window: bool = False
    """The windows of streams are never enlarged."""
    settings_delay_ns: int = 0
    """SETTINGS comes so late, with everything behind it."""

    @property
    def spoil(self) -> bool:
        """Whether anything is done wrong: work alone makes the server slower."""
        return self != Faults(seed=self.seed, work_ns=self.work_ns)
