"""Numbers in sentences: what can be one thing is `1 request`, and never `1 requests`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import trueload

ROOT = Path(trueload.__file__).parent
_NOUNS = re.compile(r" (?:(?!of\b|met\b|with\b|received\b)[a-z]+ )??([a-z]+s)\b")
_NO_COUNT = re.compile(r"[A-Z_0-9. ]+|.*_MAX\b.*|.*:\.\df")
NEVER_ONE = {
    "api/results/result.py: len(self.records) trials",
    "cli/report.py: len(selectors) runs",
    "cli/runs_delete.py: freed:, bytes",
    "commands/ab_servers.py: len(found) subjects",
    "commands/doctor.py: max(hard - 50, 0):, connections",
    "commands/doctor.py: ports // TIME_WAIT_S:, requests",
    "commands/late_hosts.py: placement.host_count hosts",
    "commands/measure.py: engine.threads threads",
    "commands/udp.py: messages.size_bytes:, bytes",
    "compare/difference.py: base trials",
    "compare/difference.py: new trials",
    "compare/difference.py: pairs pairs",
    "engines/elastic_fleet.py: count hosts",
    "engines/launch.py: hosts hosts",
    "engines/losses.py: len(hosts) hosts",
    "engines/roster.py: len(same) hosts",
    "places/names.py: hosts.most hosts",
    "places/open.py: placement.host_count hosts",
    "places/ssh/connection.py: self.destination runs",
    "protocol/client.py: seen.accepted connections",
    "protocol/client.py: seen.open_peak connections",
    "protocol/client.py: seen.requests requests",
    "record/shortage.py: format_count(each) connections",
    "report/apachebench.py: found.document_bytes bytes",
    "report/apachebench.py: found.html_bytes bytes",
    "report/apachebench.py: found.transferred_bytes bytes",
    "report/compare.py: needed pairs",
    "report/export/hgrm.py: len(timed) trials",
    "report/html/view.py: len(sections) loads",
    "report/html/words.py: len(reports) runs",
    "report/html/words.py: len(runs) runs",
    "report/missing_loads.py: self.of loads",
    "report/html/charts/crowd.py: row['clients']:,.0f clients",
    "report/server_report.py: per_s:,.0f answers",
    "request/gather.py: format_count(steps) times",
    "request/gather.py: len(files) files",
    "request/har_scenario.py: len(entries):, requests",
    "request/recorded_request.py: len(every) hosts",
    "request/route.py: length bytes",
    "runner/files.py: format_count(connections) connections",
    "runner/files.py: format_count(needed) open files",
    "runner/process.py: files open files",
    "runner/verify_http2.py: bytes_max bytes",
    "search/result.py: lowest deliveries",
    "store/runs.py: len(matches) runs",
    "suites/load_tables.py: load.pools.files:, open files",
    "suites/plan.py: path answers",
    "suites/pools.py: format_count(load.room) connections",
    "suites/pools.py: format_count(needed) open files",
    "trial/run.py: hosts:, hosts",
    "trial/server_files.py: format_count(connections) connections",
    "trial/server_files.py: format_count(sum(limits.values())) files",
    "verdict/audit.py: found.expected deliveries",
    "verdict/audit.py: issued requests",
    "verdict/audit.py: scheduled requests",
    "verdict/audit.py: timed deliveries",
    "verdict/audit.py: total requests",
    "verdict/audit.py: window.ok requests",
    "verdict/flow.py: slots.asked slots",
    "verdict/lost_hosts.py: asked connections",
    "verdict/lost_hosts.py: count hosts",
    "verdict/one_machine.py: len(hosts) hosts",
    "verdict/slots.py: format_count(files) open files",
    "verdict/varying.py: len(kinds) kinds",
}
"""Numbers that are two or more where the sentence is written, or the limits of something."""


def _trees() -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield str(path.relative_to(ROOT)), ast.parse(path.read_text())


def _counted_nouns() -> set[str]:
    """The plurals of what is counted by `counted` anywhere."""
    found = set()
    for _, tree in _trees():
        for call in ast.walk(tree):
            if (
                isinstance(call, ast.Call)
                and getattr(call.func, "id", "") in ("counted", "times")
                and len(call.args) > 1
                and isinstance(noun := call.args[-1], ast.Constant)
            ):
                word = str(noun.value).split()[-1]
                found.add(word if len(call.args) > 2 else f"{word}s")
    return found


def _plurals(nouns: set[str]) -> Iterator[str]:
    """Each number that stands before such a plural, with its file."""
    for name, tree in _trees():
        for text in ast.walk(tree):
            if not isinstance(text, ast.JoinedStr):
                continue
            for number, after in zip(text.values, text.values[1:], strict=False):
                if not (isinstance(number, ast.FormattedValue) and isinstance(after, ast.Constant)):
                    continue
                found = _NOUNS.match(str(after.value))
                shown = ast.unparse(ast.JoinedStr([number]))[3:-2]
                if found and found[1] in nouns and not _NO_COUNT.fullmatch(shown):
                    yield f"{name}: {shown} {found[0].strip()}"


def test_a_number_that_can_be_one_stands_before_no_plural() -> None:
    nouns = _counted_nouns()
    assert {"requests", "connections", "deliveries", "hosts"} <= nouns
    assert sorted(set(_plurals(nouns))) == sorted(NEVER_ONE)
