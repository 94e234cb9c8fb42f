"""The layout of a report: its sections, each with sentences, charts and tables.

How: the gathered data is merged over the runs. For the entries that are drawn, the record with the
median score is fetched again, one at a time. A chart without data is left out, and so is what
nobody could read, such as the thirtieth curve; the page says what was left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from trueload.published.tables import PublishedCurve
from trueload.record.accounts.streams import FIRST_PART, GAP
from trueload.record.accounts.tracks import STREAM_PARTS
from trueload.record.figures import Sample, latency, of_percentile
from trueload.record.schema import Environment, Record
from trueload.report.apachebench import summary_block
from trueload.report.grid import Grid
from trueload.report.html import words
from trueload.report.html.charts.crowd import crowd
from trueload.report.html.charts.heat_map import Field, heat_map
from trueload.report.html.charts.load_curve import of_search, of_stages
from trueload.report.html.charts.over_time import (
    failures_over_time,
    latency_over_time,
    throughput_over_time,
)
from trueload.report.html.charts.percentiles import by_step, percentiles
from trueload.report.html.charts.ranking import ranking
from trueload.report.html.charts.ratios import ratios
from trueload.report.html.charts.resources import (
    IdleMemory,
    ResourceUse,
    both_ends,
    connection_memory,
    idle_memory,
    memory,
)
from trueload.report.html.charts.theme import SERIES_MAX, Palette, TitledChart
from trueload.report.html.comparisons import Comparisons, MetricRatios
from trueload.report.html.curves import (
    SecondPoint,
    offered_points,
    part_points,
    percentile_points,
    second_points,
    slowest_step_points,
    step_times,
)
from trueload.report.html.entries import merged
from trueload.report.html.gather import STATUSES, CheckTally, RunReport
from trueload.report.html.tables import (
    account_tables,
    entries_table,
    published_tables,
    ratio_table,
    steps_table,
    suite_columns,
    target_tables,
)
from trueload.report.html.tiles import Tile, tiles
from trueload.report.result import result_lines
from trueload.request.redact import FILL_IN, command_text, has_placeholders
from trueload.store.rows import Run
from trueload.suites.load_tables import LoadTable, run_verdict
from trueload.suites.summary import Summary
from trueload.text import plain
from trueload.units import format_count, format_size

Fetch = Callable[[str, int], Record | None]
"""Returns the record of a run's stored row."""

SECTIONS_DRAWN_MAX = 10
SECTIONS_MAX = 60
RESOURCES_MAX = 16
SEARCHES_DRAWN_MAX = 3
HEAT_MAPS_MAX = 8
TEXTS_MAX = 12
LEAD_SENTENCES = 3
ENVIRONMENTS_MAX = 6
PARTS = ("First part", "Gap between parts")
TIMES: Mapping[str, Callable[[Record], Sample]] = {
    "Latency": latency,
    PARTS[0]: partial(of_percentile, f"{FIRST_PART}p99"),
    PARTS[1]: partial(of_percentile, f"{GAP}p99"),
}
"""The times that have a chart by percentile."""


@dataclass(frozen=True)
class Text:
    """Text that the command line prints, hidden behind a line to click."""

    title: str
    body: str


@dataclass(frozen=True)
class Section:
    """One section of the page: its result, tables, charts and remarks.

    ``pairs`` are tables with the chart that stands beside each. ``void``: nothing in it is a valid
    figure.
    """

    anchor: str
    title: str
    words: tuple[str, ...]
    tables: tuple[Grid, ...]
    charts: tuple[TitledChart, ...] = ()
    pairs: tuple[tuple[Grid, TitledChart | None], ...] = ()
    texts: tuple[Text, ...] = ()
    remarks: tuple[str, ...] = ()
    void: bool = False

    @property
    def drawn(self) -> tuple[TitledChart, ...]:
        """All charts."""
        return (*(drawn for _, drawn in self.pairs if drawn is not None), *self.charts)


@dataclass(frozen=True)
class RunView:
    """What the page says about a run itself."""

    run: Run
    command: str
    fill_in: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """The whole report, before it is HTML."""

    title: str
    verdict: str
    words: tuple[str, ...]
    tiles: tuple[Tile, ...]
    remarks: tuple[str, ...]
    parts: tuple[Section, ...]
    checks: tuple[CheckTally, ...]
    checks_words: str
    environments: tuple[tuple[tuple[str, str], ...], ...]
    runs: tuple[RunView, ...]
    left_out: tuple[str, ...]


