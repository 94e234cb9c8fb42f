"""What a real engine reported in one window, kept so that stand-ins can replay it.

It can be scaled to a multiple of the load: every count, bucket by bucket. Pure, but for `record`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from engine import Work, phase_of, plan_of
from trueload import hdr
from trueload.deadline import seconds_left
from trueload.engines.engine import Engine, EngineError
from trueload.engines.merge import merge_connections, merge_slots
from trueload.protocol.packed import PackedCounts
from trueload.protocol.plan import (
    Error,
    FromEngine,
    Hello,
    LoadPlan,
    Measurement,
    PhaseDone,
    PhaseStarted,
    Ready,
    parse_from_engine,
    to_json,
)
from trueload.protocol.sums import add_up
from trueload.protocol.tick import Second, Tick
from trueload.trial.spec import CLOSED
from trueload.units import NS_PER_S

SLACK_S = 10.0


@dataclass(frozen=True)
class Recording:
    """The lines that matter; the times of `ticks` and `done` count from the start of the window."""

    hello: Hello
    ready: Ready
    ticks: tuple[Tick, ...]
    done: PhaseDone

    @property
    def measurement(self) -> Measurement:
        """The measurement of the window."""
        return self.done.measurement

    def save(self, path: Path) -> None:
        """Write it to a file as lines of the protocol."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lines: list[FromEngine] = [self.hello, self.ready, *self.ticks, self.done]
        path.write_bytes(b"".join(map(line_of, lines)))


def line_of(message: FromEngine) -> bytes:
    """Return the line as an engine writes it, with packed latencies."""
    fields = to_json(message)
    if isinstance(message, Tick):
        fields |= {name: packed_of(fields[name]) for name in ("latency", "service")}
    if isinstance(message, PhaseDone):
        for second in fields["measurement"]["series"]:
            second["latency"] = packed_of(second["latency"])
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def packed_of(counts: Mapping[str, int]) -> str:
    """Return a sparse histogram, which people read as an object, as an engine writes it."""
    return PackedCounts({int(index): count for index, count in counts.items()}).as_base64()


def load(path: Path) -> Recording:
    """Read what `save` wrote. Raises `OSError`, `ValueError`."""
    return recording_of([parse_from_engine(line) for line in path.read_bytes().splitlines()])


def recording_of(messages: list[FromEngine]) -> Recording:
    """Sort the lines into a recording. Raises `ValueError` when one is missing."""
    hello, ready, *ticks, done = messages
    if not (isinstance(hello, Hello) and isinstance(ready, Ready) and isinstance(done, PhaseDone)):
        raise ValueError("a recording is hello, ready, ticks and phase_done")
    return Recording(hello, ready, tuple(tick for tick in ticks if isinstance(tick, Tick)), done)


def record(work: Work, load_plan: LoadPlan = CLOSED) -> Recording:
    """Record one window of a real engine. Raises `EngineError`, `UserError`."""
    window = phase_of(work.duration_s, load_plan)
    messages: list[FromEngine] = []
    started_ns = 0
    with Engine.start() as engine:
        messages.append(engine.hello)
        engine.send(plan_of(work))
        engine.send(window)
        for message in _received(engine, work.duration_s + SLACK_S):
            match message:
                case Error():
                    raise EngineError("engine", message.message)
                case PhaseStarted():
                    started_ns = message.at_ns
                case Tick() if message.id == window.id:
                    messages.append(
                        message.model_copy(update={"at_ns": message.at_ns - started_ns})
                    )
                case Ready():
                    messages.append(message)
                case PhaseDone():
                    return recording_of([*messages, _from_its_start(message)])
                case _:
                    pass
    raise EngineError("silent", "the engine did not end its window")


def _received(engine: Engine, seconds: float) -> Iterator[FromEngine]:
    deadline_s = time.monotonic() + seconds
    while seconds_left(deadline_s) > 0:
        if (message := engine.receive(seconds_left(deadline_s))) is not None:
            yield message


def _from_its_start(done: PhaseDone) -> PhaseDone:
    found = done.measurement
    moved = {"started_ns": 0, "began_ns": found.began_ns - found.started_ns}
    return done.model_copy(update={"measurement": found.model_copy(update=moved)})


def scaled(recording: Recording, times: int) -> Recording:
    """Return the recording of `times` times the load: every count is multiplied by it."""
    return replace(
        recording,
        ready=recording.ready.model_copy(
            update={
                "requested": recording.ready.requested * times,
                "established": recording.ready.established * times,
            }
        ),
        ticks=tuple(_scaled_tick(tick, times) for tick in recording.ticks),
        done=recording.done.model_copy(
            update={"measurement": _scaled_measurement(recording.measurement, times)}
        ),
    )


def _scaled_tick(tick: Tick, times: int) -> Tick:
    return tick.model_copy(
        update={
            "counts": add_up([tick.counts] * times),
            "latency": _times(tick.latency, times),
            "service": _times(tick.service, times),
            "open": tick.open * times,
            "bytes_in": tick.bytes_in * times,
            "bytes_out": tick.bytes_out * times,
        }
    )


def _scaled_measurement(found: Measurement, times: int) -> Measurement:
    histograms = {
        name: hdr.added([encoded] * times)
        for name, encoded in found.histograms.model_dump().items()
    }
    return found.model_copy(
        update={
            "counts": add_up([found.counts] * times),
            "bytes_in": found.bytes_in * times,
            "bytes_out": found.bytes_out * times,
            "histograms": found.histograms.model_copy(update=histograms),
            "connections": merge_connections([found.connections] * times),
            "slots": merge_slots([found.slots] * times),
            "series": tuple(_scaled_second(second, times) for second in found.series),
        }
    )


def _scaled_second(second: Second, times: int) -> Second:
    return Second(
        t_s=second.t_s,
        ok=second.ok * times,
        failed=second.failed * times,
        latency=_times(second.latency, times),
    )


def _times(counts: Mapping[int, int], times: int) -> dict[int, int]:
    return {index: count * times for index, count in counts.items()}


def window_s(recording: Recording) -> float:
    """The length of its window, in seconds."""
    return recording.measurement.window_ns / NS_PER_S
