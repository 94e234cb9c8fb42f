"""The options of where engines and servers run, each declared once, and their combinations."""

import errno
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trueload.commands.declarations import with_options
from trueload.commands.measure_options import HOSTS_MAX
from trueload.commands.options import check_cpus
from trueload.errors import UserError
from trueload.machine.processes import identity
from trueload.places import names
from trueload.places.names import HERE, Placement
from trueload.protocol.engine_options import EngineOptions
from trueload.protocol.option import (
    FILE,
    FLAG,
    SPAN,
    Settings,
    Unit,
    any_span,
    option,
    positive_count,
    refuse_beside,
    show_span,
)
from trueload.units import counted

LATE_HOSTS_MAX = 64  # they join one after the other
PIDS_MAX = 1 << 22  # include/linux/threads.h, PID_MAX_LIMIT


def _hosts(text: str) -> int | names.HostRange:
    """Parse ``N`` or ``A..B``."""
    least, dots, most = text.partition("..")
    if not dots:
        return positive_count(HOSTS_MAX)(text)
    found = names.HostRange(*(positive_count(HOSTS_MAX)(each) for each in (least, most)))
    if found.least >= found.most:
        raise ValueError(f"'{text}' must go up, as in 2..3")
    if found.most - found.least > LATE_HOSTS_MAX:
        raise ValueError(f"'{text}': at most {LATE_HOSTS_MAX} hosts may join later")
    return found


_PLACE = Unit("PLACE", names.parse_place)


class ServerPlaceOptions(Settings, group="Where it runs"):
    """Where the server runs."""

    server_place: Any = option(
        _PLACE,
        "Host to start the server on, the reference server or each subject: local, or"
        " ssh:USER@HOST.",
    )


class PlaceOptions(ServerPlaceOptions, group="Where it runs"):
    """Where the engines run."""

    place: tuple[Any, ...] = option(
        _PLACE,
        "Host to send the load from: local, ssh:USER@HOST (as in your ssh config), k8s:NAMESPACE,"
        " k8s:NAMESPACE/statefulset/NAME, 'k8s:NAMESPACE?LABEL=VALUE', ray, ray://HOST:PORT, or"
        " exec:'COMMAND', such as exec:'docker exec -i NAME'; repeatable.",
        "Where to send the load from: ssh:HOST, …",
        several=True,
        unset="local",
    )
    hosts: Any = option(
        Unit("COUNT", _hosts, keyword="Number"),
        "Number of different hosts to use in a cluster. With k8s:NAMESPACE, so many Pods are made."
        " With 2..3, a run begins once two hosts are there, of a cluster or named by --place, and"
        " the third may join later.",
        unset="1; of a set or of labels, all Pods that run",
    )
    hosts_wait_ns: int | None = option(
        SPAN,
        "Time to wait for hosts that are not there yet, such as those of an autoscaler.",
        unset="30s for a Ray cluster, 2m for Pods that are made, else 0s",
    )
    k8s_image: str | None = option(
        Unit("IMAGE", names.parse_image),
        "Image of the Pods that --place k8s:NAMESPACE makes; it must have sh.",
        unset="busybox",
    )
    lab: Path | None = option(
        FILE,
        "Lab file (places.toml) with the generator hosts, instead of --place, and the server host.",
    )
    no_cache: bool = option(
        FLAG, "Remove the engine from other hosts at the end, instead of keeping it for later runs."
    )


class ServerPidOptions(Settings, group="Where it runs"):
    """The process whose CPU time and memory count as the server's."""

    server_pid: int | None = option(
        Unit("PID", positive_count(PIDS_MAX), keyword="Number"),
        "Process on this machine whose CPU time and memory count as the server's, with its"
        " children; for a server behind a proxy.",
        unset="the process that listens at the URL",
    )


class WaitOptions(Settings, group="Where it runs"):
    """How long a run waits for another one."""

    wait_ns: int = option(
        Unit("TIME", any_span, show_span, keyword="Duration"),
        "Time to wait while another trueload measures on the same machine. With 0 this one measures"
        " at the same time, and its verdict says so.",
        default=HERE.wait_ns,
    )


class PlacementOptions(PlaceOptions, WaitOptions, ServerPidOptions):
    """All of them."""


