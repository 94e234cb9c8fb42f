"""Broadcasts to a server that errs once in the middle, live: the step has its class and verdict.

What other clients received still counts. In virtual time: crates/sim/tests/broadcast.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from typing import Any

import pytest
from harness import Finished, Trueload
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import ServerConnection
from ws_room import Room, peer

CLIENTS, MESSAGES = 8, 20
TIMEOUT_S = 2.0
LOAD = ("--mode", "broadcast", "--step", str(CLIENTS), "--steps", "1", "--samples", str(MESSAGES))
# Values of SO_LINGER (on, 0 s) for a reset, and None for an orderly close.
RESET, CLOSED = struct.pack("ii", 1, 0), None
GARBAGE = '{"type":"broadcast","payload":'


class Wild(Room):
    """A room that errs from its third broadcast on; the other clients get what they should."""

    def answer(self, client: ServerConnection, wire: str | bytes) -> None:
        kind, payload = self.decoded(wire)
        if kind == "echo":
            self.echo(client, payload)
            return
        with self.lock:
            self.broadcasts += 1
            if self.broadcasts == 3:
                self.err()
            for place, each in enumerate(self.clients):
                with suppress(ConnectionClosed, OSError):
                    self.deliver(place, each, payload)
            count = len(self.clients)
        with suppress(ConnectionClosed, OSError):
            client.send(self.encoded("broadcastResult", payload, count))

    def err(self) -> None:
        if self.flaw == "drops half":
            self.end(self.clients[::2], CLOSED)
        if self.flaw == "is gone":
            self.end(self.clients, RESET)

    def end(self, clients: list[ServerConnection], linger: bytes | None) -> None:
        for each in list(clients):
            self.clients.remove(each)
            if linger is not None:
                each.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            with suppress(OSError):
                each.socket.shutdown(socket.SHUT_RDWR)

    def deliver(self, place: int, client: ServerConnection, payload: Any) -> None:
        if place == 1 and self.broadcasts >= 3:
            if self.flaw == "stalls one":
                return
            if self.flaw == "says garbage" and self.broadcasts == 3:
                client.send(GARBAGE)
                return
        client.send(self.encoded("broadcast", payload))


def broadcast_to(trueload: Trueload, flaw: str) -> tuple[Finished, dict[str, Any]]:
    with peer(Wild("json", flaw)) as (host, port):
        url, limits = f"ws://{host}:{port}/", ("--limit", "p95<9s", "--timeout", f"{TIMEOUT_S:g}s")
        done = trueload.run("ws", url, *LOAD, *limits, "--json", "-")
    # Later steps may succeed again and are not tested here.
    assert done.code in (0, 1, 4), (flaw, done)
    step: dict[str, Any] = done.json()["steps"][0]
    assert step["verdict"] == "invalid", (flaw, done)
    deliveries = step["deliveries"]
    assert deliveries["expected"] == deliveries["delivered"] + deliveries["lost"]
    return done, step


def failing(step: dict[str, Any]) -> set[str]:
    return {check["name"] for check in step["checks"] if check["status"] == "fail"}


def test_garbage_to_one_client_is_a_failure_of_its_own_and_the_others_had_everything(
    trueload: Trueload,
) -> None:
    done, step = broadcast_to(trueload, "says garbage")
    deliveries = step["deliveries"]
    assert step["counts"]["failed"].get("ws.payload") == 1, done
    assert (deliveries["lost"], deliveries["duplicate"]) == (0, 0), done
    sent = step["counts"]["ok"]
    assert deliveries["delivered"] >= (CLIENTS - 1) * sent, done


def test_a_stalled_subscriber_loses_and_the_others_had_everything(trueload: Trueload) -> None:
    done, step = broadcast_to(trueload, "stalls one")
    deliveries = step["deliveries"]
    assert "ledger" in failing(step), done
    assert deliveries["lost"] >= MESSAGES - 2 - CLIENTS, done
    assert deliveries["delivered"] == (CLIENTS - 1) * MESSAGES + 2, done
    assert set(step["counts"]["failed"]) == {"lost"}, done
    assert step["latency_ns"]["max"] < TIMEOUT_S * 1e9, "nobody waits for it"


def test_who_is_dropped_loses_what_comes(trueload: Trueload) -> None:
    done, step = broadcast_to(trueload, "drops half")
    assert "ledger" in failing(step), done
    deliveries, failed = step["deliveries"], step["counts"]["failed"]
    assert deliveries["lost"] >= CLIENTS // 2 * (MESSAGES - 8), done
    assert failed["lost"] > 0, done
    assert set(failed) <= {"lost", "empty", "reset", "truncated"}, done


def test_a_server_that_is_gone_ends_the_run(trueload: Trueload) -> None:
    done, step = broadcast_to(trueload, "is gone")
    counts = step["counts"]
    assert counts["ok"] <= 2, done
    assert counts["unsent"] > 0, "nobody was left to send"
    assert step["deliveries"]["lost"] > 0, done
    # A client that had sent two messages by then loses the second behind the first.
    assert set(counts["failed"]) <= {"lost", "empty", "reset", "closed_pipelined"}, done


@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
def test_without_an_error_nothing_is_lost_on_either_driver(trueload: Trueload, driver: str) -> None:
    with peer(Wild("json")) as (host, port):
        url, limits = f"ws://{host}:{port}/", ("--limit", "p95<9s", "--driver", driver)
        done = trueload.run("ws", url, *LOAD, *limits, "--json", "-")
    step = done.json()["steps"][0]
    assert step["counts"]["ok"] == MESSAGES, done
    deliveries = step["deliveries"]
    assert deliveries["delivered"] == deliveries["expected"] == CLIENTS * MESSAGES, done
