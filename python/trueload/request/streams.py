"""What the options of streamed answers mean. Pure."""

from __future__ import annotations

from trueload.errors import UserError
from trueload.protocol.option import flag_of
from trueload.protocol.request_options import StreamKind, StreamOptions
from trueload.protocol.streams import EndContent, EndEvent, StreamEnd, StreamPlan

BODY = "body"
EVENT = "event:"
WITHOUT_BODY = "HEAD"


def make_stream(given: StreamOptions) -> StreamPlan | None:
    """Return how answers are read; None if they are no streams. Raises ``UserError``."""
    if given.stream is None:
        for flag in map(flag_of, given.given):
            raise UserError(
                f"{flag} does nothing without --stream", "add --stream sse, chunks or jsonl"
            )
        return None
    end = _end(given.stream, given.stream_end)
    return StreamPlan(kind=given.stream, end=end, stall_ns=given.stall_ns)


def check_methods(stream: StreamPlan | None, methods: set[str]) -> None:
    """Refuse a request whose answer has no body. Raises ``UserError``."""
    if stream is not None and WITHOUT_BODY in methods:
        raise UserError(
            "--stream needs answers with a body, and HEAD has none", "use another method"
        )


def _end(kind: StreamKind, text: str | None) -> StreamEnd | None:
    if text is None or text == BODY:
        return None
    if not text.startswith(EVENT):
        if not text:
            raise UserError("--stream-end is empty", "write for example --stream-end '[DONE]'")
        return EndContent(text=text)
    name = text.removeprefix(EVENT)
    if not name or not name.isprintable():
        raise UserError(
            f"--stream-end {text!r} names no event", "write for example --stream-end event:done"
        )
    if kind != "sse":
        raise UserError(
            f"--stream-end {text} needs --stream sse; {kind} have no events",
            "name the content of the last part, or leave --stream-end out",
        )
    return EndEvent(name=name)