def choose_places(
    places: Sequence[names.Named] = (),
    hosts: int | names.HostRange | None = None,
    lab: Path | None = None,
    server: names.Named | None = None,
) -> Placement:
    """Combine the options. Raises ``UserError`` for options that cannot be used together."""
    generators = tuple(names.GeneratorHost(place=each) for each in places) or names.HERE.generators
    if lab is not None:
        from trueload.places.lab import read_lab  # imported late: most commands have no lab

        placement = read_lab(lab)
    elif isinstance(hosts, names.HostRange):
        names.check_generators(generators, None)
        names.check_range(generators, hosts)
        placement = Placement(generators=generators, hosts=hosts.most, hosts_least=hosts.least)
    else:
        names.check_generators(generators, hosts)
        placement = Placement(generators=generators, hosts=hosts)
    if server is None:
        return placement
    names.check_server(server)
    known = placement.lab_server
    of_lab = known is not None and known.place == server
    return replace(placement, server=known if of_lab else names.ServerHost(place=server))


@with_options(PlacementOptions)
def read_placement(given: PlacementOptions) -> Placement:
    """Return where everything runs. Raises ``UserError``; nothing has been connected to."""
    if given.lab is not None:
        given.refuse_beside("--lab", "place", "hosts")
    placement = choose_places(given.place, given.hosts, given.lab, given.server_place)
    placement = replace(
        placement,
        keep=not given.no_cache,
        hosts_wait_ns=given.hosts_wait_ns,
        wait_ns=given.wait_ns,
    )
    if given.hosts_wait_ns is not None and placement.all_here:
        message = "--hosts-wait waits for other hosts, and all load comes from this machine"
        raise UserError(message, "name the hosts with --place or --lab")
    placement = _with_image(placement, given.k8s_image)
    if given.server_pid is None:
        return placement
    if given.server_place is not None:
        message = "--server-pid names a server that runs, and --server-place starts one"
        raise UserError(message, "keep one of them")
    if identity(given.server_pid) is None:
        hint = "`ss -ltnp` shows which process listens where"
        raise UserError(f"--server-pid {given.server_pid}: there is no such process", hint)
    return replace(placement, server_pid=given.server_pid)


def _with_image(placement: Placement, image: str | None) -> Placement:
    """Return where Pods are made with an image, and waited for as long as asked."""
    if image is not None and not placement.makes_pods:
        message = "--k8s-image is for Pods that are made, and no --place makes any"
        raise UserError(message, "name a namespace alone: --place k8s:NAMESPACE --hosts N")
    wait_ns = placement.hosts_wait_ns or placement.new_pods.wait_ns
    new = replace(placement.new_pods, image=image or placement.new_pods.image, wait_ns=wait_ns)
    return replace(placement, new_pods=new)


def check_all_at_start(placement: Placement, what: str) -> None:
    """Refuse hosts that join later, for ``what`` cannot have them. Raises ``UserError``."""
    if placement.hosts_least is not None:
        raise UserError(
            f"{what} needs all of its hosts from the start, so --hosts takes no range",
            "leave --hosts out, and wait for all hosts with --hosts-wait",
        )


def check_pinned(engine: EngineOptions, placement: Placement) -> None:
    """Raise ``UserError`` for missing CPUs of this machine. Another machine checks its own."""
    if placement.all_here and engine.cpus is not None:
        check_cpus(engine.cpus)


def check_allowed_losses(allow_lost: int | None, placement: Placement, *, searches: bool) -> int:
    """Return how many hosts may be lost. Raises ``UserError`` if none would be left, and for a
    search, whose steps must all have the same hosts."""
    if allow_lost is None:
        return 0
    refuse_beside("--allow-lost", {"--limit": searches}, why="a search needs all of its hosts")
    if placement.is_counted and allow_lost >= placement.host_count:
        has = counted(placement.host_count, "host")
        raise UserError(
            f"--allow-lost {allow_lost} would leave no host: the load comes from {has}",
            "allow fewer, or name more hosts with --place",
        )
    return allow_lost


def check_local_addresses(texts: Sequence[str], placement: Placement) -> tuple[str, ...]:
    """Return the addresses to connect from. Raises ``UserError`` for one that this machine does not
    have, if it connects from here, and if several hosts would have to share them."""
    if texts and (placement.host_count > 1 or not placement.is_counted):
        raise UserError(
            "--local-address names addresses of one host, but the load comes from several hosts",
            "name each host's own addresses in a places.toml, and give that with --lab",
        )
    import ipaddress  # imported late: few commands name an address
    import socket

    for text in texts if placement.all_here else ():
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
