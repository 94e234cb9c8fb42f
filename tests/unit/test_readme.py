"""The README is one screen: short, its figures are those of the pages, its pictures those drawn."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

from tools import peers_picture, twice_picture
from tools.drawing import reworded

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PEERS = ("trueload", "wrk", "h2load", "ab", "oha", "hey")


def svg_text(name: str) -> str:
    """The text of a picture, without its markup, with plain blanks."""
    drawn = (ROOT / "docs" / "images" / f"{name}.svg").read_text()
    drawn = re.sub(r"<style>.*?</style>", "", drawn, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]+>", " ", drawn)).replace("\xa0", " ")


def words_of(picture: str) -> str:
    """The words beside a picture."""
    found = re.search(rf"!\[([^\]]+)\]\(docs/images/{picture}\.svg\)", README)
    assert found is not None
    return found[1]


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_it_begins_with_one_sentence() -> None:
    title, sentence, *_ = README.split("\n\n")
    assert title == "# trueload"
    assert len(re.findall(r"[.!?](?:\s|$)", sentence)) == 1


def test_it_has_eight_bullets_of_at_most_twelve_words() -> None:
    bullets = re.findall(r"^- (.+)$", README, re.MULTILINE)
    assert len(bullets) == 8
    assert all(len(bullet.split()) <= 12 for bullet in bullets), bullets


def test_its_parts_come_in_the_order_of_a_strangers_questions() -> None:
    parts = (
        *("pip install", "make demo", "make test", "images/answers-twice.svg"),
        *("images/cpu-per-request.svg", "\n- ", "<!-- output: first run -->", "| read |"),
    )
    found = [README.find(part) for part in parts]
    assert -1 not in found
    assert found == sorted(found)


def test_the_first_command_is_followed_by_a_heading_and_at_most_ten_lines() -> None:
    shown = re.search(r"<!-- output: first run -->\n```\n(.*?)\n```", README, re.DOTALL)
    assert shown is not None
    command, heading, *lines = [line for line in shown[1].splitlines() if line]
    assert command.startswith("$ trueload http http://127.0.0.1:8080/")
    assert heading.startswith("http://127.0.0.1:8080/")
    assert "verdict      valid" in lines
    assert len(lines) <= 10


@pytest.mark.parametrize("name", PEERS)
def test_each_bar_has_the_figure_of_the_page_on_performance(name: str) -> None:
    costs = {cost.name: cost for cost in peers_picture.costs(peers_picture.PAGE.read_text())}
    figure = f"{costs[name].median_us:.3g} µs"
    assert f"{name} {figure}" in words_of("cpu-per-request")
    assert name in svg_text("cpu-per-request")
    assert figure in svg_text("cpu-per-request")


def test_the_words_beside_the_bars_are_those_that_the_tool_writes() -> None:
    found = peers_picture.costs(peers_picture.PAGE.read_text())
    assert words_of("cpu-per-request") == peers_picture.words(found)


def test_the_bars_turn_dark_with_the_screen() -> None:
    drawn = (ROOT / "docs" / "images" / "cpu-per-request.svg").read_text()
    assert "@media (prefers-color-scheme: dark)" in drawn


def test_wrk_counts_twice_what_the_server_received_and_trueload_calls_it_invalid() -> None:
    shown = svg_text("answers-twice")
    counted = re.search(r"(\d+) requests in", shown)
    received = re.search(r"the server received ([\d,]+) requests", shown)
    assert counted is not None
    assert received is not None
    ratio = int(counted[1]) / int(received[1].replace(",", ""))
    assert ratio == pytest.approx(2, rel=0.01)
    assert all(word in shown for word in ("invalid", "unsolicited:"))
    assert not any(f"{name}:" in shown for name in twice_picture.DISTURBED)
    assert received[1] in words_of("answers-twice")


def test_new_words_of_a_picture_replace_the_old_and_no_others() -> None:
    page = "![a](x.svg) and ![b](y.svg)"
    assert reworded(page, "y.svg", "c \\1") == "![a](x.svg) and ![c \\1](y.svg)"
