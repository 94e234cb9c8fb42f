"""The manual page has what `--help` has, and none of its text can act as a man request."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from trueload.cli.app import build_command
from trueload.cli.help_groups import GROUPS

from tools import man_page

REQUESTS = {".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".nh", ".ad"}
# Back from man's escapes to plain text.
PLAIN = {r"\-": "-", r"\(aq": "'", r"\(ha": "^", r"\(ti": "~", r"\(ga": "`", r"\&": "", r"\e": "\\"}


@cache
def page() -> str:
    text = re.sub(r"\\f[BR]", "", man_page.page())
    return re.sub(r"\\(?:\(..|.)", lambda found: PLAIN[found[0]], text)


def helps(node: Any, name: str = "trueload", above: Any = None) -> Iterator[tuple[str, str]]:
    """Yield the ``--help`` of each command that is no group."""
    context = node.make_context(name, [], parent=above, resilient_parsing=True)
    verbs = getattr(node, "commands", None)
    if verbs is None:
        yield context.command_path, node.get_help(context)
    else:
        for verb, child in verbs.items():
            yield from helps(child, verb, context)


HELPS = dict(helps(build_command()))


@pytest.mark.parametrize("name", HELPS)
def test_every_word_of_a_help_is_in_the_part_of_its_command(name: str) -> None:
    titles = "|".join(map(re.escape, ("Arguments", "Options", *GROUPS)))
    help_text = re.sub(rf"^(Usage: |({titles}):$)", "", HELPS[name], flags=re.MULTILINE)
    (part,) = (each for each in page().split("\n.SS ") if f"{each} ".startswith(f"{name} "))
    part = re.sub(rf"^(\.(PP|TP|SH .*\n.*)|{titles})$", "", part, flags=re.MULTILINE)
    # Only line breaks may differ.
    assert "".join(part.split()) == "".join(help_text.split())


def test_only_known_requests_begin_a_line() -> None:
    lines = man_page.page().splitlines()
    assert {line.split()[0] for line in lines if line.startswith((".", "'"))} <= REQUESTS


def test_text_stays_text() -> None:
    assert man_page._escaped(".TH 'a-b'") == r"\&.TH \(aqa\-b\(aq"
    assert man_page._escaped("a\\b") == r"a\eb"
