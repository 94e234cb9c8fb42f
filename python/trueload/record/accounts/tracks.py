"""The parts of the traffic over time: of streams the first parts and the gaps, and each request or
step. Engines tell the first 32 of these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trueload.protocol.model import Model
from trueload.protocol.scenario import StepPlan
from trueload.protocol.tick import Second
from trueload.protocol.traffic import TargetPlan
from trueload.record.account import Account, TrialFacts
from trueload.request.redact import redact_url
from trueload.text import plain

STREAM_PARTS = ("first part", "gap")
NAME_LENGTH_MAX = 60


class TrackRecord(Model):
    """One part of the traffic over time. Of a gap, ``ok`` counts all parts that came."""

    name: str
    of_stream: bool
    """Whether it is one of ``STREAM_PARTS``, else a request or a step."""
    series: tuple[Second, ...]


def names_apart(steps: Iterable[tuple[str | None, str, str]]) -> tuple[str, ...]:
    """Return a name for each step, from its name, method and URL; no two are the same."""
    found: list[str] = []
    for name, method, url in steps:
        shown = plain(name or f"{method} {url}", NAME_LENGTH_MAX)
        found.append(f"{shown} ({len(found) + 1})" if shown in found else shown)
    return tuple(found)


def make_tracks(_: None, facts: TrialFacts) -> tuple[TrackRecord, ...]:
    """What the record keeps of the window; nothing if the engine died."""
    plan = facts.generate
    asked: Sequence[StepPlan | TargetPlan] = plan.scenario or plan.targets
    parts = () if plan.stream is None else STREAM_PARTS
    steps = zip(asked, facts.target_urls, strict=True)
    names = names_apart((step.name, step.request.method, redact_url(url)) for step, url in steps)
    return tuple(
        TrackRecord(name=name, of_stream=place < len(parts), series=series)
        for place, (name, series) in enumerate(
            zip((*parts, *names), facts.window.tracks, strict=False)
        )
    )


TRACKS = Account("tracks", None, make_tracks)
