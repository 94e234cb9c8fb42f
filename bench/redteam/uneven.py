"""Attacks on what a window cuts: replays that end in a burst, clocks of logs, streams."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from redteam.demands import Answer, Demand, Seen, is_close
from redteam.scenes import with_truth
from redteam.stage import Stage, adversary, command
from servers import by_command
from setting import SERVER_CPU, find_setting

LOG_LINE = '192.0.2.1 - - [27/Nov/2026:{:02}:{:02}:{:02} +0000] "GET / HTTP/1.1" 200 13'
NOON_S = 12 * 3_600


def burst(before: int, span_s: float, at_once: int, first: bool = False) -> tuple[str, ...]:
    """JSON lines: so many requests, evenly over a span, and then, or first, some at once."""
    evenly = [span_s * number / before for number in range(before)]
    times = [0.0] * at_once + evenly if first else evenly + [span_s] * at_once
    return tuple(json.dumps({"at": at, "path": "/"}) for at in times)


def set_back(per_s: int, seconds: int, by_s: int) -> tuple[str, ...]:
    """Lines of an access log whose clock is set back in the middle."""
    whole = [second for second in range(seconds) for _ in range(per_s)]
    times = [second - by_s * (second >= seconds // 2) for second in whole]
    return tuple(
        LOG_LINE.format(at // 3_600, at // 60 % 60, at % 60)
        for at in (NOON_S + second for second in times)
    )


@dataclass(frozen=True)
class Replayed:
    """`trueload http --replay` of these lines, against `server.c` with these options."""

    server: str
    lines: Sequence[str]
    flags: str

    def play(self, stage: Stage) -> Seen:
        """Run both."""
        path = stage.folder / "recording"
        path.write_text("\n".join(self.lines) + "\n")
        with adversary(stage, self.server.split()) as server:
            words = ("--no-save", "--replay", str(path), *self.flags.split())
            with command(stage, "http", server.url, *words) as running:
                return with_truth(running, server)


@dataclass(frozen=True)
class Streamed:
    """Streams of so many parts, one every so many ms, of the reference server."""

    parts: int
    gap_ms: int
    flags: str

    def play(self, stage: Stage) -> Seen:
        """Run it; the truth follows from the server's schedule."""
        with by_command("the reference server", find_setting(), SERVER_CPU) as server:
            url = f"http://127.0.0.1:{server.port}/stream/{self.parts}/{self.gap_ms}"
            words = ("http", url, "--no-save", "--stream", "sse", "--stream-end", "[DONE]")
            with command(stage, *words, *self.flags.split()) as running:
                return running.seen()


def parts_per_s(true: float) -> Demand:
    """Require so many parts of streams per second."""

    def demand(seen: Seen) -> Answer:
        found = seen.result["streams"]["parts_per_s"]
        shown = "none" if found is None else f"{found:.4g} parts/s"
        return Answer(is_close(found, true, 0.03), f"{true:.4g} parts/s", shown)

    return demand
