"""trueload measures how much load a network program can carry, and says when it cannot vouch for a
number.

    result = trueload.http("http://127.0.0.1:8080/", connections=64, duration=5)
    assert result.verdict != "invalid" and result.p99 < 0.010

`http`, `ws`, `tcp`, `udp`, `ab` and `suite` measure; `aio` has the same as coroutines. `serve` runs
a reference server; `runs` and `load` read what was measured before. Everything is imported when it
is first used (docs/python.md).
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueload import aio
    from trueload.api import (
        NothingMeasuredError,
        Server,
        ab,
        http,
        load,
        runs,
        serve,
        suite,
        tcp,
        udp,
        ws,
    )
    from trueload.api.options import (
        AbOptions,
        HttpOptions,
        SuiteOptions,
        TcpOptions,
        UdpOptions,
        WsOptions,
    )
    from trueload.api.results.ab import AbResult
    from trueload.api.results.quantities import Share, Throughput, Time
    from trueload.api.results.result import Result, Search
    from trueload.api.results.suite import SuiteResult
    from trueload.errors import UserError

__version__ = "0.1.0"

__all__ = [
    "AbOptions",
    "AbResult",
    "HttpOptions",
    "NothingMeasuredError",
    "Result",
    "Search",
    "Server",
    "Share",
    "SuiteOptions",
    "SuiteResult",
    "TcpOptions",
    "Throughput",
    "Time",
    "UdpOptions",
    "UserError",
    "WsOptions",
    "__version__",
    "ab",
    "aio",
    "http",
    "load",
    "runs",
    "serve",
    "suite",
    "tcp",
    "udp",
    "ws",
]

_FUNCTIONS = ("http", "ws", "tcp", "udp", "ab", "serve", "suite", "runs", "load")
_OPTIONS = (
    "HttpOptions",
    "WsOptions",
    "TcpOptions",
    "UdpOptions",
    "AbOptions",
    "SuiteOptions",
)
_MODULES = {
    **dict.fromkeys(_OPTIONS, "trueload.api.options"),
    **dict.fromkeys(_FUNCTIONS, "trueload.api"),
    **dict.fromkeys(("NothingMeasuredError", "Server"), "trueload.api"),
    **dict.fromkeys(("Share", "Throughput", "Time"), "trueload.api.results.quantities"),
    **dict.fromkeys(("Result", "Search"), "trueload.api.results.result"),
    "AbResult": "trueload.api.results.ab",
    "SuiteResult": "trueload.api.results.suite",
    "UserError": "trueload.errors",
}


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
