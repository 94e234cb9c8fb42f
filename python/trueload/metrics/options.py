"""The options of metrics, each declared once: where they are sent during a measurement."""

import os
from dataclasses import dataclass
from urllib.parse import urlsplit

from trueload.protocol.option import SPAN, Settings, Unit, option

LOOPBACK = "127.0.0.1"
OTLP_PATH = "/v1/metrics"
OTLP_FROM_ENVIRONMENT = "env"
OTLP_DEFAULT = "http://localhost:4318"


@dataclass(frozen=True)
class ScrapeAt:
    """The address at which Prometheus finds the metrics. Port 0 picks a free one."""

    host: str
    port: int


def _scrape_at(text: str) -> ScrapeAt:
    host, colon, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit()) or int(port[:10]) > 65_535:
        raise ValueError(f"'{text}' has no port from 0 to 65535")
    if not colon:
        return ScrapeAt(LOOPBACK, int(port))
    bare = host.removeprefix("[").removesuffix("]")
    bracketed = host.startswith("[") and host.endswith("]")
    if not bare or not bare.isprintable() or not bare.isascii() or " " in bare:
        raise ValueError(f"'{text}' has no host: write 0.0.0.0:{port} for every address")
    if (":" in bare) != bracketed:
        raise ValueError(
            f"'{text}' is not HOST:PORT: an IPv6 address has brackets, like [::1]:9464"
        )
    return ScrapeAt(bare, int(port))


def _otlp_url(text: str) -> str:
    if text == OTLP_FROM_ENVIRONMENT:
        return _otlp_from_environment()
    return _checked_url(text, f"'{text}'")


def _otlp_from_environment() -> str:
    """Return the URL that OpenTelemetry's exporters would use.

    The variable for metrics holds the URL as it is; the one for all signals gets a path added.
    """
    for name in ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        if value := os.environ.get(name, "").strip():
            url = _checked_url(value, name)
            return value if "METRICS" in name else url
    return OTLP_DEFAULT + OTLP_PATH


def _checked_url(text: str, called: str) -> str:
    """Return the URL with its path. Possible secrets are not shown, and are refused."""
    try:
        url = urlsplit(text)
        host, port = url.hostname, url.port
    except ValueError:
        url, host, port = urlsplit(""), None, None
    if "@" in text or "?" in text or "#" in text:
        raise ValueError(
            "a collector's URL holds no secrets: put those into OTEL_EXPORTER_OTLP_HEADERS"
        )
    if url.scheme not in ("http", "https") or not host or port == 0 or not text.isprintable():
        raise ValueError(f"{called} is not a URL like {OTLP_DEFAULT}")
    base = text.rstrip("/")
    return base if base.endswith(OTLP_PATH) else base + OTLP_PATH


class MetricsOptions(Settings, group="Metrics"):
    """Where metrics are sent during a measurement."""

    prometheus: ScrapeAt | None = option(
        Unit("[HOST:]PORT", _scrape_at, keyword="Number"),
        "Serve metrics of the run at /metrics on this port, on 127.0.0.1 unless a HOST is given;"
        " port 0 picks a free one.",
    )
    prometheus_linger_ns: int | None = option(
        SPAN,
        "Wait up to this long at the end for one more scrape, which then includes the verdict.",
        unset="no wait",
    )
    otlp: str | None = option(
        Unit("URL", _otlp_url),
        f"Send metrics to this OpenTelemetry collector, such as {OTLP_DEFAULT}. With"
        f" {OTLP_FROM_ENVIRONMENT}, the URL comes from OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
        " or OTEL_EXPORTER_OTLP_ENDPOINT.",
    )


NO_METRICS = MetricsOptions()
