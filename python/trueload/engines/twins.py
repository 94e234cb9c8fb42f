"""Which hosts are one machine, by the boot id and the network namespace that each engine tells.

Pure.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from trueload.protocol.fleet import Machine

Numbers = list[int | None]


def numbers_of(machines: Sequence[Machine]) -> tuple[Numbers, Numbers]:
    """Return a number for each host's machine, and one for its network. Hosts have the same one if
    they share it, and None if it is not known."""
    networks = [
        None if each.boot_id is None or each.network is None else (each.boot_id, each.network)
        for each in machines
    ]
    return _numbered([each.boot_id for each in machines]), _numbered(networks)


def _numbered(keys: Sequence[Hashable]) -> Numbers:
    first: dict[Hashable, int] = {}
    return [None if key is None else first.setdefault(key, at) for at, key in enumerate(keys)]
