"""Reads a recording: an access log, a HAR file, or JSON lines with times.

How: the format is told from the content. Lines are read one by one, and what cannot be sent again
is left out and counted; only a file of trueload's own format must be right in each line.
"""

from __future__ import annotations

import contextlib
import json
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from trueload.errors import UserError
from trueload.request.access_log import (
    NGINX,
    NoLineError,
    is_nginx,
    kind_of_line,
    parse_line,
    parse_nginx,
)
from trueload.request.har import HAR, parse_har
from trueload.request.log_clock import put_right
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
from trueload.request.timed_lines import JSON_LINES, is_timed, parse_timed
from trueload.units import NS_PER_S, format_count, format_duration

ENTRIES_MAX = 10_000_000  # crates/engine/src/replay.rs has these two limits, too
REQUESTS_MAX = 1_000_000
BYTES_MAX = 512 * 2**20  # of all requests that differ
HAR_BYTES_MAX = 256 * 2**20
LINE_BYTES_MAX = 2**20
LOOKED_AT = 1_000  # lines among which one must be of a known format
# A log has its requests in the order of their ends. A long one may have begun minutes before.
BACK_NS_MAX = 3_600 * NS_PER_S
HOST_FLAG = "--replay-host"
FORMATS = "formats are common and combined access logs, nginx's JSON, HAR, and JSON lines with 'at'"


@dataclass(frozen=True)
class RecordingFlags:
    """The flags beside a recording. ``headers`` replace recorded ones of the same name. ``host`` is
    the value of the Host header, and ``chosen`` the recorded host whose requests are sent. With
    ``own_statuses`` recorded ones do not count."""

    host: str
    headers: Headers = ()
    chosen: str | None = None
    speed: float = 1.0
    own_statuses: bool = False


def read_recording(path: Path, beside: RecordingFlags) -> Replay:
    """Read a recording (``-`` for stdin). Raises ``UserError``."""
    on_stdin = str(path) == "-"
    shown = "the recording on stdin" if on_stdin else f"the recording {str(path)!r}"
    name = "stdin" if on_stdin else path.name
    try:
        with contextlib.nullcontext(sys.stdin.buffer) if on_stdin else path.open("rb") as file:
            return _read(file, _Collected(shown, name, beside))
    except OSError as error:
        raise UserError(
            f"{shown} cannot be read: {error.strerror}", "name a file that can be read"
        ) from error


def _read(file: BinaryIO, found: _Collected) -> Replay:
    lines = _lines(file, found.shown)
    head, kind = _look(lines)
    if not head:
        raise UserError(f"{found.shown} is empty", FORMATS)
    if kind == HAR or (kind is None and _may_be_har(head[0][1])):
        content = b"".join(line for _, line in head)
        content += file.read(HAR_BYTES_MAX + 1 - len(content))
        if len(content) > HAR_BYTES_MAX:
            raise UserError(f"{found.shown} is too large", f"at most {HAR_BYTES_MAX // 2**20} MiB")
        har = parse_har(content, found.shown)
        found.left_out = har.left_out
        for entry in har.entries:
            found.add(entry.number, entry.recorded)
        return found.done(HAR)
    if kind is None:
        raise UserError(f"{found.shown}, line {head[0][0]}: no request can be read", FORMATS)
    parse = {NGINX: parse_nginx, JSON_LINES: parse_timed}.get(kind, parse_line)
    for number, line in chain(head, lines):
        found.add_line(number, line, parse)
    return found.done(kind)


