"""A suite's file: which subjects, which contract, which loads, how often.

How: one strict model; what is not known is refused with the file, the key and the known
ones. Text becomes meaning here (durations, selects), once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, ValidationError, field_serializer, model_validator

from trueload.errors import UserError
from trueload.files.invalid import Mistake, first_mistake
from trueload.files.toml import UnreadableError, read_toml
from trueload.near import did_you_mean
from trueload.protocol.client import PATH_PATTERN, STREAMS
from trueload.protocol.engine_options import ENGINE_DEFAULTS, EngineOptions
from trueload.protocol.exchange import WindowsPlan
from trueload.protocol.load_options import (
    LOAD_DEFAULTS,
    WINDOW_KEYS,
    LoadOptions,
    positive_rate,
    staged,
)
from trueload.protocol.model import Model, checked_by
from trueload.protocol.option import Settings, name_of, options_of, read_texts, within
from trueload.protocol.windows import header_table_size, window_of_connection, window_of_stream
from trueload.record.thresholds import CLIENTS_LIMIT, parse_condition
from trueload.request.message import MESSAGE_BYTES_MAX
from trueload.subjects.manifest import Cores
from trueload.units import NS_PER_MS, SEED_MAX, parse_duration, parse_size

WAIT_NS_MAX = 60_000_000_000  # of the reference server

# A suite keeps the CPUs of subject and engine apart itself.
ENGINE_KEYS = tuple(map(name_of, options_of(EngineOptions, without=("cpus",))))
# The fields of a suite whose settings are keys of their own.
SETTINGS: dict[str, tuple[type[Settings], tuple[str, ...]]] = {
    "engine": (EngineOptions, ENGINE_KEYS),
    "window": (LoadOptions, WINDOW_KEYS),
}

Positive = Annotated[int, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Permitted = Annotated[int, Field(ge=1, le=STREAMS)]
Seed = Annotated[int, Field(ge=0, le=SEED_MAX)]
Report = Literal["table", "apachebench"]


def _limit(text: str) -> None:
    try:
        parse_condition(text, CLIENTS_LIMIT)
    except UserError as error:
        raise ValueError(error.message) from None


def _wait(text: str) -> None:
    ns = parse_duration(text)
    if ns % NS_PER_MS or not 0 < ns <= WAIT_NS_MAX:
        raise ValueError(f"'{text}' is not a wait of whole milliseconds, from 1 ms to 60 s")


_size = within(parse_size, 0, MESSAGE_BYTES_MAX, f"more than {MESSAGE_BYTES_MAX:,} bytes")
Size = Annotated[str, checked_by(_size)]
AskedPath = Annotated[str, Field(pattern=PATH_PATTERN)]
Limit = Annotated[str, checked_by(_limit)]
Rate = Annotated[str, checked_by(positive_rate)]
TableSize = Annotated[str, checked_by(header_table_size)]


class Axes(Model):
    """Loads: every combination of the values. `cores` is where the subject runs; with a `rate` the
    loop is open, without one each connection sends as soon as it can. `close` takes the place of
    the suite's. `idle` are the steps of a staircase: so many idle connections beside the others,
    the last of them held under load. `path` are those that the contract has an exchange of, `tls`
    whether the subject answers over TLS, `streams` the requests in flight on a connection of
    HTTP/2.

    Of clients: so many `pools` of so many connections (`pool_size`), and so many requests at once
    (`concurrency`); `files` are limits of open files, 0 for as many as there may be. Over HTTP/2
    a connection may have so many `streams`, and the server permits `max_streams`."""

    connections: tuple[Positive, ...] = Field(default=(64,), min_length=1)
    pipeline: tuple[Positive, ...] = Field(default=(1,), min_length=1)
    cores: tuple[Cores, ...] = Field(default=("single",), min_length=1)
    rate: tuple[Rate, ...] = ()
    close: tuple[bool, ...] = ()
    idle: tuple[Count, ...] = ()
    streams: tuple[Positive, ...] = ()
    tls: tuple[bool, ...] = ()
    path: tuple[AskedPath, ...] = ()
    pools: tuple[Positive, ...] = ()
    pool_size: tuple[Positive, ...] = ()
    concurrency: tuple[Positive, ...] = ()
    files: tuple[Count, ...] = ()
    max_streams: tuple[Permitted, ...] = ()

    @model_validator(mode="after")
    def _of_one_role(self) -> Axes:
        if not self.of_clients:
            if self.files:
                raise ValueError(
                    "files in a load is for suites of clients; for servers, files is a key"
                    " of the suite"
                )
            if self.max_streams:
                raise ValueError("max_streams is an axis of clients, whose server permits them")
            return self
        if not (self.pools and self.pool_size and self.concurrency):
            raise ValueError("a load of clients has pools, pool_size and concurrency")
        of_servers = {"connections", "pipeline", "rate", "close", "idle", "tls", "path"}
        others = of_servers & self.model_fields_set
        if others:
            raise ValueError(f"{sorted(others)[0]} is an axis of servers, beside those of clients")
        return self

    @property
    def of_clients(self) -> bool:
        """Whether it is a load of clients."""
        return bool(self.pools or self.pool_size or self.concurrency)

    @model_validator(mode="after")
    def _steps_rise(self) -> Axes:
        if any(later <= earlier for earlier, later in pairwise(self.idle)):
            raise ValueError("the steps of idle must rise, like [0, 1000, 5000]")
        return self


def combined(axes: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Every combination of the values of axes, by name; the last axis turns fastest."""
    for values in product(*axes.values()):
        yield dict(zip(axes, values, strict=True))


