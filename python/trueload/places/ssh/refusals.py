"""Translates errors of ssh and of a host's shell into causes and hints, by one table.

How: ssh prints its errors on stderr in English, and has not changed their wording for decades. The
first row with a phrase that occurs in the output decides. If none matches, the user is told the
last line of ssh's own output. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from trueload.errors import HostError, UserError

Rows = tuple[tuple[tuple[str, ...], str, str], ...]

# What ssh prints if the other side ends the connection before any key was tried.
DROPPED = (
    "kex_exchange_identification",
    "ssh_exchange_identification",
    "Exceeded MaxStartups",
)
# Phrases that ssh prints for a host that may be booting, or get its keys, just now.
NOT_YET = (
    *("Connection refused", "No route to host", "Network is unreachable", "Host is down"),
    *("timed out", "not responding", "Could not resolve hostname", "Permission denied ("),
    *("Connection closed by", "System is booting up"),
    *DROPPED,
)
# Phrases that ssh prints; what they mean; what to do. `{host}` is as the user wrote it.
ROWS: Rows = (
    (
        ("REMOTE HOST IDENTIFICATION HAS CHANGED", "host key for", "has changed and you have"),
        "the key of {host} is not the one that ssh knows of it: another machine may be answering",
        "find out why; if that is fine, forget the old key with ssh-keygen -R, and log in once",
    ),
    (
        ("Host key verification failed",),
        "ssh does not know the key of {host}, and may not ask whether to accept it",
        "log in once with `ssh {host}`, and compare the key that it shows",
    ),
    (
        ("Permission denied (", "Too many authentication failures", "No supported authentication"),
        "{host} accepts none of your keys",
        "`ssh -o BatchMode=yes {host} true` must work: add your key there, or unlock it (ssh-add)",
    ),
    (
        ("Could not resolve hostname",),
        "ssh knows no host {host}",
        "look for a mistake in the name, or add it to your ssh config",
    ),
    (
        ("Connection refused",),
        "{host} refuses connections of ssh",
        "is sshd running there, on the port of your ssh config?",
    ),
    (
        ("No route to host", "Network is unreachable", "Host is down"),
        "there is no route to {host}",
        "is it up, and its network reachable from here?",
    ),
    (
        ("timed out", "not responding"),
        "{host} does not answer",
        "is it up, and its network reachable from here?",
    ),
    (
        ("Bad configuration option", "Bad owner or permissions", "terminating,"),
        "your ssh config cannot be used: {last}",
        "`ssh {host} true` must work",
    ),
    (
        ("administratively prohibited", "Session open refused", "session open refused"),
        "{host} allows too few sessions on a connection",
        "raise MaxSessions in its sshd_config to at least 4",
    ),
    (
        DROPPED,
        "{host}, or a jump host on the way to it, dropped the login: {last}",
        "raise MaxStartups in the sshd_config of that host, or name fewer hosts",
    ),
)

# Phrases that the host's own tools print while a program is copied there.
KEEP_ROWS: Rows = (
    (
        ("sha256sum: not found", "sha256sum: command not found"),
        "{host} has no sha256sum, with which copies are checked",
        "install its coreutils, or busybox",
    ),
    (
        ("No space left on device", "Disk quota exceeded"),
        "there is no space on {host} for the engine",
        "free some, or name another folder there: SetEnv XDG_CACHE_HOME in its sshd_config",
    ),
    (
        ("noexec: ",),
        "{host} runs no programs from its cache folder ({last})",
        "name another folder there: SetEnv XDG_CACHE_HOME in its sshd_config",
    ),
    (
        ("Read-only file system", "Permission denied", "Not a directory", "No such file"),
        "the cache folder on {host} cannot be written: {last}",
        "give the user a home there, or another folder: SetEnv XDG_CACHE_HOME in its sshd_config",
    ),
)


def explain(
    host: str,
    output: str,
    otherwise: str,
    rows: Rows = ROWS,
    hint: str = "`ssh {host} true` must work without asking anything",
) -> UserError:
    """The error for a failed ssh: a ``HostError`` if that may pass. ``otherwise`` is its text if
    ssh has printed nothing."""
    rows = (*rows, (("",), "{host} cannot be used: {last}", hint))
    return by_rows(output, last_line(output) or otherwise, rows, NOT_YET, host=host)


def by_rows(output: str, last: str, rows: Rows, not_yet: Sequence[str], **names: str) -> UserError:
    """The error by the first row with a phrase in the output: a ``HostError`` if that has a phrase
    of what may pass, ``not_yet``. The last row has an empty phrase."""
    kind = HostError if any(each in output for each in not_yet) else UserError
    _, message, hint = next(row for row in rows if any(each in output for each in row[0]))
    return kind(message.format(last=last, **names), hint.format(**names))


def is_dropped(output: str) -> bool:
    """Whether a log-in was dropped before it began, which may go better the next time."""
    return any(each in output for each in DROPPED)


def explain_keep(host: str, output: str, otherwise: str) -> UserError:
    """The error for a program that could not be copied to the host."""
    return explain(host, output, otherwise, (*KEEP_ROWS, *ROWS), "look at the host's disk")


def last_line(output: str) -> str:
    """The last line of a text that is not blank, printable and at most 300 characters long."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    found = next((line for line in reversed(lines) if line), "")
    return "".join(c if c.isprintable() else "?" for c in found)[:300]
