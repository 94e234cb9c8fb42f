"""Translates a copied curl command into our own terms.

How: the command is split into words as a shell does, the words into options by one table, and each
option becomes what a flag of ours would. An unknown option that would change what is sent is
refused, because a load that differs from what was copied measures something else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote_from_bytes

from trueload.errors import UserError
from trueload.files.inputs import read_input
from trueload.protocol.request_options import FOLLOW_MAX
from trueload.request.environment import HOW, PLACE
from trueload.request.form import literal_field, make_form
from trueload.request.header_files import read_headers
from trueload.request.message import BODY_BYTES_MAX, BODY_LIMIT
from trueload.request.secret_urls import redact_typed_url
from trueload.request.shell import split_words
from trueload.units import NS_PER_S

HINT = "copy it again, from the word curl to its end, and put it in single quotes"
WINDOWS_HINT = "copy it in the form for bash, and put it in single quotes"
# What curl asks for if it was built with every library.
COMPRESSED = "deflate, gzip, br, zstd"
FORM = "application/x-www-form-urlencoded"
REDIRECTS = 50
"""How many curl follows (``-L``), unless ``--max-redirs`` says otherwise."""

WITH_VALUE = {
    "-X": "--request",
    "-H": "--header",
    "-d": "--data",
    "-u": "--user",
    "-b": "--cookie",
    "-A": "--user-agent",
    "-e": "--referer",
    "-E": "--cert",
    "-x": "--proxy",
    "-o": "--output",
    "-w": "--write-out",
    "-D": "--dump-header",
    **dict.fromkeys(("--data-ascii", "--data-raw", "--data-binary", "--json", "--url"), ""),
    "-F": "--form",
    "-m": "--max-time",
    **dict.fromkeys(("--data-urlencode", "--form-string", "--max-redirs"), ""),
    **dict.fromkeys(("--resolve", "--unix-socket", "--cacert", "--key"), ""),
}
"""Options that have a value; a short one maps to its long name."""

WITHOUT_VALUE = {
    "-k": "--insecure",
    "-I": "--head",
    "-G": "--get",
    "-s": "--silent",
    "-v": "--verbose",
    "-S": "--show-error",
    "-i": "--include",
    "-g": "--globoff",
    "-N": "--no-buffer",
    "-O": "--remote-name",
    "-#": "--progress-bar",
    "-f": "--fail",
    "-L": "--location",
    "--path-as-is": "",
    **dict.fromkeys(("--compressed", "--http1.1", "--no-progress-meter", "--show-headers"), ""),
    "--fail-with-body": "",
}
"""The same for options without a value."""

IGNORED = frozenset(
    {
        *("--silent", "--show-error", "--include", "--show-headers", "--verbose", "--output"),
        *("--remote-name", "--write-out", "--dump-header", "--no-buffer", "--no-progress-meter"),
        *("--progress-bar", "--fail", "--fail-with-body", "--http1.1"),
    }
)
"""Options about curl's own output, or that change nothing here."""

SWITCHES = frozenset({"--insecure", "--head", "--get", "--globoff", "--location", "--path-as-is"})
_HEADERS = {"--user-agent": "User-Agent", "--referer": "Referer"}
_FIELDS = {
    **{f"--{name}": name for name in ("user", "cacert", "cert", "key", "proxy")},
    "--request": "method",
    "--unix-socket": "unix",
}
"""Options whose value becomes a field of ``CurlCommand``."""

ADVICE = {
    "--upload-file": "use -X PUT --data-binary @FILE",
    "--oauth2-bearer": "use -H 'Authorization: Bearer …'",
    "--next": "keep one request; --targets FILE sends several",
    "--config": "write what the file says into the command",
    "--http1.0": "leave it out: `trueload http` speaks HTTP/1.1",
    "--connect-timeout": "leave it out, and use --timeout or curl's --max-time",
    "--http2": (
        "leave it out, and use --http auto for https://, or --http 2 for http:// if the server"
        " takes HTTP/2 without the upgrade that curl asks for"
    ),
    "--http2-prior-knowledge": "leave it out, and use --http 2",
}
_SHORT_ADVICE = {
    "-T": "--upload-file",
    "-K": "--config",
    "-0": "--http1.0",
    "-:": "--next",
}
_LONG = {
    **{name: long or name for name, long in {**WITH_VALUE, **WITHOUT_VALUE}.items()},
    **{long: long for long in (*WITH_VALUE.values(), *WITHOUT_VALUE.values()) if long},
}
_TAKES_VALUE = frozenset(WITH_VALUE) | frozenset(WITH_VALUE.values())

