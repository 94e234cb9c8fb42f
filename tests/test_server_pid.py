"""A proxy in front of the server: which process was measured, which work behind it.

It also tests how the user names another process.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from harness import Server, Trueload

pytestmark = pytest.mark.engine

# A relay: opens one connection to the server behind for each client, and forwards both ways.
RELAY = """
import asyncio, sys

async def relay(reader, writer):
    its_reader, its_writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))

    async def pass_on(source, sink):
        while data := await source.read(65536):
            sink.write(data)
        sink.close()

    await asyncio.gather(pass_on(reader, its_writer), pass_on(its_reader, writer))

async def main():
    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


@contextmanager
def relay_to(port: int) -> Iterator[tuple[int, str]]:
    """Run the relay; yields its process id and its URL."""
    command = [sys.executable, "-c", RELAY, str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, f"http://127.0.0.1:{int(process.stdout.readline())}/"
        finally:
            process.kill()


def measure(trueload: Trueload, url: str, *flags: str) -> Any:
    """Run, and again if the machine was too busy to look at the server in time."""
    load = ("-c", "4", "-d", "300ms", "--warmup", "100ms", "--no-save", "--json", "-")
    for _ in range(5):
        record = trueload.run("http", url, *load, *flags).json()
        if record["server"] is not None:
            break
    return record


def test_who_works_behind_a_proxy_is_in_the_record(trueload: Trueload, server: Server) -> None:
    with relay_to(server.port) as (proxy_pid, url):
        record = measure(trueload, url)
    measured = record["server"]
    assert (measured["source"], measured["pids"]) == ("found", [proxy_pid])
    assert measured["name"].startswith("python")
    (behind,) = (each for each in measured["backends"] if each["cpu_s"] > 0)
    assert behind["name"] == "trueload-engine"
    (check,) = (each for each in record["checks"] if each["name"] == "backends")
    assert f"pid {behind['pid']}" in check["why"], check


def test_the_process_that_the_user_names_is_measured(trueload: Trueload, server: Server) -> None:
    with relay_to(server.port) as (_, url):
        behind = measure(trueload, url)["server"]["backends"][0]["pid"]
        record = measure(trueload, url, "--server-pid", str(behind))
    measured = record["server"]
    assert (measured["source"], measured["name"]) == ("named", "trueload-engine")
    assert behind in measured["pids"]
    assert measured["backends"] == []
    assert measured["cpu_s"] > 0


def test_a_server_that_works_itself_has_nobody_behind_it(
    trueload: Trueload, server: Server
) -> None:
    record = measure(trueload, server.url)
    assert record["server"]["backends"] == []


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (("--server-pid", "4194303"), "there is no such process"),
        (("--server-pid", "1", "--server-place", "local"), "keep one of them"),
        (("--server-pid", "nginx"), "--server-pid"),
    ],
)
def test_a_process_that_cannot_be_measured_is_refused(
    trueload: Trueload, flags: tuple[str, ...], why: str
) -> None:
    done = trueload.run("http", "http://127.0.0.1:9/", *flags)
    assert done.code == 2, done
    assert why in done.err
