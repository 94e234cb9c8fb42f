"""Sends metrics to an OpenTelemetry collector: OTLP over HTTP, as protobuf.

How: a thread converts the tallies to the SDK's data every ``INTERVAL_S``, and once more at the end,
and gives them to the SDK's exporter. The exporter's environment variables therefore work (headers,
certificates, compression). Each try has a time limit, and so has the export at the end: a slow or
missing collector costs one line of warning. The bodies of its answers are not read.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import requests
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from trueload import __version__
from trueload.metrics.families import Family, Sample, make_families
from trueload.metrics.outlets import Announce
from trueload.metrics.tally import Tally
from trueload.metrics.times import BOUNDS_S, Times
from trueload.text import plain

# Failures are reported once, at the end. The library's own log lines may quote a header, and are
# only for a program that asks for them.
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())

INTERVAL_S = 5.0
TRY_S = 2.0
FLUSH_S = 2.0
REASON_LENGTH_MAX = 200

Tallies = Callable[[], tuple[Tally, ...]]


class OtlpOutlet:
    """An exporter that sends to ``url`` from the start."""

    def __init__(self, url: str, tallies: Tallies) -> None:
        self._url = url
        self._tallies = tallies
        self._session = _Session()
        self._exporter = OTLPMetricExporter(endpoint=url, timeout=TRY_S, session=self._session)
        self._resource = make_resource()
        self._tried = self._failed = 0
        self._ended = threading.Event()
        self.thread = threading.Thread(target=self._run, name="metrics-otlp", daemon=True)
        self.thread.start()

    def finish(self, stopped: Callable[[], bool], announce: Announce) -> None:
        """Do nothing: ``close`` sends the last values."""

    def close(self) -> str | None:
        """Send the last values in bounded time; return what was not sent."""
        self._ended.set()
        self.thread.join(FLUSH_S)
        if self.thread.is_alive():
            return f"--otlp: {self._url} did not take the last metrics within {FLUSH_S:g} s"
        if self._failed:
            why = self._session.why or "they could not be written"
            return f"--otlp: {self._failed} of {self._tried} exports to {self._url} failed: {why}"
        return None

    def _run(self) -> None:
        while not self._ended.wait(INTERVAL_S):
            self._export()
        self._export()

    def _export(self) -> None:
        families = make_families(self._tallies())
        if not families:
            return
        self._tried += 1
        try:
            data = make_data(families, self._resource, time.time_ns())
            sent = self._exporter.export(data) is MetricExportResult.SUCCESS
        except Exception as error:  # of the library: a dead thread would report nothing
            sent, self._session.why = False, type(error).__name__
        self._failed += not sent


def make_resource() -> Resource:
    """The sender: each run is an instance of its own. The environment's values go before ours."""
    ours = Resource(
        {
            "service.name": "trueload",
            "service.version": __version__,
            "service.instance.id": str(uuid.uuid4()),
        }
    )
    return ours.merge(OTELResourceDetector().detect())


def make_data(families: list[Family], resource: Resource, now_unix_ns: int) -> MetricsData:
    """Convert families to the SDK's data. Pure."""
    metrics = [_metric(family, now_unix_ns) for family in families]
    scope = ScopeMetrics(InstrumentationScope("trueload", __version__), metrics, "")
    return MetricsData([ResourceMetrics(resource, [scope], "")])


def _metric(family: Family, now_unix_ns: int) -> Metric:
    metric = family.metric
    data: Sum | Gauge | Histogram
    cumulative = AggregationTemporality.CUMULATIVE
    if metric.kind == "histogram":
        data = Histogram([_spread(each, now_unix_ns) for each in family.samples], cumulative)
    else:
        points = [_point(each, now_unix_ns) for each in family.samples]
        is_sum = metric.kind == "counter"
        data = Sum(points, cumulative, is_monotonic=True) if is_sum else Gauge(points)
    return Metric(metric.name, metric.about, metric.unit, data)


def _point(sample: Sample, now_unix_ns: int) -> NumberDataPoint:
    assert not isinstance(sample.value, Times)
    return NumberDataPoint(dict(sample.labels), sample.began_unix_ns, now_unix_ns, sample.value)


def _spread(sample: Sample, now_unix_ns: int) -> HistogramDataPoint:
    assert isinstance(sample.value, Times)
    cumulative = sample.value.cumulative
    return HistogramDataPoint(
        attributes=dict(sample.labels),
        start_time_unix_nano=sample.began_unix_ns,
        time_unix_nano=now_unix_ns,
        count=sample.value.count,
        sum=sample.value.sum_s,
        bucket_counts=[
            count - before for before, count in zip((0, *cumulative), cumulative, strict=False)
        ],
        explicit_bounds=BOUNDS_S,
        # Over all times since the start these would say little, and OTLP does not require them.
        min=None,  # type: ignore[arg-type]
        max=None,  # type: ignore[arg-type]
    )


class _Session(requests.Session):
    """Keeps the reason of the last failure, and reads no body, which could be of any size."""

    why: str | None = None

    def request(self, *args: Any, **options: Any) -> requests.Response:
        """Send one request. Raises ``requests.RequestException``."""
        try:
            response = super().request(*args, **{**options, "stream": True})
        except (requests.RequestException, OSError) as error:
            self.why = _reason(error)
            raise
        response.close()
        if response.is_redirect:
            self.why = f"it answers {response.status_code} and redirects elsewhere"
            raise requests.TooManyRedirects(self.why)
        if not response.ok:
            self.why = f"it answers {response.status_code}"
        return response


def _reason(error: requests.RequestException | OSError) -> str:
    """Why there was no answer, in a few words; the system's own words if they can be found."""
    if not isinstance(error, requests.RequestException):
        return plain(str(error), REASON_LENGTH_MAX)  # about files that the environment names
    match error:
        case requests.exceptions.SSLError():
            return "TLS failed"
        case requests.exceptions.Timeout():
            return f"no answer within {TRY_S:g} s"
        case requests.exceptions.ProxyError():
            return "the proxy does not lead there"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror and cause is not error:
            return cause.strerror.lower()
        reason = cause.args[0] if cause.args else None
        inner = getattr(reason, "reason", reason)
        cause = inner if isinstance(inner, BaseException) else cause.__context__
    return "there is no connection to be had"
