"""What is meant by a command line that begins with no command: with a URL, `help` or `version`."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

# Their slashes may be too few: the command tells how they are written.
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)(?::/|//)", re.ASCII | re.IGNORECASE)
_ADDRESS = re.compile(
    r"(?:localhost|\[[0-9a-f:.%]+\]|\d+(?:\.\d+){3}|[\w.-]+:\d+|:\d+|\d{2,5})(?::\d+)?(?:[/?].*)?",
    re.IGNORECASE | re.DOTALL,
)
"""Where a server is, without a scheme: ``localhost``, ``10.0.0.7``, ``host:8080``, ``:8080``."""
_OTHERS = {"ws": "ws", "wss": "ws", "tcp": "tcp", "udp": "udp"}
"""The command for a scheme; `http` for all others."""
_OF_ITSELF = ("--version", "-V", "--help", "-h")
_PORT = re.compile(r"-?\d+", re.ASCII)


def meant(words: Sequence[str], commands: Collection[str]) -> list[str]:
    """Return the command line that is meant; the same if it begins with a command."""
    return with_port(_with_command(words, commands))


def with_port(words: Sequence[str]) -> list[str]:
    """Return the words with a port for ``--web`` if none follows: the parser always takes one."""
    rest, found = list(words), list[str]()
    while rest and rest[0] != "--":
        word = rest.pop(0)
        if word == "--web":
            word += f"={rest.pop(0) if rest and _PORT.fullmatch(rest[0]) else 0}"
        found.append(word)
    return found + rest


def _with_command(words: Sequence[str], commands: Collection[str]) -> list[str]:
    # hey has -host, which the parser would read as -h and -o st.
    words = ["--host" if word == "-host" else word for word in words]
    match words:
        case ["version" | "-v"]:
            return ["--version"]
        case [*path, "help"] if len(path) < 2:
            return [*path, "--help"]
        case ["help", *path]:
            return [*path, "--help"]
        case [first, *_] if first not in commands and (
            _SCHEME.match(first) or _ADDRESS.fullmatch(first)
        ):
            return [_command_for(first), *words]
        case [first, *rest] if first.startswith("-") and first not in _OF_ITSELF:
            urls = [word for word in rest if _SCHEME.match(word)]
            if urls and not set(commands) & set(rest):
                return [_command_for(urls[0]), *words]
    return words


def _command_for(address: str) -> str:
    scheme = _SCHEME.match(address)
    return "http" if scheme is None else _OTHERS.get(scheme[1].lower(), "http")
