"""The options of what is sent and of how it is answered, each declared once.

A class is a group of options that belong together; the last classes are all options of a command.
A new option is a field here, and its meaning is one use of it where the command is read
(``commands.request_flags``). Those of ``DialogueOptions`` are in the engine's plan as they are, and
need no more than their field.
"""

import math
import re
from pathlib import Path
from typing import Literal, get_args

from trueload.protocol.engine_options import PIPELINE_MAX
from trueload.protocol.load_options import CONNECTIONS_MAX, RATE
from trueload.protocol.option import (
    FILE,
    FLAG,
    OUT_FILE,
    SPAN,
    Settings,
    Unit,
    counts_to,
    one_of,
    option,
    within,
)
from trueload.protocol.shootout import Dialect
from trueload.protocol.windows import header_table_size, window_of_connection, window_of_stream
from trueload.units import parse_size

FOLLOW_MAX = 100
"""Most redirects of one request; the engine allows no more."""
MESSAGE_BYTES_MAX = 2**20
SAMPLES_MAX = 10**9
SPEED_MAX = 1e6
_SPEED = re.compile(r"(\d+(?:\.\d+)?)x?", re.ASCII)

Version = Literal["1.1", "2", "auto"]
"""The versions of HTTP that may be asked for; with ``auto`` the server chooses by ALPN."""
DataOrder = Literal["sequential", "shuffled", "unique"]
"""Which row a request takes: the next, one in random order, or the next until none is left."""
StreamKind = Literal["sse", "chunks", "jsonl"]
"""What a part is: a server-sent event, a chunk (with HTTP/2 a DATA frame), or a line."""
WsMode = Literal["echo", "broadcast"]


def parse_speed(text: str) -> float:
    """Parse how many times faster than recorded, like ``2x`` or ``0.5``. Raises ``ValueError``."""
    found = _SPEED.fullmatch(text.strip())
    speed = float(found[1]) if found else math.nan
    if not 0 < speed <= SPEED_MAX:
        raise ValueError(f"'{text}' is not a speed above 0, such as 2x or 0.5x")
    return speed


_MOST = f"{MESSAGE_BYTES_MAX // 2**20} MiB"
_message_size = within(parse_size, 1, MESSAGE_BYTES_MAX, f"not from 1 B to {_MOST}")
_padding = within(parse_size, 0, MESSAGE_BYTES_MAX, f"more than {_MOST}")


class IdentityOptions(Settings, group="TLS"):
    """The certificate that is shown to the other side."""

    cert: Path | None = option(FILE, "Certificate to present, with its chain (PEM).")
    key: Path | None = option(
        FILE, "Private key of the certificate (PEM); by default it is read from the file of --cert."
    )


class TlsOptions(IdentityOptions, group="TLS"):
    """TLS on the client's side."""

    cacert: Path | None = option(
        FILE,
        "Trust the issuers in this PEM file instead of the system's (TLS).",
    )
    insecure: bool = option(
        FLAG,
        "Accept any certificate; the record and the report say so (TLS).",
        "Accept any certificate",
    )
    no_tls_resumption: bool = option(
        FLAG, "Make a full TLS handshake for every connection, and resume no session."
    )


class RouteOptions(Settings, group="Connections"):
    """How a server is reached."""

    resolve: tuple[str, ...] = option(
        Unit("HOST:PORT:ADDRESS"),
        "Connect to ADDRESS for this host and port, as with curl; repeatable.",
        several=True,
    )
    local_address: tuple[str, ...] = option(
        Unit("IP"),
        "Local address to connect from; repeatable, and then used in turn.",
        several=True,
    )


class SocketOptions(RouteOptions, group="Connections"):
    """How a server with a URL is reached."""

    unix: str | None = option(
        Unit("PATH", keyword="Name"),
        "Connect to this Unix socket file; the URL gives the Host header and the path.",
    )


class HeaderOptions(Settings, group="Requests"):
    """The headers of a request."""

    header: tuple[str, ...] = option(
        Unit("HEADER", keyword="Header"),
        "Header to send, written 'Name: value', or @FILE for a file of such lines; repeatable.",
        "Header to send, 'Name: value'; repeatable",
        short="-H",
        several=True,
    )
    user: str | None = option(
        Unit("NAME:PASSWORD"),
        "Name and password to send as HTTP basic authentication.",
        "Send as HTTP basic authentication",
    )


