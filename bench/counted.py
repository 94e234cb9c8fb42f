"""The argument of a benchmark that says how many times to run."""

from __future__ import annotations

import argparse


def add_count(parser: argparse.ArgumentParser, name: str, default: int) -> None:
    """Add the positional argument ``count``, an integer of at least 1."""
    help_text = f"how many ({default})"
    parser.add_argument(
        "count", metavar=name, nargs="?", type=_count, default=default, help=help_text
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is no count of at least 1")
    return int(text)
