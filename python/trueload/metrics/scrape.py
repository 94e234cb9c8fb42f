"""Answers Prometheus: ``GET /metrics`` in its text format, or as OpenMetrics if asked for that.

How: prometheus_client serves with a thread for each client, chooses the format and writes the text.
It gets finished samples and never counts itself. A client that sends or takes nothing for
``SILENCE_S`` is dropped. Errors of a client do not concern the run, and are not reported.
"""

from __future__ import annotations

import errno
import io
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TextIO
from wsgiref.simple_server import WSGIRequestHandler

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import Metric as Written
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.utils import floatToGoString

from trueload.errors import UserError
from trueload.metrics.families import Family, make_families
from trueload.metrics.options import ScrapeAt
from trueload.metrics.outlets import Announce
from trueload.metrics.tally import Tally
from trueload.metrics.times import BOUNDS_S, Times

SILENCE_S = 5.0
POLL_S = 0.1

Tallies = Callable[[], tuple[Tally, ...]]


class Collector:
    """The samples in the form that prometheus_client collects."""

    def __init__(self, tallies: Tallies) -> None:
        self._tallies = tallies

    def collect(self) -> Iterator[Written]:
        return map(written, make_families(self._tallies()))


def written(family: Family) -> Written:
    """Convert a family to the library's form. Pure."""
    metric = family.metric
    name = metric.prometheus_name
    made = Written(name, metric.about, metric.kind, metric.prometheus_unit)
    ending = {"counter": "_total", "info": "_info"}.get(metric.kind, "")
    for sample in family.samples:
        labels = dict(sample.labels)
        value = sample.value
        if not isinstance(value, Times):
            made.add_sample(f"{name}{ending}", labels, value)
            continue
        bounds = (*map(floatToGoString, BOUNDS_S), "+Inf")
        for bound, count in zip(bounds, value.cumulative, strict=True):
            made.add_sample(f"{name}_bucket", {**labels, "le": bound}, count)
        made.add_sample(f"{name}_sum", labels, value.sum_s)
        made.add_sample(f"{name}_count", labels, value.count)
    return made


class ScrapeOutlet:
    """An exporter that listens from the start. Raises ``UserError`` if it cannot listen."""

    def __init__(self, at: ScrapeAt, tallies: Tallies, linger_ns: int) -> None:
        registry = CollectorRegistry()
        registry.register(Collector(tallies))
        self._app = make_wsgi_app(registry)
        self._tallies = tallies
        self._answered: tuple[Tally, ...] | None = None
        self._answering = 0
        self._answers_end = threading.Condition()
        self._linger_s = linger_ns / 1e9
        self._server = listen(at)
        self._server.set_app(self._answer)
        self.thread = threading.Thread(
            target=self._server.serve_forever, name="metrics-scrape", daemon=True
        )
        self.thread.start()

    @property
    def url(self) -> str:
        host, port = self._server.socket.getsockname()[:2]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/metrics"

    def finish(self, stopped: Callable[[], bool], announce: Announce) -> None:
        """Wait until the last values have been scraped, if so asked."""
        if self._linger_s and not (stopped() or self._answered is self._tallies()):
            announce(f"waiting up to {self._linger_s:g} s for the last scrape")
        until_s = time.monotonic() + self._linger_s
        while not (stopped() or self._answered is self._tallies()):
            left_s = until_s - time.monotonic()
            if left_s <= 0:
                return
            time.sleep(min(POLL_S, left_s))

    def close(self) -> None:
        """Accept no more connections, and wait a limited time for the answers under way."""
        self._server.shutdown()
        self._server.server_close()
        with self._answers_end:
            self._answers_end.wait_for(lambda: not self._answering, SILENCE_S)

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        """Yield the library's answer with its length; notes which tallies have been sent."""
        with self._answers_end:
            self._answering += 1
        try:
            tallies = self._tallies()
            started: list[Any] = []
            (body,) = self._app(environ, lambda *words: started.extend(words))
            status, headers = started
            start_response(status, [*headers, ("Content-Length", str(len(body)))])
            yield body
            if environ["REQUEST_METHOD"] == "GET":
                self._answered = tallies
        finally:
            with self._answers_end:
                self._answering -= 1
                self._answers_end.notify_all()


class Handler(WSGIRequestHandler):
    """One client; its requests are not logged."""

    timeout = SILENCE_S

    def log_message(self, *words: object) -> None:
        """Do nothing: stderr belongs to the run."""

    def get_stderr(self) -> TextIO:
        """Return a buffer for the library's error output, which is discarded."""
        return io.StringIO()


class Server(ThreadingWSGIServer):
    """The library's server, for an address of any family."""

    def __init__(self, family: socket.AddressFamily, address: Any) -> None:
        self.address_family = family
        super().__init__(address, Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """Do nothing: a client has gone away, or was silent for too long."""


def listen(at: ScrapeAt) -> Server:
    """Return a listening server. Raises ``UserError``."""
    try:
        found = socket.getaddrinfo(at.host, at.port, type=socket.SOCK_STREAM)
        family, _, _, _, address = found[0]
        return Server(family, address)
    except OSError as error:
        hint = _HINTS.get(error.errno, _HINTS[None])
        raise UserError(f"--prometheus {at.host}:{at.port}: {error.strerror}", hint) from error


_HINTS: dict[int | None, str] = {
    errno.EADDRINUSE: "choose another port; port 0 picks a free one",
    errno.EACCES: "ports below 1024 are the system's; choose one above, or 0 for a free one",
    None: "leave the host out for 127.0.0.1; port 0 picks a free one",
}
