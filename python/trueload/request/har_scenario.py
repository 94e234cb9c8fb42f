"""Makes a scenario of a HAR file: its requests as steps, page after page, in their order. Pure.

Cookies are left out, because a virtual user keeps its own. Secrets are: a place for a variable of
the environment stands for each. What looks like a place for a value is written so that it stands
for itself. Of Accept-Encoding only codings are kept from which values can be taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import unquote_plus

from trueload.errors import UserError
from trueload.protocol.engine_options import ENGINE_DEFAULTS
from trueload.request.environment import BEGIN
from trueload.request.har import Har, HarEntry
from trueload.request.recorded_request import RecordedRequest, choose_host
from trueload.request.scenario import FILE_BYTES_MAX, NAME_LENGTH_MAX, STEPS_MAX, has_places
from trueload.request.secret_names import is_secret_name
from trueload.units import NS_PER_S, counted, format_duration

THINK_NS_MIN = 50_000_000  # a shorter gap is the browser's own work
THINK_NS_MAX = ENGINE_DEFAULTS.timeout_ns  # --timeout refuses a longer pause
MS = NS_PER_S // 1000
_READABLE = ("gzip", "deflate", "br", "identity")
"""Codings of answers that can be decoded: crates/wire/src/coding.rs."""
_SCHEME = re.compile(r"(?:Basic|Bearer|Digest|Token|ApiKey|Negotiate) (?=\S)", re.IGNORECASE)


@dataclass
class Made:
    """A scenario: its text, its number of steps, the variables that its secrets are read from, with
    their recorded values, and its bodies that are no text, by the names of their files."""

    name: str
    text: str = ""
    steps: int = 0
    secrets: dict[str, str] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)

    def place_of(self, name: str, value: str) -> str:
        """Return the place for a secret, which is the value of this header or parameter."""
        base = re.sub(r"[^A-Z0-9]+", "_", name.upper()).strip("_") or "SECRET"
        base = f"_{base}" if base[0].isdigit() else base
        variable, number = base, 1
        while self.secrets.setdefault(variable, value) != value:
            number += 1
            variable = f"{base}_{number}"
        return f"{BEGIN}{variable}}}"


def scenario_of(har: Har, shown: str, chosen: str | None, name: str) -> Made:
    """Return the scenario. ``chosen`` is the host that is meant; files beside the scenario begin
    with ``name``. Raises ``UserError``."""
    host = choose_host(shown, har.hosts, chosen, "--host") or har.hosts[0]
    entries = [entry for entry in har.entries if entry.recorded.host == host]
    if len(entries) > STEPS_MAX:
        raise UserError(
            f"{shown} has {len(entries):,} requests to {host}, and a scenario at most"
            f" {STEPS_MAX:,} steps",
            "record less, or send it with --replay",
        )
    made = Made(name, steps=len(entries))
    steps = list(_steps(har, entries, made))
    made.text = "\n".join((*_head(har, host, made), *steps)) + "\n"
    if len(made.text.encode()) > FILE_BYTES_MAX:
        raise UserError(
            f"the scenario would be larger than {FILE_BYTES_MAX // 2**20} MiB",
            "record less, or send it with --replay",
        )
    return made


def _head(har: Har, host: str, made: Made) -> Iterator[str]:
    yield f"# The requests to {_comment(host)} in a HAR file, without its cookies."
    yield "# Run it with: trueload http --scenario FILE URL"
    if made.secrets:
        yield f"# Its secrets are read from the environment: {', '.join(made.secrets)}"
    if har.forms:
        forms = counted(har.forms, "form")
        yield f"# {forms} made of the recorded fields, with a boundary of trueload's own"


def _steps(har: Har, entries: Sequence[HarEntry], made: Made) -> Iterator[str]:
    pages = list(dict.fromkeys(entry.page for entry in entries))
    number, busy_until_ns = 0, entries[0].recorded.at_ns
    for page in pages:
        if title := har.pages.get(page, page):
            yield ""
            yield f"# page: {_comment(title)}"
        for entry in (entry for entry in entries if entry.page == page):
            number += 1
            yield ""
            yield from _step(number, entry.recorded, entry.recorded.at_ns - busy_until_ns, made)
            busy_until_ns = max(busy_until_ns, entry.recorded.at_ns + entry.took_ns)


def _step(number: int, recorded: RecordedRequest, gap_ns: int, made: Made) -> Iterator[str]:
    name = f"{number} {recorded.method} {recorded.path.partition('?')[0]}"
    yield "[[step]]"
    yield f"name    = {_quoted(name[:NAME_LENGTH_MAX])}"
    yield f"request = {{ {', '.join(_request(number, recorded, made))} }}"
    if recorded.status is not None and 300 <= recorded.status < 500:
        yield f'expect  = {{ status = ["2xx", {recorded.status}] }}'
    if gap_ns > THINK_NS_MIN:
        whole = f"  # recorded: {format_duration(gap_ns)}" if gap_ns > THINK_NS_MAX else ""
        yield f'think   = "{min(gap_ns, THINK_NS_MAX) // MS}ms"{whole}'


def _request(number: int, recorded: RecordedRequest, made: Made) -> Iterator[str]:
    if recorded.method != ("GET" if recorded.body is None else "POST"):
        yield f"method = {_quoted(recorded.method)}"
    yield f"url = {_quoted(_url(recorded.path, made))}"
    headers: dict[str, tuple[str, str]] = {}
    for name, value in recorded.headers:
        encoding = _readable(value) if name.lower() == "accept-encoding" else None
        if name.lower() != "cookie" and encoding != "":
            value = encoding or value
            first, before = headers.get(name.lower(), (name, ""))
            headers[name.lower()] = first, f"{before}, {value}" if before else value
    if headers:
        pairs = (
            f"{_quoted(name)} = {_quoted(_header(name, text, made))}"
            for name, text in headers.values()
        )
        yield f"headers = {{ {', '.join(pairs)} }}"
    if recorded.body is not None:
        yield _body(number, recorded.body, made)


def _readable(codings: str) -> str:
    """The codings of a list that can be read, with their weights."""
    every = (each.strip() for each in codings.split(","))
    return ", ".join(each for each in every if each.partition(";")[0].strip().lower() in _READABLE)


def _header(name: str, value: str, made: Made) -> str:
    if not (value and is_secret_name(name)):
        return _url(value, made) if name.lower() == "referer" else _literal(value)
    scheme = found[0] if (found := _SCHEME.match(value)) else ""
    return scheme + made.place_of(name, value.removeprefix(scheme))


def _url(url: str, made: Made) -> str:
    """A URL or a path, in whose query places stand for secrets."""
    before, mark, query = url.partition("?")
    parts, has_secret = [], False
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if value and is_secret_name(name):
            has_secret = True
            pair = f"{_doubled(name)}={made.place_of(unquote_plus(name), unquote_plus(value))}"
        else:
            pair = _doubled(pair)
        parts.append(pair)
    return f"{_doubled(before)}{mark}{'&'.join(parts)}" if has_secret else _literal(url)


def _body(number: int, body: bytes, made: Made) -> str:
    """The body as a text, or in a file of its own if it is none."""
    try:
        return f"body = {_quoted(_literal(body.decode()))}"
    except UnicodeDecodeError:
        name = f"{made.name}-{number}.body"
        made.files[name] = _literal(body.decode("latin-1")).encode("latin-1")
        return f"body_file = {_quoted(name)}"


def _literal(text: str) -> str:
    """A text in which nothing is a place for a value."""
    return _doubled(text) if has_places(text) or BEGIN in text else text


def _doubled(text: str) -> str:
    """A text with braces as they are written beside places."""
    return text.replace("{", "{{")


def _quoted(text: str) -> str:
    """A basic string of TOML, which is one of JSON, but for the character DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)
