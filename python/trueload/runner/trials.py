"""One trial of one subject: start it, see that it is ready and right, measure, stop.

How: a straight line of steps, each of which can end the trial with a reason; whatever the
end, the subject's whole process tree is gone when it is told. Measuring is a function
that comes as an argument.
"""

from __future__ import annotations

import contextlib
import ipaddress
import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from trueload.deadline import looks
from trueload.files.catalogue import cache_folder
from trueload.protocol.engine_options import ENGINE_DEFAULTS, EngineOptions
from trueload.protocol.exchange import WindowsPlan
from trueload.record.schema import Claim, Record
from trueload.request.http2 import over_http2
from trueload.request.tls import ALPN
from trueload.request.traffic import Traffic
from trueload.request.values import Tls
from trueload.runner import cgroup
from trueload.runner.build import Build, in_use
from trueload.runner.cpus import Layout
from trueload.runner.hosts import Kept, SubjectHost
from trueload.runner.load_request import what_is_sent
from trueload.runner.probes import probing, with_probes
from trueload.runner.process import Orders, Program, StartError, substitute
from trueload.runner.verify import sample, verify
from trueload.subjects.contracts import AnyContract, Contract, as_spoken, exchange_of, first_asked
from trueload.subjects.manifest import Subject
from trueload.trial.spec import Load, TrialSpec

STOP_GRACE_S = 5.0
READY_POLL_S = 0.005
DAEMON_LOOK_S = 0.5


@dataclass(frozen=True)
class Step:
    """One step of a search on the way to its result, with what the store says of it."""

    record: Record
    labels: Mapping[str, str]


@dataclass(frozen=True)
class SearchOutcome:
    """What a search left: the record that decides, and the other steps. Not `finished` is one that
    ended before it had a result."""

    record: Record
    labels: Mapping[str, str]
    steps: tuple[Step, ...]
    finished: bool


# Measures; the second argument says whether the subject has ended, so that a trial of a dead
# one need not go on to its end. It is asked often.
Measure = Callable[[TrialSpec, Callable[[], bool]], Record | SearchOutcome]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a trial needs besides its load. `files` is the open-file limit of the subject, 0 for as
    many as there may be; `port` is None for a free one; `engine.refill` counts for loads whose
    pipeline has as many places; `padding_bytes` are those of a broadcast, None for a subject that
    is to echo; `seed` decides when what is asked beside the load. Of HTTP: `http2` are our windows
    over HTTP/2, None over HTTP/1.1; with `tls` the subject answers over TLS; `path` takes the place
    of that of the contract's load."""

    contract: AnyContract
    engine: EngineOptions = ENGINE_DEFAULTS
    files: int = 0
    host: str = "127.0.0.1"
    port: int | None = None
    padding_bytes: int | None = None
    seed: int = 1
    http2: WindowsPlan | None = None
    tls: bool = False
    path: str | None = None


@dataclass(frozen=True)
class TrialResult:
    """A trial that left a record. `died` says how the subject ended before its time, `fault` what
    a client did wrong at its end; `response_bytes` is None of a client; `searched` is what stands
    behind the record of a search."""

    record: Record
    response_bytes: int | None
    died: str | None
    log_tail: str
    searched: SearchOutcome | None = None
    fault: str | None = None


@dataclass(frozen=True)
class TrialFailure:
    """A trial that could not be measured; the reason in one line. `again` if it may go
    better the next time: a subject that cannot start is not tried again. `unsupported` if a
    client said so: it cannot do this load. `lost` if a host of the load or of the subject was."""

    reason: str
    log_tail: str
    again: bool = False
    unsupported: bool = False
    lost: bool = False


class UnreadyError(Exception):
    """Why a subject did not become ready; one line."""


def run_subject(
    subject: Subject,
    built: Build,
    load: Load,
    layout: Layout,
    setting: Setting,
    measure: Measure,
    *,
    subject_host: SubjectHost,
    stopped: Callable[[], bool] = lambda: False,
) -> TrialResult | TrialFailure:
    """One trial. Nothing of the subject is left when it returns or raises."""
    setting = _as_spoken(setting, subject)

    def act(started: RunningSubject) -> TrialResult | TrialFailure:
        category = subject.manifest.category
        fault = verify(
            setting.contract,
            category,
            started.address,
            pipelined=load.pipeline > 1,
            tls=setting.tls,
        )
        if fault is not None:
            raise UnreadyError(f"it does not keep the contract: {fault}")
        with (
            kept_off(layout) if subject_host.address is None else contextlib.nullcontext(),
            probing(
                setting.contract,
                category,
                started.address,
                load,
                setting.seed,
                path=setting.path,
                tls=setting.tls,
            ) as prober,
        ):
            found = measure(_spec(load, layout, setting, started), _Watch(started.processes))
        searched = found if isinstance(found, SearchOutcome) else None
        record = found.record if isinstance(found, SearchOutcome) else with_probes(found, prober)
        died = _death(started.processes)
        if not died:
            return TrialResult(record, started.sample_bytes, None, "", searched)
        started.processes.end(STOP_GRACE_S)
        tail = started.processes.log_tail()
        if record.counts.ok == 0:
            return TrialFailure(f"it ended before anything was measured: {died}", tail, again=True)
        return TrialResult(record, started.sample_bytes, died, tail, searched)

    return with_subject(
        subject, built, layout, setting, act, subject_host=subject_host, stopped=stopped
    )


