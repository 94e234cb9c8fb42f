"""Keyword arguments of the functions: the options of each command, with their types.

How: a name is the option's with ``_`` for ``-``, and None leaves an option out.
tests/unit/test_api_options.py checks every class against its command, both ways. Types only: the
command checks the values. Must not know: what an option means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from os import PathLike
from typing import Any, Literal, TypeAlias, TypedDict

Duration: TypeAlias = float | str | timedelta | None
"""Seconds as a number, a text such as ``"500ms"``, or a ``timedelta``."""
Number: TypeAlias = int | str | None
"""A count such as ``64`` or ``"20k"``, or bytes such as ``"10KiB"``."""
Numbers: TypeAlias = int | str | Sequence[int | str] | None
"""One or several numbers: ``[8, 64]``, ``range(4)``, ``"0-3"``."""
Rate: TypeAlias = float | str | None
"""A rate per second as a number, or a text such as ``"20k/s"``."""
Rates: TypeAlias = float | str | Sequence[float | str] | None
ShareOf: TypeAlias = float | str | None
"""A share such as ``0.01`` or ``"1%"``."""
Text: TypeAlias = str | None
Texts: TypeAlias = str | Sequence[str] | None
"""One or several texts."""
Name: TypeAlias = str | PathLike[str] | None
"""The name of a file."""
Flag: TypeAlias = bool | None
Header: TypeAlias = str | bytes | Mapping[str, str] | Sequence[str | bytes] | None
"""A mapping such as ``{"Accept": "text/plain"}``, or header lines."""
Body: TypeAlias = str | bytes | dict[Any, Any] | list[Any] | None
"""Sent unchanged; a dict or a list is sent as JSON."""
Dialect: TypeAlias = Literal["json", "binary", "actioncable", "phoenix"] | None


class ServerPlaceOptions(TypedDict, total=False):
    """Options for where the server runs."""

    server_place: Text


class PlaceOptions(ServerPlaceOptions, total=False):
    """Options for where the engines run."""

    place: Texts
    hosts: Number
    hosts_wait: Duration
    k8s_image: Text
    lab: Name
    no_cache: Flag


class MetricsOptions(TypedDict, total=False):
    """Options for where metrics are sent during a measurement."""

    prometheus: Number
    prometheus_linger: Duration
    otlp: Text


# Written by tools/options.py.


class ThreadOptions(TypedDict, total=False):
    """How an engine runs."""

    threads: Number
    cpus: Numbers
    driver: Literal["auto", "io_uring", "epoll"] | None
    spin: Duration


class SuiteEngineOptions(TypedDict, total=False):
    """How an engine generates load, where a suite has the CPUs."""

    threads: Number
    driver: Literal["auto", "io_uring", "epoll"] | None
    spin: Duration
    coalesce: Duration
    refill: Number
    read_rate: Rate
    write_rate: Rate
    timeout: Duration
    connect_rate: Rate


class EngineOptions(SuiteEngineOptions, total=False):
    """How an engine generates load."""

    cpus: Numbers


class WindowOptions(TypedDict, total=False):
    """How long is measured, and how an open loop is spaced."""

    duration: Duration
    requests: Number
    arrivals: Literal["constant", "poisson"] | None
    stages: Text
    stages_of: Literal["rate", "connections"] | None
    warmup: Duration


class LoadOptions(WindowOptions, total=False):
    """What a server is put under."""

    connections: Number
    idle: Number
    rate: Rate
    seed: Number
    pipeline: Number


# End of what is written.


class RepeatOptions(TypedDict, total=False):
    """Options of repetition."""

    repeat: Number


class MeasuringOptions(
    EngineOptions, LoadOptions, RepeatOptions, PlaceOptions, MetricsOptions, total=False
):
    """Options of every command that measures one server."""

    fail_on: Texts
    strict: Flag
    no_save: Flag
    resolve: Texts
    local_address: Texts


class ServerPidOptions(TypedDict, total=False):
    """The process whose CPU time and memory count as the server's."""

    server_pid: Number


class LostHostsOptions(TypedDict, total=False):
    """What happens if one of several hosts is lost."""

    allow_lost: Number


class SearchOptions(TypedDict, total=False):
    """A search for the largest load that keeps to a limit."""

    limit: Text
    search: Literal["rate", "connections"] | None


class TlsOptions(TypedDict, total=False):
    """Options of TLS on the client's side."""

    cacert: Name
    insecure: Flag
    cert: Name
    key: Name
    no_tls_resumption: Flag


class RequestOptions(TlsOptions, total=False):
    """What is requested of an HTTP server, and which answers are good."""

    http: Literal["1.1", "2", "auto"] | None
    streams: Number
    window: int | str | None
    connection_window: int | str | None
    header_table_size: int | str | None
    follow: Number
    stream: Literal["sse", "chunks", "jsonl"] | None
    stream_end: Text
    stall: Duration

    targets: Name
    curl: Text
    method: Text
    header: Header
    user: Text
    body: Body
    body_file: Name
    data: Name
    data_order: Literal["sequential", "shuffled", "unique"] | None
    keep_body: Flag
    expect_status: Numbers
    expect_body: str | bytes | None
    expect_same: Flag
    close: Flag
    connect_open: Rate
    unix: Name
    proxy: Text


class AbOptions(MeasuringOptions, RequestOptions, total=False):
    """Options of ``trueload.ab``; ``repeat`` is the number of pairs."""


class SuiteOptions(
    SuiteEngineOptions, WindowOptions, RepeatOptions, PlaceOptions, MetricsOptions, total=False
):
    """Options of ``trueload.suite``."""

    subjects: Texts
    cores: Literal["single", "multi"] | None
    connections: Numbers
    pipeline: Numbers
    streams: Numbers
    rate: Rates
    close: Flag
    no_close: Flag
    pools: Numbers
    pool_size: Numbers
    concurrency: Numbers
    full: Flag
    port: Number
    share_cpus: Flag
    patience: Duration
    pair: Literal["reference", "none"] | None
    resume: Text
    seed: Number


class ServeOptions(ThreadOptions, ServerPlaceOptions, total=False):
    """Options of every reference server."""

    listen: Text


class ServeTlsOptions(ServeOptions, total=False):
    """Options of TLS on the server's side."""

    tls: Flag
    cert: Name
    key: Name