def make_view(
    reports: Sequence[RunReport],
    fetch: Fetch,
    pairs: Sequence[MetricRatios] = (),
    runs: Comparisons | None = None,
    curves: Sequence[PublishedCurve] = (),
    *,
    anonymous: bool = False,
) -> View:
    """Return everything that the page shows, in order."""
    sections = merged(section for each in reports for section in each.sections)
    left_out = []
    if len(sections) > SECTIONS_MAX:
        left_out.append(
            f"{len(sections) - SECTIONS_MAX} of {len(sections)} loads are left out of this page;"
            " `trueload runs show` has them."
        )
        sections = sections[:SECTIONS_MAX]
    if len(sections) > SECTIONS_DRAWN_MAX:
        left_out.append(
            f"Charts are drawn of the first {SECTIONS_DRAWN_MAX} loads; the others have tables."
        )
    palette = palette_of(sections)
    parts = [
        _part(number, section, fetch, curves, palette, draw=number <= SECTIONS_DRAWN_MAX)
        for number, section in enumerate(sections, 1)
    ]
    if len(sections) == 1:  # the section's first sentences stand at the top
        rest = (parts[0].words[LEAD_SENTENCES:], parts[0].remarks[LEAD_SENTENCES:])
        parts[0] = replace(parts[0], words=rest[0], remarks=rest[1])
    compared = [*pairs, *(runs.found if runs else ())]
    if comparison := _comparison(compared, runs):
        void = not any(section.ranked for section in sections)
        parts.insert(0, replace(comparison, void=void))
    tallies = [tally for each in reports for tally in each.checks.values()]
    return View(
        title=plain(words.title_of(reports)),
        verdict=run_verdict(sections) or "nothing measured",
        words=tuple(_lead(sections)),
        tiles=tuple(tiles(sections, compared, _connection_bytes(sections, fetch))),
        remarks=tuple(_remarks(reports, sections)),
        parts=tuple(parts),
        checks=tuple(_worst_first(reports)),
        checks_words=words.checks_words(tallies),
        environments=tuple(_environments(reports, anonymous=anonymous)),
        runs=tuple(_run_view(each) for each in reports),
        left_out=tuple(left_out),
    )


def _lead(sections: Sequence[LoadTable]) -> Iterator[str]:
    """Yield the sentences at the top: the first few of a single load, or the first of each."""
    if len(sections) == 1:
        yield from words.results(sections[0])[:LEAD_SENTENCES]
        return
    for section in sections[:SECTIONS_DRAWN_MAX]:
        yield f"{_capital(section.title)}: {words.results(section)[0]}"


def _remarks(reports: Sequence[RunReport], sections: Sequence[LoadTable]) -> Iterator[str]:
    """Yield the remarks on the whole report and, with a single load, on that load."""
    if len(sections) == 1:
        yield from words.remarks(sections[0])[:LEAD_SENTENCES]
    if len(reports) > 1:
        yield words.across_words([each.run for each in reports])
    for each in reports:
        yield from words.run_words(each)


def _connection_bytes(sections: Sequence[LoadTable], fetch: Fetch) -> float | None:
    """Return the memory per connection of the server, if there is only one entry."""
    measured = [entry for section in sections for entry in section.measured]
    if len(measured) != 1 or measured[0].middle is None:
        return None
    record = fetch(measured[0].run, measured[0].middle)
    return None if record is None else _taken(measured[0], record).connection_bytes


def palette_of(sections: Sequence[LoadTable]) -> dict[str, int]:
    """Return the colours of the page, in the order of the entries' ranks, as there are only a few.

    A client has one colour in all its rows; subjects also appear under their own names.
    """
    by_place: list[tuple[int, Summary]] = [
        (place, entry)
        for section in sections[:SECTIONS_DRAWN_MAX]
        for place, entry in enumerate(section.ranked or section.measured)
    ]
    palette: dict[str, int] = {}
    of: dict[str, int] = {}
    for _, entry in sorted(by_place, key=lambda each: each[0]):
        subject = _client_of(entry) or entry.name
        if subject not in of and len(of) < SERIES_MAX:
            of[subject] = len(of)
        if subject in of:
            palette[entry.name] = of[subject]
            own = entry.name if entry.planned is None else plain(entry.cell.subject.name)
            palette.setdefault(own, of[subject])
    return palette


def _client_of(entry: Summary) -> str | None:
    """Return the name of a client without its pools; None for anything else."""
    if entry.planned is None or entry.planned.load.pools is None:
        return None
    return plain(entry.cell.subject.name)


def _part(
    number: int,
    section: LoadTable,
    fetch: Fetch,
    published: Sequence[PublishedCurve],
    palette: Palette,
    *,
    draw: bool,
) -> Section:
    drawn: list[TitledChart] = []
    records: list[tuple[Summary, Record]] = []
    if draw:
        records = list(_records(section, fetch))
        charts = _charts(section, records, published, palette)
        drawn = [each for each in charts if each is not None]
    found = [entries_table(section, palette if draw else {})]
    found += target_tables(records[:TEXTS_MAX])
    found += account_tables(section)
    found += published_tables(section)
    found += [steps_table(search) for search in section.searches[:TEXTS_MAX]]
    found.append(suite_columns(section))
    return Section(
        anchor=f"load-{number}",
        title=_capital(section.title),
        words=tuple(words.results(section)),
        tables=tuple(table for table in found if table is not None),
        charts=tuple(drawn),
        texts=tuple(_texts(records)),
        remarks=tuple(words.remarks(section)),
        void=not section.ranked,
    )


