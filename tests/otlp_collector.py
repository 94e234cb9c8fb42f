"""A stand-in for an OpenTelemetry collector: OTLP over HTTP, decoded by the protocol's own classes.

Its manner says how it answers: well, with a status, not at all, or without an end.
"""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)

Manner = Literal["well", "silent", "endless"] | int


@dataclass
class OtlpCollector:
    """The collector and what it received, in order.

    ``received`` is set with the first request. A silent collector answers nothing until ``release``
    is set.
    """

    manner: Manner
    requests: list[ExportMetricsServiceRequest] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    received: threading.Event = field(default_factory=threading.Event)
    release: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}"

    def last(self) -> dict[str, Any]:
        """The metrics of the last request, by name."""
        scope = self.requests[-1].resource_metrics[0].scope_metrics[0]
        return {metric.name: metric for metric in scope.metrics}

    def resource(self) -> dict[str, str]:
        """The resource attributes of the last request, which identify its sender."""
        return attributes(self.requests[-1].resource_metrics[0].resource)


def attributes(found: Any) -> dict[str, str]:
    """The attributes of a point or a resource, as a dict."""
    return {each.key: each.value.string_value for each in found.attributes}


@contextmanager
def otlp_collector(manner: Manner = "well") -> Iterator[OtlpCollector]:
    """Run a collector on a free local port."""
    collector = OtlpCollector(manner)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.paths.append(self.path)
            collector.headers.append(dict(self.headers.items()))
            collector.requests.append(ExportMetricsServiceRequest.FromString(body))
            collector.received.set()
            with contextlib.suppress(OSError):
                self._answer()

        def _answer(self) -> None:
            if collector.manner == "silent":
                collector.release.wait()
                return
            self.send_response(collector.manner if isinstance(collector.manner, int) else 200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Location", f"{collector.url}/elsewhere")
            answer = ExportMetricsServiceResponse().SerializeToString()
            if collector.manner != "endless":
                self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            while collector.manner == "endless" and not collector.release.is_set():
                self.wfile.write(bytes(65_536))

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.release.set()
        server.shutdown()
        server.server_close()
