"""The options of metrics, for every command that measures."""

from __future__ import annotations

from trueload.commands.declarations import with_options
from trueload.errors import UserError
from trueload.metrics.options import MetricsOptions


@with_options(MetricsOptions)
def read_metrics(given: MetricsOptions) -> MetricsOptions:
    """Return the options. Raises ``UserError``."""
    if given.prometheus is None and given.prometheus_linger_ns is not None:
        raise UserError(
            "--prometheus-linger is given, but no --prometheus", "add --prometheus PORT"
        )
    return given
