"""Chooses the places of a command from ``--place``, ``--hosts``, ``--lab`` and ``--server-place``.

Pure, except that it reads a lab's file. Must not know how a place is opened, or what runs there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from trueload.errors import UserError
from trueload.places.named import (
    HERE,
    GeneratorHost,
    HostRange,
    Named,
    ServerHost,
    Where,
    check_generators,
    check_range,
    check_server,
)


def choose_places(
    places: Sequence[Named] = (),
    hosts: int | HostRange | None = None,
    lab: Path | None = None,
    server: Named | None = None,
) -> Where:
    """Combine the options. Raises ``UserError`` for options that exclude each other."""
    generators = tuple(GeneratorHost(place=each) for each in places) or HERE.generators
    if lab is None and isinstance(hosts, HostRange):
        check_generators(generators, None)
        check_range(generators, hosts)
        where = Where(generators=generators, hosts=hosts.most, hosts_least=hosts.least)
    elif lab is None and not isinstance(hosts, HostRange):
        check_generators(generators, hosts)
        where = Where(generators=generators, hosts=hosts)
    elif lab is not None:
        where = _of_lab(lab, places, hosts)
    if server is None:
        return where
    check_server(server)
    known = where.lab_server
    of_lab = known is not None and known.place == server
    return replace(where, server=known if of_lab else ServerHost(place=server))


def _of_lab(lab: Path, places: Sequence[Named], hosts: object) -> Where:
    from trueload.places.lab import read_lab  # imported late: most commands have no lab

    for flag, given in (("--place", places), ("--hosts", hosts)):
        if given:
            raise UserError(f"--lab and {flag} exclude each other", "keep one of them")
    return read_lab(lab)
