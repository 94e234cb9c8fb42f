"""A broadcast's deliveries, as columns and metrics."""

from __future__ import annotations

from operator import attrgetter

from trueload.record.figures import TABLED
from trueload.report.account import AccountView, Column, Metric, times_columns

COUNTS = (
    *("expected", "delivered", "lost", "duplicate", "out_of_order", "untimed", "negative"),
    *("negative_max_ns", "clock_bound_ns"),
)
TIMES = ("min", *TABLED, "max")


def _counter(name: str, about: str) -> Metric:
    return Metric(f"trueload.deliveries.{name}", "counter", "{delivery}", about)


DELIVERIES = AccountView(
    name="deliveries",
    after="requests",
    order=4,
    columns=(
        *(Column(f"deliveries_{name}", attrgetter(name)) for name in COUNTS),
        *times_columns("delivery", lambda found: found.delivery_ns, TIMES),
    ),
    metrics={
        "expected": _counter(
            "expected", "Deliveries of broadcasts that there should have been; known at the end."
        ),
        "delivered": _counter("delivered", "Deliveries that came."),
        "lost": _counter("lost", "Deliveries that never came."),
        "duplicate": _counter("duplicate", "Deliveries that came once more."),
    },
)
