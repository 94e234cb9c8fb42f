"""The pages are true: links work, flags exist, tables are complete."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from trueload import verdict
from trueload.cli.app import EXIT_CODE_BROKEN_PIPE, build_command
from trueload.commands.foreign_flags import REMOVED
from trueload.errors import ExitCode
from trueload.metrics.names import METRICS
from trueload.subjects.manifest import MANIFEST_KEYS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/contributors/*.md")])


def read(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_repository_leads_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if not re.match(r"[a-z]+://", target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@cache
def cli() -> Any:
    return build_command()


# Flags of other programs and of our own tools that our pages mention.
FOREIGN = {
    *("--overlap", "--jobid", "--nodelist"),  # of srun
    "--num-cpus",  # of ray start
    *("--rm", "--network"),  # of docker run
    "--test",  # of cargo
    "--http1",  # of curl, `--http1.1`
    "--floors",
    *("--form-string", "--data-urlencode", "--max-redirs", "--path-as-is"),  # of curl
    "--h1",
    "--junitxml",
    "--latency",
    "--timeout",
    "-disable-keepalive",
    "-cpus",
}


def test_every_flag_that_a_page_names_exists() -> None:
    ours = {*all_flags(build_command()), *REMOVED, "--help"}
    for page in PAGES:
        for code in re.findall(r"`([^`\n]+)`", page.read_text()):
            for flag in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]+", code):
                assert flag in ours | FOREIGN, f"{page.name}: {code}"


def test_every_flag_that_a_remedy_names_exists() -> None:
    remedies = " ".join(check.remedy for check in verdict.CHECKS.values())
    named = set(re.findall(r"--[a-z][a-z0-9-]+", remedies.replace("curl -v --http1.1", "")))
    assert named
    assert named <= set(all_flags(cli()))


def all_flags(node: Any) -> Iterator[str]:
    for param in node.params:
        yield from (*param.opts, *param.secondary_opts)
    for child in getattr(node, "commands", {}).values():
        yield from all_flags(child)


def test_the_page_of_metrics_has_each_of_them_and_no_other_in_the_order_of_the_table() -> None:
    rows = re.findall(
        r"^\| `(trueload_\w+)` \| `(trueload[\w.]+)` \|", read("docs/metrics.md"), re.M
    )
    endings = {"counter": "_total", "info": "_info"}
    assert rows == [
        (metric.prometheus_name + endings.get(metric.kind, ""), metric.name) for metric in METRICS
    ]


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    text = read("docs/grafana-dashboard.json")
    panels = json.loads(text)["panels"]
    assert all(target["expr"] for panel in panels for target in panel["targets"])
    known = set(re.findall(r"`(trueload_\w+)`", read("docs/metrics.md")))
    known |= {f"{name}_bucket" for name in known if name.endswith("_seconds")}
    asked = set(re.findall(r"trueload_\w+", text))
    assert asked
    assert asked <= known


def test_the_manifest_page_explains_every_key() -> None:
    page = read("docs/adding-a-subject.md")
    rows = re.findall(r"^\| (`[a-z_`, ]+) \|", page, re.MULTILINE)
    documented = {key.strip("` ") for row in rows for key in row.split(",")}
    assert set(MANIFEST_KEYS) - {"variants"} <= documented


def test_the_page_on_ci_lists_every_exit_code() -> None:
    documented = re.findall(r"^\| (\d+) \|", read("docs/ci.md"), re.MULTILINE)
    assert [int(code) for code in documented] == sorted([*ExitCode, EXIT_CODE_BROKEN_PIPE])


def outputs(page: Path) -> list[tuple[str, str]]:
    """Return the name and the text of each output that the tool writes into a page."""
    marked = r"<!-- output: (.*?) -->\n(.*?)<!-- end of output -->"
    return re.findall(marked, page.read_text(), re.DOTALL)


def test_every_page_with_output_has_it() -> None:
    for page in PAGES:
        for name, output in outputs(page):
            assert output.strip(), f"{page.name}: the output of {name} is missing"


def test_every_output_is_made_by_the_tool_and_is_the_same_on_each_page() -> None:
    shown = [each for page in PAGES for each in outputs(page)]
    made = re.findall(r'^    "(.+)": show_', read("tools/refresh_readme.py"), re.MULTILINE)
    assert {name for name, _ in shown} == set(made)
    assert len(set(shown)) == len(made), "run tools/refresh_readme.py"


@pytest.mark.parametrize("picture", sorted(ROOT.glob("docs/images/*.svg")), ids=lambda p: p.name)
def test_a_picture_is_small_and_loads_nothing(picture: Path) -> None:
    text = picture.read_text()
    assert len(text.encode()) < 60_000
    assert not re.search(r"url\((?!#)|@import|@font-face|<image|<script|<!--|href", text)
    hosts = set(re.findall(r"https?://([^/\"&<]+)", text))
    assert hosts <= {"www.w3.org", "127.0.0.1:8080", "127.0.0.1:8081"}, "it names no other host"


def test_there_is_a_picture_of_the_live_view() -> None:
    assert "images/live-http.svg" in read("docs/reading-a-report.md")
    text = read("docs/images/live-http.svg")
    assert all(word in text for word in ("throughput", "p99.9", "distribution", "answers"))


@pytest.mark.parametrize("picture", sorted(ROOT.glob("docs/images/*.png")), ids=lambda p: p.name)
def test_pictures_of_reports_are_small_and_on_the_page_that_explains_them(picture: Path) -> None:
    assert f"images/{picture.name}" in read("docs/reading-a-report.md")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size < 60_000
