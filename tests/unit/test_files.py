"""Whether a server can hold so many connections, before anything is started."""

from __future__ import annotations

import resource

import pytest
from trueload.errors import UserError
from trueload.runner.files import check_files

CASES = [
    (64, 1024, ""),
    (924, 1024, ""),
    (
        925,
        1024,
        "925 connections need 1,025 open files of each server, and the hard limit is 1,024",
    ),
    (10_064, 20_000, ""),
    (10_064, 4096, "10,064 connections need 10,164 open files"),
    (1_000_000, resource.RLIM_INFINITY, ""),
]


@pytest.mark.parametrize(("connections", "hard", "error"), CASES)
def test_too_few_files_are_told_with_what_to_set(connections: int, hard: int, error: str) -> None:
    if not error:
        check_files(connections, hard)
        return
    with pytest.raises(UserError) as caught:
        check_files(connections, hard)
    assert error in caught.value.message
    assert f"ulimit -Hn {connections + 100}" in caught.value.hint
