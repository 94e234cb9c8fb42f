"""What a reference server of HTTP does wrong on purpose; ``plan`` has the rest of the protocol."""

from __future__ import annotations

from trueload.protocol.model import Model


class Faults(Model):
    """Each request meets one fault at most, drawn from the seed; the shares add up to 1 at most.

    Answered with status 500 (``error_share``); a reset instead of an answer (``reset_share``);
    answered ``stall_ns`` late, None for never (``stall_share``); the body in pieces over
    ``slow_ns`` (``slow_share``). Beside them, connections end after ``close_after`` requests,
    announced or not.

    Of HTTP/2 alone: the stream is refused (``refuse_share``); GOAWAY after ``goaway_after``
    requests; windows of streams that stay as they are (``stall_window``); SETTINGS that come
    ``settings_delay_ns`` late, with everything behind them.
    """

    seed: int = 0
    error_share: float = 0.0
    reset_share: float = 0.0
    stall_share: float = 0.0
    stall_ns: int | None = None
    slow_share: float = 0.0
    slow_ns: int = 0
    close_after: int | None = None
    close_silently: bool = False
    refuse_share: float = 0.0
    goaway_after: int | None = None
    stall_window: bool = False
    settings_delay_ns: int = 0
