"""The command line of a benchmark that is told nothing but how often."""

from __future__ import annotations

import argparse


def add_count(parser: argparse.ArgumentParser, name: str, default: int) -> None:
    """The one argument, of at least 1: what is counted, as ``count``."""
    help_text = f"how many ({default})"
    parser.add_argument(
        "count", metavar=name, nargs="?", type=_count, default=default, help=help_text
    )


def parse_count(documentation: str | None, name: str, default: int) -> int:
    """The argument of a command line that has no other; ends the process for ``--help``, and with
    2 for what cannot be read."""
    parser = argparse.ArgumentParser(description=(documentation or "").partition("\n\n")[0])
    add_count(parser, name, default)
    count: int = parser.parse_args().count
    return count


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no count of at least 1")
    return int(text)
