"""Flags that users know from other load generators, and their names here; and what trueload itself
had before.

A flag that means the same everywhere is an alias of our option (``ALIASES``); the help does not
list it. The other tables are used only after our own parser has refused a word, so they never
override one of ours. A foreign flag names our options, and a test checks that each of them exists.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence, Set
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

RENAMED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("ab",): ("compare",),
    ("runs", "compare"): ("runs", "diff"),
}
"""Commands by their former names, which are taken until 1.0 and listed nowhere."""

COMMANDS_ELSEWHERE: dict[str, str] = {
    "run": (
        "`trueload http URL` loads a server, with --scenario FILE by the steps of users; `trueload"
        " runs list` shows the runs"
    ),
    "replay": "use `trueload http URL --replay FILE`",
    **dict.fromkeys(
        ("list", "ls", "show", "history", "results", "last", "runs ls", "runs last"),
        "`trueload runs list` shows the stored runs, `trueload runs show last` the latest",
    ),
    "diff": "`trueload runs diff RUN RUN` compares two runs, `trueload compare` two servers",
    "attack": "use `trueload http URL --rate 50/s`; --targets FILE has several requests",
    **dict.fromkeys(
        ("bench", "benchmark", "load", "measure", "test", "wrk", "hey", "oha", "k6", "curl"),
        "`trueload http URL` loads a server",
    ),
}
"""What other tools, or people, call our commands. A verb has its group in front, as in runs ls."""

KEYS_OF_SUITES = (
    *("--driver", "--spin", "--coalesce", "--refill"),
    *("--read-rate", "--write-rate", "--connect-rate"),
)
"""Options of other commands that are only keys of a suite's file."""


def renamed(words: Sequence[str]) -> list[str]:
    """Return a command line with its command's present name."""
    for before, now in RENAMED.items():
        if tuple(words[: len(before)]) == before:
            return [*now, *words[len(before) :]]
    return list(words)


