"""Splits a POSIX shell command into words, and joins words into such a command.

How: words may be plain, '…', "…" or bash's $'…'. One pass over the text replaces what ``shlex``
does not support (``$'…'`` with its escapes, lines that go on after a backslash). It refuses what
only a shell can evaluate (variables, redirections, further commands). ``shlex`` does the rest.
Pure.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

_OPERATORS = "|&;<>()"
_VARIABLE = re.compile(r"\$[A-Za-z_{(?@*#!$0-9-]|`")
_ESCAPE = re.compile(
    r"\\(?:u([Dd][89ABab][0-9A-Fa-f]{2})\\u([Dd][C-Fc-f][0-9A-Fa-f]{2})"
    r"|x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|c(.)|(.))",
    re.DOTALL,
)
_NAMED = dict(zip("abeEfnrtv\\'\"?", b"\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))
"""Meaning of a letter behind a backslash."""


def split_words(command: str) -> list[str]:
    """Split a command into words. Bytes that are not UTF-8 become surrogates. Raises ``ValueError``
    that says in one line what only a shell could do."""
    plain: list[str] = []
    quote, at = "", 0
    while at < len(command):
        rest = command[at : at + 3]
        if quote != "'" and rest[:1] == "\\" and (end := _continued(rest)):
            at += end
        elif not quote and rest.startswith("$'"):
            text, at = _ansi_c(command, at + 2)
            plain.append(shlex.quote(text))
        elif not quote and rest.startswith('$"'):
            at += 1  # a translated text: only its quotes matter
        elif quote != "'" and rest[:1] == "\\":
            # Within "…" a shell removes the backslash before these; shlex leaves it.
            bare = quote == '"' and rest[1:2] in ("$", "`")
            plain.append(rest[1:2] if bare else rest[:2])
            at += 2
        else:
            quote = _next_quote(command, at, quote)
            plain.append(rest[:1])
            at += 1
    return shlex.split("".join(plain))


def join_words(words: Iterable[str]) -> str:
    """Join words into a command of one line that a shell splits into the same words. It contains
    nothing that a terminal would obey."""
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def _escaped(character: str) -> str:
    code = ord(character)
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _next_quote(command: str, at: int, quote: str) -> str:
    """The open quote after this character. Raises ``ValueError`` for what is more than text."""
    character = command[at]
    if quote != "'" and (found := _VARIABLE.match(command, at)):
        raise ValueError(
            f"{_shown(command, found.start())} would be replaced by a shell, and no shell runs here"
        )
    if quote:
        return "" if character == quote else quote
    if character in "'\"":
        return character
    if character in _OPERATORS:
        raise ValueError(f"an unquoted '{character}' ends it in a shell")
    if character == "\n" and command[at:].strip():
        raise ValueError("a new line ends it in a shell")
    return ""


def _continued(rest: str) -> int:
    """Length of a line continuation at the start of ``rest``; 0 if there is none."""
    return 3 if rest == "\\\r\n" else 2 if rest[:2] == "\\\n" else 0


def _shown(command: str, at: int) -> str:
    found = re.match(r"`|\$\{?\w+|\$.", command[at:])
    return f"'{found[0] if found else command[at]}'"


def _ansi_c(command: str, at: int) -> tuple[str, int]:
    """Decode the text that ``$'`` begins; return it, and where it ends."""
    out = bytearray()
    while at < len(command):
        if command[at] == "'":
            return out.decode("utf-8", "surrogateescape"), at + 1
        found = _ESCAPE.match(command, at)
        if found is None:
            out += command[at].encode("utf-8", "surrogateescape")
            at += 1
        else:
            out += _unescaped(found)
            at = found.end()
    raise ValueError("No closing quotation")


def _unescaped(found: re.Match[str]) -> bytes:
    high, low, byte, short, long, octal, control, other = found.groups()
    if high:
        # Browsers write UTF-16 this way; the pair means one character.
        return bytes.fromhex(high + low).decode("utf-16-be").encode()
    if byte or octal:
        return bytes([int(byte, 16) if byte else int(octal, 8) & 0xFF])
    if short or long:
        code = int(short or long, 16)
        # As in bash, half of a surrogate pair is written as it is.
        return chr(code).encode("utf-8", "surrogatepass") if code <= 0x10FFFF else b"\xef\xbf\xbd"
    if control:
        return bytes([ord(control.upper()) & 0x1F])
    if other in _NAMED:
        return bytes([_NAMED[other]])
    return found[0].encode("utf-8", "surrogateescape")
