"""Makes a scenario of a HAR file: its requests as steps, page after page, in their order. Pure.

Cookies are left out, because a virtual user keeps its own. What looks like a place for a value is
written so that it stands for itself.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from trueload.errors import UserError
from trueload.protocol.engine_options import ENGINE_DEFAULTS
from trueload.request.har import Har, HarEntry
from trueload.request.recorded_request import RecordedRequest, choose_host
from trueload.request.scenario import FILE_BYTES_MAX, NAME_LENGTH_MAX, STEPS_MAX, has_places
from trueload.units import NS_PER_S, format_duration

THINK_NS_MIN = 50_000_000  # a shorter gap is the browser's own work
THINK_NS_MAX = ENGINE_DEFAULTS.timeout_ns  # --timeout refuses a longer pause
MS = NS_PER_S // 1000


def scenario_of(har: Har, shown: str, chosen: str | None) -> tuple[str, int]:
    """Return the text of a scenario, and its number of steps. ``chosen`` is the host that is meant.
    Raises ``UserError``."""
    host = choose_host(shown, har.hosts, chosen, "--host") or har.hosts[0]
    entries = [entry for entry in har.entries if entry.recorded.host == host]
    if len(entries) > STEPS_MAX:
        raise UserError(
            f"{shown} has {len(entries):,} requests to {host}, and a scenario at most"
            f" {STEPS_MAX:,} steps",
            "record less, or send it with --replay",
        )
    text = "\n".join(_lines(har, host, entries)) + "\n"
    if len(text.encode()) > FILE_BYTES_MAX:
        raise UserError(
            f"the scenario would be larger than {FILE_BYTES_MAX // 2**20} MiB",
            "record less, or send it with --replay",
        )
    return text, len(entries)


def _lines(har: Har, host: str, entries: Sequence[HarEntry]) -> Iterator[str]:
    yield f"# The requests to {_comment(host)} in a HAR file, without its cookies."
    yield "# Run it with: trueload http --scenario FILE URL"
    pages = list(dict.fromkeys(entry.page for entry in entries))
    number, busy_until_ns = 0, entries[0].recorded.at_ns
    for page in pages:
        if title := har.pages.get(page, page):
            yield ""
            yield f"# page: {_comment(title)}"
        for entry in (entry for entry in entries if entry.page == page):
            number += 1
            yield ""
            yield from _step(number, entry.recorded, entry.recorded.at_ns - busy_until_ns)
            busy_until_ns = max(busy_until_ns, entry.recorded.at_ns + entry.took_ns)


def _step(number: int, recorded: RecordedRequest, gap_ns: int) -> Iterator[str]:
    name = f"{number} {recorded.method} {recorded.path.partition('?')[0]}"
    yield "[[step]]"
    yield f"name    = {_quoted(name[:NAME_LENGTH_MAX])}"
    yield f"request = {{ {', '.join(_request(recorded))} }}"
    if recorded.status is not None and 300 <= recorded.status < 500:
        yield f'expect  = {{ status = ["2xx", {recorded.status}] }}'
    if gap_ns > THINK_NS_MIN:
        whole = f"  # recorded: {format_duration(gap_ns)}" if gap_ns > THINK_NS_MAX else ""
        yield f'think   = "{min(gap_ns, THINK_NS_MAX) // MS}ms"{whole}'


def _request(recorded: RecordedRequest) -> Iterator[str]:
    if recorded.method != ("GET" if recorded.body is None else "POST"):
        yield f"method = {_quoted(recorded.method)}"
    yield f"url = {_quoted(_literal(recorded.path))}"
    headers: dict[str, tuple[str, str]] = {}
    for name, value in recorded.headers:
        if name.lower() != "cookie":
            first, before = headers.get(name.lower(), (name, ""))
            headers[name.lower()] = first, f"{before}, {value}" if before else value
    if headers:
        pairs = (f"{_quoted(name)} = {_quoted(_literal(text))}" for name, text in headers.values())
        yield f"headers = {{ {', '.join(pairs)} }}"
    if recorded.body is not None:
        yield f"body = {_quoted(_literal(recorded.body.decode('utf-8', 'replace')))}"


def _literal(text: str) -> str:
    """A text in which nothing is a place for a value."""
    return text.replace("{", "{{") if has_places(text) else text


def _quoted(text: str) -> str:
    """A basic string of TOML, which is one of JSON, but for the character DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(text: str) -> str:
    return "".join(each if each.isprintable() else " " for each in text)
