"""The table of metrics: name, kind, unit and meaning of each, for every exporter. Pure.

Names and units are OpenTelemetry's (dots; UCUM units, counted things in braces). The Prometheus
names follow from them by the rule that collectors use, too.
"""

from __future__ import annotations

from trueload.report.account import Metric as Metric
from trueload.report.accounts import ACCOUNTS

INFO = Metric("trueload.info", "info", "", "What is measured, with which version.")
PHASE = Metric("trueload.phase", "gauge", "", "1 for the phase that the trial is in, else 0.")
SCHEDULED = Metric(
    "trueload.requests.scheduled", "counter", "{request}", "Requests that the load asked for."
)
ISSUED = Metric("trueload.requests.issued", "counter", "{request}", "Requests sent.")
OK = Metric("trueload.requests.ok", "counter", "{request}", "Requests that ended well.")
FAILED = Metric(
    "trueload.requests.failed", "counter", "{request}", "Requests that failed, by class."
)
STALE = Metric(
    "trueload.requests.stale",
    "counter",
    "{request}",
    "Requests sent again, as the server had just closed the kept connection.",
)
CANCELLED = Metric(
    "trueload.requests.cancelled", "counter", "{request}", "Requests open at the very end."
)
UNSENT = Metric(
    "trueload.requests.unsent", "counter", "{request}", "Requests that were due and never sent."
)
STATUSES = Metric(
    "trueload.statuses", "counter", "{answer}", "Whole answers, expected or not, by status code."
)
RECEIVED = Metric("trueload.received", "counter", "By", "Bytes received.")
SENT = Metric("trueload.sent", "counter", "By", "Bytes sent.")
OF_ACCOUNTS = tuple(metric for each in ACCOUNTS for metric in each.metrics.values())
LATENCY = Metric(
    "trueload.latency",
    "histogram",
    "s",
    "Response time of requests that ended well; under an open loop from the scheduled send.",
)
SERVICE = Metric(
    "trueload.service",
    "histogram",
    "s",
    "Service time under an open loop: from the actual send, of requests that ended well.",
)
REQUESTS_OPEN = Metric(
    "trueload.requests.open", "gauge", "{request}", "Requests sent and not yet settled."
)
REQUESTS_WAITING = Metric(
    "trueload.requests.waiting",
    "gauge",
    "{request}",
    "Requests that are due by the schedule of an open loop, and not yet sent.",
)
CONNECTIONS_OPEN = Metric(
    "trueload.connections.open", "gauge", "{connection}", "Connections that are open."
)
CONNECTIONS_REQUESTED = Metric(
    "trueload.connections.requested", "gauge", "{connection}", "Connections asked for."
)
SATURATION = Metric(
    "trueload.generator.saturation",
    "gauge",
    "1",
    "How busy the generator's busiest thread is: a quarter of a second; then, of the window.",
)
THROUGHPUT = Metric(
    "trueload.throughput",
    "gauge",
    "{request}/s",
    "Of a trial that has ended: requests that ended well, over the window.",
)
LOWER_BOUND = Metric(
    "trueload.lower_bound",
    "gauge",
    "",
    "Of a trial that has ended: 1 where the server may carry more than the throughput, else 0.",
)
PERCENTILE = Metric(
    "trueload.latency_percentile",
    "gauge",
    "s",
    "Of a trial that has ended: response times over the window, to three digits; +Inf among"
    " requests without a time; quantile 1 is the slowest answer.",
)
CLIENT_PERCENTILE = Metric(
    "trueload.client_percentile",
    "gauge",
    "s",
    "Of a trial that has ended: what the generator itself added to response times, by part.",
)
HOST_REQUESTS = Metric(
    "trueload.host.requests",
    "gauge",
    "{request}",
    "Of a trial of several hosts that has ended: each host's requests, by outcome and class.",
)
HOST_PERCENTILE = Metric(
    "trueload.host.latency_percentile",
    "gauge",
    "s",
    "Of a trial of several hosts that has ended: each host's response times.",
)
HOST_CLIENT_PERCENTILE = Metric(
    "trueload.host.client_percentile",
    "gauge",
    "s",
    "Of a trial of several hosts that has ended: what each host's generator added, by part.",
)
HOST_CLOCK = Metric(
    "trueload.host.clock_bound",
    "gauge",
    "s",
    "Of a trial of several hosts that has ended: how exactly each host's clock is known.",
)
HOST_LOST = Metric(
    "trueload.host.lost",
    "gauge",
    "",
    "Of a trial of several hosts that has ended: 1 for a host that was lost, else 0.",
)
VERDICT = Metric(
    "trueload.verdict", "gauge", "", "Of a trial that has ended: 1 for its verdict, else 0."
)
CHECK = Metric(
    "trueload.check", "gauge", "", "Of a trial that has ended: 1, with the status of each check."
)

METRICS: tuple[Metric, ...] = tuple(
    metric
    for value in list(vars().values())
    for metric in (value if value is OF_ACCOUNTS else (value,))
    if isinstance(metric, Metric)
)
"""All metrics, in the order in which they are shown: that of their declarations."""
