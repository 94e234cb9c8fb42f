"""HTTP/2 servers that misbehave as some real ones do, and what each generator says of them.

`bench/traps2.py` (some three minutes) runs trueload, h2load, oha and k6, where installed, each
against its own scripted server. The server ends connections, cuts bodies, permits one stream or
says nothing, and counts what it did. Exit code 1 if trueload says something else than what
happened; the others are only listed. k6 speaks HTTP/2 over TLS only, so its server uses TLS.
"""

from __future__ import annotations

import json
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import trustme
from built import find_built
from marks import Limit, Mark, exit_code, mark, mark_table
from page import RELIABILITY, write_section
from process import BenchError

sys.path[:0] = [
    str(Path(__file__).resolve().parent.parent / folder) for folder in ("tests", "python")
]

from harness import Trueload  # noqa: E402
from scripted_http2 import (  # noqa: E402
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HEADERS,
    OK,
    RST_STREAM,
    Http2Peer,
    Seen,
    answer,
    frame,
    settings,
)

SECONDS = 2
PATIENCE_S = 20.0
STATUS_500 = b"\x8e"  # :status 500, from the static table
Answers = Callable[[int, int], bytes | None]


def goes_away(number: int, stream: int) -> bytes:
    """Ten answers, then GOAWAY behind the last of them; the connection stays open but silent."""
    if number > 10:
        return b""
    last = frame(GOAWAY, 0, 0, stream.to_bytes(4, "big") + bytes(4)) if number == 10 else b""
    return answer(stream) + last


def closes(number: int, stream: int) -> bytes | None:
    """Nine answers, then the end of the connection."""
    return answer(stream) if number < 10 else None


def cuts(number: int, stream: int) -> bytes:
    """Half a body, then RST_STREAM with NO_ERROR."""
    head, half = frame(HEADERS, END_HEADERS, stream, OK), frame(DATA, 0, stream, b"hel")
    return head + half + frame(RST_STREAM, 0, stream, bytes(4))


def waits(number: int, stream: int) -> bytes:
    """An answer after 10 ms."""
    time.sleep(0.01)
    return answer(stream)


@dataclass(frozen=True)
class Outcome:
    """What a generator reports: counts, a remark, its exit code."""

    ok: int
    failed: int
    remark: str
    code: int


class Http1Peer(ThreadingHTTPServer):
    """A server of HTTP/1.1 over TLS."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.seen = Seen()
        super().__init__(("127.0.0.1", 0), Hello)
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors: a client that does not want HTTP/1.1 disconnects."""


class Hello(BaseHTTPRequestHandler):
    """Answers every GET."""

    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        """Count the connection."""
        super().setup()
        assert isinstance(self.server, Http1Peer)
        self.server.seen.connections += 1

    def do_GET(self) -> None:
        """Send the answer."""
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Log nothing."""


@dataclass(frozen=True)
class Trap:
    """A server, the load on it, and a test of whether what trueload says is right."""

    what: str
    answers: Answers
    is_right: Callable[[dict[str, Any], int], bool]
    begins: bytes = settings()
    connections: int = 2
    streams: int = 10
    timeout: str = "1s"
    """What `trueload --timeout` is given; the other tools keep their own default."""
    over_http1: bool = False
    """The server takes no HTTP/2, over TLS."""

    @contextmanager
    def peer(self, certificate: trustme.LeafCert, secure: bool) -> Iterator[tuple[str, Seen]]:
        """Run the server; yields its URL and what it sees."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        certificate.configure_cert(context)
        if not self.over_http1:
            context.set_alpn_protocols(["h2"])
            peer = Http2Peer(self.answers, self.begins, (context,) if secure else ())
            yield peer.url, peer.seen
            return
        context.set_alpn_protocols(["http/1.1"])
        with Http1Peer(context) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"https://127.0.0.1:{server.server_port}/", server.seen
            server.shutdown()


def shown(outcome: Outcome, seen: Seen) -> str:
    """Format a cell of the table."""
    words = [
        f"{outcome.ok:,} ok",
        f"{outcome.failed:,} failed",
        outcome.remark,
        f"exit {outcome.code}",
    ]
    words.append(f"{seen.connections} connection{'s' if seen.connections != 1 else ''}")
    return ", ".join(each for each in words if each)


def failures(record: dict[str, Any]) -> dict[str, int]:
    """Return the failures that occurred, by class."""
    return {name: count for name, count in record["counts"]["failed"].items() if count}


def only(name: str, code: int) -> Callable[[dict[str, Any], int], bool]:
    """Return a test: no request ok, all failures of this class, and this exit code."""

    def is_right(record: dict[str, Any], ended: int) -> bool:
        return record["counts"]["ok"] == 0 and set(failures(record)) == {name} and ended == code

    return is_right


