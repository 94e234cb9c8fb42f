"""A Ray cluster: finding it, joining it, reserving hosts in it and giving them back.

How: a plain connection to the address is tried first, because Ray itself takes half a minute or
more to give up. Then Ray joins the cluster, hosts are reserved as a placement group, and an actor
is put on each. Nothing waits for a head without a limit. Ray's side effects on this process (signal
handlers, limits, output on stderr) are undone or silenced. Every mistake is a ``UserError``.

Of Ray's private modules one method is replaced (``part_at_once``), because Ray has no setting for
it: without that a head that cannot start its process for this client holds us up for 40 s. One
private attribute is read (``actor.once_numbered``): without it every call waits for the head first.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import logging
import os
import re
import resource
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from trueload.closeable import Closeable
from trueload.deadline import within
from trueload.errors import HostError, UserError
from trueload.extras import require
from trueload.places.host_wait import HostWait
from trueload.places.program import Program
from trueload.places.ray import host
from trueload.places.ray.actor import Actor
from trueload.places.ray.channel import RayPlace
from trueload.places.ray.link import Link
from trueload.places.ray.pipes import ProgramPipes
from trueload.units import counted

PLACE_S = 30.0  # for a placement that cannot be met, and for actors to start
CONNECT_S = 5.0
HEAD_S = 10.0  # for a head that has answered before
LEAVE_S = 3.0
LEAVE_LOST_S = 0.2  # nobody answers any more
LOOK_EVERY_S = 0.5
LOOK_S = 0.3  # to reach a head that has just answered
# Errors of joining a head whose first node is not there yet, or that could not start its server
# process for this client. The head may say so, or find that process dead, or end the connection
# before its message arrives. Nothing has been asked of the head then, so joining again is safe.
NOT_YET = (
    "Starting Ray client server failed",
    "psutil.ZombieProcess",
    "because the Ray client has already been disconnected.",
)
JOIN_TRIES, JOIN_PAUSE_S = 4, 1.0
NODES_SHOWN = 8
NODE_LABEL = "ray.io/node-id"  # given by Ray to every node
CLIENT_PORT = 10001  # Ray's own for ray://
HELP = "docs/hosts.md"
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    # Never reconnect a benchmark silently after its connection was lost.
    "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "0",
    # Never join or start another cluster if something is asked after the end.
    "RAY_ENABLE_AUTO_CONNECT": "0",
    # Print nothing of the cluster's in the midst of our output (of `--json`, say): skip every line.
    "RAY_DEDUP_LOGS": "1",
    "RAY_DEDUP_LOGS_SKIP_REGEX": "^",
}


class Reservation(Closeable):
    """Hosts reserved in a cluster, until ``close``."""

    def __init__(
        self, cluster: Cluster, group: Any, places: list[RayPlace], asked: HostRequest
    ) -> None:
        self.places = places
        self._cluster = cluster
        self._groups = [(group, asked.hosts)]
        self._pending: Any = None
        """The request for one more host that has not been met yet."""
        self._one = replace(asked, hosts=1)
        self._lock = threading.Lock()

    def one_more(self) -> RayPlace:
        """Reserve one more host. The request stays, so that an autoscaler sees it. Raises
        ``HostError`` if the cluster has no other host yet."""
        with self._lock:
            place = self._cluster.link.ask_head(PLACE_S + HEAD_S, self._one_more)
            self.places.append(place)
            return place

    def close(self) -> None:
        """Give the hosts back; what still runs there ends."""
        groups = [self._pending, *(group for group, _ in self._groups)]
        leave(self._cluster, groups, self.places)

    def _one_more(self) -> RayPlace:
        ray = self._cluster.ray
        if self._pending is None:
            taken = ",".join(each for known in self._groups for each in node_ids(*known))
            others = {**self._one.labels, NODE_LABEL: f"!in({taken})"}
            self._pending = request(replace(self._one, labels=others))
        if not self._pending.wait(LOOK_EVERY_S):
            raise HostError(f"there is no other host: {what_it_has(ray)}", HELP)
        group, self._pending = self._pending, None
        self._groups.append((group, 1))
        (place,) = start_actors(self._cluster, group, self._one)
        return place


@dataclass(frozen=True)
class Cluster:
    """A cluster that this process has joined: Ray, the link to its hosts, and the pipes there."""

    ray: Any
    link: Link
    pipes: ProgramPipes


def reserve(
    address: str | None,
    hosts: int,
    *,
    labels: Mapping[str, str] | None = None,
    wait_s: float = PLACE_S,
    wait: HostWait | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Reservation:
    """Reserve ``hosts`` different hosts of a cluster, and one CPU on each. ``address`` is
    ``ray://HOST:PORT``; None means the cluster that this machine is part of, or ``RAY_ADDRESS``.
    With ``labels`` only hosts that have them are taken. With ``wait``, a cluster or hosts that
    are not there yet are waited for. Raises ``UserError``, and ``KeyboardInterrupt`` once it is
    ``stopped``."""
    asked = HostRequest(hosts, dict(labels or {}), wait_s, stopped)
    ray = join(address) if wait is None else join_later(address, asked, wait)
    cluster = Cluster(ray, link_to(address), ProgramPipes())
    ask_head = cluster.link.ask_head
    group = None
    try:
        group = ask_head(PLACE_S + HEAD_S, request, asked)
        await_hosts(cluster, group, asked, wait)
        places = ask_head(PLACE_S + HEAD_S, start_actors, cluster, group, asked)
    except BaseException:
        leave(cluster, [group])
        raise
    return Reservation(cluster, group, places, asked)


@dataclass(frozen=True)
class HostRequest:
    """What to reserve."""

    hosts: int
    labels: dict[str, str]
    wait_s: float
    stopped: Callable[[], bool] = lambda: False

    def __str__(self) -> str:
        label = "".join(f", {name}={value}" for name, value in self.labels.items())
        return f"{counted(self.hosts, 'host')} (1 CPU each{label})"


def join(address: str | None) -> Any:
    """Connect to a cluster. Returns Ray. Raises ``UserError``."""
    where = located(address)
    ray = imported(client=where is not None and where.startswith("ray://"))
    if ray.is_initialized():
        return ray
    if where is not None:
        try_connection(where)
    for left in reversed(range(JOIN_TRIES)):
        try:
            with undisturbed():
                ray.init(where or "auto", log_to_driver=False, logging_level="CRITICAL")
            break
        except KeyboardInterrupt:
            atexit.unregister(ray.shutdown)  # it would wait until the head has let us in
            raise
        except (Exception, SystemExit) as error:  # its client's errors have no common class
            if not left or not any(words in str(error) for words in NOT_YET):
                raise refusal(where, error) from error
            with contextlib.suppress(Exception):
                ray.shutdown()
            time.sleep(JOIN_PAUSE_S)
    logging.getLogger("ray").setLevel(logging.CRITICAL + 1)
    _joined.append(True)
    return ray


def join_later(address: str | None, asked: HostRequest, wait: HostWait) -> Any:
    """Join a cluster that may not be up yet. Raises ``UserError``."""
    while True:
        try:
            return join(address)
        except HostError as error:
            if not wait.again(0, asked.hosts, error.message):
                raise wait.too_late(0, asked.hosts, error) from error


def part_at_once() -> None:
    """Make Ray's client leave a head without waiting for its stream of logs. This applies after the
    last call and after a failed try to join.

    A head that could not start the process that sends the logs reports that within a tenth of a
    second, but holds the stream for 40 s. (It forks beside threads of gRPC, which now and then
    kills the child at once.) The stream ends with the connection.
    """
    with contextlib.suppress(ImportError):
        logs: Any = importlib.import_module("ray.util.client.logsclient")
        logs.LogstreamClient.close = end_requests
        # It prints a traceback if the connection breaks.
        logging.getLogger(logs.__name__).disabled = True


def end_requests(stream: Any) -> None:
    """Replaces Ray's own method, which would also join the stream's thread."""
    stream.request_queue.put(None)


_joined: list[bool] = []  # not empty if it was us who connected this process


def imported(*, client: bool) -> Any:
    """Import Ray with our settings in place. Raises ``UserError`` if it is not installed."""
    os.environ.update(SETTINGS)
    require("ray", "a place on a cluster", "ray", *(["grpc"] if client else []))
    ray = importlib.import_module("ray")
    if client:
        part_at_once()
    return ray


def located(address: str | None) -> str | None:
    """Where a cluster is: as named, or as ``ray start`` leaves it on a machine of a cluster; None
    if there is none."""
    named = address or os.environ.get("RAY_ADDRESS")
    if named not in (None, "", "auto"):
        return named
    folder = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
    with contextlib.suppress(OSError):
        return Path(folder, "ray", "ray_current_cluster").read_text().strip() or None
    return None


def try_connection(address: str) -> None:
    """Raise ``UserError`` unless something listens there. Ray itself tries a minute or more."""
    reached = host_and_port(address)
    if reached is None:
        raise UserError(
            f"'{address}' is not an address of a Ray cluster", f"write ray://HOST:{CLIENT_PORT}"
        )
    try:
        socket.create_connection(reached, CONNECT_S).close()
    except OSError as error:
        raise refusal(address, error) from error


def host_and_port(address: str) -> tuple[str, int] | None:
    """The host and port of a cluster's address; None if it is no address."""
    try:
        parts = urlsplit(address if "://" in address else f"//{address}")
        return None if parts.hostname is None else (parts.hostname, parts.port or CLIENT_PORT)
    except ValueError:
        return None


