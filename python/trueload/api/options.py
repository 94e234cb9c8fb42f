"""Keyword arguments of the functions: the options of each command, with their types.

How: a name is the option's with ``_`` for ``-``, and None leaves an option out.
tests/unit/test_api_options.py checks every class against its command, both ways. Types only: the
command checks the values.
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
Names: TypeAlias = str | PathLike[str] | Sequence[str | PathLike[str]] | None
"""The names of one or several files."""
Flag: TypeAlias = bool | None
Header: TypeAlias = str | bytes | Mapping[str, str] | Sequence[str | bytes] | None
"""A mapping such as ``{"Accept": "text/plain"}``, or header lines."""
Body: TypeAlias = str | bytes | dict[Any, Any] | list[Any] | None
"""Sent unchanged; a dict or a list is sent as JSON."""


# Written by tools/options.py.


class ThreadOptions(TypedDict, total=False):
    """How an engine runs, whether it generates load or serves."""

    threads: Number
    cpus: Numbers
    driver: Literal["auto", "io_uring", "epoll"] | None
    spin: Duration


class EngineOptions(ThreadOptions, total=False):
    """How an engine generates load, whatever the protocol."""

    coalesce: Duration
    refill: Number
    read_rate: Rate
    write_rate: Rate
    timeout: Duration
    connect_rate: Rate


class LoadOptions(TypedDict, total=False):
    """The load on a server. Of settings that cannot be used together only one is given."""

    connections: Number
    duration: Duration
    rate: Rate
    requests: Number
    warmup: Duration
    pipeline: Number
    stages: Text
    stages_of: Literal["rate", "connections"] | None
    arrivals: Literal["constant", "poisson"] | None
    idle: Number
    seed: Number


class RepeatOptions(TypedDict, total=False):
    """How often is measured."""

    repeat: Number


class IdentityOptions(TypedDict, total=False):
    """The certificate that is shown to the other side."""

    cert: Name
    key: Name


class TlsOptions(IdentityOptions, total=False):
    """TLS on the client's side."""

    cacert: Name
    insecure: Flag
    no_tls_resumption: Flag


class RouteOptions(TypedDict, total=False):
    """How a server is reached."""

    resolve: Texts
    local_address: Texts


class SocketOptions(RouteOptions, total=False):
    """How a server with a URL is reached."""

    unix: Name


class HeaderOptions(TypedDict, total=False):
    """The headers of a request."""

    header: Header
    user: Text


class RowOptions(TypedDict, total=False):
    """How the rows of ``--data`` are taken."""

    data_order: Literal["sequential", "shuffled", "unique"] | None


class ScenarioOptions(TypedDict, total=False):
    """Sessions."""

    scenario: Name


class ConnectOpenOptions(TypedDict, total=False):
    """Connections at a rate."""

    connect_open: Rate


class RequestOptions(
    SocketOptions, TlsOptions, ConnectOpenOptions, RowOptions, HeaderOptions, total=False
):
    """What `http` and `compare` send."""

    proxy: Text
    http: Literal["1.1", "2", "auto"] | None
    streams: Number
    window: int | str | None
    connection_window: int | str | None
    header_table_size: int | str | None
    stream: Literal["sse", "chunks", "jsonl"] | None
    stream_end: Text
    stall: Duration
    close: Flag
    follow: Number
    expect_status: Numbers
    expect_body: str | bytes | None
    expect_same: Flag
    method: Text
    body: Body
    body_file: Name
    form: Texts
    keep_body: Flag
    data: Name
    targets: Name
    curl: Text


class EchoOptions(RouteOptions, total=False):
    """The messages of an echo."""

    size: Number
    data: Name


class DialectOptions(TypedDict, total=False):
    """How the messages of a WebSocket server are wrapped."""

    dialect: Literal["json", "binary", "actioncable", "phoenix"] | None


class UpgradeOptions(DialectOptions, HeaderOptions, SocketOptions, TlsOptions, total=False):
    """How a connection becomes a WebSocket."""

    origin: Text
    subprotocol: Texts


class ResultOptions(TypedDict, total=False):
    """What happens with the result of any measurement."""

    fail_on: Texts
    strict: Flag
    no_save: Flag


