"""The flags for where engines and servers run, each defined once, and their combinations.

Must not know: how a place is opened, or what runs there.
"""

from __future__ import annotations

import errno
import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from trueload.commands.options import check_cpus, option_parser
from trueload.errors import UserError
from trueload.machine.processes import identity
from trueload.places import named
from trueload.places.named import Where
from trueload.protocol.option import positive_count, positive_span
from trueload.protocol.plan import EngineOptions

HOSTS_MAX = 10_000
LATE_HOSTS_MAX = 64  # they join one after the other
PIDS_MAX = 1 << 22  # include/linux/threads.h, PID_MAX_LIMIT


@dataclass(frozen=True)
class Placed:
    """A place that a flag named; typer needs a single class."""

    place: named.Named


def _place(text: str) -> Placed:
    return Placed(named.parse_place(text))


PlaceOption = Annotated[
    list[Placed] | None,
    typer.Option(
        "--place",
        metavar="PLACE",
        parser=option_parser(_place),
        help=(
            "Host to send the load from: local, ssh:USER@HOST (as in your ssh config),"
            " k8s:NAMESPACE, k8s:NAMESPACE/statefulset/NAME, 'k8s:NAMESPACE?LABEL=VALUE', ray,"
            " ray://HOST:PORT, or exec:'COMMAND', such as exec:'docker exec -i NAME'; repeatable."
            "  [default: local]"
        ),
    ),
]


def _hosts(text: str) -> int | named.HostRange:
    """Parse ``N`` or ``A..B``."""
    least, dots, most = text.partition("..")
    if not dots:
        return positive_count(HOSTS_MAX)(text)
    found = named.HostRange(*(positive_count(HOSTS_MAX)(each) for each in (least, most)))
    if found.least >= found.most:
        raise ValueError(f"'{text}' must rise, as 2..3 does")
    if found.most - found.least > LATE_HOSTS_MAX:
        raise ValueError(f"'{text}': at most {LATE_HOSTS_MAX} hosts may join later")
    return found


HostsOption = Annotated[
    Any,
    typer.Option(
        "--hosts",
        metavar="COUNT",
        parser=option_parser(_hosts),
        help=(
            "Number of different hosts to use in a cluster. With k8s:NAMESPACE, so many Pods are"
            " made. With 2..3, a run begins once two hosts are there, of a cluster or named by"
            " --place, and the third may join later.  [default: 1; of a set or of labels, all Pods"
            " that run]"
        ),
    ),
]
HostsWaitOption = Annotated[
    int | None,
    typer.Option(
        "--hosts-wait",
        metavar="TIME",
        parser=option_parser(positive_span),
        help=(
            "Time to wait for hosts that are not there yet, such as those of an autoscaler."
            "  [default: 30s for a Ray cluster, 2m for Pods that are made, else 0s]"
        ),
    ),
]
K8sImageOption = Annotated[
    str | None,
    typer.Option(
        "--k8s-image",
        metavar="IMAGE",
        parser=option_parser(named.parse_image),
        help=(
            "Image of the Pods that --place k8s:NAMESPACE makes; it must have sh."
            "  [default: busybox]"
        ),
    ),
]
LabOption = Annotated[
    Path | None,
    typer.Option(
        "--lab",
        metavar="FILE",
        help=(
            "Lab file (places.toml) with the generator hosts, instead of --place, and the"
            " server host."
        ),
    ),
]
ServerPlaceOption = Annotated[
    Placed | None,
    typer.Option(
        "--server-place",
        metavar="PLACE",
        parser=option_parser(_place),
        help=(
            "Host to start the server on, the reference server or each subject: local, or"
            " ssh:USER@HOST."
        ),
    ),
]
AllowLostOption = Annotated[
    int | None,
    typer.Option(
        "--allow-lost",
        metavar="COUNT",
        parser=option_parser(positive_count(HOSTS_MAX)),
        help=(
            "Number of hosts that may be lost while the others go on with their own parts of the"
            " load.  [default: 0]"
        ),
    ),
]
NoCacheOption = Annotated[
    bool,
    typer.Option(
        "--no-cache",
        help="Remove the engine from other hosts at the end, instead of keeping it for later runs.",
    ),
]
ServerPidOption = Annotated[
    int | None,
    typer.Option(
        "--server-pid",
        metavar="PID",
        parser=option_parser(positive_count(PIDS_MAX)),
        help=(
            "Process on this machine whose CPU time and memory count as the server's, with"
            " its children; for a server behind a proxy.  [default: the process that listens"
            " at the URL]"
        ),
    ),
]


