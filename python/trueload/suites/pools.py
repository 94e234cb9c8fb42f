"""The loads of a suite of clients: pools, their size, and the concurrency. Pure."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Mapping

from trueload.protocol.client import STREAMS
from trueload.protocol.model import Model, left_out
from trueload.runner.files import SPARE
from trueload.suites.changes import Changes
from trueload.suites.definition import Axes, combined
from trueload.units import counted, format_count


class PlannedPools(Model):
    """A load of clients."""

    pools: int
    pool_size: int
    concurrency: int
    files: int = 0
    """The client's open-file limit, 0 for as many as possible."""
    streams: int = left_out(0)
    """How many streams a connection may have at once; 0 over HTTP/1.1."""
    max_streams: int = left_out(0)
    """How many of them the server permits; 0 over HTTP/1.1."""

    @property
    def room(self) -> int:
        """The number of connections that fit into the pools."""
        return self.pools * self.pool_size

    @property
    def short(self) -> str:
        """A short text, ``4x256 for 1,024``: pool count, pool size, and concurrency."""
        streams = f"x{self.streams}" if self.streams else ""
        few = f", {self.max_streams:,} permitted" if self.max_streams < self.streams else ""
        return f"{self.pools}x{self.pool_size}{streams} for {self.concurrency:,}{few}"

    @property
    def title(self) -> str:
        """A text to show: ``4 pools of 256, 1,024 at once``."""
        plural = "s" if self.pools > 1 else ""
        files = f", {counted(self.files, 'open file')}" if self.files else ""
        at_once = format_count(self.concurrency)
        streams = f", {counted(self.streams, 'stream')} ({self.max_streams} permitted)"
        streams = streams if self.streams else ""
        return f"{self.pools} pool{plural} of {self.pool_size}{streams}, {at_once} at once{files}"

    @property
    def key(self) -> str:
        """The name of the load within the plan, and in the store."""
        files = f" files {self.files}" if self.files else ""
        streams = f" streams {self.streams} of {self.max_streams}" if self.streams else ""
        return f"pools {self.pools} of {self.pool_size}{streams} at once {self.concurrency}{files}"


def planned_pools(
    block: Axes, changes: Changes, files: int, *, http2: bool
) -> Iterator[PlannedPools]:
    """Yield every combination of a block; values of the command line replace the block's.

    `files` is the suite's limit, used if the block has none.
    """
    axes = {
        "files": block.files or (files,),
        "pools": changes.pools or block.pools,
        "pool_size": changes.pool_size or block.pool_size,
        "concurrency": changes.concurrency or block.concurrency,
    }
    if http2:
        axes["streams"] = changes.streams or block.streams or (1,)
        axes["max_streams"] = block.max_streams or (STREAMS,)
    for each in combined(axes):
        yield PlannedPools(**each)


def pool_labels(load: PlannedPools) -> dict[str, str]:
    """Return the labels that the store keeps for a row of this load."""
    return {name: str(value or "") for name, value in load if value or name == "files"}


def labelled_pools(labels: Mapping[str, str]) -> PlannedPools | None:
    """Return the load of a row, from its labels in the store; None for servers."""
    if "pools" not in labels:
        return None
    names = PlannedPools.model_fields
    return PlannedPools(**{name: int(labels.get(name) or 0) for name in names})


def beyond_limits(load: PlannedPools, hard_files: int, ports: int | None) -> str | None:
    """Return why no client can do this here; None if no obstacle is known.

    The text has a failure class and a reason. `hard_files` is the file limit of a process, `ports`
    the number of local ports of one address.

    The pools' room counts, even if fewer requests are under way at once: kept connections add up
    over pools that take turns.
    """
    needed = load.room + SPARE
    limit = hard_files if hard_files != resource.RLIM_INFINITY else needed
    whose = "the hard limit"
    if load.files and load.files < limit:
        limit, whose = load.files, "the limit"
    if needed > limit:
        return (
            f"local.fds: {format_count(load.room)} connections need {format_count(needed)} open"
            f" files, {whose} is {format_count(limit)}"
        )
    if ports is not None and load.room > ports:
        return (
            f"local.ports: {format_count(load.room)} connections need as many local ports, there"
            f" are {format_count(ports)}"
        )
    return None