class RowOptions(Settings, group="Requests"):
    """How the rows of ``--data`` are taken."""

    data_order: DataOrder | None = option(
        one_of(*get_args(DataOrder)),
        "Which row a request or session takes: the next and then the first again, one in random"
        " order, or each row once, which ends the run.",
        unset="sequential",
    )


class ContentOptions(RowOptions, HeaderOptions, group="Requests"):
    """What is requested."""

    method: str | None = option(
        Unit("METHOD"),
        "HTTP method of each request.",
        "HTTP method",
        short="-X",
        unset="GET; POST with a body",
    )
    body: str | None = option(
        Unit("TEXT", keyword="Body"),
        "Text to send as the body of each request.",
        "Text to send as the body",
    )
    body_file: Path | None = option(
        FILE, "File to send as the body of each request; - for stdin.", "File to send as the body"
    )
    form: tuple[str, ...] = option(
        Unit("NAME=VALUE"),
        "Field to send in a form (multipart/form-data), as curl's -F: NAME=VALUE, or NAME=@FILE for"
        " a file; repeatable.",
        several=True,
    )
    keep_body: bool = option(
        FLAG, "Store bodies given on the command line as they are, instead of their SHA-256."
    )
    data: Path | None = option(
        FILE,
        "File with a row for each request or session (.csv, .tsv, .jsonl; - for stdin): {name} in"
        " path, header values and body becomes its column.",
        "Rows that fill {name} in requests (.csv, …)",
    )
    targets: Path | None = option(
        FILE,
        "File of requests to one server or several, sent in turns by weight: a JSON object or a URL"
        " per line, or a file of vegeta (vegeta:FILE where that is not clear); - for stdin.",
        "Requests to send in turns (JSON lines, URLs)",
    )
    curl: str | None = option(
        Unit("COMMAND"),
        "Send the request of a copied curl command, such as --curl 'curl http://… -H …'.",
        "Send the request of a curl command",
    )


OF_ONE_REQUEST = ("method", "body", "body_file", "form")
"""What a single request has, and targets, scenarios, recordings and curl commands have instead."""


class ScenarioOptions(Settings, group="Requests"):
    """Sessions."""

    scenario: Path | None = option(
        FILE,
        "TOML file of the steps that each connection goes through in order, as a virtual user with"
        " cookies, pauses, and values from earlier answers (docs/scenarios.md).",
        "Steps of virtual users (TOML)",
        texts={
            "ws": "TOML file of a conversation instead: messages to send and to expect in order,"
            " with pauses, and values from earlier messages (docs/websocket.md)."
        },
    )


class RecordedOptions(ScenarioOptions, group="Requests"):
    """Sessions and recorded traffic, which `compare` cannot send."""

    replay: tuple[Path, ...] = option(
        FILE,
        "Send recorded requests at their recorded times, with no warm-up by default: an access log,"
        " a HAR file, or JSON lines with times, also compressed by gzip or xz; - for stdin."
        " Repeatable: several files are one recording, in the order of their times"
        " (docs/replay.md).",
        "Send recorded requests (access log, HAR)",
        several=True,
    )
    log_format: str | None = option(
        Unit("PATTERN"),
        "Format of the logs of --replay, as the server's configuration has it: nginx's variables,"
        " such as '[$time_local] \"$request\" $status', or Apache's directives, such as '%t"
        ' "%r" %>s\'.',
        unset="told from the content",
    )
    speed: float | None = option(
        Unit("SPEED", parse_speed, keyword="Rate"),
        "How many times faster than recorded to replay, such as 2x or 0.5x.",
        unset="1x",
    )
    replay_host: str | None = option(
        Unit("HOST"), "Of a recording of several hosts, replay only the requests to this one."
    )


class AnswerOptions(Settings, group="Requests"):
    """What a good answer is."""

    expect_status: tuple[str, ...] = option(
        Unit("CODES", keyword="Numbers"),
        "Status codes of a good answer, such as 200, 200,404 or 3xx; repeatable.",
        "Status codes of a good answer",
        several=True,
        unset="2xx",
    )
    expect_body: str | None = option(
        Unit("TEXT", keyword="str | bytes | None"), "Exact body that a good answer must have."
    )
    expect_same: bool = option(
        FLAG, "Make the verdict invalid if the answers to a request are not all alike."
    )


