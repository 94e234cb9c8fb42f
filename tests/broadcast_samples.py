"""Records of an ordinary broadcast, of which a test changes one thing."""

from __future__ import annotations

from typing import Any

from samples import PHASE, distribution, good_record, histogram, plan
from trueload.protocol.broadcast import DeliveryHistograms
from trueload.protocol.exchange import RequestPlan, WsBroadcastPlan
from trueload.protocol.plan import Requests, Turns
from trueload.record.accounts.deliveries import Deliveries
from trueload.record.schema import Record, RecordPlan

MESSAGES, RECEIVERS = 100, 10
DELIVERED = MESSAGES * RECEIVERS
EXCHANGE = WsBroadcastPlan(
    opening=RequestPlan(method="GET", path="/ws", headers=(), body_sha256=None),
    dialect="json",
    padding=200,
)


def broadcast(**changes: Any) -> Record:
    """A record of 100 messages to 10 receivers; ``changes`` replace fields of the deliveries."""
    every = histogram((1_000_000, changes.get("delivered", DELIVERED)))
    each = histogram((1_000_000, MESSAGES))
    histograms = DeliveryHistograms(delivery=every, first=each, median=each, p95=each, last=each)
    fields: dict[str, Any] = {
        "expected": DELIVERED,
        "delivered": DELIVERED,
        "lost": 0,
        "duplicate": 0,
        "out_of_order": 0,
        "per_s": float(DELIVERED),
        "delivery_ns": distribution(every),
        "first_ns": distribution(each),
        "median_ns": distribution(each),
        "p95_ns": distribution(each),
        "last_ns": distribution(each),
        "histograms": histograms,
    }
    window = PHASE.model_copy(
        update={"load": Turns(concurrent=4), "stop": Requests(count=MESSAGES)}
    )
    return good_record(
        plan=RecordPlan(
            url="ws://127.0.0.1:8080/ws",
            generate=plan(exchange=EXCHANGE, request=None),
            warmup=None,
            window=window,
        ),
        deliveries=Deliveries(**{**fields, **changes}),
    )
