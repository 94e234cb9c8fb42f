"""Flags that users know from other load generators, and their names here; and what trueload itself
had before.

A flag that means the same everywhere is an alias of our option (``ALIASES``); the help does not
list it. The other tables are used only after our own parser has refused a word, so they never
override one of ours. A foreign flag names our options, and a test checks that each of them exists.
"""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import dataclass

ALIASES: dict[str, str] = {"-n": "--requests", "-z": "--duration", "-m": "--method"}
"""Flags of hey, oha and ab, with our option for each."""

REMOVED: dict[str, str] = {
    "--detach": ("run it in tmux, by `systemd-run --user`, or as a Kubernetes Job (docs/hosts.md)"),
    "attach": (
        "start long runs in tmux or by `systemd-run --user` (docs/hosts.md); `trueload runs show`"
        " shows an older one, and `kill` ends it if it goes on (`pgrep -af 'trueload.*--detach'`)"
    ),
    "--h2c-upgrade": (
        "use --http 2: over http:// connections begin with HTTP/2 (prior knowledge), and over"
        " https:// ALPN negotiates it"
    ),
    "--install": (
        "`trueload doctor --place ssh:HOST` checks a host without an installation; to start runs"
        " there, copy the wheel there and `pip install` it (docs/hosts.md)"
    ),
}
"""Options and commands that trueload has no longer, with what to use instead."""

KEYS_OF_SUITES = (
    *("--driver", "--spin", "--coalesce", "--refill"),
    *("--read-rate", "--write-rate", "--connect-rate"),
)
"""Options of other commands that are only keys of a suite's file."""


def removed_hint(path: str, flag: str) -> str | None:
    """Return what to use instead of an option that the command at ``path`` has no longer."""
    if path == "trueload suite run" and flag in KEYS_OF_SUITES:
        key = flag.removeprefix("--").replace("-", "_")
        return f"write it into the suite's file, as its key {key} (docs/your-own-suite.md)"
    return REMOVED.get(flag)


@dataclass(frozen=True)
class ForeignFlag:
    """A flag of another tool: which tools have it, its meaning there, and what to type here."""

    flag: str
    tools: str
    meaning: str
    advice: str

    @property
    def ours(self) -> set[str]:
        """Our options that the advice names."""
        return set(re.findall(r"--[a-z0-9-]+", self.advice))

    def is_of_use(self, flags: Set[str]) -> bool:
        """Whether a command with these flags is one that loads, and has what the advice names."""
        return "--connections" in flags and flags >= self.ours

    def hint(self) -> str:
        return f"{self.flag} of {self.tools} ({self.meaning}): {self.advice}"


_TABLE = """
-t | wrk and h2load, or of ab and hey | threads, or a time | use --threads N, --duration 10s or
    --timeout 5s
-D | h2load, or of hey | duration, or a body file | use --duration 10s or --body-file FILE
-q | hey and oha | rate | use --rate 5k/s
-R | wrk2 | rate | use --rate 5k/s
-k | ab | keep-alive | leave it out, connections are kept alive; --close opens one per request
-s | wrk, or of ab | a Lua script, or a timeout | there are no scripts, use --method, --header,
    --body; for a timeout --timeout 5s
-T | ab, hey and oha | content type | use -H 'Content-Type: text/plain' (--header)
--latency | wrk | print percentiles | leave it out, percentiles are always printed
-L | wrk2, or of curl | print percentiles, or follow redirects | percentiles are always printed;
    for redirects use --follow 10
--max-concurrent-streams | h2load | streams | use --http 2 --streams N
-w | h2load | bits of a stream's window | use --window SIZE
-W | h2load | bits of a connection's window | use --connection-window SIZE
--h1 | h2load | HTTP/1.1 | leave it out, or use --http 1.1
-i | ab | HEAD requests | use -X HEAD (--method)
-p | ab, or of oha | a body file, or depth | use --body-file FILE or --pipeline N
-u | ab | a body file to PUT | use -X PUT --body-file FILE
-a | hey and oha | basic authentication | use --user NAME:PASSWORD
-A | ab, or of hey | basic authentication, or Accept | use --user NAME:PASSWORD or -H 'Accept: …'
    (--header)
-C | ab | a cookie | use -H 'Cookie: name=value' (--header)
-B | ab | local address | use --local-address ADDRESS
-o | hey | output format | use --format csv, or --json FILE
--output-format | oha | output format | use --format json
--no-tui | oha | no live view | use --no-live
--disable-keepalive | hey and oha | a connection per request | use --close
--concurrency | k6 and others | connections | use -c N
--vus | k6 | virtual users | use -c N (--connections)
--unix-socket | curl and oha | a socket file | use --unix PATH
-x | hey and curl | a proxy | use --proxy http://HOST:PORT
--http3 | curl | HTTP/3 | there is none yet; --http 2 is
--h3 | h2load | HTTP/3 | there is none yet; --http 2 is
--lua | other tools | a script | there are no scripts, use --targets FILE
--script | wrk | a script | there are none, use --targets FILE
--http2 | oha and curl | HTTP/2 | use --http 2
--redirect | oha | redirects | use --follow N
--location | curl | redirects | use --follow 10
--max-redirs | curl | redirects | use --follow N
--max-redirects | k6 | redirects | use --follow N
--disable-redirects | hey | no redirects | leave it out, redirects are followed only with --follow N
-E | curl and ab | client certificate | use --cert FILE
"""
"""A line for each flag, which may go on in an indented one."""

FOREIGN_FLAGS = tuple(
    ForeignFlag(*line.split(" | ")) for line in _TABLE.strip().replace("\n    ", " ").splitlines()
)

BY_FLAG = {row.flag: row for row in FOREIGN_FLAGS}