@dataclass(frozen=True)
class RunningSubject:
    """A subject that runs and has answered the contract's first exchange with so many bytes."""

    processes: Kept
    address: tuple[str, int]
    sample_bytes: int


T = TypeVar("T")


def with_subject(
    subject: Subject,
    built: Build,
    layout: Layout,
    setting: Setting,
    act: Callable[[RunningSubject], T],
    *,
    subject_host: SubjectHost,
    stopped: Callable[[], bool] = lambda: False,
) -> T | TrialFailure:
    """Starts the subject, acts once it is ready, stops it; or says why it could not be."""
    setting = _as_spoken(setting, subject)
    if subject_host.address is not None:
        setting = replace(setting, host=subject_host.address)
    port = setting.port if setting.port is not None else subject_host.free_port(setting.host)
    if taken := subject_host.taken_by(setting.host, port):
        return TrialFailure(f"port {port} is taken by {taken}; it was left alone", "")
    try:
        with in_use(built), subject_host.scratch() as scratch:
            orders = _orders(subject, built, layout, setting, port, scratch, subject_host)
            with subject_host.start(orders) as processes:
                try:
                    size_bytes = _become_ready(subject, processes, setting, port, stopped)
                    done = act(RunningSubject(processes, (setting.host, port), size_bytes))
                except UnreadyError as why:
                    processes.end(STOP_GRACE_S)
                    return TrialFailure(str(why), processes.log_tail())
                processes.end(STOP_GRACE_S)
                return done
    except StartError as error:
        return TrialFailure(f"it cannot be started: {error}", "", again=error.again)


def _as_spoken(setting: Setting, subject: Subject) -> Setting:
    """The setting with the contract as this subject keeps it."""
    manifest = subject.manifest
    return replace(setting, contract=as_spoken(setting.contract, manifest.path, manifest.dialect))


def _become_ready(
    subject: Subject,
    processes: Kept,
    setting: Setting,
    port: int,
    stopped: Callable[[], bool],
) -> int:
    """Until it answers the contract's first exchange from its own listening socket; the size of
    that answer in bytes."""
    deadline_s = time.monotonic() + subject.manifest.ready_s
    fault = ""
    for left_s in looks(deadline_s):
        if stopped():
            break
        seen = processes.look(setting.host, port)
        if not seen.alive:
            raise UnreadyError(f"it ended before it was ready: {_ends(processes)}")
        if seen.taken_by is not None:
            raise UnreadyError(
                f"port {port} is held by {seen.taken_by}, which is not the subject's"
            )
        if seen.sockets >= len(processes.started):
            at = (setting.host, port)
            first = sample(setting.contract, at, path=setting.path, tls=setting.tls)
            if first.fault is None:
                if others := _other_addresses(processes, setting.host):
                    raise UnreadyError(f"it listens on {others}, and may on {setting.host} only")
                return first.wire_bytes
            fault = first.fault
        processes.poll(min(left_s, READY_POLL_S))
    if stopped():
        raise UnreadyError("interrupted before it was ready")
    elsewhere = processes.listens_on()
    raise UnreadyError(_why_unready(subject, setting, port, fault, elsewhere))


