"""The commands of the reference servers, by protocol: their options, and a plan of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from trueload.commands.declarations import with_options
from trueload.commands.serve_options import (
    ServeHttpOptions,
    ServeOptions,
    ServeStreamOptions,
    ServeWsOptions,
)

if TYPE_CHECKING:
    from trueload.commands.serve import Serving

OPTIONS: dict[str, type[ServeOptions]] = {
    "http": ServeHttpOptions,
    "tcp": ServeStreamOptions,
    "udp": ServeOptions,
    "ws": ServeWsOptions,
}


def reader_of_serving(protocol: str) -> Callable[..., Serving]:
    """Return the function that parses the flags of ``serve`` with that protocol."""

    @with_options(OPTIONS[protocol])
    def read(given: ServeOptions) -> Serving:
        from trueload.commands.serve import make_serving  # imported late: a help needs no plan

        return make_serving(protocol, given)

    return read