class PublishedRow(Model):
    """A published figure: of whom, and which of ours stands beside it, if one does."""

    name: str
    value: float
    subject: str = ""


class PublishedTable(Model):
    """What was published of a load, in thousand requests per second: shown beside ours, of the
    loads with as many connections."""

    title: str
    connections: Positive
    rows: tuple[PublishedRow, ...] = Field(min_length=1)


class Broadcast(Model):
    """How each trial searches for the most clients: those of a load join with each step, `steps` of
    them at most; so many messages are in flight, each with so much padding."""

    limit: Limit
    concurrent: Positive = 4
    padding: Size = "200"
    steps: Positive | None = None


class Clients(Model):
    """Clients are measured, by requests that the reference server answers after `wait`. The
    repetitions of a cell are orders to one process in each of so many `rounds`, which go through
    all cells: so that what drifts on the machine, and how processes differ, is in the figures."""

    rounds: Positive = 1
    wait: Annotated[str, checked_by(_wait)]


class Http2(Model):
    """Requests go over HTTP/2, as `trueload http --http 2` sends them, with these windows and this
    table of headers."""

    window: Annotated[str, checked_by(window_of_stream)] = "browser"
    connection_window: Annotated[str, checked_by(window_of_connection)] = "browser"
    header_table_size: TableSize = "4KiB"

    @property
    def windows(self) -> WindowsPlan:
        """As they go into a plan."""
        return WindowsPlan(
            stream_window=window_of_stream(self.window),
            connection_window=window_of_connection(self.connection_window),
            header_table_bytes=header_table_size(self.header_table_size),
        )