_OF_WINDOWS = re.compile(r"\s*curl(?:\.exe)?\s+(?:--url\s+)?\^\"", re.IGNORECASE)
"""How a command begins that is quoted for ``cmd`` of Windows."""
_LINE_OF_WINDOWS = re.compile(r"\^\r?\n")
"""How such a command continues on the next line."""
_SEVERAL = re.compile(
    # First what we fill in, and what curl leaves alone.
    rf"\{{(?:counter|random){HOW}\}}|\{{\}}|{PLACE}"
    r"|(?P<glob>\{[^{}]*\}|\[(?:[0-9]+-[0-9]+|[a-zA-Z]-[a-zA-Z])(?::[0-9]+)?\])"
    r"|\\(?P<bare>[][{}])"
)
"""What curl expands in a URL unless ``-g`` is given."""


@dataclass(frozen=True)
class Option:
    """One option by its long name (empty for a URL), and where its value stands: the index of the
    word, and the index of its first character there."""

    name: str
    value: str | None
    word: int
    start: int


@dataclass
class CurlCommand:
    """What a curl command asks for. ``headers`` are lines as for ``-H``."""

    url: str = ""
    method: str | None = None
    headers: list[str] = field(default_factory=list)
    body: bytes | None = None
    user: str | None = None
    close: bool = False
    insecure: bool = False
    cacert: str | None = None
    cert: str | None = None
    key: str | None = None
    unix: str | None = None
    proxy: str | None = None
    follow: int | None = None
    timeout_ns: int | None = None
    resolve: list[str] = field(default_factory=list)


def split_options(words: list[str]) -> Iterator[Option]:
    """Yield the options of a command, without the word curl. Raises ``UserError``."""
    at, only_urls = 1, False
    while at < len(words):
        word = words[at]
        if only_urls or not word.startswith("-") or word == "-":
            yield Option("", word, at, 0)
        elif word == "--":
            only_urls = True
        elif word.startswith("--"):
            name = _known(word)
            if name in _TAKES_VALUE:
                at += 1
            yield Option(name, _value(words, at, word) if name in _TAKES_VALUE else None, at, 0)
        else:
            found, at = _short_options(words, at)
            yield from found
        at += 1


def _short_options(words: list[str], at: int) -> tuple[list[Option], int]:
    """Parse ``-sSk``, ``-XPOST`` or ``-d text``: the last option may have its value in the next
    word. Return the options, and the index of the last word used."""
    word, found = words[at], []
    for place, letter in enumerate(word[1:], start=1):
        name = _known(f"-{letter}")
        if name not in _TAKES_VALUE:
            found.append(Option(name, None, at, 0))
        elif place + 1 < len(word):
            return [*found, Option(name, word[place + 1 :], at, place + 1)], at
        else:
            value = _value(words, at + 1, f"-{letter}")
            return [*found, Option(name, value, at + 1, 0)], at + 1
    return found, at


def _value(words: list[str], at: int, option: str) -> str:
    if at >= len(words):
        raise UserError(f"the curl command ends after {option}, which has a value", HINT)
    return words[at]


def _known(option: str) -> str:
    if option in _LONG:
        return _LONG[option]
    option = option.partition("=")[0]  # what follows may be a secret
    name = _SHORT_ADVICE.get(option, option)
    shown = option if option.isprintable() else repr(option)
    hint = ADVICE.get(name, "leave it out, if what is sent stays the same without it")
    raise UserError(f"the curl command has {shown[:40]}, which is not known here", hint)


