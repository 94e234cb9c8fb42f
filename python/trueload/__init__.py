"""trueload measures how much load a network program can carry, and says when it cannot vouch for a
number.

    result = trueload.http("http://127.0.0.1:8080/", connections=64, duration=5)
    assert result.verdict != "invalid" and result.p99 < 0.010

`http`, `ws`, `tcp`, `udp`, `ab` and `suite` measure; `aio` has the same as coroutines. `serve` runs
a reference server; `runs` and `load` read what was measured before. Everything is imported when it
is first used (docs/python.md).
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # that of ``typing`` takes 5 ms, in which Ctrl-C has no handler yet
if TYPE_CHECKING:
    from typing import Any

    from trueload import aio
    from trueload.api import ab, load, runs, suite
    from trueload.api.measure import NothingMeasuredError
    from trueload.api.options import AbOptions, SuiteOptions
    from trueload.api.results.ab import AbResult
    from trueload.api.results.quantities import Share, Throughput, Time
    from trueload.api.results.result import Result, Search
    from trueload.api.results.suite import SuiteResult
    from trueload.api.server import Server
    from trueload.errors import UserError

__version__ = "0.1.0"

__all__ = [
    "AbOptions",
    "AbResult",
    "NothingMeasuredError",
    "Result",
    "Search",
    "Server",
    "Share",
    "SuiteOptions",
    "SuiteResult",
    "Throughput",
    "Time",
    "UserError",
    "__version__",
    "ab",
    "aio",
    "load",
    "runs",
    "suite",
]

_MODULES = {
    **dict.fromkeys(("ab", "load", "runs", "suite"), "trueload.api"),
    **dict.fromkeys(("AbOptions", "SuiteOptions"), "trueload.api.options"),
    **dict.fromkeys(("Share", "Throughput", "Time"), "trueload.api.results.quantities"),
    **dict.fromkeys(("Result", "Search"), "trueload.api.results.result"),
    "AbResult": "trueload.api.results.ab",
    "NothingMeasuredError": "trueload.api.measure",
    "Server": "trueload.api.server",
    "SuiteResult": "trueload.api.results.suite",
    "UserError": "trueload.errors",
}

# Written by tools/options.py.

if TYPE_CHECKING:
    from trueload.api.options import HttpOptions, TcpOptions, UdpOptions, WsOptions

__all__ += ["HttpOptions", "TcpOptions", "UdpOptions", "WsOptions"]
_MODULES |= dict.fromkeys(
    ["HttpOptions", "TcpOptions", "UdpOptions", "WsOptions"], "trueload.api.options"
)
if TYPE_CHECKING:
    from trueload.api.protocols import http, serve, tcp, udp, ws

__all__ += ["http", "serve", "tcp", "udp", "ws"]
_MODULES |= dict.fromkeys(["http", "serve", "tcp", "udp", "ws"], "trueload.api.protocols")

# End of what is written.


def __getattr__(name: str) -> Any:
    if name == "aio":
        return importlib.import_module("trueload.aio")
    if name not in _MODULES:
        raise AttributeError(f"module 'trueload' has no attribute '{name}'")
    found = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