def former_names(path: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the names that the command at ``path`` had before."""
    return [before for before, now in RENAMED.items() if now == tuple(path)]


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
    when: str = ""
    """What the command line must have, as a pattern, for the flag to be meant so."""

    @property
    def ours(self) -> set[str]:
        """Our options that the advice names."""
        return set(re.findall(r"--[a-z0-9-]+", self.advice))

    def is_of_use(self, flags: Set[str], line: str) -> bool:
        """Whether a command with these flags loads or listens, has what the advice names, and the
        flag is meant so in its line."""
        is_there = "--connections" in flags or "--listen" in self.ours
        is_there = is_there and flags >= self.ours
        return is_there and re.search(self.when, line) is not None

    def hint(self) -> str:
        return f"{self.flag} of {self.tools} ({self.meaning}): {self.advice}"


_TABLE = """
-t | wrk and h2load, or of ab, hey and others | threads, or a time | use --threads N, --duration 10s
    or --timeout 5s
-D | h2load, or of hey | duration, or a body file | use --duration 10s or --body-file FILE
-q | hey and oha, or of ab and k6 | rate, or quiet | use --rate 5k/s or --quiet
-R | wrk2 and autocannon | rate | use --rate 5k/s
--rps, --qps | k6, h2load and others | rate | use --rate 5k/s
-r | bombardier, oha, locust or ab | rate, redirects, users per second, or go on after errors | use
    --rate 5k/s, --follow N or --stages STAGES; a run always goes on after errors
-k | curl, or of ab | any certificate, or keep-alive | use --insecure; connections are kept alive |
    (https|wss)://
-k | ab | keep-alive | leave it out, connections are kept alive; --close opens one per request
-s | wrk, ab, k6 or curl | a Lua script, a timeout, a stage, or quiet | there are no scripts, use
    --method, --header, --body; else --timeout 5s, --stages STAGES or --quiet
-T | ab, hey and oha | content type | use -H 'Content-Type: text/plain' (--header)
--latency | wrk | print percentiles | leave it out, percentiles are always printed
-l | ab, or of bombardier and autocannon | answers that vary, or print percentiles | leave it out,
    answers may vary and percentiles are always printed
--latencies | bombardier | print percentiles | leave it out, percentiles are always printed
-L | wrk2, or of curl | print percentiles, or follow redirects | percentiles are always printed; for
    redirects use --follow 10
--max-concurrent-streams | h2load | streams | use --http 2 --streams N
-w | h2load, or of autocannon | bits of a stream's window, or workers | use --window SIZE or
    --threads N | -w ?[0-9]
-w | curl, or of oha | what to print, or wait for answers | use --format json, or leave it out
-W | h2load | bits of a connection's window | use --connection-window SIZE
--h1 | h2load | HTTP/1.1 | leave it out, or use --http 1.1
--http1 | bombardier | HTTP/1.1 | leave it out, or use --http 1.1
--http1.1 | curl | HTTP/1.1 | leave it out, or use --http 1.1
--fasthttp | bombardier | its client | leave it out
-i | ab, or of k6, curl and autocannon | HEAD requests, iterations, headers of the answer, or a body
    file | use -X HEAD (--method), --requests N or --body-file FILE
-I, --head | curl | HEAD requests | use -X HEAD (--method)
-p | ab, or of autocannon and oha | a body file, or depth | use --body-file FILE, --pipeline N, or
    --http 2 --streams N
--pipelining | autocannon | depth | use --pipeline N
-u | curl | name and password | use --user NAME:PASSWORD | -u ?[^ ]*:
-u | k6 and locust | virtual users | use -c N (--connections) | -u ?[0-9]+( |$)
-u | ab | a body file to PUT | use -X PUT --body-file FILE
-a | hey and oha, or of autocannon and bombardier | basic authentication, requests, or no keep-alive
    | use --user NAME:PASSWORD, --requests N or --close
-A | ab, hey, or of curl | basic authentication, Accept, or User-Agent | use --user NAME:PASSWORD or
    -H 'Accept: …' (--header)
-U | hey | User-Agent | use -H 'User-Agent: …' (--header)
--user-agent | curl and k6 | User-Agent | use -H 'User-Agent: …' (--header)
--referer | curl | Referer | use -H 'Referer: …' (--header)
-C | ab | a cookie | use -H 'Cookie: name=value' (--header)
--cookie | curl | a cookie | use -H 'Cookie: name=value' (--header)
-b | curl, or of autocannon and bombardier | a cookie, or a body | use -H 'Cookie: name=value'
    (--header) or --body TEXT
-f | bombardier, curl, or of locust | a body file, fail, or a script | use --body-file FILE;
    failures are always counted, and --scenario FILE has sessions
-body | vegeta | a body file | use --body-file FILE, or --body TEXT
--data-raw, --data-binary, --data-ascii | curl | a body | use --body TEXT or --body-file FILE
--compressed | curl | compression | use -H 'Accept-Encoding: gzip' (--header)
--disable-compression | hey and oha | no compression | leave it out, none is asked for
--url | curl | the URL | write it without an option, as in `trueload http URL`
--host | locust, or of hey | the server, or the Host header | write the URL without an option, or -H
    'Host: …' (--header)
--port | other tools | the port | write it in the URL: http://127.0.0.1:8080/
--request | curl | the method | use -X POST (--method)
--get, -G | curl | GET requests | leave it out, or put the query into the URL
-B | ab | local address | use --local-address ADDRESS
--interface, --laddr | curl and vegeta | local address | use --local-address ADDRESS
-4, --ipv4 | curl and oha | IPv4 | write an IPv4 address in the URL: http://127.0.0.1:8080/
-6, --ipv6 | curl and oha | IPv6 | write an IPv6 address in the URL: http://[::1]:8080/
-g | ab | a file for gnuplot | use --json FILE
-e | ab, or of curl | percentiles as CSV, or Referer | use --format csv or -H 'Referer: …'
    (--header)
--out | k6 | output | use --json FILE, or --output FILE
--csv | locust | output | use --format csv
--summary-export | k6 | output | use --json FILE
-j | autocannon | JSON | use --format json, or --json FILE
--output-format | oha | output format | use --format json
--db-url | oha | a database of requests | `trueload http` writes a file with --request-log FILE
--print | bombardier | what to print | use --quiet or --format json
-v, --verbose | curl, ab and others | say more | see the whole of a run in its --json FILE
--silent | curl | say less | use --quiet
--no-tui | oha | no live view | use --no-live
--headless | locust | no web page | leave it out; --no-live has no live view
--no-progress | autocannon | no live view | use --no-live
--renderStatusCodes | autocannon | print status codes | leave it out, they are printed
--stats-success-breakdown | oha | figures by status | leave it out, status codes are printed
--latency-correction | oha | latency from the schedule | leave it out, with --rate it always is
--disable-keepalive | hey and oha | a connection per request | use --close
--no-connection-reuse | k6 | a connection per request | use --close
--disableKeepAlives | bombardier | a connection per request | use --close
--keepalive | vegeta | kept connections | leave it out, or use --close
--keep-alive | other tools | kept connections | leave it out, or use --close
--concurrency | k6 and others | connections | use -c N (--connections)
--concurrent | siege | connections | use -c N (--connections)
--vus | k6 | virtual users | use -c N (--connections)
--users | locust | users | use -c N (--connections)
--workers | vegeta and others | workers | use -c N (--connections) or --threads N
--max-workers | vegeta | most workers | use -c N (--connections)
--max-connections | vegeta | most connections | use -c N (--connections)
-cpus | hey | threads | use --threads N
--iterations | k6 | requests | use --requests N
--amount | autocannon | requests | use --requests N
--time | siege and ab | duration | use --duration 10s
--run-time | locust | duration | use --duration 10s
--spawn-rate | locust | users per second | use --stages '10s@1..64' --stages-of connections
--stage | k6 | virtual users over time | use --stages '10s@1..64' --stages-of connections
--burst-rate, --burst-delay | oha | bursts | use --stages '1s@10,100ms@1k'
--threshold | k6 | a threshold | use --fail-on 'p95>200ms'
--max-time | curl | a timeout | use --timeout 5s
--connect-timeout | curl and oha | a timeout | use --timeout 5s
--urls-from-file | oha | a file of URLs | use --targets FILE
--unix-socket | curl and oha | a socket file | use --unix PATH
--root-certs | vegeta | trusted issuers | use --cacert FILE
--insecure-skip-tls-verify | k6 | any certificate | use --insecure
-x | hey and curl | a proxy | use --proxy http://HOST:PORT
--http3, --h3, --quic | curl and h2load | HTTP/3 | there is none yet; --http 2 is
--lua | other tools | a script | there are no scripts, use --targets FILE
--script | wrk | a script | there are none, use --targets FILE
--http2 | oha and curl | HTTP/2 | use --http 2
--h2 | hey and others | HTTP/2 | use --http 2
--h2c | vegeta | HTTP/2 without TLS | use --http 2
--http2-prior-knowledge | curl | HTTP/2 without TLS | use --http 2
--redirect | oha | redirects | use --follow N
--redirects | vegeta | redirects | use --follow N
--location | curl | redirects | use --follow 10
--max-redirs | curl | redirects | use --follow N
--max-redirects | k6 | redirects | use --follow N
--disable-redirects | hey | no redirects | leave it out, redirects are followed only with --follow N
--http-version | oha | version of HTTP | use --http 2, or --http 1.1
--connect-to | curl, oha and h2load | another address | use --resolve HOST:PORT:ADDRESS
-F, --form-string | curl | a field of a form | use --form NAME=VALUE
--thresholds | k6 | thresholds | use --fail-on 'p95>200ms'
--overallRate | autocannon | rate | use --rate 5k/s
--connectionRate | autocannon | rate of each connection | use --rate 5k/s, over all connections
--warm-up-time | h2load | warm-up | use --warmup TIME
--clients | h2load | connections | use -c N (--connections)
--input-file | h2load | a file of URLs | use --targets FILE
--har | autocannon | recorded requests | use --replay FILE
--access-log, --log | other tools | a log to send again, or to write | use --replay FILE, or
    --output FILE
--ramp, --ramp-up | other tools | a load that grows | use --stages '10s@1k..20k'
--max-rate | other tools | the most that a server carries | use --limit 'p99<10ms'
--slo | other tools | a limit to keep to | use --limit 'p99<10ms', or --fail-on 'p99>10ms'
--disable-color | oha | no colours | use --no-color
--resolvers | vegeta | name servers | use --resolve HOST:PORT:ADDRESS
--name | vegeta | a name for the results | leave it out, each run has an id
--verify | Python's requests | certificates | use --insecure to accept any
--auth | Python's requests | basic authentication | use --user NAME:PASSWORD
--cookies | Python's requests | cookies | use -H 'Cookie: name=value' (--header)
--ttft | other tools | time to first token | use --stream sse, which times each part
-E | curl and ab, or of autocannon | client certificate, or the body expected | use --cert FILE or
    --expect-body TEXT
-p, --port, --bind, --host | other servers | where to listen | use --listen 127.0.0.1:8080
--status | other tools | the status expected | use --expect-status 200
--report, --html | other tools | a page | use --output FILE, as report.html
--delay, --think-time, --pause, --sleep | other tools | pauses | use --rate 5k/s, or --scenario
    FILE, whose steps may pause
--bearer, --token | other tools | a token | use -H 'Authorization: Bearer …' (--header)
--content-type | other tools | Content-Type | use -H 'Content-Type: text/plain' (--header)
--payload | other tools | a body | use --body TEXT or --body-file FILE
--post | other tools | POST requests | use -X POST (--method)
--no-warmup | other tools | no warm-up | use --warmup 0
--assert, --check, --max-latency | other tools | a condition | use --fail-on 'p95>200ms'
--percentile, --percentiles, --histogram | other tools | percentiles | leave it out; --json FILE has
    the whole distribution
--ssl, --tls | other tools | TLS | write https:// in the URL
--dashboard, --ui | other tools | a page in the browser | use --web
--distributed, --worker, --nodes | other tools | more hosts | use --place ssh:HOST for each
"""
"""A line for flags of one meaning; it may go on in an indented one."""

FOREIGN_FLAGS = tuple(
    ForeignFlag(flag, *rest)
    for flags, *rest in (
        line.split(" | ") for line in _TABLE.strip().replace("\n    ", " ").splitlines()
    )
    for flag in flags.split(", ")
)

BY_FLAG = {
    flag: [row for row in FOREIGN_FLAGS if row.flag == flag]
    for flag in dict.fromkeys(row.flag for row in FOREIGN_FLAGS)
}
"""The meanings of a flag; the first of use counts."""


def foreign_hint(names: Sequence[str], flags: Collection[str], words: Sequence[str]) -> str | None:
    """Return what to type instead of another tool's flag, written in one of these ways; None if it
    is unknown, or of no use to a command with these flags."""
    rows = (row for name in names for row in BY_FLAG.get(name, ()))
    line = " ".join(words)
    return next((row.hint() for row in rows if row.is_of_use(set(flags), line)), None)