class DialogueOptions(Settings, group="Requests"):
    """What follows an answer. The engine takes these as they are."""

    follow: int | None = option(
        counts_to(FOLLOW_MAX),
        "Follow at most this many redirects of a request, on its server. The final answer is"
        " judged, latency runs to its end, and each redirect is counted and timed.",
        "Follow at most this many redirects",
        unset="none is followed",
        omitted=True,
    )


class ConnectOpenOptions(Settings, group="Load"):
    """Connections at a rate."""

    connect_open_per_s: float | None = option(
        RATE,
        "Open new connections at this rate, such as 5k/s, whether or not earlier ones are done (an"
        " open loop). Each carries one request. Connect, TLS handshake and answer are timed from"
        " the schedule; -c is how many may be open at once.",
        texts={
            "ws": "With --scenario, start conversations at this rate, such as 100/s, each on a"
            " connection that is opened then. Connect, TLS handshake and first step are timed from"
            " the schedule; -c is how many there may be at once."
        },
    )


class OpeningOptions(ConnectOpenOptions, group="Load"):
    """When a connection is opened for a request."""

    close: bool = option(
        FLAG,
        "Open a new connection for each request.",
        "Open a new connection for each request",
        texts={"tcp": "Open a new connection for each message."},
    )


class Http2Options(Settings, group="HTTP/2"):
    """The version of HTTP, and what only HTTP/2 has."""

    http: Version | None = option(
        one_of(*get_args(Version)),
        "HTTP version to speak. Over https://, 2 is negotiated by ALPN, and auto takes what the"
        " server chooses for each connection. Over http://, the server must expect 2 (prior"
        " knowledge).",
        "HTTP version: 1.1, 2 or auto",
        unset="1.1",
    )
    streams: int | None = option(
        counts_to(PIPELINE_MAX),
        "Requests in flight on each HTTP/2 connection.",
        "In flight on each connection of HTTP/2",
        unset="1",
        group="Load",
    )
    window: int | None = option(
        Unit("SIZE", window_of_stream, keyword="int | str | None"),
        "Bytes that the server may send on an HTTP/2 stream before it waits for us. A size, rfc"
        " (65,535), browser (6 MiB, as in Chrome) or unlimited.",
        unset="browser",
    )
    connection_window: int | None = option(
        Unit("SIZE", window_of_connection, keyword="int | str | None"),
        "The same for a whole HTTP/2 connection, where browser is 15 MiB.",
        unset="browser",
    )
    header_table_size: int | None = option(
        Unit("SIZE", header_table_size, keyword="int | str | None"),
        "Size of the HPACK table that the server may use on each HTTP/2 connection; 0 for none.",
        unset="4KiB",
    )


class StreamOptions(Settings, group="Streamed answers"):
    """Answers that are streams."""

    stream: StreamKind | None = option(
        one_of(*get_args(StreamKind)),
        "Answers are streams: time each part. A part is a server-sent event (sse), an HTTP chunk or"
        " DATA frame (chunks), or a line (jsonl). With a language model, this gives the time to"
        " first token and the time between tokens.",
        "Time the parts of streams: sse, chunks or jsonl",
    )
    stream_end: str | None = option(
        Unit("END"),
        "What must follow the last part: the content of a final part, such as '[DONE]', an"
        " event (event:done), or only the end of the body (body). Without it an answer is"
        " truncated.",
        unset="body",
    )
    stall_ns: int | None = option(
        SPAN,
        "A stream without a part for this long, such as 5s, fails as timeout.stall. The first part"
        " only has to come within --timeout.",
    )


class ProxyOptions(Settings, group="Connections"):
    """The proxy between client and server."""

    proxy: str | None = option(
        Unit("URL"),
        "Send requests through this proxy, http://[USER:PASSWORD@]HOST:PORT; for https:// URLs each"
        " connection is a tunnel (CONNECT).",
    )


