"""The titled groups in which `--help` and the manual page list a command's options.

How: one table has every option of the larger commands, the most used first. A test finds an option
that is in no group, or in two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

GROUPS: dict[str, tuple[str, ...]] = {
    "Subjects": ("subjects", "cores", "port", "share-cpus"),
    "Where it listens": ("listen",),
    "Load": (
        *("mode", "connections", "duration", "rate", "requests", "warmup"),
        *("pipeline", "streams", "close", "connect-open", "stages", "stages-of", "arrivals"),
        *("idle", "pools", "pool-size", "concurrency", "full", "seed"),
    ),
    "Broadcast": (
        *("step", "steps", "initial-clients", "concurrent", "samples", "padding"),
        "stop-on-loss",
    ),
    "Messages": ("size", "text", "half-close", "dialect", "subprotocol", "origin"),
    "Requests": (
        *("method", "header", "body", "body-file", "user", "targets", "scenario", "curl"),
        *("replay", "speed", "replay-host", "data", "data-order", "follow"),
        *("expect-status", "expect-body", "expect-same", "keep-body"),
    ),
    "Search, thresholds and repetitions": (
        *("limit", "search", "fail-on", "strict", "repeat", "pair", "patience"),
        *("dry-run", "resume"),
    ),
    "Output": ("json", "format", "quiet", "published", "record", "no-save", "no-live"),
    "Streamed answers": ("stream", "stream-end", "stall"),
    "HTTP/2": (*("http", "window", "connection-window", "header-table-size", "max-streams"),),
    "TLS": ("tls", "cacert", "insecure", "cert", "key", "no-tls-resumption"),
    "Connections": (
        *("timeout", "connect-rate", "read-rate", "write-rate"),
        *("unix", "resolve", "proxy", "local-address"),
    ),
    "Faults on purpose": (
        *("error-share", "reset-share", "stall-share", "stall-for", "slow-share", "slow-for"),
        "cut-share",
        *("close-after", "close-silently", "refuse-share", "goaway-after", "stall-window"),
        *("settings-delay", "work", "fault-seed"),
    ),
    "Where it runs": (
        "place",
        "hosts",
        "hosts-wait",
        "k8s-image",
        "lab",
        "allow-lost",
        "server-place",
        "server-pid",
        "no-cache",
    ),
    "Metrics": ("prometheus", "prometheus-linger", "otlp"),
    "Engine": ("threads", "cpus", "driver", "spin", "coalesce", "refill"),
    "Help": ("no-color", "help"),
}
FEW = 10  # options that need no groups


def name_of(option: Any) -> str:
    """The long name of an option, without dashes."""
    names: list[str] = [name.lstrip("-") for name in option.opts]
    return max(names, key=len)


def in_groups(options: Iterable[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the options by the titles of their groups; as "Options" where they are few. What no
    group has comes last."""
    named = {name_of(option): option for option in options}
    if len(named) <= FEW:
        yield "Options", list(named.values())
        return
    for title, names in GROUPS.items():
        if found := [named.pop(name) for name in names if name in named]:
            yield title, found
    if named:
        yield "Other options", list(named.values())


def write_options(command: Any, context: Any, formatter: Any) -> None:
    """Write a command's arguments, and its options in groups, as click's ``format_options``."""
    shown = [each for each in command.get_params(context) if each.get_help_record(context)]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    sections = [("Arguments", arguments)] if arguments else []
    for title, members in (*sections, *in_groups(options)):
        with formatter.section(title):
            formatter.write_dl([each.get_help_record(context) for each in members])