def crossed(record: dict[str, Any]) -> set[str]:
    """Return the checks that warn or fail."""
    return {each["name"] for each in record["checks"] if each["status"] in ("warn", "fail")}


TRAPS = (
    Trap(
        "GOAWAY after 10 answers on each connection",
        goes_away,
        lambda record, _: record["counts"]["ok"] > 20 and not failures(record),
    ),
    Trap(
        "closes after 9 answers on each connection",
        closes,
        lambda record, _: record["counts"]["ok"] > 18 and "timeout.total" not in failures(record),
    ),
    Trap("200, half a body, RST_STREAM(NO_ERROR)", cuts, only("h2.stream", 4)),
    Trap(
        "200, and the stream never ends",
        lambda _, stream: frame(HEADERS, END_HEADERS, stream, OK),
        only("timeout.total", 4),
    ),
    Trap("accepts and never speaks", lambda *_: b"", lambda _, code: code == 3, begins=b""),
    Trap(
        "permits 1 stream where 100 are asked for, 10 ms each",
        waits,
        lambda record, _: "streams" in crossed(record) and record["latency_ns"]["mean"] > 5e8,
        begins=settings(streams=1),
        connections=1,
        streams=100,
        timeout="5s",
    ),
    Trap(
        "permits no stream",
        lambda *_: b"",
        only("timeout.first_byte", 4),
        begins=settings(streams=0),
    ),
    Trap(
        "500 with a body",
        lambda _, stream: (
            frame(HEADERS, END_HEADERS, stream, STATUS_500)
            + frame(DATA, END_STREAM, stream, b"error")
        ),
        only("status", 4),
    ),
    Trap("speaks HTTP/1.1 only", lambda *_: b"", lambda _, code: code == 3, over_http1=True),
)


@dataclass(frozen=True)
class Tool:
    """Another generator. `read` turns its exit code, output and folder into an outcome."""

    name: str
    command: Callable[[Trap, str, Path], list[str]]
    read: Callable[[int, str, Path], Outcome]
    secure: bool = False


def h2load_command(trap: Trap, url: str, folder: Path) -> list[str]:
    """The command of h2load, for a fixed time."""
    return ["h2load", "-t1", f"-c{trap.connections}", f"-m{trap.streams}", f"-D{SECONDS}", url]


def read_h2load(code: int, out: str, folder: Path) -> Outcome:
    """Parse what h2load prints."""
    found = re.search(r"(\d+) succeeded, (\d+) failed, (\d+) errored, (\d+) timeout", out)
    if found is None:
        return Outcome(0, 0, "prints no counts", code)
    ok, failed, _, _ = map(int, found.groups())
    mean = re.search(r"time for request:\s+\S+\s+\S+\s+(\S+)", out)
    return Outcome(ok, failed, f"mean {mean[1]}" if mean and ok else "", code)


def oha_tool(binary: Path) -> Tool:
    """oha, where `-p` is the number of streams per connection."""

    def command(trap: Trap, url: str, folder: Path) -> list[str]:
        load = ["-z", f"{SECONDS}s", "-c", str(trap.connections), "-p", str(trap.streams)]
        return [str(binary), "--no-tui", "--output-format", "json", "--http2", *load, url]

    return Tool("oha", command, read_oha)


def read_oha(code: int, out: str, folder: Path) -> Outcome:
    """Parse oha's JSON.

    oha counts a status of any kind as an answer; requests open at the end are no errors.
    """
    try:
        result = json.loads(out)
    except ValueError:
        return Outcome(0, 0, "prints no figures", code)
    errors = result["errorDistribution"].items()
    failed = sum(count for what, count in errors if "deadline" not in what)
    ok, mean_s = sum(result["statusCodeDistribution"].values()), result["summary"]["average"]
    share = result["summary"]["successRate"] or 0
    remark = f"success rate {share:.0%}" + (f", mean {mean_s * 1e3:.0f} ms" if mean_s else "")
    return Outcome(ok, failed, remark, code)


K6 = """
import http from "k6/http";
export const options = { insecureSkipTLSVerify: true, vus: VUS, duration: "SECONDSs" };
export default function () { http.get("URL"); }
"""


def k6_command(trap: Trap, url: str, folder: Path) -> list[str]:
    """The command of k6: a virtual user for each stream, each with its own connection."""
    script = folder / "script.js"
    users = str(trap.connections * trap.streams)
    text = K6.replace("VUS", users).replace("SECONDS", str(SECONDS)).replace("URL", url)
    script.write_text(text)
    return ["k6", "run", "--quiet", "--summary-export", str(folder / "k6.json"), str(script)]


def read_k6(code: int, out: str, folder: Path) -> Outcome:
    """Read the summary file of k6."""
    try:
        metrics = json.loads((folder / "k6.json").read_text())["metrics"]
    except (OSError, ValueError):
        return Outcome(0, 0, "writes no summary", code)
    requests, failed = metrics["http_reqs"]["count"], metrics["http_req_failed"]["passes"]
    mean_ms = metrics["http_req_duration"]["avg"]
    return Outcome(requests - failed, failed, f"mean {mean_ms:.0f} ms", code)