def parse_curl(command: str) -> CurlCommand:
    """Parse a curl command; files that it names are read. Raises ``UserError``."""
    if _OF_WINDOWS.match(command):
        raise UserError("the curl command is quoted for Windows", WINDOWS_HINT)
    try:
        words = split_words(command)
    except ValueError as error:
        hint = WINDOWS_HINT if _LINE_OF_WINDOWS.search(command) else HINT
        raise UserError(f"the curl command cannot be read: {error}", hint) from None
    if not words or words[0].rpartition("/")[2] != "curl":
        raise UserError("--curl is not given a curl command", "write it as --curl 'curl URL …'")
    reader = _Reader()
    for option in split_options(words):
        reader.take(option.name, option.value or "")
    return reader.finish()


class _Reader:
    """Takes options one by one; some take effect only at the end."""

    def __init__(self) -> None:
        self._found = CurlCommand()
        self._data: bytes | None = None
        self._cookies: list[str] = []
        self._fields: list[str] = []
        self._redirects = REDIRECTS
        self._defaults: dict[str, str] = {}
        self._without: set[str] = set()
        self._on: set[str] = set()
        self._declares_empty = self._is_json = False

    def take(self, name: str, value: str) -> None:
        found = self._found
        if name in ("", "--url"):
            if found.url:
                raise UserError("the curl command has two URLs", "keep one of them, and quote it")
            found.url = value if "://" in value else f"http://{value}"
        elif name in _FIELDS:
            setattr(found, _FIELDS[name], value)
        elif name in SWITCHES:
            self._on.add(name)
        elif name == "--header":
            self._header(value)
        elif name == "--data-urlencode":
            self._add(_urlencoded(value))
        elif name.startswith("--form"):
            self._fields.append(value if name == "--form" else literal_field(value))
        elif name == "--max-time":
            found.timeout_ns = _seconds(value)
        elif name == "--max-redirs":
            self._redirects = _redirects(value)
        elif name.startswith("--data") or name == "--json":
            self._body(name, value)
        elif name == "--cookie":
            if "=" not in value:
                raise UserError(
                    "the curl command names a file of cookies", "write them as -b 'name=value'"
                )
            self._cookies.append(value)
        elif name in _HEADERS:
            self._defaults[_HEADERS[name]] = value.removesuffix(";auto")
        elif name == "--compressed":
            self._defaults["Accept-Encoding"] = COMPRESSED
        elif name == "--resolve":
            found.resolve.append(value)
        else:
            assert name in IGNORED, name

    def _header(self, line: str) -> None:
        """Take ``Name: value``; ``Name:`` removes a header of curl's, ``Name;`` has no value."""
        if line.startswith("@"):
            for each in read_headers([line]):
                self._header(each)
            return
        name, colon, value = line.partition(":")
        if not colon and line.endswith(";"):
            self._found.headers.append(f"{line[:-1]}:")
            return
        lowered = name.strip().lower()
        if colon and not value.strip():
            self._without.add(lowered)
        elif lowered == "connection":
            # Browsers copy the header of their own connection; only ``close`` matters.
            self._found.close |= value.strip().lower() == "close"
        elif lowered == "content-length":
            # With data the length is known; without any, 0 is how a browser copies an empty body.
            self._declares_empty = value.strip() == "0"
        else:
            self._found.headers.append(line)

    def _body(self, name: str, value: str) -> None:
        data = value.encode("utf-8", "surrogateescape")
        if value.startswith("@") and name != "--data-raw":
            data = _read(value[1:])
            if name in ("--data", "--data-ascii"):
                data = data.translate(None, b"\r\n\0")
        self._add(data)
        if name == "--json":
            self._is_json = True
            self._defaults |= {"Content-Type": "application/json", "Accept": "application/json"}

    def _add(self, data: bytes) -> None:
        """Add data. Fields of a form are joined by &; after --json more of the same text comes."""
        before = self._data
        glue = b"" if before is None or self._is_json else b"&"
        self._data = (before or b"") + glue + data
        if "--get" not in self._on:
            self._defaults.setdefault("Content-Type", FORM)

    def finish(self) -> CurlCommand:
        found = self._found
        if not found.url:
            raise UserError("the curl command has no URL", HINT)
        found.insecure = "--insecure" in self._on
        found.url = found.url if "--globoff" in self._on else _one_url(found.url)
        found.url = found.url if "--path-as-is" in self._on else _without_dots(found.url)
        found.follow = self._redirects if "--location" in self._on else None
        data = self._data
        if self._fields:
            self._make_form()
        if data is not None and "--get" in self._on:
            self._defaults.pop("Content-Type", None)
            url = found.url.partition("#")[0]  # never sent
            query = data.decode("utf-8", "surrogateescape")
            found.url = f"{url}{'&' if '?' in url else '?'}{query}"
        elif data is not None:
            found.body = data
        if "--head" in self._on and found.method is None:
            found.method = "HEAD"
        if data is None and self._declares_empty:
            found.body, found.method = b"", found.method or "GET"
        if self._cookies:
            self._defaults["Cookie"] = "; ".join(self._cookies)
        named = {line.partition(":")[0].strip().lower() for line in found.headers}
        for name, value in self._defaults.items():
            if value and name.lower() not in named | self._without:
                found.headers.append(f"{name}: {value}")
        return found

    def _make_form(self) -> None:
        """Make the fields of a form the body; its Content-Type has our boundary."""
        if self._data is not None or "--head" in self._on:
            raise UserError("the curl command has a form and other data", "keep one of them")
        content_type, self._found.body = make_form(self._fields)
        kept = self._found.headers
        kept[:] = [line for line in kept if line.partition(":")[0].lower() != "content-type"]
        kept.append(f"Content-Type: {content_type}")


