"""The live view of a load: figures now and so far, percentiles, histogram, lines over time.

It also shows failures by class and both ends' CPUs. Pure.

How: each block is rows for a width and a height, and layout.py places what fits. If the result
would be invalid, the reason comes first and everything else is dim.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from trueload.protocol.engine_options import show_byte_rate
from trueload.protocol.plan import Open, Stage
from trueload.protocol.tick import Tick
from trueload.record import figures
from trueload.record.accounts.tracks import STREAM_PARTS, names_apart
from trueload.report.course import (
    Course,
    Point,
    busy_of,
    per_s_of,
    recent_service,
    recent_track,
    seconds_of,
)
from trueload.report.doubts import doubts
from trueload.report.heading import Heading, heading_rows
from trueload.report.layout import Band, Block, lay_out
from trueload.report.phases import LABEL, labelled, phase_rows
from trueload.report.rows import Row, Size, Span, Tone, cut, fit
from trueload.report.widgets import (
    Line,
    busy_row,
    cpu_row,
    failure_rows,
    histogram_rows,
    moving_rows,
    shortened,
)
from trueload.request.exchange import WsBroadcast
from trueload.request.steps import StepSpec
from trueload.request.values import TargetSpec
from trueload.stats import Distribution, Quantile
from trueload.text import plain
from trueload.trial.spec import Progress, TrialSpec
from trueload.units import counted, format_bound, format_count, format_duration, format_rate

HOSTS_SHOWN = 8
TRACKS_LEAST, TRACK_COLUMNS = 4, ("per second", "p99 so far", "p50 now", "failed")
VALUE = 14  # columns of a time: `> 1,000 ms`, `too few`
TAIL = 0.99
# A terminal of 24 rows has no room for one more.
TIMES = tuple(each for each in figures.SHOWN if each.name != "p95")
NAMES = {**{each.name: each.label for each in TIMES}, "max": "max"}
TONES: dict[str, Tone] = {each.name: "tail" if each.share >= TAIL else "middle" for each in TIMES}


def load_rows(
    spec: TrialSpec, progress: Progress, course: Course, heading: Heading, size: Size
) -> list[Row]:
    """Return all rows of the view, each ``size.width`` wide, at most ``size.height`` of them."""
    why = [row for doubt in doubts(course) for row in _doubt_rows(doubt, size.width)]
    rows = list(why)
    rows += heading_rows(heading, size.width)
    rows += phase_rows(progress, size.width, sessions=bool(spec.traffic.scenario))
    rows = [fit(row, size.width) for row in rows]
    if course.recent:
        left = Size(size.width, size.height - len(rows))
        rows += lay_out(_bands(spec, progress, course), left)
    rows = rows[: size.height]
    return [*rows[: len(why)], *map(dimmed, rows[len(why) :])] if why else rows


def _doubt_rows(why: str, width: int) -> list[Row]:
    """Return the whole reason, in as many rows as it takes."""
    words = textwrap.wrap(f"invalid so far: {plain(why)}", max(width, 1))
    return [fit((Span(line, "bad"),), width) for line in words]


def dimmed(row: Row) -> Row:
    """Return the row without any colour except that of failures."""
    return tuple(span if span.tone == "bad" else Span(span.text, "label") for span in row)


def _bands(spec: TrialSpec, progress: Progress, course: Course) -> list[Band]:
    is_open = spec.load.is_open
    counts = course.recent[-1].counts
    figured = list(_figure_rows(spec, progress, course))
    bands: list[Band] = [
        (
            Block("load", partial(_gauged, figured, course), 0, len(figured) + 2),
            Block(_timed(spec), partial(_latency_rows, course, is_open), 1, 1 + len(NAMES)),
        )
    ]
    if course.points:
        lines = _lines(spec, course.points)
        count = len(lines)
        over_time = partial(moving_rows, lines)
        bands.append((Block("last seconds", over_time, 3, count, 3 * count, count),))
    histogram = Block("distribution", partial(histogram_rows, course.so_far.known), 4, 4, 16)
    answers = len(counts.failed) + len(counts.statuses)
    if answers:
        rank = 2 if counts.failed else 5
        least = min(answers, 4)
        block = Block("answers", partial(_answer_rows, counts.failed, counts.statuses), rank, least)
        bands.append((histogram, block))
    else:
        bands.append((histogram,))
    if course.tracks:
        count = len(course.tracks)
        tracks = partial(_track_rows, _track_names(spec), course)
        least = 1 + min(count, TRACKS_LEAST)
        bands.append((Block(_tracked(spec), tracks, 2, least, 1 + count),))
    if course.hosts:
        least = min(len(course.hosts), HOSTS_SHOWN)
        bands.append((Block("hosts", partial(_host_rows, course.hosts), 2, least, least + 1),))
    return bands


def _timed(spec: TrialSpec) -> str:
    """The name of the times; for a broadcast, the time until its sender had the message back."""
    if isinstance(spec.traffic.exchange, WsBroadcast):
        return "receipt by the sender"
    return "response time" if spec.load.is_open else "latency"


def _figure_rows(spec: TrialSpec, progress: Progress, course: Course) -> Iterable[Row]:
    """Yield the figures of the last second, and of the phase so far."""
    first, last = course.recent[0], course.recent[-1]
    seconds, elapsed_s = seconds_of(course.recent), course.elapsed_ns / 1e9
    now = per_s_of(course.recent)
    yield labelled("throughput", Span("-" if now is None else format_rate(now, "requests"), "rate"))
    mean = last.counts.ok / elapsed_s if elapsed_s > 0 else 0.0
    yield labelled("on average", Span(format_rate(mean, "requests")))
    if isinstance(spec.load.pacing, Open):
        asked = format_rate(rate_at(spec.load.pacing.stages, course.elapsed_ns))
        sent = _per_s(last.counts.issued - first.counts.issued, seconds, format_rate)
        yield labelled("asked for", Span(f"{asked}, sent {sent}"))
    if isinstance(spec.traffic.exchange, WsBroadcast):
        due = "-" if now is None else f"{format_rate(now * last.open)} due"
        yield labelled("deliveries", Span(due))
    failed = figures.failed(last.counts)
    tone: Tone = "bad" if failed else "text"
    good = Span(f"{format_count(last.counts.ok)} ok, ")
    yield labelled("requests", good, Span(f"{format_count(failed)} failed", tone))
    inward = _per_s(last.bytes_in - first.bytes_in, seconds, show_byte_rate)
    outward = _per_s(last.bytes_out - first.bytes_out, seconds, show_byte_rate)
    yield labelled("in, out", Span(f"{inward}, {outward}"))
    phase = progress.plan
    asked_of = None if phase is None else phase.connections
    most = format_count(spec.load.most if asked_of is None else asked_of)
    yield labelled("connections", Span(f"{format_count(last.open)} open of {most}"))


def _per_s(made: int, seconds: float, shown: Callable[[float], str]) -> str:
    """Return a rate as text, or a dash before there are two ticks."""
    return shown(made / seconds) if seconds > 0 else "-"


def rate_at(stages: Sequence[Stage], elapsed_ns: int) -> float:
    """Return the rate that an open loop asks for at a time."""
    left = elapsed_ns
    for stage in stages:
        if left < stage.ns:
            return stage.from_ + (stage.to - stage.from_) * left / stage.ns
        left -= stage.ns
    return stages[-1].to if stages else 0.0


def _gauged(figured: Sequence[Row], course: Course, size: Size) -> list[Row]:
    """Return the figures, and how busy both ends are."""
    busy = busy_of(course.recent)
    text = "" if busy is None else f"{busy:4.0%} busy"
    generator = busy_row("generator", busy, text, size.width)
    return [*figured, generator, cpu_row("server", course.server_cpus, size.width)]


def _latency_rows(course: Course, is_open: bool, size: Size) -> list[Row]:
    """Return percentiles of the last second, and of the phase so far.

    For an open loop, those from the actual send are added if there is room.
    """
    so_far = course.so_far.figures
    of = so_far.largest_of
    names = {**NAMES, "max": "max" if of is None else f"max of {format_count(of)}"}
    label = max(map(len, names.values())) + 1
    columns: dict[str, Distribution] = {"last second": course.last_second, "so far": so_far}
    if is_open and size.width >= label + 3 * VALUE:
        columns["service now"] = recent_service(course.recent)
    wide = max(min(VALUE, (size.width - label) // len(columns)), 1)
    head = "".join(f"{name:>{wide}}" for name in columns)
    rows: list[Row] = [(Span(" " * label), Span(head, "label"))]
    for name, shown in names.items():
        cells = "".join(f"{time_text(each, name):>{wide}}" for each in columns.values())
        tone = TONES.get(name, "text")
        rows.append((Span(f"{shown:<{label}}", "label"), Span(cells, tone)))
    return rows


def time_text(found: Distribution, name: str) -> str:
    """Return one figure as text, or a dash if nothing has a time."""
    return _shown(found.at(name)) if found.count else "-"


def _shown(found: Quantile | None) -> str:
    if found is None:
        return "-"
    return format_bound(found.value, above=found.above, too_few=found.too_few) or "-"


def _lines(spec: TrialSpec, points: Sequence[Point]) -> list[Line]:
    """Return the lines of throughput, p50 and p99 over time, and of a target rate that changes."""
    rates = [point.per_s for point in points]
    lines = [Line("rate", rates, format_rate(rates[-1]), format_rate, "rate")]
    stages = spec.load.pacing.stages if isinstance(spec.load.pacing, Open) else ()
    if len({rate for stage in stages for rate in (stage.from_, stage.to)}) > 1:
        asked = [rate_at(stages, point.elapsed_ns) for point in points]
        lines.insert(0, Line("target", asked, format_rate(asked[-1]), format_rate, "label"))
    tones: tuple[tuple[str, Tone], ...] = (("p50", "middle"), ("p99", "tail"))
    for name, tone in tones:
        found: list[Quantile | None] = [getattr(point, name) for point in points]
        values = [None if each is None else each.value for each in found]
        lines.append(Line(name, values, _shown(found[-1]), format_duration, tone))
    return lines


def _answer_rows(failed: Mapping[str, int], statuses: Mapping[str, int], size: Size) -> list[Row]:
    """Return failures by class, the most frequent first, then answers by status."""
    rows = failure_rows(failed)
    for code, count in sorted(statuses.items(), key=lambda each: -each[1]):
        tone: Tone = "good" if code.startswith("2") else "warn"
        rows.append(labelled(plain(code), Span(format_count(count), tone)))
    return shortened(rows, size)


def _tracked(spec: TrialSpec) -> str:
    if spec.traffic.stream is not None:
        return "streams"
    return "steps" if spec.traffic.scenario else "requests"


def _track_names(spec: TrialSpec) -> tuple[str, ...]:
    """Return the names of the parts of the traffic, in the order of a tick's tracks."""
    asked: Sequence[TargetSpec | StepSpec] = spec.traffic.scenario or spec.traffic.targets
    parts = () if spec.traffic.stream is None else STREAM_PARTS
    return (*parts, *names_apart((each.name, each.request.method, each.url) for each in asked))


