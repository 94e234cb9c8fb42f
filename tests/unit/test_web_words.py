"""``--web`` with and without its port, wherever it stands in a command line."""

from __future__ import annotations

import pytest
from trueload.cli.first_words import meant, with_port

URL = "http://127.0.0.1:9/"


@pytest.mark.parametrize(
    ("words", "meaning"),
    [
        ("http --web URL", "http --web=0 URL"),
        ("http URL --web", "http URL --web=0"),
        ("http URL --web 8088", "http URL --web=8088"),
        ("http URL --web=8088 -c 4", "http URL --web=8088 -c 4"),
        ("http URL --web -c 4", "http URL --web=0 -c 4"),
        ("http URL --web -1", "http URL --web=-1"),
        ("http URL --web x", "http URL --web=0 x"),
        ("suite run --web quick", "suite run --web=0 quick"),
        ("http URL -- --web", "http URL -- --web"),
        ("http URL", "http URL"),
    ],
)
def test_a_port_is_a_number_and_all_else_is_another_word(words: str, meaning: str) -> None:
    assert with_port(words.split()) == meaning.split()


def test_it_may_stand_before_a_url_without_a_command() -> None:
    assert meant([URL, "--web"], ["http"]) == ["http", URL, "--web=0"]
    assert meant(["--web", URL], ["http"]) == ["http", "--web=0", URL]
