"""A client at work: one process of it against one reference server, with warm-up and orders.

How: the server is an engine on CPUs of its own that records what it sees. The client gets its setup
once, and then orders of many requests each. The number follows from the rate of the order before,
so that each order takes about the time that was asked for. Every wait is bounded by what the order
should take at that rate. A client that does anything it was not told to do ends the session, with
the reason.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from trueload.assemble.client import ClientObservation, EndSample
from trueload.assemble.observation import HostSample
from trueload.engines.engine import Engine, ask_core_latency, await_listening, seen_since_mark
from trueload.ids import now_iso, record_id
from trueload.machine.accounting import ProcessTree, TreeSample, machine_sample, used_since
from trueload.machine.noise import noise_sample
from trueload.protocol.client import Claim, ClientSetup, Unsupported, parse_answer, parse_claim
from trueload.protocol.client_progress import ClientProgress, OnClientProgress
from trueload.protocol.cpu_time import CpuTime
from trueload.protocol.exchange import ServeHttp, ServeHttp2
from trueload.protocol.plan import Serve, Served
from trueload.protocol.server_report import ServerReport
from trueload.record.client import ClientTask, interval_ns
from trueload.record.core_latency import core_latency_of, pair_of
from trueload.runner.build import Build
from trueload.runner.client import Client, running_client
from trueload.runner.client_peers import SELF_SIGNED
from trueload.runner.cpus import Layout
from trueload.runner.trials import kept_off
from trueload.subjects.manifest import Subject
from trueload.trial.environment import read_environment
from trueload.units import NS_PER_S

SERVER_S = 10.0  # an engine starts to listen, and reports its record, within milliseconds
# The first order: enough to see a rate, few enough for the slowest client.
PROBE_REQUESTS = 256
# The time allowed beyond what an order should take, and how much slower than in the order before a
# client may be.
PATIENCE_S, SLOWER = 10.0, 4
REQUESTS_MAX = 50_000_000


class UnsupportedError(Exception):
    """The reason why the client, or this machine, cannot do what a load asks for; one line."""


@dataclass(frozen=True, kw_only=True)
class ClientLoad:
    """The load of a session.

    `files` is the client's open-file limit, 0 for as many as possible. An order should take about
    `span_ns`, and the warm-up `warmup_ns`. Over HTTP/2 a connection may have `streams` streams at
    once, and the server permits `max_streams`; both are 0 over HTTP/1.1. Without `keep_alive` each
    request has a connection of its own.
    """

    pools: int
    pool_size: int
    concurrency: int
    wait_ms: int
    timeout_ms: int
    files: int
    span_ns: int
    warmup_ns: int
    streams: int = 0
    max_streams: int = 0
    keep_alive: bool = True

    def setup(self, authority: str, scheme: str = "http") -> ClientSetup:
        same = ClientSetup.model_fields.keys() & vars(self).keys()
        told = {name: getattr(self, name) for name in same}
        url = f"{scheme}://{authority}/wait/{self.wait_ms}"
        return ClientSetup(url=url, pipelining=self.streams or 1, **told)


def requests_for(rate_per_s: float, span_ns: int, concurrency: int) -> int:
    """Return the number of requests of an order that takes about ``span_ns``. Pure.

    There are some for each that is to be under way at once, unless a slow client would take four
    times as long for them.
    """
    wanted = rate_per_s * span_ns / NS_PER_S
    least = min(2 * concurrency, 4 * wanted)
    return max(1, min(REQUESTS_MAX, round(max(wanted, least))))


def patience_s(requests: int, rate_per_s: float, timeout_ms: int) -> float:
    """Return how long an order may take, in s. Pure."""
    expected_s = requests / rate_per_s if rate_per_s > 0 else 0.0
    return PATIENCE_S + timeout_ms / 1000 + SLOWER * expected_s


@dataclass
class ClientSession:
    """A running client and its server. Raises ``ClientError`` and ``ValueError`` for what the
    client does wrong, and ``EngineError`` for the server."""

    load: ClientLoad
    layout: Layout
    engine: Engine
    client: Client
    setup: ClientSetup
    rate_per_s: float = 0.0
    on_progress: OnClientProgress | None = None
    ready_wall_s: float = 0.0
    _warmup: list[tuple[int, Claim]] = field(default_factory=list)
    _marks: int = 0
    _phase: str = "start"
    _requests: int | None = None
    _begun_s: float = field(default_factory=time.monotonic)
    _answered: int = 0
    _failed: Counter[str] = field(default_factory=Counter)
    _before: EndSample | None = None

    def received(self, served: Served) -> None:
        """Report the server's progress to ``on_progress``, if there is one."""
        if self.on_progress is None:
            return
        before = self._before
        self.on_progress(
            ClientProgress(
                setup=self.setup,
                phase=self._phase,
                elapsed_ns=round((time.monotonic() - self._begun_s) * NS_PER_S),
                requests=self._requests,
                answered=max(0, served.responses - self._answered),
                served=served,
                failed=dict(self._failed),
                client_cpu=None if before is None else _cpu_time(before.client),
                server_cpu=None if before is None else _cpu_time(before.host.server),
            )
        )

    def begin(self) -> None:
        """Send the setup and run the warm-up. Raises ``UnsupportedError``."""
        begun_s = self._begun_s = time.monotonic()
        self.client.send(self.setup.model_dump_json())
        answer = parse_answer(self.client.receive(self.client.ready_s))
        if isinstance(answer, Unsupported):
            raise UnsupportedError(answer.why)
        self.ready_wall_s = time.monotonic() - begun_s
        with kept_off(self.layout):
            self._warm_up(min(PROBE_REQUESTS, self.load.concurrency))
            number = requests_for(self.rate_per_s, self.load.warmup_ns, self.load.concurrency)
            self._warm_up(number)

    def measure(self) -> ClientObservation:
        """Run one order that counts."""
        number = requests_for(self.rate_per_s, self.load.span_ns, self.load.concurrency)
        with kept_off(self.layout):
            before_ns = self._cpus_apart_ns()
            self._seen()
            started_at, before = now_iso(), self._sample()
            self._before = before
            claim, wall_s = self._order(number, "window")
            after, seen = self._sample(), self._seen()
            after_ns = self._cpus_apart_ns()
        self._before = None
        self._learn(number, seen, wall_s)
        warmup = sum(requests for requests, _ in self._warmup)
        return ClientObservation(
            id=record_id(),
            started_at=started_at,
            asked=ClientTask(
                setup=self.setup,
                requests=number,
                warmup_requests=warmup,
                wait_ms=self.load.wait_ms,
                files=self.load.files or None,
                max_streams=self.load.max_streams or None,
            ),
            claim=claim,
            seen=seen,
            warmup=[claimed for _, claimed in self._warmup],
            before=before,
            after=after,
            wall_s=wall_s,
            ready_wall_s=self.ready_wall_s,
            cpus=self.layout.subject,
            server_cpus=() if self.layout.shared else self.layout.engine,
            front_pid=os.getpid(),
            environment=read_environment(self.engine.hello.version),
            cpu_distance=core_latency_of(self._pair, before_ns, after_ns),
        )

    def _warm_up(self, number: int) -> None:
        self._seen()
        claim, wall_s = self._order(number, "warm-up")
        self._learn(number, self._seen(), wall_s)
        self._warmup.append((number, claim))

    def _order(self, number: int, phase: str) -> tuple[Claim, float]:
        begun_s = self._begun_s = time.monotonic()
        self._phase, self._requests = phase, number
        self.client.send(f"go {number}")
        line = self.client.receive(patience_s(number, self.rate_per_s, self.load.timeout_ms))
        claim, wall_s = parse_claim(line), time.monotonic() - begun_s
        self._failed.update(claim.failed)
        return claim, wall_s

    def _learn(self, number: int, seen: ServerReport, wall_s: float) -> None:
        """Update the client's rate in requests per second.

        It uses the server's clock if the server has seen any, else ours.
        """
        took_s = interval_ns(seen) / NS_PER_S
        made = seen.answered if seen.answered and took_s > 0 else number
        self.rate_per_s = made / (took_s if seen.answered and took_s > 0 else max(wall_s, 1e-3))

    def _seen(self) -> ServerReport:
        self._marks += 1
        seen = seen_since_mark(self.engine, f"mark {self._marks}", SERVER_S)
        self._answered += seen.answered
        return seen

    @property
    def _pair(self) -> tuple[int, int] | None:
        return pair_of(self.layout.subject, self.layout.engine)

    def _cpus_apart_ns(self) -> float | None:
        """Measure the core latency between client and server while both are idle."""
        return None if self._pair is None else ask_core_latency(self.engine, self._pair)

    def _sample(self) -> EndSample:
        return EndSample(
            host=HostSample(
                machine=machine_sample(),
                server=ProcessTree(self.engine.pid).sample(),
                processes=noise_sample(),
            ),
            client=self.client.processes.tree.sample(),
        )