def _urlencoded(value: str) -> bytes:
    """The data of ``--data-urlencode``: a text or file, percent-encoded behind its name."""
    name, sign, content = value.partition("=" if "=" in value else "@")
    if not sign:
        name, content = "", value
    data = _read(content) if sign == "@" else content.encode("utf-8", "surrogateescape")
    encoded = quote_from_bytes(data, safe="").replace("%20", "+")
    return (f"{name}={encoded}" if name else encoded).encode("utf-8", "surrogateescape")


def _seconds(value: str) -> int | None:
    """The time of ``--max-time``, of which 0 is none."""
    if not re.fullmatch(r"[0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9}", value, re.ASCII):
        raise UserError(
            "the curl command has a -m that is not a number of seconds", "write seconds, as -m 2.5"
        )
    return round(float(value) * NS_PER_S) or None


def _redirects(value: str) -> int:
    if not re.fullmatch("-1|[0-9]{1,9}", value, re.ASCII):
        raise UserError(
            "the curl command has a --max-redirs that is not a number", "write for example 5"
        )
    return FOLLOW_MAX if value == "-1" else min(int(value), FOLLOW_MAX)


def _without_dots(url: str) -> str:
    """The URL without the segments ``.`` and ``..`` of its path, which curl removes."""
    end = min((at for mark in "?#" if (at := url.find(mark)) >= 0), default=len(url))
    start = url.find("/", url.find("://") + 3)
    if not 0 <= start < end or "/." not in url[start:end]:
        return url
    *folders, last = url[start + 1 : end].split("/")
    kept: list[str] = []
    for segment in folders:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    if last in (".", ".."):
        del kept[len(kept) - (last == "..") :]
        last = ""
    return url[:start] + "/" + "/".join([*kept, last]) + url[end:]


def _one_url(url: str) -> str:
    """The URL that curl would ask for. It expands lists and ranges in a URL, and removes a
    backslash before a bracket. Raises ``UserError`` if that would be several URLs, or another one.
    """

    def plain(found: re.Match[str]) -> str:
        if found["glob"]:
            glob = found["glob"]
            secret = redact_typed_url(url).count(glob) < url.count(glob)
            shown = f"{glob[0]}…{glob[-1]}" if secret else glob[:40]
            raise UserError(
                f"the curl command has {shown!r} in its URL, which curl expands",
                "write the URL that is meant, or add -g if it has these very brackets",
            )
        return found["bare"] or found[0]

    return _SEVERAL.sub(plain, url)


def _read(name: str) -> bytes:
    shown = f"the curl command names the file {name[:80]!r}, which"
    cure = "go to its folder, or write its whole path"
    return read_input(Path(name), BODY_BYTES_MAX, shown, BODY_LIMIT, cure)