def _lines(file: BinaryIO, shown: str) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers. A HAR file may be one long line: its
    beginning comes alone."""
    number = 0
    while line := file.readline(LINE_BYTES_MAX):
        number += 1
        if len(line) == LINE_BYTES_MAX and not line.endswith(b"\n"):
            if number > 1 or line.lstrip()[:1] != b"{":
                raise UserError(f"{shown}, line {number}: longer than 1 MiB", FORMATS)
            yield number, line
            return
        if line.strip():
            yield number, line


def _look(lines: Iterator[tuple[int, bytes]]) -> tuple[list[tuple[int, bytes]], str | None]:
    """Return the first lines, up to one whose format is known, and the format."""
    head: list[tuple[int, bytes]] = []
    for number, line in lines:
        head.append((number, line))
        if (kind := _kind(line)) is not None or len(head) == LOOKED_AT:
            return head, kind
    return head, None


def _may_be_har(first: bytes) -> bool:
    """Whether a file that begins with this line may be one JSON object."""
    return _text(first).startswith("{") and _object(_text(first)) is None


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").strip().removeprefix("\ufeff")


def _object(text: str) -> dict[str, Any] | None:
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _kind(line: bytes) -> str | None:
    text = _text(line)
    if not text.startswith("{"):
        return kind_of_line(text)
    if (fields := _object(text)) is None:
        return None
    if "log" in fields and isinstance(fields["log"], dict):
        return HAR
    if is_timed(fields):
        return JSON_LINES
    return NGINX if is_nginx(fields) else None


@dataclass
class _Collected:
    """What has been read of a recording."""

    shown: str
    name: str
    beside: RecordingFlags
    left_out: int = 0
    first_left_out: int | None = None
    at_ns: array[int] = field(default_factory=lambda: array("q"))
    numbers: array[int] = field(default_factory=lambda: array("I"))
    known: dict[Sent, int] = field(default_factory=dict)
    statuses: dict[int, set[int]] = field(default_factory=dict)
    headers: dict[Headers, Headers] = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    latest_ns: int = 0
    size_bytes: int = 0
    bodiless: int = 0
    of_others: int = 0
    all_whole: bool = True

    def add_line(self, number: int, line: bytes, parse: Callable[[str], RecordedRequest]) -> None:
        """Parse a line and take its request, or count it as left out. Raises ``UserError``."""
        try:
            recorded = parse(_text(line))
        except (NoLineError, UnsendableError):
            self.left_out += 1
            self.first_left_out = self.first_left_out or number
            return
        except UserError as error:
            raise UserError(f"{self.shown}, line {number}: {error.message}", error.hint) from None
        back_ns = self.latest_ns - recorded.at_ns
        if back_ns > BACK_NS_MAX:
            raise UserError(
                (
                    f"{self.shown}, line {number}: its time is {format_duration(back_ns)}"
                    " before that of an earlier line"
                ),
                "put the lines in order of time, or replay one log after the other",
            )
        self.latest_ns = max(self.latest_ns, recorded.at_ns)
        self.add(number, recorded)

    def add(self, number: int, recorded: RecordedRequest) -> None:
        """Take a recorded request. Raises ``UserError`` if there are too many."""
        if recorded.host:
            self.hosts.setdefault(recorded.host)
            wanted = (self.beside.chosen or recorded.host).lower()
            if wanted not in (recorded.host, recorded.host.rpartition(":")[0]):
                self.of_others += 1
                return
        if len(self.at_ns) == ENTRIES_MAX:
            self._refuse(number, f"there are more than {ENTRIES_MAX:,} requests")
        sent = sent_of(recorded, self._headers(recorded.headers))
        place = self.known.setdefault(sent, len(self.known))
        if place == len(self.known) - 1 and place not in self.statuses:
            self.statuses[place] = set()
            texts = (*sent[:2], *(text for pair in sent[2] for text in pair))
            self.size_bytes += sum(map(len, texts)) + len(sent[3] or b"")
            if place == REQUESTS_MAX:
                self._refuse(number, f"there are more than {REQUESTS_MAX:,} different requests")
            if self.size_bytes > BYTES_MAX:
                self._refuse(number, f"the requests are more than {BYTES_MAX // 2**20} MiB")
        if recorded.status is not None:
            self.statuses[place].add(recorded.status)
        if recorded.body is None and recorded.method in ("POST", "PUT", "PATCH"):
            self.bodiless += 1
        self.all_whole = self.all_whole and recorded.whole
        self.at_ns.append(recorded.at_ns)
        self.numbers.append(place)

    def _headers(self, recorded: Headers) -> Headers:
        """The headers that are sent for recorded ones; requests share them."""
        if recorded not in self.headers:
            own = {name.lower() for name, _ in self.beside.headers}
            kept = (pair for pair in recorded if pair[0].lower() not in own)
            self.headers[recorded] = (*kept, *self.beside.headers)
        return self.headers[recorded]

    def _refuse(self, number: int, what: str) -> None:
        raise UserError(f"{self.shown}, line {number}: {what}", "replay a part of it")

    def done(self, kind: str) -> Replay:
        """Return the traffic. Raises ``UserError`` if there is none, or of several hosts."""
        choose_host(self.shown, self.hosts, self.beside.chosen, HOST_FLAG)
        if not self.at_ns:
            where = f", line {self.first_left_out}" if self.first_left_out else ""
            raise UserError(f"{self.shown}{where}: no request can be read", FORMATS)
        steps, back_ns = 0, 0
        if kind not in (HAR, JSON_LINES):  # others have been written in the order of their ends
            self.at_ns, steps, back_ns = put_right(self.at_ns, self.all_whole)
        places = times_in_order(self.at_ns)
        at_ns = [self.at_ns[place] for place in places]
        recorded_ns = at_ns[-1] - at_ns[0]
        if self.all_whole:
            spread(at_ns)
        beside, speed = self.beside, self.beside.speed
        return Replay(
            about=f"{self.name} ({kind}{'' if speed == 1 else f', {speed:g}x'})",
            notes=(*self._notes(kind, recorded_ns), *_clock_notes(steps, back_ns)),
            host=beside.host,
            at_ns=from_start(at_ns, speed),
            numbers=array("I", (self.numbers[place] for place in places)),
            requests=tuple(self.known),
            statuses=[
                None if beside.own_statuses else good_statuses(frozenset(codes))
                for codes in self.statuses.values()
            ],
        )

    def _notes(self, kind: str, recorded_ns: int) -> Iterable[str]:
        """What the user is told before the run, once."""
        count, speed = len(self.at_ns), self.beside.speed
        faster = "" if speed == 1 else f", sent at {speed:g}x"
        yield (
            f"{self.name} is a {kind}: {format_count(count)} requests,"
            f" {format_count(len(self.known))} of them different,"
            f" over {format_duration(recorded_ns)}{faster}"
        )
        if self.all_whole and count > 1:
            yield "its times are known to the second: requests are spread evenly within each second"
        if self.bodiless:
            yield f"{format_count(self.bodiless)} POST, PUT or PATCH requests have no recorded body"
        if self.left_out:
            first = f", the first in line {self.first_left_out}" if self.first_left_out else ""
            yield f"{format_count(self.left_out)} requests that cannot be sent are left out{first}"
        if self.of_others:
            yield f"{format_count(self.of_others)} requests to other hosts are left out"


def _clock_notes(steps: int, back_ns: int) -> Iterable[str]:
    """What the user is told of a clock that was set back, if it was."""
    if steps:
        often = "" if steps == 1 else f" {format_count(steps)} times, at most"
        yield (
            f"its clock goes back{often} by {format_duration(back_ns)}: the order of its lines"
            " counts, and those behind follow the ones before"
        )