def link_to(address: str | None) -> Link:
    """The link to a cluster's hosts: by its head through ``ray://``, else to each of them."""
    named = located(address) or "this machine"
    reached = host_and_port(named) if named.startswith("ray://") else None

    def reaches_head() -> bool:
        if reached is not None:
            with contextlib.suppress(OSError):
                socket.create_connection(reached, LOOK_S).close()
                return True
        return reached is None

    return Link(f"the Ray cluster at {named}", reaches_head)


def refusal(address: str | None, error: BaseException) -> UserError:
    """The error for a cluster that cannot be joined, from Ray's message."""
    text = " ".join(str(error).split())
    if "ersion" in text and "Python" in text:
        found = re.findall(r"Ray: (\S+) Python: (\S+)", text)
        theirs, ours = (found + [("?", "?")] * 2)[:2]
        return UserError(
            f"the Ray cluster runs Ray {theirs[0]} on Python {theirs[1]}, "
            f"this is Ray {ours[0]} on Python {ours[1]}",
            f"install the cluster's version here: `pip install 'ray[client]=={theirs[0]}'`",
        )
    if address is None:
        return UserError(
            "no Ray cluster runs on this machine",
            f"`ray start --head`, or name one with --place ray://HOST:{CLIENT_PORT} ({HELP})",
        )
    why = error.strerror if isinstance(error, OSError) else None
    # In a traceback from the cluster, the last line is the cause.
    last = (str(error).strip().splitlines() or ["no answer"])[-1][:200]
    return HostError(
        f"the Ray cluster at {address} cannot be reached: {why or last}",
        "`ray status` on its head says whether it runs; a stale address goes with `ray stop`",
    )


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Undo what joining does to this process. Ray's SIGTERM handler would end it without its
    record, and programs that it starts would inherit another limit of open files."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    main = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        if main:
            for number, handler in handlers.items():
                signal.signal(number, handler)


