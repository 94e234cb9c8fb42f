"""The command line of a benchmark whose only argument is how many times to run."""

from __future__ import annotations

import argparse


def add_count(parser: argparse.ArgumentParser, name: str, default: int) -> None:
    """Add the positional argument ``count``, an integer of at least 1."""
    help_text = f"how many ({default})"
    parser.add_argument(
        "count", metavar=name, nargs="?", type=_count, default=default, help=help_text
    )


def parse_count(documentation: str | None, name: str, default: int) -> int:
    """Parse a command line whose only argument is the count.

    Ends the process after ``--help``, or with code 2 if the arguments cannot be parsed.
    """
    parser = argparse.ArgumentParser(description=(documentation or "").partition("\n\n")[0])
    add_count(parser, name, default)
    count: int = parser.parse_args().count
    return count


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no count of at least 1")
    return int(text)
