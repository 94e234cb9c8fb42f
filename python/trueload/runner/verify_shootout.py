"""Checks a subject's echoes and broadcasts over WebSocket, before it is measured.

How: a room of clients on one thread, each with the sans-I/O protocol of the library `websockets`
over a non-blocking socket. A message of the contract is sent in its form. Lists hold what is due to
each client, and everything that comes must be on one. After each message every client asks for an
echo, so that anything doubled, late or unasked has arrived by then. Each message has one deadline.

A peer's fault never raises; it is returned as text.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence

from trueload.protocol.shootout import NAMES, Kind, decode, encode, make_payload
from trueload.protocol.shootout import Message as Received
from trueload.runner.ws_connection import Client, PeerError, poll
from trueload.subjects.contracts import Message, ShootoutContract, judge_message

MESSAGE_TIMEOUT_S = 10.0
SPLIT_PAUSE_S = 0.02  # long enough for the first part to be read by itself
STUCK_S = 0.2  # nothing was taken or given for this long: the subject waits for a client
IN_FLIGHT = 4  # long broadcasts, as under load: a client that reads does not fall behind
COUNT_SLACK = 1_000_000  # earlier clients that a subject may still count
COUNT_PAUSE_S = 0.005  # between checks of the subject's number of clients
# Characters of every length in UTF-8, and those that JSON escapes.
PADDING = 'The quick brown fox, "æther" \\ 5 € / 🦊; '
PING = b"are you there?"


def verify_shootout(contract: ShootoutContract, address: tuple[str, int]) -> str | None:
    """Return the first message that the subject fails, in one line; None if it passes all."""
    asked: Message | None = None
    try:
        with _room(contract, address) as room:
            room.settle(contract.clients)
            for number, asked in enumerate(contract.messages):
                room.ask(asked, number)
    except PeerError as fault:
        return f"{asked.what}: {fault}" if asked else str(fault)
    return None


def ask_message(
    contract: ShootoutContract, message: Message, address: tuple[str, int], clients: int
) -> str | None:
    """Try one message among this many clients; return what was wrong, in one line."""
    try:
        with _room(contract, address, clients) as room:
            if message.type == "broadcast":
                room.settle(clients)
            room.ask(message, 0)
    except PeerError as fault:
        return str(fault)
    return None


@contextlib.contextmanager
def _room(
    contract: ShootoutContract, address: tuple[str, int], clients: int | None = None
) -> Iterator[_Room]:
    """Open a room whose clients have joined; they leave it with the closing handshake."""
    room = _Room(contract, address)
    try:
        for _ in range(clients or contract.clients):
            room.enter()
        yield room
        room.leave_in_order(room.clients)
    finally:
        for client in room.clients:
            client.drop()


class _Room:
    """The clients of a subject, what is due to each, and the current deadline."""

    def __init__(self, contract: ShootoutContract, address: tuple[str, int]) -> None:
        self.contract = contract
        self.address = address
        self.clients: list[Client] = []
        self.due: dict[Client, list[Received]] = {}
        self.counts = range(0)
        self.numbers = itertools.count(1)
        self.paced: list[tuple[Client, int]] = []
        self.deadline_s = time.monotonic() + MESSAGE_TIMEOUT_S

    def enter(self) -> Client:
        """Add a client, and wait until it has joined."""
        client = Client(self.contract.dialect, self.contract.path, self.address)
        self.clients.append(client)
        self.due[client] = []
        self._poll_until(lambda: client.joined or client.ended)
        if not client.joined:
            if client.ended:
                raise PeerError(f"a client was cut off before it had {client.step}{client.why}")
            raise PeerError(f"a client has not {client.step} within {MESSAGE_TIMEOUT_S:g} s")
        # Its echo shows that the subject knows it now.
        self._send_one(client, "echo", self._payload(0))
        self._expect_all([client])
        return client

    def settle(self, clients: int) -> None:
        """Wait until the subject counts this many clients.

        It may take its time to notice a client that has gone.
        """
        end_s = time.monotonic() + MESSAGE_TIMEOUT_S
        self.counts = range(clients, clients + COUNT_SLACK)
        while not self._one_broadcast(clients):
            if time.monotonic() >= end_s:
                within = f"{MESSAGE_TIMEOUT_S:g} s"
                raise PeerError(f"listenerCount has not come down to {clients} within {within}")
            time.sleep(COUNT_PAUSE_S)
        self._begin(clients)

    def ask(self, message: Message, number: int) -> None:
        """Send one message of the contract in its form; the clients take turns as sender."""
        clients = len(self.clients)
        self._begin(clients)
        sender = self.clients[number % clients]
        if message.form == "late":
            self._ask_late(message, sender)
        elif message.form == "leave":
            self._ask_leaving(message, sender)
        elif message.form == "nonsense":
            self._ask_after_nonsense(message, sender)
        elif message.form == "close":
            self._ask_closing(message)
        else:
            everybody = message.form == "together"
            self._send(message, self.clients if everybody else [sender])
            self._expect_all(self.clients)
        if message.form in ("late", "leave", "nonsense", "close"):
            self.settle(clients)
        self._barrier()

    def leave_in_order(self, clients: Sequence[Client]) -> None:
        """Do the closing handshake, which the subject must answer."""
        self.deadline_s = time.monotonic() + MESSAGE_TIMEOUT_S
        for client in clients:
            client.may_go = True
            client.close()
        if not self._poll_until(lambda: all(client.ended for client in clients)):
            raise PeerError(f"a client's close was not answered within {MESSAGE_TIMEOUT_S:g} s")
        for client in clients:
            if client.close_code is None:
                raise PeerError("the connection ended without the answer to a client's close")

    def _begin(self, clients: int) -> None:
        self.deadline_s = time.monotonic() + MESSAGE_TIMEOUT_S
        self.counts = range(clients, clients + 1)

    def _one_broadcast(self, clients: int) -> bool:
        """Whether a broadcast's result gives this count; True if the dialect gives none."""
        named: list[int | None] = []
        self.deadline_s = time.monotonic() + MESSAGE_TIMEOUT_S
        sender = self.clients[0]
        self._send_one(sender, "broadcast", self._payload(0))
        self._expect_all(self.clients, on_received=lambda got: named.append(got.listeners))
        return all(count in (None, clients) for count in named)

    def _ask_late(self, message: Message, sender: Client) -> None:
        slow = next(client for client in self.clients if client is not sender)
        others = [client for client in self.clients if client is not slow]
        slow.reading = False
        # It may be disconnected for being slow, and is then no longer counted.
        self.counts = range(len(others), len(others) + 2)
        self.paced = [(sender, message.padding_bytes)] * message.count
        self._expect_all(others, stuck=True)
        slow.reading = slow.may_go = True
        self.deadline_s = time.monotonic() + MESSAGE_TIMEOUT_S
        self._poll_until(lambda: slow.ended or not self.due[slow])
        if slow.ended:
            self._forget(slow)
        self._expect_all(self.clients)
        slow.may_go = False
        if slow.ended:
            self.enter()

    def _ask_leaving(self, message: Message, sender: Client) -> None:
        stay = len(self.clients)
        leaving = self.enter()
        self.settle(stay + 1)
        self._begin(stay)
        self.counts = range(stay, stay + 2)
        leaving.reading = False
        self.paced = [(sender, message.padding_bytes)] * message.count
        # By then some have been sent, and some have not.
        self._poll_until(lambda: len(self.paced) < message.count // 2)
        leaving.reset()
        self._forget(leaving)
        self._expect_all(self.clients)

    def _ask_after_nonsense(self, message: Message, sender: Client) -> None:
        stay = len(self.clients)
        talker = self.enter()
        talker.may_go = True
        talker.send(b"\xff" if self.contract.dialect == "binary" else "{nonsense")
        # The subject may ignore it and send its echo, or disconnect it.
        self._send_one(talker, "echo", self._payload(0))
        if not self._poll_until(lambda: talker.ended or not self.due[talker]):
            self._expect_all([talker])
        self._forget(talker)
        self.counts = range(stay, stay + 2)
        self._send(message, [sender])
        self._expect_all(self.clients)

    def _ask_closing(self, message: Message) -> None:
        leaving = self.enter()
        self.settle(len(self.clients))
        self._send(message, [leaving])
        self._expect_all(self.clients)
        self.leave_in_order([leaving])
        self._forget(leaving)

    def _forget(self, client: Client) -> None:
        client.drop()
        self.clients.remove(client)
        del self.due[client]

    def _barrier(self) -> None:
        self._begin(len(self.clients))
        for client in self.clients:
            self._send_one(client, "echo", self._payload(0))
        self._expect_all(self.clients)

    def _send(self, message: Message, senders: Sequence[Client]) -> None:
        if message.form == "ping":
            for client in senders:
                client.ping(PING)
        for sent in range(message.count):
            for client in senders:
                payload = self._payload(message.padding_bytes)
                form = message.form if message.form != "split" or sent == 0 else "plain"
                self._send_one(client, message.type, payload, form)
        pings = message.form in ("ping", "interrupted")
        if pings and not self._poll_until(lambda: all(PING in c.pongs for c in senders)):
            raise PeerError(f"a ping was not answered within {MESSAGE_TIMEOUT_S:g} s")
        for client in senders:
            client.pongs.clear()

    def _send_one(self, client: Client, kind: Kind, payload: object, form: str = "plain") -> None:
        whole = encode(self.contract.dialect, kind, payload)
        if form in ("fragmented", "interrupted"):
            client.send_fragments(whole, PING if form == "interrupted" else None)
        elif form == "split":
            client.send_split(whole, SPLIT_PAUSE_S)
        else:
            client.send(whole)
        if kind == "echo":
            self.due[client].append(Received("echo", payload))
            return
        for each in self.clients:
            self.due[each].append(Received("broadcast", payload))
        self.due[client].append(Received("broadcastResult", payload))

    def _payload(self, padding_bytes: int) -> object:
        text = (PADDING * (padding_bytes // len(PADDING) + 1)).encode()[:padding_bytes]
        whole = text.decode(errors="ignore")  # without a character that was cut in two
        padding = whole + "." * (padding_bytes - len(whole.encode()))
        return make_payload(self.contract.dialect, next(self.numbers), padding)

    def _expect_all(
        self,
        clients: Sequence[Client],
        *,
        stuck: bool = False,
        on_received: Callable[[Received], None] = lambda got: None,
    ) -> None:
        """Wait until nothing is due to these clients.

        With `stuck` it also returns once nothing moves any more. `on_received` is called with each
        result.
        """

        def done() -> bool:
            return not self.paced and not any(self.due[client] for client in clients)

        if self._poll_until(done, stuck=stuck, on_received=on_received) or stuck:
            return
        # Broadcasts not yet sent wait for a receipt of their sender.
        missing = next(client for client in (*clients, *self.clients) if self.due[client])
        due = self.due[missing][0]
        who = f"client {self.clients.index(missing) + 1} of {len(self.clients)}"
        raise PeerError(f"{who} did not get {NAMES[due.kind]} within {MESSAGE_TIMEOUT_S:g} s")

    def _poll_until(
        self,
        done: Callable[[], bool],
        *,
        stuck: bool = False,
        on_received: Callable[[Received], None] = lambda got: None,
    ) -> bool:
        """Move bytes until ``done`` is true; return False at the deadline.

        With ``stuck`` it also returns False if nothing has moved for a while.
        """
        moved_s = time.monotonic()
        while True:
            self._receive(on_received)
            self._send_paced()
            if done():
                return True
            now_s = time.monotonic()
            if now_s >= self.deadline_s or (stuck and now_s - moved_s >= STUCK_S):
                return False
            if poll(self.clients, min(self.deadline_s - now_s, STUCK_S)):
                moved_s = time.monotonic()

    def _send_paced(self) -> None:
        """Send the next of many broadcasts once few enough of their sender's are in flight."""
        while self.paced:
            sender, padding_bytes = self.paced[-1]
            waiting = sum(each.kind == "broadcastResult" for each in self.due[sender])
            if waiting >= IN_FLIGHT:
                return
            self.paced.pop()
            self._send_one(sender, "broadcast", self._payload(padding_bytes))

    def _receive(self, on_received: Callable[[Received], None]) -> None:
        """Judge what has come to every client."""
        for number, client in enumerate(self.clients, 1):
            who = f"client {number} of {len(self.clients)}"
            for wire in client.take():
                try:
                    got = decode(self.contract.dialect, wire)
                except ValueError as error:
                    raise PeerError(f"{who} got {error}") from None
                if got is None:
                    continue
                if got.kind == "broadcastResult":
                    on_received(got)
                if fault := judge_message(self.due[client], got, self.counts):
                    raise PeerError(f"{who} got {fault}")
            if client.ended and not client.may_go:
                raise PeerError(f"{who} was disconnected{client.why}")
