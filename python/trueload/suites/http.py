"""The loads of a suite over HTTP/2, over TLS, or of several paths: all but connections. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trueload.protocol.model import Model
from trueload.suites.definition import Axes, combined
from trueload.units import counted


class PlannedHttp(Model):
    """The HTTP part of a load."""

    streams: int | None = None
    """Null over HTTP/1.1."""
    tls: bool = False
    path: str = ""
    """Empty for the contract's own."""

    @property
    def title(self) -> str:
        """A text to show: ``10 streams on each, over TLS, /bytes/1024``."""
        streams = "" if self.streams is None else f"{counted(self.streams, 'stream')} on each"
        parts = (streams, "over TLS" if self.tls else "", self.path)
        return ", ".join(part for part in parts if part)

    @property
    def key(self) -> str:
        """The name of the load within the plan, and in the store."""
        streams = "" if self.streams is None else f"s{self.streams}"
        return " ".join(part for part in (streams, "tls" if self.tls else "", self.path) if part)


def planned_http(
    block: Axes, streams: tuple[int, ...] | None, *, http2: bool
) -> Iterator[PlannedHttp | None]:
    """Yield every combination of a block; None for the default.

    ``streams`` of the command line replaces that of the block.
    """
    axes: dict[str, Sequence[Any]] = {"tls": block.tls or (False,), "path": block.path or ("",)}
    if http2:
        axes["streams"] = streams or block.streams or (1,)
    for each in combined(axes):
        made = PlannedHttp(**each)
        yield None if made == PlannedHttp() else made


def http_labels(load: PlannedHttp) -> dict[str, str]:
    """Return the labels that the store keeps for a row of this load."""
    return {
        "streams": "" if load.streams is None else str(load.streams),
        "tls": "yes" if load.tls else "",
        "path": load.path,
    }


def labelled_http(labels: Mapping[str, str]) -> PlannedHttp:
    """Return the load of a row, from its labels in the store."""
    streams = labels.get("streams")
    return PlannedHttp(
        streams=int(streams) if streams else None,
        tls=labels.get("tls") == "yes",
        path=labels.get("path", ""),
    )
