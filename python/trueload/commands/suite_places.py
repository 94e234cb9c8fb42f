"""Opens the hosts of a suite's load and its subjects for as long as the suite lasts."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trueload.commands.host_duration import for_suite
from trueload.commands.output import announce
from trueload.commands.weights import check_weights
from trueload.engines.binary import find_engine
from trueload.engines.launch import check_shares
from trueload.errors import UserError
from trueload.places import EngineHost
from trueload.places.names import CommandHost, Placement, ServerHost, SshHost
from trueload.places.open import open_places
from trueload.request.url import resolve
from trueload.runner.hosts import SubjectHost
from trueload.suites.plan import SuitePlan


@dataclass(frozen=True)
class SuiteHosts:
    """The hosts of the load, empty for this machine.

    ``subject_host`` is the host of the subjects and ``server_place`` its name; both are None for
    this machine.
    """

    hosts: tuple[EngineHost, ...] = ()
    subject_host: SubjectHost | None = None
    server_place: str | None = None


def check_for_suite(placement: Placement, plan: SuitePlan) -> None:
    """Raise ``UserError`` for what the hosts cannot do; nothing is connected to."""
    if placement.is_named and plan.client_wait_ms is not None:
        raise UserError(
            "a suite of clients runs the clients and their server on this machine",
            "leave --place, --lab and --server-place out for suites of clients",
        )
    check_for_subjects(placement)
    check_weights(placement, broadcast=plan.broadcast is not None)
    for load in plan.loads if plan.client_wait_ms is None else ():
        check_shares(placement.host_count, load.connections, plan.load_of(load).pacing)


def check_for_subjects(placement: Placement) -> None:
    """Raise ``UserError`` for a load that does not reach its subjects, and for a host on which none
    can be started."""
    if (server := placement.server or placement.lab_server) is not None and isinstance(
        server.place, CommandHost
    ):
        raise UserError(
            "a subject cannot be started through exec:", "name its host by ssh: ssh:USER@HOST"
        )
    if not placement.all_here and away(placement) is None:
        raise UserError(
            "the load comes from other hosts, which do not reach subjects on 127.0.0.1 of this one",
            "start the subjects on a host that they reach: --server-place ssh:HOST",
        )


def away(placement: Placement) -> ServerHost | None:
    """The host of the subjects; None if it is this machine."""
    server = placement.server or placement.lab_server
    return server if server is not None and isinstance(server.place, SshHost) else None


@contextlib.contextmanager
def open_for_suite(placement: Placement, plan: SuitePlan) -> Iterator[SuiteHosts]:
    """Open the hosts. Raises ``UserError`` before anything is built or started."""
    check_for_suite(placement, plan)
    with open_for_subjects(for_suite(placement, plan)) as opened:
        yield opened


@contextlib.contextmanager
def open_for_subjects(placement: Placement) -> Iterator[SuiteHosts]:
    """Open the hosts. Raises ``UserError`` before anything is built or started."""
    check_for_subjects(placement)
    server = away(placement)
    with contextlib.ExitStack() as stack:
        hosts: tuple[EngineHost, ...] = ()
        if placement.is_named:
            hosts = stack.enter_context(open_places(placement, find_engine(), announce=announce))
        if server is not None and isinstance(server.place, SshHost):
            subject_host = open_subject_host(server, server.place, stack)
            yield SuiteHosts(hosts, subject_host, server.place.name)
        else:
            yield SuiteHosts(hosts)


def address_of(server: ServerHost, name: str, found: Sequence[str]) -> str:
    """Return the address at which subjects on a host are loaded.

    It is the place's own or, if it has none, the first of ``found``; it must be IPv4, as subjects
    get their address and port that way. Raises ``UserError``.
    """
    known = (
        [server.address] if server.address else [at.rpartition(":")[0].strip("[]") for at in found]
    )
    remedy = "in a places.toml: address, below [server]"
    if not known:
        raise UserError(
            (
                f"the address of {name} is not known, and {server.place.name} cannot be"
                " loaded without it"
            ),
            f"name it {remedy}",
        )
    for address in known:
        if ":" not in address:
            return address
    raise UserError(
        f"subjects are loaded over IPv4, and {server.place.name} is at {known[0]}",
        f"name an address of IPv4 {remedy}",
    )


def open_subject_host(
    server: ServerHost, host: SshHost, stack: contextlib.ExitStack
) -> SubjectHost:
    """Return a host reached by ssh, with an agent on it. Raises ``UserError``."""
    from trueload.places.ssh import SshPlace  # not at the top: most suites need none of this
    from trueload.places.ssh.connection import host_name
    from trueload.runner.remote_agent import RemoteAgent
    from trueload.runner.remote_host import RemoteHost

    name = host_name(host.destination)
    address = address_of(server, name, () if server.address else resolve(name, 0))
    place = stack.enter_context(SshPlace(host.destination))
    agent = stack.enter_context(RemoteAgent(place))
    return RemoteHost(place, agent, address, server.cpus)
