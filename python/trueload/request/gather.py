"""Gathers the requests of recordings, and merges them by time into what is sent again.

How: equal requests are kept once, over all files. The times of a file are put in order first; then
those of all files are.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from trueload.errors import UserError
from trueload.request.log_clock import put_right
from trueload.request.logs.line import Order, Parser, text_of_line
from trueload.request.recorded_request import Headers, RecordedRequest, UnsendableError, choose_host
from trueload.request.replay import (
    Replay,
    Sent,
    from_start,
    good_statuses,
    sent_of,
    spread,
    times_in_order,
)
from trueload.units import NS_PER_S, counted, format_count, format_duration

ENTRIES_MAX = 10_000_000  # crates/engine/src/replay.rs has these two limits, too
REQUESTS_MAX = 1_000_000
BYTES_MAX = 512 * 2**20  # of all requests that differ
# A log has its requests in the order of their ends. A long one may have begun minutes before.
BACK_NS_MAX = 3_600 * NS_PER_S
CALENDAR_NS_MIN = 10 * 365 * 86_400 * NS_PER_S
"""Times from 1980 on are of a calendar; earlier ones count from some zero of their own."""
HOST_FLAG = "--replay-host"
NAMED_MAX = 3  # files that are named; more are counted
_SWITCHING = 101  # a request that became a WebSocket cannot be sent again


@dataclass(frozen=True)
class RecordingFlags:
    """The flags beside a recording. ``headers`` replace recorded ones of the same name. ``host`` is
    the value of the Host header, and ``chosen`` the recorded host whose requests are sent. With
    ``own_statuses`` recorded ones do not count. ``pattern`` is the format of all logs."""

    host: str
    headers: Headers = ()
    chosen: str | None = None
    speed: float = 1.0
    own_statuses: bool = False
    pattern: str | None = None


@dataclass(eq=False)
class FileEntries:
    """The entries of one file, by the numbers of their requests. ``shown`` and ``name`` name it."""

    shown: str
    name: str
    kind: str
    order: Order
    at_ns: array[int] = field(default_factory=lambda: array("q"))
    numbers: array[int] = field(default_factory=lambda: array("I"))
    whole: bool = True
    latest_ns: int = 0
    left_out: int = 0
    first_left_out: int | None = None

    def leave_out(self, number: int) -> None:
        """Count the request of a line as left out."""
        self.left_out += 1
        self.first_left_out = self.first_left_out or number

    def check_order(self, number: int, at_ns: int) -> None:
        """Refuse a line that is far too early. Raises ``UserError``."""
        back_ns = self.latest_ns - at_ns
        if back_ns > BACK_NS_MAX and self.order != "none":
            raise UserError(
                (
                    f"{self.shown}, line {number}: its time is {format_duration(back_ns)}"
                    " before that of an earlier line"
                ),
                "put the lines in order of time, or give each log by a --replay of its own",
            )
        self.latest_ns = max(self.latest_ns, at_ns)

    def in_order(self) -> tuple[list[int], array[int]]:
        """Return its times in order, and the numbers of their requests."""
        places = times_in_order(self.at_ns)
        return [self.at_ns[at] for at in places], array("I", (self.numbers[at] for at in places))


@dataclass
class Gathering:
    """What has been read of all recordings."""

    beside: RecordingFlags
    files: list[FileEntries] = field(default_factory=list)
    known: dict[Sent, int] = field(default_factory=dict)
    statuses: dict[int, set[int]] = field(default_factory=dict)
    headers: dict[Headers, Headers] = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    count: int = 0
    size_bytes: int = 0
    bodiless: int = 0
    of_others: int = 0
    forms: int = 0
    """Forms made of recorded fields."""

    def add_line(self, file: FileEntries, number: int, line: bytes, parse: Parser) -> None:
        """Parse a line and take its request, or count it as left out. Raises ``UserError``."""
        try:
            recorded = parse(text_of_line(line))
        except (ValueError, UnsendableError):
            file.leave_out(number)
            return
        except UserError as error:
            raise UserError(f"{file.shown}, line {number}: {error.message}", error.hint) from None
        if recorded is not None:
            file.check_order(number, recorded.at_ns)
            self.add(file, number, recorded)

    def add(self, file: FileEntries, number: int, recorded: RecordedRequest) -> None:
        """Take a recorded request. Raises ``UserError`` if there are too many."""
        if recorded.status == _SWITCHING:
            file.leave_out(number)
            return
        if recorded.host:
            self.hosts.setdefault(recorded.host)
            wanted = (self.beside.chosen or recorded.host).lower()
            if wanted not in (recorded.host, recorded.host.rpartition(":")[0]):
                self.of_others += 1
                return
        if self.count == ENTRIES_MAX:
            _refuse(file, number, f"there are more than {ENTRIES_MAX:,} requests")
        sent = sent_of(recorded, self._headers(recorded.headers))
        place = self.known.setdefault(sent, len(self.known))
        if place == len(self.known) - 1 and place not in self.statuses:
            self.statuses[place] = set()
            texts = (*sent[:2], *(text for pair in sent[2] for text in pair))
            self.size_bytes += sum(map(len, texts)) + len(sent[3] or b"")
            if place == REQUESTS_MAX:
                _refuse(file, number, f"there are more than {REQUESTS_MAX:,} different requests")
            if self.size_bytes > BYTES_MAX:
                _refuse(file, number, f"the requests are more than {BYTES_MAX // 2**20} MiB")
        if recorded.status is not None:
            self.statuses[place].add(recorded.status)
        if recorded.body is None and recorded.method in ("POST", "PUT", "PATCH"):
            self.bodiless += 1
        self.count += 1
        file.whole = file.whole and recorded.whole
        file.at_ns.append(recorded.at_ns)
        file.numbers.append(place)

    def _headers(self, recorded: Headers) -> Headers:
        """The headers that are sent for recorded ones; requests share them."""
        if recorded not in self.headers:
            own = {name.lower() for name, _ in self.beside.headers}
            kept = (pair for pair in recorded if pair[0].lower() not in own)
            self.headers[recorded] = (*kept, *self.beside.headers)
        return self.headers[recorded]

    def done(self, hint: str) -> Replay:
        """Return the traffic. Raises ``UserError`` if there is none, or of several hosts; ``hint``
        says what can be read."""
        files, beside = self.files, self.beside
        several = f"the recording in {len(files)} files"
        choose_host(
            several if len(files) > 1 else files[0].shown, self.hosts, beside.chosen, HOST_FLAG
        )
        for file in files:
            if not (file.at_ns or (self.of_others and self.count)):
                where = f", line {file.first_left_out}" if file.first_left_out else ""
                raise UserError(f"{file.shown}{where}: no request can be read", hint)
        clocks = list(_put_right(files))
        at_ns, numbers, whole = merged(files)
        kinds = " and ".join(dict.fromkeys(file.kind for file in files))
        names = " + ".join(file.name for file in files)
        if len(files) > NAMED_MAX:
            names = f"{len(files)} files"
        notes = (*self._notes(kinds, at_ns[-1] - at_ns[0], whole), *clocks)
        return Replay(
            about=f"{names} ({kinds}{'' if beside.speed == 1 else f', {beside.speed:g}x'})",
            notes=notes,
            host=beside.host,
            at_ns=from_start(at_ns, beside.speed),
            numbers=numbers,
            requests=tuple(self.known),
            statuses=[
                None if beside.own_statuses else good_statuses(frozenset(codes))
                for codes in self.statuses.values()
            ],
        )

    def _notes(self, kinds: str, recorded_ns: int, whole: bool) -> Iterator[str]:
        """What the user is told before the run, once."""
        files, speed = self.files, self.beside.speed
        faster = "" if speed == 1 else f", sent at {speed:g}x"
        what = f"{files[0].name} is a {kinds}"
        if len(files) > 1:
            what = f"{len(files)} files are one recording in the order of their times ({kinds})"
        different = f", {format_count(len(self.known))} of them different" if self.count > 1 else ""
        yield (
            f"{what}: {counted(self.count, 'request')}{different},"
            f" over {format_duration(recorded_ns)}{faster}"
        )
        if whole and self.count > 1:
            yield "its times are known to the second: requests are spread evenly within each second"
        if self.bodiless:
            several = ("POST, PUT or PATCH request has", "POST, PUT or PATCH requests have")
            yield f"{counted(self.bodiless, *several)} no recorded body"
        if self.forms:
            forms = counted(self.forms, "form")
            yield f"{forms} made of the recorded fields, with a boundary of trueload's own"
        if left_out := sum(file.left_out for file in files):
            first = next(file for file in files if file.left_out)
            where = f", the first in line {first.first_left_out}" if first.first_left_out else ""
            where += f" of {first.name}" if where and len(files) > 1 else ""
            several = ("request that cannot be sent is", "requests that cannot be sent are")
            yield f"{counted(left_out, *several)} left out{where}"
        if self.of_others:
            several = ("request to another host is", "requests to other hosts are")
            yield f"{counted(self.of_others, *several)} left out"


def _put_right(files: Sequence[FileEntries]) -> Iterator[str]:
    """Put clocks right that were set back, and yield what the user is told of them. Raises
    ``UserError`` if two files have no clock in common."""
    filled = [file for file in files if file.at_ns]
    for file in filled:
        if file.order != "ends":
            continue
        file.at_ns, steps, back_ns = put_right(file.at_ns, file.whole)
        if steps:
            often = "" if steps == 1 else f" {format_count(steps)} times, at most"
            whose = "its clock" if len(files) == 1 else f"the clock of {file.name}"
            yield (
                f"{whose} goes back{often} by {format_duration(back_ns)}: the order of its lines"
                " counts, and those behind follow the ones before"
            )
    filled.sort(key=lambda file: file.at_ns[0])
    if filled and filled[0].at_ns[0] < CALENDAR_NS_MIN <= filled[-1].at_ns[0]:
        raise UserError(
            f"{filled[0].shown} counts its times from 0, and {filled[-1].shown} has a calendar's",
            "replay one after the other, or write whole times, such as 2026-11-27T10:00:00.125Z",
        )


def merged(files: Sequence[FileEntries]) -> tuple[list[int], array[int], bool]:
    """Return the times of all files in order, the numbers of their requests, and whether all are
    known to the second only. Those are spread within their second."""
    whole = all(file.whole for file in files if file.at_ns)
    at_ns: list[int] = []
    numbers = array("I")
    for file in files:
        times, of_file = file.in_order()
        if file.whole and not whole:
            spread(times)
        at_ns += times
        numbers += of_file
    if len(files) > 1:
        places = times_in_order(at_ns)
        at_ns = [at_ns[at] for at in places]
        numbers = array("I", (numbers[at] for at in places))
    if whole:
        spread(at_ns)
    return at_ns, numbers, whole


def _refuse(file: FileEntries, number: int, what: str) -> None:
    raise UserError(f"{file.shown}, line {number}: {what}", "replay a part of it")
