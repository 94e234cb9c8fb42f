"""The table of metrics: name, kind, unit and meaning of each, for every exporter. Pure.

Names and units are OpenTelemetry's (dots; UCUM units, counted things in braces). The Prometheus
names follow from them by the rule that collectors use, too.
"""

from __future__ import annotations

from trueload.report.account import Metric as Metric
from trueload.report.accounts import ACCOUNTS


def _counter(name: str, unit: str, about: str) -> Metric:
    return Metric(f"trueload.{name}", "counter", unit, about)


def _gauge(name: str, unit: str, about: str) -> Metric:
    return Metric(f"trueload.{name}", "gauge", unit, about)


def _times(name: str, about: str) -> Metric:
    return Metric(f"trueload.{name}", "histogram", "s", about)


def _result(name: str, unit: str, about: str) -> Metric:
    return _gauge(name, unit, f"Of a trial that has ended: {about}")


def _of_host(name: str, unit: str, about: str) -> Metric:
    return _gauge(f"host.{name}", unit, f"Of a trial of several hosts that has ended: {about}")


INFO = Metric("trueload.info", "info", "", "What is measured, with which version.")
PHASE = _gauge("phase", "", "1 for the phase that the trial is in, else 0.")
SCHEDULED = _counter("requests.scheduled", "{request}", "Requests that the load asked for.")
ISSUED = _counter("requests.issued", "{request}", "Requests sent.")
OK = _counter("requests.ok", "{request}", "Requests that ended well.")
FAILED = _counter("requests.failed", "{request}", "Requests that failed, by class.")
STALE = _counter(
    "requests.stale",
    "{request}",
    "Requests sent again, as the server had just closed the kept connection.",
)
CANCELLED = _counter("requests.cancelled", "{request}", "Requests open at the very end.")
UNSENT = _counter("requests.unsent", "{request}", "Requests that were due and never sent.")
STATUSES = _counter("statuses", "{answer}", "Whole answers, expected or not, by status code.")
RECEIVED = _counter("received", "By", "Bytes received.")
SENT = _counter("sent", "By", "Bytes sent.")
OF_ACCOUNTS = tuple(metric for each in ACCOUNTS for metric in each.metrics.values())
LATENCY = _times(
    "latency",
    "Response time of requests that ended well; under an open loop from the scheduled send.",
)
SERVICE = _times(
    "service",
    "Service time under an open loop: from the actual send, of requests that ended well.",
)
REQUESTS_OPEN = _gauge("requests.open", "{request}", "Requests sent and not yet settled.")
REQUESTS_WAITING = _gauge(
    "requests.waiting",
    "{request}",
    "Requests that are due by the schedule of an open loop, and not yet sent.",
)
CONNECTIONS_OPEN = _gauge("connections.open", "{connection}", "Connections that are open.")
CONNECTIONS_REQUESTED = _gauge("connections.requested", "{connection}", "Connections asked for.")
SATURATION = _gauge(
    "generator.saturation",
    "1",
    "How busy the generator's busiest thread is: a quarter of a second; then, of the window.",
)
THROUGHPUT = _result("throughput", "{request}/s", "requests that ended well, over the window.")
LOWER_BOUND = _result(
    "lower_bound", "", "1 where the server may carry more than the throughput, else 0."
)
PERCENTILE = _result(
    "latency_percentile",
    "s",
    "response times over the window, to three digits; +Inf among requests without a time;"
    " quantile 1 is the slowest answer.",
)
GENERATOR_PERCENTILE = _result(
    "client_percentile", "s", "what the generator itself added to response times, by part."
)
HOST_REQUESTS = _of_host("requests", "{request}", "each host's requests, by outcome and class.")
HOST_PERCENTILE = _of_host("latency_percentile", "s", "each host's response times.")
HOST_GENERATOR_PERCENTILE = _of_host(
    "client_percentile", "s", "what each host's generator added, by part."
)
HOST_CLOCK = _of_host("clock_bound", "s", "how exactly each host's clock is known.")
HOST_LOST = _of_host("lost", "", "1 for a host that was lost, else 0.")
VERDICT = _result("verdict", "", "1 for its verdict, else 0.")
CHECK = _result("check", "", "1, with the status of each check.")
METRICS: tuple[Metric, ...] = tuple(
    metric
    for value in list(vars().values())
    for metric in (value if value is OF_ACCOUNTS else (value,))
    if isinstance(metric, Metric)
)
"""All metrics, in the order in which they are shown: that of their declarations."""