def request(asked: HostRequest) -> Any:
    """Request a placement group of different hosts, with a CPU on each."""
    groups = importlib.import_module("ray.util.placement_group")
    selector = [asked.labels] * asked.hosts if asked.labels else None
    return groups.placement_group(
        [{"CPU": 1.0}] * asked.hosts,
        strategy="STRICT_SPREAD",
        bundle_label_selector=selector,
    )


def node_ids(group: Any, hosts: int) -> list[str]:
    """The ids of the hosts that a placement group has."""
    table = importlib.import_module("ray.util").placement_group_table(group)
    return [table["bundles_to_node_id"][number] for number in range(hosts)]


def await_hosts(cluster: Cluster, group: Any, asked: HostRequest, wait: HostWait | None) -> None:
    """Wait until a group has every host; Ray's autoscaler sees what it asks for. Raises
    ``UserError``, and ``KeyboardInterrupt`` once the user stops."""
    ray, ask_head = cluster.ray, cluster.link.ask_head
    deadline_s = time.monotonic() + asked.wait_s
    while not ask_head(LOOK_EVERY_S + HEAD_S, group.wait, LOOK_EVERY_S):
        if asked.stopped():
            raise KeyboardInterrupt
        has = ask_head(HEAD_S, what_it_has, ray)
        nodes = ask_head(HEAD_S, ray.nodes)
        if wait is None:
            waited, go_on = f"{asked.wait_s:g} s", time.monotonic() < deadline_s
        else:
            here = suitable(nodes, asked.labels)
            waited, go_on = wait.span, wait.again(here, asked.hosts, has)
        if not go_on:
            raise HostError(
                f"Ray did not find {asked} within {waited}: {has}",
                f"ask for fewer with --hosts, or add hosts to the cluster ({HELP})",
            )