class RequestOptions(
    ProxyOptions,
    SocketOptions,
    TlsOptions,
    Http2Options,
    StreamOptions,
    OpeningOptions,
    DialogueOptions,
    AnswerOptions,
    ContentOptions,
):
    """What `http` and `compare` send."""


class HttpOptions(RecordedOptions, RequestOptions):
    """All of `http`."""

    request_log: Path | None = option(
        OUT_FILE,
        "Write a row for each request of the window to FILE (.csv or .parquet), with its times.",
        group="Output",
    )


class EchoOptions(RouteOptions, group="Messages"):
    """The messages of an echo."""

    size: int | None = option(
        Unit("SIZE", _message_size, keyword="Number"),
        "Size of each message, such as 64, 16KiB or 1MiB.",
        "Size of each message, such as 64 or 16KiB",
        unset="64",
    )
    data: Path | None = option(
        FILE,
        "File that is the message; - for stdin.",
        texts={
            "ws": "File that is the message; - for stdin. With --scenario, a file whose rows fill"
            " {name} in the steps, one for each conversation (docs/scenarios.md)."
        },
    )


class TcpOptions(EchoOptions, group="Messages"):
    """All of `tcp`."""

    close: bool = option(
        FLAG,
        "Open a new connection for each message.",
        "Open a new connection for each message",
        group="Load",
    )
    half_close: bool = option(
        FLAG,
        "Close the sending side after each message; all of it must still come back. Needs --close.",
    )


class DialectOptions(Settings, group="Messages"):
    """How the messages of a WebSocket server are wrapped."""

    dialect: Dialect | None = option(
        one_of(*get_args(Dialect)),
        "Format that messages are wrapped in.",
        "json, binary, actioncable or phoenix",
        unset="json; plain echoes are not wrapped",
    )


class UpgradeOptions(DialectOptions, HeaderOptions, SocketOptions, TlsOptions, group="Messages"):
    """How a connection becomes a WebSocket."""

    origin: str | None = option(Unit("ORIGIN"), "Value of the Origin header.")
    subprotocol: tuple[str, ...] = option(
        Unit("NAME"), "Offer this subprotocol; repeatable.", several=True
    )


class WsEchoOptions(
    UpgradeOptions, EchoOptions, ScenarioOptions, RowOptions, ConnectOpenOptions, group="Messages"
):
    """All of the echoes of `ws`."""

    text: bool | None = option(
        FLAG, "Send text or binary messages. Echo only.", off="--binary", unset="text"
    )
    deflate: bool = option(
        FLAG,
        "Offer compression (permessage-deflate), and tell the sizes with it and without. Not for"
        " broadcasts.",
        "Offer compression (permessage-deflate)",
    )


class WsBroadcastOptions(UpgradeOptions, group="Broadcast"):
    """All of the broadcasts of `ws`."""

    step: int | None = option(
        counts_to(CONNECTIONS_MAX),
        "Broadcast: clients that join with each step.",
        "Broadcast: clients that join with each step",
        unset="1000",
    )
    steps: int | None = option(
        counts_to(CONNECTIONS_MAX),
        "Broadcast: stop after this many steps, even if the limit is not crossed.",
        "Broadcast: stop after this many steps",
    )
    initial_clients: int | None = option(
        counts_to(CONNECTIONS_MAX), "Broadcast: clients of the first step.", unset="--step"
    )
    concurrent: int | None = option(
        counts_to(PIPELINE_MAX),
        "Broadcast: messages in flight at once, over all clients.",
        unset="4",
    )
    samples: int | None = option(
        counts_to(SAMPLES_MAX),
        "Broadcast: messages sent in each step; the confirming step has more.",
        unset="100",
    )
    padding: int | None = option(
        Unit("SIZE", _padding, keyword="Number"),
        "Broadcast: size of a message's padding, beside its sender and number.",
        unset="200",
    )
    stop_on_loss: bool = option(FLAG, "Broadcast: stop when a delivery is lost or comes twice.")


class ModeOptions(Settings, group="Load"):
    """What is measured of a WebSocket server."""

    mode: WsMode = option(
        one_of(*get_args(WsMode)),
        "What to measure: echo (each message comes back), or broadcast (each goes to all clients).",
        "echo (it comes back) or broadcast (to all)",
        default="echo",
    )