def choose_places(
    places: Sequence[named.Named] = (),
    hosts: int | named.HostRange | None = None,
    lab: Path | None = None,
    server: named.Named | None = None,
) -> Where:
    """Combine the options. Raises ``UserError`` for options that exclude each other."""
    generators = tuple(named.GeneratorHost(place=each) for each in places) or named.HERE.generators
    if lab is None and isinstance(hosts, named.HostRange):
        named.check_generators(generators, None)
        named.check_range(generators, hosts)
        where = Where(generators=generators, hosts=hosts.most, hosts_least=hosts.least)
    elif lab is None and not isinstance(hosts, named.HostRange):
        named.check_generators(generators, hosts)
        where = Where(generators=generators, hosts=hosts)
    elif lab is not None:
        where = _of_lab(lab, places, hosts)
    if server is None:
        return where
    named.check_server(server)
    known = where.lab_server
    of_lab = known is not None and known.place == server
    return replace(where, server=known if of_lab else named.ServerHost(place=server))


def _of_lab(lab: Path, places: Sequence[named.Named], hosts: object) -> Where:
    from trueload.places.lab import read_lab  # imported late: most commands have no lab

    for flag, given in (("--place", places), ("--hosts", hosts)):
        if given:
            raise UserError(f"--lab and {flag} exclude each other", "keep one of them")
    return read_lab(lab)


def read_where(
    place: PlaceOption = None,
    hosts: HostsOption = None,
    lab: LabOption = None,
    server_place: ServerPlaceOption = None,
    server_pid: ServerPidOption = None,
    no_cache: NoCacheOption = False,
    hosts_wait: HostsWaitOption = None,
    k8s_image: K8sImageOption = None,
) -> Where:
    """Return where everything runs. Raises ``UserError``; nothing has been connected to."""
    server = None if server_place is None else server_place.place
    where = choose_places([each.place for each in place or ()], hosts, lab, server)
    where = replace(where, keep=not no_cache, hosts_wait_ns=hosts_wait)
    if hosts_wait is not None and where.all_here:
        message = "--hosts-wait waits for other hosts, and all load comes from this machine"
        raise UserError(message, "name the hosts with --place or --lab")
    where = _with_image(where, k8s_image)
    if server_pid is None:
        return where
    if server is not None:
        message = "--server-pid names a server that runs, and --server-place starts one"
        raise UserError(message, "keep one of them")
    if identity(server_pid) is None:
        hint = "`ss -ltnp` shows which process listens where"
        raise UserError(f"--server-pid {server_pid}: there is no such process", hint)
    return replace(where, server_pid=server_pid)


def _with_image(where: Where, image: str | None) -> Where:
    """Return where Pods are made with an image, and waited for as long as asked."""
    if image is not None and not where.makes_pods:
        message = "--k8s-image is for Pods that are made, and no --place makes any"
        raise UserError(message, "name a namespace alone: --place k8s:NAMESPACE --hosts N")
    wait_ns = where.hosts_wait_ns or where.new_pods.wait_ns
    new = replace(where.new_pods, image=image or where.new_pods.image, wait_ns=wait_ns)
    return replace(where, new_pods=new)


def check_all_at_start(where: Where, what: str) -> None:
    """Refuse hosts that join later, for ``what`` cannot have them. Raises ``UserError``."""
    if where.hosts_least is not None:
        raise UserError(
            f"{what} needs all of its hosts from the start, so --hosts takes no range",
            "leave --hosts out, and wait for all hosts with --hosts-wait",
        )


def check_pinned(engine: EngineOptions, where: Where) -> None:
    """Raise ``UserError`` for missing CPUs of this machine.

    Another machine checks its own.
    """
    if where.all_here and engine.cpus is not None:
        check_cpus(engine.cpus)


def check_allowed_losses(allow_lost: int | None, where: Where, *, searches: bool) -> int:
    """Return how many hosts may be lost. Raises ``UserError`` if none would be left, and for a
    search, whose steps must all have the same hosts."""
    if allow_lost is None:
        return 0
    if searches:
        message = "--allow-lost and --limit exclude each other: a search needs all of its hosts"
        raise UserError(message, "keep one of them")
    if where.is_counted and allow_lost >= where.host_count:
        has = "1 host" if where.host_count == 1 else f"{where.host_count} hosts"
        raise UserError(
            f"--allow-lost {allow_lost} would leave no host: the load comes from {has}",
            "allow fewer, or name more hosts with --place",
        )
    return allow_lost


def check_local_addresses(texts: Sequence[str], where: Where) -> tuple[str, ...]:
    """Return the addresses to connect from.

    Raises ``UserError`` for one that this machine does not have, if it connects from here, and if
    several hosts would have to share them.
    """
    if texts and (where.host_count > 1 or not where.is_counted):
        raise UserError(
            "--local-address names addresses of one host, but the load comes from several hosts",
            "name each host's own addresses in a places.toml, and give that with --lab",
        )
    for text in texts if where.all_here else ():
        family = socket.AF_INET6 if ipaddress.ip_address(text).version == 6 else socket.AF_INET
        try:
            with socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.bind((text, 0))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue  # it is ours, but has no free port: failing connections report that
            raise UserError(
                f"--local-address {text} cannot be used: {error.strerror}",
                "name an address of this machine",
            ) from error
    return tuple(texts)
