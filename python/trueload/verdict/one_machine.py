"""The check `one-machine`: is each host a machine of its own?

How: each engine tells the boot id of its kernel and the inode of its network namespace. Hosts that
have both in common are one machine under several names. Those with networks of their own, such as
containers and Pods, share its CPUs all the same, unless each is given CPUs of its own. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from operator import attrgetter

from trueload.grouping import grouped
from trueload.record.schema import Host, Record
from trueload.text import listed
from trueload.verdict.common import Definition, Finding, not_applicable


def check_one_machine(record: Record) -> Finding:
    """Name the hosts that are one machine, or share the CPUs of one."""
    if len(record.hosts) < 2:
        return not_applicable("the load came from one host")
    if all(host.machine is None for host in record.hosts):
        return not_applicable("the hosts have not told which machines they are")
    whys = [
        f"{_names(hosts)} are one machine, which sends the load of {len(hosts)} hosts"
        for hosts in _sharing(record.hosts, attrgetter("network"))
    ]
    whys += [
        f"{_names(hosts)} are on one machine, and take its CPUs from each other"
        for hosts in _sharing(record.hosts, attrgetter("machine"))
        if len({host.network for host in hosts}) > 1 and not _have_own_cpus(hosts)
    ]
    if whys:
        return Finding("warn", "; ".join(whys))
    return Finding("pass", "no two hosts share the CPUs of a machine")


ONE_MACHINE = Definition(
    name="one-machine",
    order=207,
    compute=check_one_machine,
    of_client="a client runs on one host",
    fault="hosts",
    meaning="Hosts that are one machine have the CPUs and the network of one.",
    remedy=(
        "Use each machine once, one Pod of each node; or give each of these hosts CPUs of its own"
        " (`cpus` in a lab file)."
    ),
)


def _sharing(
    hosts: Sequence[Host], number_of: Callable[[Host], int | None]
) -> Iterator[list[Host]]:
    """Yield the hosts of each number that several have."""
    for number, sharing in grouped(hosts, number_of).items():
        if number is not None and len(sharing) > 1:
            yield sharing


def _have_own_cpus(hosts: Sequence[Host]) -> bool:
    """Whether none of the hosts may run on a CPU of another."""
    cpus = [set(host.generator.cpus) for host in hosts]
    return all(cpus) and all(one.isdisjoint(other) for one, other in combinations(cpus, 2))


def _names(hosts: Sequence[Host]) -> str:
    return listed([host.place for host in hosts])