def _track_rows(names: Sequence[str], course: Course, size: Size) -> list[Row]:
    """Return a row per part of the traffic; if not all fit, of those with the highest p99."""
    found = list(range(min(len(names), len(course.tracks))))
    shown = size.height - 1
    if len(found) > shown:
        slowest = sorted(found, key=lambda number: -course.tracks[number].p99_ns)
        found = sorted(slowest[: max(shown - 1, 0)])
    columns = TRACK_COLUMNS[: max((size.width - LABEL) // VALUE, 1)]
    wide = max(size.width - VALUE * len(columns), 1)
    head = "".join(f"{column:>{VALUE}}" for column in columns)
    rows: list[Row] = [(Span(" " * wide), Span(head, "label"))]
    for number in found:
        cells = _track_cells(course, number)[: len(columns)]
        rows.append((Span(f"{cut(names[number], wide - 1):<{wide}}", "label"), *cells))
    left = len(course.tracks) - len(found)
    return [*rows, (Span(f"and {left} that are quicker", "label"),)] if left else rows


def _track_cells(course: Course, number: int) -> list[Span]:
    made, times = recent_track(course.recent, number)
    so_far = course.tracks[number]
    p50 = times.percentile(0.5) if times.known.total else None
    failed: Tone = "bad" if so_far.failed else "text"
    cells: list[tuple[str, Tone]] = [
        (_per_s(made, seconds_of(course.recent), format_count), "rate"),
        (_shown(so_far.p99), "tail"),
        (_shown(p50), "middle"),
        (format_count(so_far.failed), failed),
    ]
    return [Span(f"{text:>{VALUE}}", tone) for text, tone in cells]


def _host_rows(hosts: Mapping[str, Sequence[Tick]], size: Size) -> list[Row]:
    """Return a row per host; with many hosts only the slowest, where trouble would show."""
    found = sorted(
        (per_s_of(ticks) or 0.0, place, ticks) for place, ticks in hosts.items() if ticks
    )
    if len(found) <= HOSTS_SHOWN:
        found.sort(key=lambda each: list(hosts).index(each[1]))
    name = min(max(size.width - 46, 8), 22)
    rows = [_host_row(*each, name) for each in found[:HOSTS_SHOWN]]
    if len(found) > HOSTS_SHOWN:
        more = counted(len(found) - HOSTS_SHOWN, "host that does", "hosts that do")
        rows.append((Span(f"and {more} more", "label"),))
    return shortened(rows, size)


def _host_row(per_s: float, place: str, ticks: Sequence[Tick], name: int) -> Row:
    last = ticks[-1]
    failed = sum(last.counts.failed.values())
    tone: Tone = "bad" if failed else "text"
    return (
        Span(f"{cut(plain(place), name):<{name}} ", "label"),
        Span(f"{format_rate(per_s):>12}", "rate"),
        Span(f"  {busy_of(ticks) or 0.0:.0%} busy, {last.open} open, "),
        Span(f"{format_count(failed)} failed", tone),
    )