def find_tools() -> tuple[list[Tool], list[str]]:
    """Return the tools that are installed, and for each other tool why it is left out."""
    found, absent = [], []
    if shutil.which("h2load"):
        found.append(Tool("h2load", h2load_command, read_h2load))
    else:
        absent.append("h2load is not installed (Debian: nghttp2-client)")
    try:
        found.append(oha_tool(find_built("oha", build=False)))
    except BenchError as error:
        absent.append(f"oha: {error}")
    if shutil.which("k6"):
        found.append(Tool("k6", k6_command, read_k6, secure=True))
    else:
        absent.append("k6 is not installed (`go install go.k6.io/k6@latest`)")
    return found, absent


def run_tool(tool: Tool, trap: Trap, certificate: trustme.LeafCert) -> tuple[str, Seen]:
    """Run a tool into the trap; return its cell of the table and what the server saw."""
    with trap.peer(certificate, tool.secure) as (url, seen), _folder() as folder:
        try:
            ran = subprocess.run(
                tool.command(trap, url, folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                timeout=PATIENCE_S,
            )
        except subprocess.TimeoutExpired:
            return f"does not end within {PATIENCE_S:g} s", seen
        return shown(tool.read(ran.returncode, ran.stdout, folder), seen), seen


def run_ours(trap: Trap, certificate: trustme.LeafCert) -> tuple[str, Seen, bool]:
    """Run trueload into the trap.

    Returns its cell of the table, what the server saw, and whether the cell is right.
    """
    load = ["-c", str(trap.connections), "--streams", str(trap.streams), "-d", f"{SECONDS}s"]
    load += ["--timeout", trap.timeout]
    flags = ["--http", "2", "--warmup", "0s", "--no-save", "--json", "-"]
    flags += ["--insecure"] if trap.over_http1 else []
    with trap.peer(certificate, secure=False) as (url, seen), _folder() as folder:
        trueload = Trueload(folder)
        try:
            ran = trueload.run("http", url, *flags, *load)
        finally:
            trueload.close()
    if not ran.out:
        why = ran.err.strip().splitlines()[0].removeprefix("error: ")
        return f"{why}, exit {ran.code}", seen, trap.is_right({}, ran.code)
    record = ran.json()
    return shown(our_outcome(record, ran.code), seen), seen, trap.is_right(record, ran.code)


def our_outcome(record: dict[str, Any], code: int) -> Outcome:
    """Summarise our record."""
    counts, failed, mean_ns = record["counts"], failures(record), record["latency_ns"]["mean"]
    words = [f"`{name}` {count:,}" for name, count in failed.items()]
    words += [f"`stale` {counts['stale']:,}"] if counts.get("stale") else []
    words += [record["verdict"], *([f"mean {mean_ns / 1e6:.0f} ms"] if mean_ns else [])]
    words += [f"check `{name}`" for name in sorted(crossed(record) & {"streams", "goaway"})]
    return Outcome(counts["ok"], sum(failed.values()), ", ".join(words), code)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def table(rows: Sequence[Sequence[str]], names: Sequence[str]) -> list[str]:
    """A Markdown table: the server, what each other tool says, what we say."""
    head = ["the server", *(f"{name} says" for name in names), "trueload says"]
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return lines + [f"| {' | '.join(row)} |" for row in rows]


def windows(seen: Seen) -> str:
    """The flow-control windows that a client gave its server, per stream and per connection."""
    return f"{seen.stream_window / 2**20:.3g} MiB, {seen.connection_window / 2**20:.3g} MiB"


def main() -> int:
    """Run every trap, and print a row for each."""
    tools, absent = find_tools()
    certificate = trustme.CA().issue_cert("127.0.0.1")
    rows: list[list[str]] = []
    marked: list[Mark] = []
    for trap in TRAPS:
        theirs = [run_tool(tool, trap, certificate) for tool in tools]
        ours, seen, right = run_ours(trap, certificate)
        rows.append([trap.what, *(cell for cell, _ in theirs), ours])
        if trap is TRAPS[0]:
            every = [*(each for _, each in theirs), seen]
            opened = ["windows of a stream and a connection", *map(windows, every)]
        marked.append(mark(trap.what, Limit(1, at_least=True), right, ours))
        print(f"{trap.what}: {'right' if right else 'WRONG'}: {ours}", file=sys.stderr, flush=True)
    lines = [*table([*rows, opened], [tool.name for tool in tools]), "", *absent]
    print("\n".join([*lines, "", *mark_table(marked)]))
    if not absent:
        write_section(RELIABILITY, "traps2", lines, by="make bench REPORTS=traps2")
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