def _records(section: LoadTable, fetch: Fetch) -> Iterator[tuple[Summary, Record]]:
    """Yield the record with the median score of each entry that is drawn.

    These are the ranked entries or, if there are none, the measured ones.
    """
    for entry in (section.ranked or section.measured)[:RESOURCES_MAX]:
        record = None if entry.middle is None else fetch(entry.run, entry.middle)
        if record is not None:
            yield entry, record


def _charts(
    section: LoadTable,
    records: Sequence[tuple[Summary, Record]],
    published: Sequence[PublishedCurve],
    palette: Palette,
) -> Iterator[TitledChart | None]:
    few = [each for each in records if each[0].name in palette][:SERIES_MAX]
    yield ranking(section, palette)
    if section.broadcast:
        yield crowd(section.searches, published, palette)
    else:
        for search in section.searches[:SEARCHES_DRAWN_MAX]:
            yield of_search(search, palette)
    for entry, record in few:
        yield of_stages(entry.name, offered_points(record), palette)
    for what, times in TIMES.items():
        curves = {entry.name: percentile_points(record, times) for entry, record in few}
        yield _capped(percentiles(curves, palette, what), section, few)
    for entry, record in few:
        what = "step" if record.sessions is not None else "request"
        yield by_step(entry.name, what, step_times(record), palette)
    courses: dict[str, Sequence[SecondPoint]] = {e.name: second_points(r) for e, r in few}
    courses = {name: points for name, points in courses.items() if points}
    yield _capped(latency_over_time(courses, palette), section, few)
    yield _capped(throughput_over_time(courses, _flow(section), palette), section, few)
    yield _capped(failures_over_time(courses, _flow(section), palette), section, few)
    yield from _tracks(section, few, palette)
    for name, fields in heat_fields(section).items():
        yield heat_map(name, fields, palette)
    taken = [_taken(entry, record) for entry, record in records]
    yield both_ends(taken, "client" if _is_of_clients(section) else "generator", palette)
    yield memory(taken, palette)
    yield connection_memory(taken, palette)
    held = [each for entry, record in few for each in _held(entry, record)]
    yield idle_memory(held, palette)


def _tracks(
    section: LoadTable, few: Sequence[tuple[Summary, Record]], palette: Palette
) -> Iterator[TitledChart | None]:
    """Yield the charts over time of parts of the traffic: streams, and requests or steps."""
    for name, part in zip(PARTS, STREAM_PARTS, strict=True):
        parts = {entry.name: part_points(record, part) for entry, record in few}
        courses = {name: points for name, points in parts.items() if points}
        yield _capped(latency_over_time(courses, palette, name), section, few)
        if name == PARTS[1]:
            yield _capped(throughput_over_time(courses, "parts/s", palette, "Parts"), section, few)
    for entry, record in few:
        what = "step" if record.sessions is not None else "request"
        steps = slowest_step_points(record, SERIES_MAX)
        if (drawn := latency_over_time(steps, None, f"Latency by {what}")) is not None:
            left = len(record.targets or ()) - len(steps)
            more = f"The {len(steps)} with the highest p99; {left} more are not drawn."
            note = f"{drawn.note} {more}" if left else drawn.note
            yield replace(drawn, title=f"{drawn.title}: {entry.name}", note=note)


def _is_of_clients(section: LoadTable) -> bool:
    return any(e.figures is not None and e.figures.client is not None for e in section.everything)


def heat_fields(section: LoadTable) -> dict[str, list[Field]]:
    """Return the cells of each client's heat map; a cell that is not ranked has no figure."""
    found: dict[str, list[Field]] = {}
    for entry in section.measured:
        pools = entry.planned.load.pools if entry.planned is not None else None
        if pools is None:
            continue
        name = plain(entry.cell.subject.name)
        cell = Field(
            pools=f"{pools.pools} x {pools.pool_size}",
            pool_order=(pools.pools, pools.pool_size),
            concurrency=pools.concurrency,
            value=entry.score if entry.can_rank else None,
        )
        if name in found or len(found) < HEAT_MAPS_MAX:
            found.setdefault(name, []).append(cell)
    return found


def _flow(section: LoadTable) -> str:
    return "messages/s" if section.unit == "clients" else section.unit