def _other_addresses(processes: Kept, host: str) -> str:
    """Where it can be reached but by the address that it was told, which others may do, too."""
    own = _address(host)
    places = (place.rpartition(":") for place in processes.listens_on()) if own else ()
    return ", ".join(f"{at}:{port}" for at, _, port in places if _address(at) != own)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address, where a socket for both families has IPv4 within IPv6; None for a name."""
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return None
    return getattr(found, "ipv4_mapped", None) or found


def _why_unready(
    subject: Subject, setting: Setting, port: int, fault: str, elsewhere: Sequence[str]
) -> str:
    within = f"within {subject.manifest.ready_s:g} s (ready_s)"
    if fault:
        return f"it did not answer {first_asked(setting.contract)} correctly {within}: {fault}"
    if elsewhere:
        where = ", ".join(elsewhere[:3])
        return f"it listens on {where} instead of {setting.host}:{port}"
    return f"it did not listen on {setting.host}:{port} {within}"


class _Watch:
    """Whether a subject has ended, cheap enough to be asked often: what has left its first
    process behind is looked for only every `DAEMON_LOOK_S`."""

    def __init__(self, processes: Kept) -> None:
        self._processes = processes
        self._looked_s = -math.inf
        self._ended = False

    def __call__(self) -> bool:
        self._processes.poll(0)
        if not self._ended and self._processes.exits:
            now_s = time.monotonic()
            if now_s - self._looked_s >= DAEMON_LOOK_S:
                self._looked_s = now_s
                self._ended = _death(self._processes) is not None
        return self._ended


def _death(processes: Kept) -> str | None:
    """How the subject ended, if it did although nobody had asked it to."""
    processes.poll(0)
    if len(processes.started) > 1 and processes.exits:
        return _ends(processes)
    return None if processes.alive() else _ends(processes)


def _ends(processes: Kept) -> str:
    return ", ".join(dict.fromkeys(str(end) for end in processes.exits)) or "no exit code"


def _spec(load: Load, layout: Layout, setting: Setting, started: RunningSubject) -> TrialSpec:
    authority = f"{started.address[0]}:{started.address[1]}"
    sent = what_is_sent(
        setting.contract, authority, setting.padding_bytes, path=setting.path, tls=setting.tls
    )
    return TrialSpec(
        url=sent.url,
        addresses=(authority,),
        traffic=Traffic(
            request=sent.request,
            expect=sent.expect,
            exchange=sent.exchange,
            http2=setting.http2,
            tls=_tls(setting),
        ),
        load=load,
        engine=_engine(setting.engine, load, layout),
        # A ranking by throughput says that a subject can do no more; at a rate nobody says so.
        claim=Claim(maximum=not load.is_open, answer_bytes=_verified_bytes(load, setting, started)),
        server=started.processes.tree,
    )


def _tls(setting: Setting) -> Tls | None:
    """TLS without verification: the build of the subject made the certificate itself."""
    if not setting.tls:
        return None
    tls = Tls(server_name=setting.host, alpn=ALPN, trust="anybody")
    return tls if setting.http2 is None else over_http2(setting.http2, tls)


def _verified_bytes(load: Load, setting: Setting, started: RunningSubject) -> int | None:
    """The size of the answer that was verified, if the load asks for the same: whoever is asked to
    close answers with a header more."""
    contract = setting.contract
    # Over HTTP/2 an answer's header block is not always as long: it names what came before.
    if load.close or not isinstance(contract, Contract) or setting.http2 is not None:
        return None
    same = exchange_of(contract, setting.path).path == (setting.path or contract.load.path)
    return started.sample_bytes if same else None


def _engine(engine: EngineOptions, load: Load, layout: Layout) -> EngineOptions:
    refill = None if engine.refill is None else min(engine.refill, load.pipeline)
    cpus = () if layout.shared else layout.engine
    return EngineOptions(refill=refill, cpus=cpus).over(engine)


def _orders(
    subject: Subject,
    built: Build,
    layout: Layout,
    setting: Setting,
    port: int,
    scratch: Path,
    subject_host: SubjectHost,
) -> Orders:
    """What the supervisor is to start: one program, or one on each CPU."""
    manifest = subject.manifest
    if subject_host.trueload is None and "{trueload}" in manifest.run:
        raise StartError("it starts trueload itself, which is not there")
    folder = subject_host.folder_of(built)
    groups = [(cpu,) for cpu in layout.subject] if manifest.prefork else [layout.subject]

    def values(cpus: tuple[int, ...]) -> dict[str, str]:
        return {
            "host": setting.host,
            "port": str(port),
            "cpus": str(len(cpus)),
            "cpu_list": ",".join(str(cpu) for cpu in cpus),
            "build": str(folder),
            "scheme": "https" if setting.tls else "http",
        }

    env = subject_host.environment({"HOME": str(scratch), "TMPDIR": str(scratch)})
    for name, value in manifest.env.items():
        env[name] = substitute([value], values(layout.subject), ())[0]
    return Orders(
        programs=tuple(
            Program(
                tuple(substitute(manifest.run, values(cpus), subject_host.trueload or ())), cpus
            )
            for cpus in groups
        ),
        cwd=folder,
        env=env,
        log=scratch / "log",
        files=setting.files,
        supervisor_cpus=() if layout.shared or subject_host.address is not None else layout.engine,
    )


def sweep() -> None:
    """Ends and removes what a run that was killed has left: processes in its groups, and the
    folders of its trials."""
    cgroup.sweep()
    for path in (cache_folder() / "scratch").glob(f"{cgroup.PREFIX}*"):
        if cgroup.is_left_behind(path.name):
            shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def kept_off(layout: Layout) -> Iterator[None]:
    """Keeps this process, and so what it starts, off the subject's CPUs."""
    before = os.sched_getaffinity(0)
    ours = before - set(layout.subject)
    if not layout.shared and ours:
        os.sched_setaffinity(0, ours)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