class ServerPlaceOptions(TypedDict, total=False):
    """Where the server runs."""

    server_place: Text


class PlaceOptions(ServerPlaceOptions, total=False):
    """Where the engines run."""

    place: Texts
    hosts: Number
    hosts_wait: Duration
    k8s_image: Text
    lab: Name
    no_cache: Flag


class WaitOptions(TypedDict, total=False):
    """How long a run waits for another one."""

    wait: Duration


class MetricsOptions(TypedDict, total=False):
    """Where metrics are sent during a measurement."""

    prometheus: Number
    prometheus_linger: Duration
    otlp: Text


class ServeOptions(ServerPlaceOptions, ThreadOptions, total=False):
    """What every reference server has."""

    listen: Text


class ServeStreamOptions(ServeOptions, total=False):
    """A server that has connections."""

    idle_timeout: Duration
    max_connections: Number


class ServeTlsOptions(ServeStreamOptions, IdentityOptions, total=False):
    """A server that may speak TLS."""

    tls: Flag


class ServeWsOptions(ServeTlsOptions, DialectOptions, total=False):
    """All of `serve ws`."""


class ServeHttpOptions(ServeTlsOptions, total=False):
    """All of `serve http`: its record of clients, and the errors it makes on purpose."""

    record: Flag
    http: Literal["1.1", "2"] | None
    max_streams: Number
    error_share: ShareOf
    reset_share: ShareOf
    stall_share: ShareOf
    stall_for: Duration
    slow_share: ShareOf
    slow_for: Duration
    cut_share: ShareOf
    close_after: Number
    close_silently: Flag
    refuse_share: ShareOf
    goaway_after: Number
    stall_window: Flag
    settings_delay: Duration
    work: Duration
    fault_seed: Number


class LoadingOptions(
    ResultOptions,
    RepeatOptions,
    EngineOptions,
    LoadOptions,
    PlaceOptions,
    WaitOptions,
    MetricsOptions,
    total=False,
):
    """Options of every function that loads a server."""

    limit: Text
    search: Literal["rate", "connections"] | None
    allow_lost: Number
    server_pid: Number


class AbOptions(
    ResultOptions,
    RepeatOptions,
    EngineOptions,
    LoadOptions,
    PlaceOptions,
    WaitOptions,
    MetricsOptions,
    RequestOptions,
    total=False,
):
    """Options of ``trueload.ab``; ``repeat`` is the number of pairs."""


class HttpOptions(LoadingOptions, ScenarioOptions, RequestOptions, total=False):
    """Options of ``trueload.http``."""

    replay: Names
    log_format: Text
    speed: Rate
    replay_host: Text
    request_log: Name


class TcpOptions(LoadingOptions, EchoOptions, total=False):
    """Options of ``trueload.tcp``."""

    close: Flag
    half_close: Flag


class UdpOptions(LoadingOptions, EchoOptions, total=False):
    """Options of ``trueload.udp``."""


class WsOptions(
    LoadingOptions,
    UpgradeOptions,
    EchoOptions,
    ScenarioOptions,
    RowOptions,
    ConnectOpenOptions,
    total=False,
):
    """Options of ``trueload.ws``."""

    text: Flag
    binary: Flag
    deflate: Flag
    step: Number
    steps: Number
    initial_clients: Number
    concurrent: Number
    samples: Number
    padding: Number
    stop_on_loss: Flag
    mode: Literal["echo", "broadcast"] | None


class SuiteOptions(PlaceOptions, WaitOptions, MetricsOptions, RepeatOptions, total=False):
    """Options of ``trueload.suite``."""

    cores: Literal["single", "multi"] | None
    port: Number
    share_cpus: Flag
    connections: Numbers
    rate: Rates
    pipeline: Numbers
    streams: Numbers
    close: Flag
    no_close: Flag
    pools: Numbers
    pool_size: Numbers
    concurrency: Numbers
    full: Flag
    seed: Number
    patience: Duration
    subjects: Texts
    pair: Literal["reference", "none"] | None
    resume: Text
    threads: Number
    timeout: Duration
    duration: Duration
    requests: Number
    warmup: Duration
    stages: Text
    stages_of: Literal["rate", "connections"] | None
    arrivals: Literal["constant", "poisson"] | None


# End of what is written.