def _cpu_time(sample: TreeSample | None) -> CpuTime | None:
    """Return the CPU time that the processes of a sample have used by now."""
    return None if sample is None else CpuTime(time.monotonic_ns(), used_since(sample))


@contextlib.contextmanager
def client_session(
    subject: Subject,
    built: Build,
    layout: Layout,
    load: ClientLoad,
    *,
    trueload_command: tuple[str, ...],
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[ClientSession]:
    """Start server and client; nothing of either is left afterwards. Raises ``StartError`` for the
    client, ``EngineError`` and ``UserError`` for the server."""
    with Engine.start() as engine:
        cpus = () if layout.shared else layout.engine
        threads = max(1, len(cpus))
        http2 = ServeHttp2(max_streams=load.max_streams) if load.streams else None
        service = ServeHttp(record=True, http2=http2)
        tls = SELF_SIGNED if subject.manifest.tls else None
        listen = "127.0.0.1:0"
        engine.send(Serve(listen=listen, threads=threads, cpus=cpus, service=service, tls=tls))
        authority = await_listening(engine, SERVER_S)

        def watched() -> bool:
            # The server's progress lines would fill its pipe if nobody read them; its end is an
            # error.
            while (message := engine.receive(0)) is not None:
                if isinstance(message, Served) and at_work:
                    at_work[0].received(message)
            return stopped()

        at_work: list[ClientSession] = []

        with running_client(
            subject,
            built,
            layout,
            trueload_command=trueload_command,
            stopped=watched,
            files=load.files,
        ) as client:
            setup = load.setup(authority, "http" if tls is None else "https")
            at_work.append(ClientSession(load, layout, engine, client, setup))
            yield at_work[0]
