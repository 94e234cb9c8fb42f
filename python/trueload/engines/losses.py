"""Judges losses of hosts: is each of them to blame, or the way that they share?

How: a host that is silent or cut off is judged once every other host has been heard since, or is
quiet as well. Hosts that are lost together are lost by one cause: what they all go through, or, if
they are all hosts, the way from here. Then no host is blamed. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from trueload.grouping import grouped

FRESH_S = 1.0  # hosts answer two or four times a second: one that was heard since then is there
TOGETHER_S = 0.25  # by one cause hosts are lost within this time; their last lines may come later


@dataclass(frozen=True)
class ChannelEnd:
    """How a channel ended of whose program nothing is known. ``why`` does not name the host;
    ``names_way``: the way to several hosts is lost, and ``what`` says which."""

    at_s: float
    what: str
    why: str
    names_way: bool = False


@dataclass(frozen=True)
class LifeSign:
    """When a host was last heard, and its channel's end. ``is_awaited``: its channel finds out why
    it is silent."""

    index: int
    heard_s: float
    cut: ChannelEnd | None = None
    is_awaited: bool = False


@dataclass(frozen=True)
class Loss:
    """Hosts that are lost together, and how; ``of_way`` if no host is to blame."""

    indexes: tuple[int, ...]
    what: str
    of_way: bool = False


def judge(
    hosts: Sequence[LifeSign], now_s: float, silence_s: float, way_of: Callable[[int], str | None]
) -> list[Loss]:
    """Return what is lost of the hosts; nothing as long as that depends on what comes next.
    ``way_of`` is what the messages of a host go through."""
    gone = [host for host in hosts if host.cut or now_s - host.heard_s > silence_s]
    cuts_s = [host.cut.at_s for host in gone if host.cut]
    since_s = max(now_s - FRESH_S, min(cuts_s, default=0.0) + TOGETHER_S)
    lost = {host.index for host in gone}
    there = [host.index for host in hosts if host.index not in lost and host.heard_s > since_s]
    awaited = [host for host in gone if host.is_awaited and not host.cut]
    if len(gone) + len(there) < len(hosts) or (cuts_s and awaited):
        return []  # each of the others is heard, or gone as well, in a moment
    ways = {host.index: way_of(host.index) for host in hosts} if len(gone) > 1 else {}
    judged = [host for host in gone if host not in awaited]
    found = list(_shared(judged, there, ways, now_s))
    blameless = {index for loss in found for index in loss.indexes}
    for host in judged:
        if host.index not in blameless:
            silence = f"nothing was heard from it for {now_s - host.heard_s:.1f} s"
            found.append(Loss((host.index,), host.cut.what if host.cut else silence))
    return found


def _shared(
    gone: Sequence[LifeSign], there: Sequence[int], ways: dict[int, str | None], now_s: float
) -> Iterator[Loss]:
    """Yield what several of these hosts share that is lost."""
    named = [(host, host.cut.what) for host in gone if host.cut and host.cut.names_way]
    if named:
        yield Loss(tuple(host.index for host, _ in named), named[0][1], of_way=True)
    rest = [host for host in gone if not (host.cut and host.cut.names_way)]
    of_way = grouped(rest, lambda host: ways.get(host.index))
    if len(of_way) > 1 and not there and not named:
        yield _loss(rest, "all ", None, now_s)
        return
    for way, hosts in of_way.items():
        is_whole = not there and len(hosts) == len(ways)
        is_all_of_way = way is not None and way not in {ways[index] for index in there}
        if len(hosts) > 1 and (is_whole or is_all_of_way):
            yield _loss(hosts, "all " if is_whole else "", way, now_s)


def _loss(hosts: Sequence[LifeSign], every: str, way: str | None, now_s: float) -> Loss:
    through = f" through {way}" if way else ""
    silent_s = now_s - min(host.heard_s for host in hosts)
    silence = f"nothing was heard from any of them for {silent_s:.1f} s"
    why = next((host.cut.why for host in hosts if host.cut), silence)
    what = f"the way to {every}{len(hosts)} hosts{through} is lost: {why}"
    return Loss(tuple(host.index for host in hosts), what, of_way=True)
