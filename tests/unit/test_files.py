"""Whether a server can hold this many connections, checked before anything is started."""

from __future__ import annotations

import os
import resource
import socket

import pytest
from trueload.errors import UserError
from trueload.runner.files import check_files
from trueload.trial.server_files import make_note, reached_limit

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


NOTES = [
    ({7: 1024}, 924, None),
    ({7: 1024}, 925, "the server (process 7) may open 1,024 files, too few for 925 connections"),
    ({7: 1024, 9: 1024}, 1900, None),
    ({7: 1024, 9: 1024}, 2000, "(process 7 and 1 more) may open 2,048 files"),
    ({}, 10_000, None),
]


@pytest.mark.parametrize(("limits", "connections", "note"), NOTES)
def test_a_found_server_with_too_few_files_is_named(
    limits: dict[int, int], connections: int, note: str | None
) -> None:
    found = make_note(limits, connections)
    assert (found is None) == (note is None), found
    if note is not None:
        assert found is not None
        assert note in found
        assert f"ulimit -n {connections + 100}`" in found


def test_a_found_server_with_a_ring_may_need_no_files() -> None:
    found = make_note({7: 1024}, 925, has_ring=True)
    assert found is not None
    assert "too few for 925 connections, unless it keeps them in io_uring's table: start" in found


def test_a_server_that_has_all_its_files_open_is_found_out() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert reached_limit((address,)) is None
        full = len(os.listdir("/proc/self/fd")) + 5
        resource.setrlimit(resource.RLIMIT_NOFILE, (full, hard))
        try:
            assert reached_limit((address,)) == full
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert reached_limit((address,)) is None, "nobody listens"
    assert reached_limit(("192.0.2.1:80",)) is None, "it is elsewhere"


@pytest.mark.parametrize(("connections", "hard", "error"), CASES)
def test_too_few_files_are_told_with_what_to_set(connections: int, hard: int, error: str) -> None:
    if not error:
        check_files(connections, hard)
        return
    with pytest.raises(UserError) as caught:
        check_files(connections, hard)
    assert error in caught.value.message
    assert f"ulimit -Hn {connections + 100}" in caught.value.hint