def suitable(nodes: Sequence[Mapping[str, Any]], labels: Mapping[str, str]) -> int:
    """The number of hosts that have a CPU and the labels."""
    found = (node for node in nodes if node["Alive"] and cpus_of(node) >= 1)
    return sum(labels.items() <= node.get("Labels", {}).items() for node in found)


def what_it_has(ray: Any) -> str:
    """The hosts of a cluster, in one line."""
    nodes = [node for node in ray.nodes() if node["Alive"]]
    shown = [f"{name_of(node)} ({counted(cpus_of(node), 'CPU')})" for node in nodes[:NODES_SHOWN]]
    more = ["\N{HORIZONTAL ELLIPSIS}"] if len(nodes) > NODES_SHOWN else []
    free = counted(ray.available_resources().get("CPU", 0.0), "CPU")
    has = counted(len(nodes), "host")
    return f"the cluster has {has}, {', '.join(shown + more)}; {free} free in all"


def start_actors(cluster: Cluster, group: Any, asked: HostRequest) -> list[RayPlace]:
    """Start an actor on every host of the group, and return the hosts by name. Raises
    ``UserError``."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    ray = cluster.ray
    # By value: a host that has nothing of ours cannot import the module.
    ray.cloudpickle.register_pickle_by_value(host)
    nodes = {node["NodeID"]: node for node in ray.nodes()}
    where = [nodes[node_id] for node_id in node_ids(group, asked.hosts)]
    remote = ray.remote(num_cpus=1.0, max_restarts=0, max_task_retries=0)(host.Host)
    references: dict[str, Any] = {}

    def stored(program: Program) -> Any:
        if program.sha256 not in references:
            references[program.sha256] = ray.put(program.data)
        return references[program.sha256]

    places = []
    for number, name in enumerate(names(where)):
        strategy = strategies.PlacementGroupSchedulingStrategy(
            group, placement_group_bundle_index=number
        )
        handle = remote.options(scheduling_strategy=strategy).remote()
        places.append(RayPlace(Actor(ray, handle, name, cluster.link), stored, cluster.pipes))
    for started in places:
        started.ready(PLACE_S)
    return sorted(places, key=lambda place: place.name)


def names(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """A name for each host: as in ``ray status``, with part of its id if not unique."""
    plain = [name_of(node) for node in nodes]
    return [
        name if plain.count(name) == 1 else f"{name}-{node['NodeID'][:6]}"
        for node, name in zip(nodes, plain, strict=True)
    ]


def name_of(node: Mapping[str, Any]) -> str:
    """The name given with ``ray start --node-name``; the address if none was given."""
    return str(node.get("NodeName") or node["NodeManagerAddress"])


def cpus_of(node: Mapping[str, Any]) -> float:
    """Number of CPUs that a host lends to the cluster."""
    return float(node["Resources"].get("CPU", 0.0))


def leave(cluster: Cluster, groups: Sequence[Any], places: Sequence[RayPlace] = ()) -> None:
    """Give the hosts back and disconnect, whatever state the cluster is in."""
    ray, cut_off = cluster.ray, cluster.link.lost is not None

    def attempt() -> None:
        for place in places:
            place.end()
        for group in groups:
            if group is not None and not cut_off:
                give_back(group)
        if _joined:
            ray.shutdown()

    try:
        within(LEAVE_LOST_S if cut_off else LEAVE_S, attempt)
    except Exception:  # the end of this process does it
        atexit.unregister(ray.shutdown)  # it would wait for a minute more
    _joined.clear()


def give_back(group: Any) -> None:
    """Release the hosts for others."""
    with contextlib.suppress(Exception):  # otherwise the end of the connection does it
        importlib.import_module("ray.util.placement_group").remove_placement_group(group)