def _capped(
    drawn: TitledChart | None, section: LoadTable, few: Sequence[tuple[Summary, Record]]
) -> TitledChart | None:
    """Add a note on which entries the curves show, if these are not all."""
    if drawn is None:
        return None
    sentences = [drawn.note]
    if any(entry.counted > 1 for entry, _ in few):
        sentences.append("Of several repetitions, the one in the middle.")
    left = len(section.ranked or section.measured) - len(few)
    if left > 0:
        sentences.append(f"The first {len(few)}; {left} more are in the table only.")
    if few and not section.ranked:
        sentences.append("What is drawn here is invalid.")
    return replace(drawn, note=" ".join(text for text in sentences if text))


def _taken(entry: Summary, record: Record) -> ResourceUse:
    server, idle = record.server, record.idle
    subject = server if record.client is None else record.generator
    each = server.bytes_per_connection if server is not None else None
    if each is None and idle is not None:
        each = idle.server_bytes_per_connection
    return ResourceUse(
        name=entry.name,
        generator=record.generator.saturation,
        server=server.saturation if server is not None else None,
        peak_bytes=subject.peak_rss_bytes if subject is not None else None,
        connection_bytes=each,
    )


def _held(entry: Summary, record: Record) -> list[IdleMemory]:
    steps = record.idle.steps if record.idle is not None else ()
    return [IdleMemory(entry.name, s.idle, s.server_rss_bytes) for s in steps if s.server_rss_bytes]


def _texts(records: Sequence[tuple[Summary, Record]]) -> Iterator[Text]:
    """Yield the command line's text for each entry: ApacheBench's lines, or those of one trial."""
    for entry, record in records[:TEXTS_MAX]:
        if entry.planned is None:
            yield Text(f"In full: {entry.name}", "\n".join(result_lines(record, whole=True)))
        elif block := summary_block(entry):
            yield Text(f"As ApacheBench prints it: {entry.name}", "\n".join(block))


def _comparison(found: Sequence[MetricRatios], runs: Comparisons | None) -> Section | None:
    notes = runs.notes if runs is not None else ()
    if not found and not notes:
        return None
    tables = [ratio_table(e.title, e.ratios, e.base, e.new) for e in found]
    drawn = [ratios(e.title, e.ratios, "B / A" if e.new == "B" else "new / base") for e in found]
    return Section(
        anchor="compared",
        title="Compared",
        words=tuple(f"{each.title}: {each.note}" for each in found),
        tables=(),
        pairs=tuple(zip(tables, drawn, strict=True)),
        remarks=notes,
    )


def _worst_first(reports: Sequence[RunReport]) -> list[CheckTally]:
    if len(reports) == 1:
        tallies = reports[0].checks.values()
        return sorted(tallies, key=lambda each: STATUSES.index(each.status))
    found = [
        replace(one, where=f"run {each.run.id}, {one.where}" if one.where else "")
        for each in reports
        for one in each.checks.values()
    ]
    return sorted(found, key=lambda each: (STATUSES.index(each.status), each.name))


def _environments(
    reports: Sequence[RunReport], *, anonymous: bool
) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield each machine, and each set of versions, once."""
    seen: dict[str, tuple[tuple[str, str], ...]] = {}
    for each in reports:
        for environment in each.environments.values():
            if anonymous:
                environment = environment.model_copy(update={"hostname": None})
            rows = _environment(environment, each)
            seen.setdefault(environment.model_dump_json(), rows)
    yield from list(seen.values())[:ENVIRONMENTS_MAX]


def _environment(found: Environment, report: RunReport) -> tuple[tuple[str, str], ...]:
    memory, load = found.memory_bytes, found.load_average
    rows = [
        ("host", found.hostname or ""),
        ("kernel", found.kernel),
        ("CPU", f"{found.cpu_model or 'unknown'}, {found.cpu_count} online"),
        ("memory", "" if memory is None else format_size(memory)),
        ("load before", "" if load is None else f"{load:g}, the average of the minute before"),
        ("governor", found.governor or "unknown"),
        ("generator", "; ".join(list(report.generators)[:ENVIRONMENTS_MAX])),
        ("limits", ", ".join(f"{k} {format_count(v)}" for k, v in found.limits.items())),
        ("versions", ", ".join(f"{name} {found.versions[name]}" for name in found.versions)),
    ]
    return tuple((name, plain(text)) for name, text in rows if text)


def _run_view(report: RunReport) -> RunView:
    run = replace(report.run, title=plain(report.run.title))
    counts = ", ".join(f"{format_count(count)} {name}" for name, count in report.rows.items())
    return RunView(
        run=run,
        # Redacted when it was stored, but another version's store may not have been.
        command=command_text(run.command),
        fill_in=FILL_IN if has_placeholders(run.command) else "",
        notes=(*((f"rows: {counts}",) if counts else ()), *map(plain, report.notes)),
    )


def _capital(text: str) -> str:
    return plain(text[:1].upper() + text[1:])
