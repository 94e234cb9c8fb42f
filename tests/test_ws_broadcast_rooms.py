"""Broadcasts to rooms that are late, leave a client out, or change the order.

The receipts look right in each. Tested are the reported deliveries and the counts of ``order``.
"""

from __future__ import annotations

import re

import pytest
from harness import Finished, Trueload
from ws_flaws import LateRoom, SwappingRoom
from ws_room import Room, peer

pytestmark = pytest.mark.engine

CLIENTS, MESSAGES = 4, 40
LATE_S = 0.3


def broadcast_to(trueload: Trueload, room: Room, *flags: str) -> Finished:
    load = ("--step", str(CLIENTS), "--samples", str(MESSAGES), "--timeout", "3s")
    with peer(room) as (host, port):
        url = f"ws://{host}:{port}/"
        return trueload.run("ws", url, "--mode", "broadcast", *load, *flags, "--json", "-")


def test_a_limit_is_on_the_deliveries_and_by_name_on_the_receipts(trueload: Trueload) -> None:
    def first_step(limit: str) -> tuple[str, float]:
        """The first step's outcome, which a busy machine may spoil, and percentile in seconds."""
        done = broadcast_to(trueload, LateRoom(LATE_S), "--steps", "1", "--limit", limit)
        step = done.json()["steps"][0]["step"]
        return step["outcome"], step["values"][0]["value"] / 1e9

    outcome, delivered_s = first_step("p95<200ms")
    assert outcome != "kept"
    outcome, received_s = first_step("receipt_p95<200ms")
    assert outcome != "exceeded"
    assert received_s < LATE_S <= delivered_s


@pytest.mark.parametrize("limit", ["p95<3s", "receipt_p95<3s"])
def test_a_server_that_leaves_a_client_out_ends_invalid_with_the_reason(
    trueload: Trueload, limit: str
) -> None:
    done = broadcast_to(trueload, Room("json", "forgets one"), "--limit", limit, "--steps", "2")
    found = done.json()
    assert done.code == 4, done
    assert found["verdict"] == "invalid"
    assert found["result"]["load"] is None, found["result"]
    (ledger,) = (check for check in found["checks"] if check["name"] == "ledger")
    assert "deliveries were lost" in ledger["why"], ledger
    # On a busy machine the search comes down to one client, which loses its own message.
    lost = "deliveries were lost|the lowest tried was 1 client, and no request was ok: lost"
    assert re.search(lost, found["result"]["sentence"])


def test_order_is_that_of_each_sender(trueload: Trueload) -> None:
    flags = ("--steps", "1", "--limit", "p95<3s")
    swapped, across = (
        broadcast_to(trueload, SwappingRoom(of_one_sender=of_one_sender), *flags).json()["steps"][0]
        for of_one_sender in (True, False)
    )
    assert swapped["deliveries"]["out_of_order"] > 0, swapped["deliveries"]
    assert across["deliveries"]["out_of_order"] == 0, across["deliveries"]
    for step in (swapped, across):
        assert step["deliveries"]["lost"] == step["deliveries"]["duplicate"] == 0
        assert "ledger" not in [each["name"] for each in step["checks"] if each["status"] == "fail"]