class Suite(Model):
    """A suite as written. `subjects` are SELECTs, none for all that have the contract;
    `files` is the open-file limit of the subject, 0 for all that there are. With `prime` the
    warm-up is a run like the measured one. `full` are the loads that `--full` has instead. `report`
    is what is said of each subject: one line of the table, or below it also what ApacheBench
    prints. The `reference` is the subject that others are measured beside, if they are. The
    engine's options are keys of their own, and so are those of the `window`."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    about: str
    contract: str
    subjects: tuple[str, ...] = ()
    variants: Literal["all", "default"] = "all"
    loads: tuple[Axes, ...] = (Axes(),)
    window: LoadOptions = LOAD_DEFAULTS
    prime: bool = False
    engine: EngineOptions = ENGINE_DEFAULTS
    close: bool = False
    repeat: Positive = 6
    patience: Annotated[str, checked_by(parse_duration)] = "10m"
    reference: str = ""
    seed: Seed = 1
    files: int = Field(default=0, ge=0)
    broadcast: Broadcast | None = None
    clients: Clients | None = None
    http2: Http2 | None = None
    full: tuple[Axes, ...] = ()
    published: str = ""
    published_tables: tuple[PublishedTable, ...] = ()
    notes: tuple[str, ...] = ()
    report: Report = "table"

    @field_serializer(*SETTINGS)
    def _show_settings(self, settings: Settings) -> dict[str, Any]:
        options = options_of(type(settings))
        return {
            name: value
            for name, value in settings.values.items()
            if not options[name].omitted or value != options[name].default
        }

    @model_validator(mode="before")
    @classmethod
    def _read_settings(cls, keys: Any) -> Any:
        if not isinstance(keys, Mapping):
            return keys
        found = dict(keys)
        for field, (model, names) in SETTINGS.items():
            given = {name: found.pop(name) for name in names if name in found}
            if field not in found:
                found[field] = read_texts(model, given)
            elif not isinstance(found[field], model):
                raise ValueError(_no_key(field, cls))
        return found

    @model_validator(mode="after")
    def _one_stop(self) -> Suite:
        if sum(map(self.window.gave, ("duration_ns", "requests", "stages"))) != 1:
            raise ValueError("give either duration, requests or stages")
        if self.broadcast is not None and self.window.requests is None:
            raise ValueError("a broadcast needs requests: the number of messages in each step")
        if self.prime and self.window.warmup_ns is not None:
            raise ValueError("prime and warmup cannot be used together")
        is_open = any(block.rate for block in self.loads) or (
            self.window.gave("stages") and self.window.stages_of == "rate"
        )
        if self.window.gave("arrivals") and not is_open:
            raise ValueError("arrivals are of an open loop: add a rate to [[loads]]")
        return self

    @model_validator(mode="after")
    def _stages_stand_alone(self) -> Suite:
        window = self.window
        if window.stages is None:
            if window.gave("stages_of"):
                raise ValueError("stages_of is given, but no stages")
            return self
        staged(window.stages, window.stages_of)
        if self.prime:
            raise ValueError("prime and stages cannot be used together")
        axis = "connections" if window.stages_of == "connections" else "rate"
        if any(axis in block.model_fields_set for block in self.loads):
            raise ValueError(f"{axis} in [[loads]] and stages of it cannot be used together")
        return self

    @model_validator(mode="after")
    def _of_one_role(self) -> Suite:
        blocks = (*self.loads, *self.full)
        if any(block.of_clients != (self.clients is not None) for block in blocks):
            raise ValueError(
                "each load of a suite with [clients] needs pools, and other suites have none"
            )
        if self.clients is not None and not self.window.gave("duration_ns"):
            raise ValueError(
                "a suite with [clients] needs a duration: the time that an order is to take"
            )
        return self

    @model_validator(mode="after")
    def _of_one_version(self) -> Suite:
        for block in (*self.loads, *self.full):
            if self.http2 is None and (block.streams or block.max_streams):
                raise ValueError("streams are of HTTP/2: add [http2], or write pipeline")
            if self.http2 is not None and block.pipeline != (1,):
                raise ValueError("pipeline is of HTTP/1.1: write streams, or leave [http2] out")
        return self


# What is said of a key that is missing.
_MEANINGS = {
    "about": "one line that says what is compared",
    "contract": "what all subjects answer: the name of a file in contracts/",
    "clients.wait": 'how long the server takes for each answer, like "10ms"',
    "broadcast.limit": 'what a number of clients has to keep to, like "p95<500ms"',
}
_TABLES: dict[str, type[Model]] = {
    "loads": Axes,
    "full": Axes,
    "broadcast": Broadcast,
    "clients": Clients,
    "http2": Http2,
    "published_tables": PublishedTable,
}


def _no_key(place: str, model: type[Model]) -> str:
    keys = [key for field in model.model_fields for key in SETTINGS.get(field, (None, [field]))[1]]
    return f"{place!r} is not a key; keys are {', '.join(keys)}"


def suite_names(folder: Path) -> list[str]:
    """The suites of the catalogue."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def find_suite(name: str, folder: Path) -> Path:
    """The file of a suite: a NAME of the catalogue, or a FILE. Raises ``UserError``."""
    if name.endswith(".toml") or "/" in name:
        path = Path(name)
        if not path.is_file():
            raise UserError(f"there is no suite file {name}", "`trueload suite list` shows suites")
        return path
    known = suite_names(folder)
    if name not in known:
        hint = did_you_mean(name, known) or f"suites are {', '.join(known)}"
        raise UserError(f"no suite is called {name!r}", hint)
    return folder / f"{name}.toml"


def load_suite(path: Path) -> Suite:
    """Raises ``UserError`` with one line that names the file and the place in it."""
    hint = "correct the file; docs/your-own-suite.md explains every key"
    try:
        return Suite.model_validate(read_toml(path))
    except UnreadableError as error:
        raise UserError(f"{path} {error}", hint) from None
    except ValidationError as error:
        raise UserError(f"{path}: {_in_words(first_mistake(error))}", hint) from None


def _in_words(mistake: Mistake) -> str:
    if mistake.is_unknown:
        model = _TABLES.get(str(mistake.keys[0]), Suite) if len(mistake.keys) > 1 else Suite
        return _no_key(mistake.place, model)
    if mistake.is_missing and mistake.place in _MEANINGS:
        return f"{mistake.sentence()}: {_MEANINGS[mistake.place]}"
    return mistake.sentence()
