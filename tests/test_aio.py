"""``trueload.aio``: the same measurements, for coroutines."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path
from typing import Any

import pytest
import trueload as tl
from harness import Server
from trueload.store.runs import Store
from waiting import wait_until

pytestmark = pytest.mark.engine


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "store.sqlite"
    monkeypatch.setenv("TRUELOAD_STORE", str(path))
    return path


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while received := await reader.read(65_536):
        writer.write(received)
        await writer.drain()
    writer.close()


def engines() -> set[int]:
    """The engines that this process has started and that still run."""
    tasks = Path("/proc/self/task").glob("*/children")
    started = {int(child) for task in tasks for child in task.read_text().split()}
    return {pid for pid in started if "trueload-engine" in command_of(pid)}


def command_of(pid: int) -> str:
    """The command line of a process; empty if it has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def test_a_server_in_the_same_loop_can_be_measured() -> None:
    async def measure() -> tl.Result:
        async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
            host, port = server.sockets[0].getsockname()
            return await tl.aio.tcp(f"{host}:{port}", connections=2, requests=200)

    result = asyncio.run(measure())
    assert result.ok == 200
    assert result.errors == 0
    again = tl.load("last")
    assert isinstance(again, tl.Result)
    assert again.records == result.records


def test_several_are_measured_at_once_each_with_its_own_result(server: Server) -> None:
    async def measure() -> list[tl.Result]:
        asked = [tl.aio.http(server.url, requests=count, connections=2) for count in (50, 60)]
        return await asyncio.gather(*asked)

    assert [result.ok for result in asyncio.run(measure())] == [50, 60]


def test_a_mistake_is_raised_where_it_is_awaited(refusing_port: int) -> None:
    with pytest.raises(tl.UserError, match="duration= cannot be -1"):
        asyncio.run(tl.aio.http("http://127.0.0.1:1/", duration=-1))
    with pytest.raises(tl.NothingMeasuredError, match=r"connect\.refused"):
        asyncio.run(tl.aio.udp(f"127.0.0.1:{refusing_port}", connections=1, requests=1))


@pytest.mark.parametrize("asked", ["http", "search", "ab"])
def test_a_cancelled_task_ends_its_engine_and_saves_what_was_measured(
    server: Server, own_store: Path, asked: str
) -> None:
    before = engines()

    def has_started() -> bool:
        return own_store.exists() and bool(engines() - before)

    async def measure() -> None:
        task: asyncio.Task[object]
        if asked == "ab":
            task = asyncio.create_task(tl.aio.ab(server.url, server.url, duration=60))
        else:
            limit = "p99<10s" if asked == "search" else None
            task = asyncio.create_task(tl.aio.http(server.url, duration=60, limit=limit))
        await asyncio.to_thread(wait_until, has_started, "an engine is started")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert engines() == before

    asyncio.run(measure())
    with Store.open(own_store) as store:
        (run,) = store.runs()
        assert run.state == "interrupted"


def test_a_task_that_is_cancelled_twice_leaves_nothing_to_complain_of(server: Server) -> None:
    complaints: list[dict[str, Any]] = []

    def has_ended() -> bool:
        return not any(each.name.startswith("trueload_") for each in threading.enumerate())

    async def measure() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, what: complaints.append(what))
        task = asyncio.create_task(tl.aio.http(server.url, duration=60, no_save=True))
        for _ in "two":
            await asyncio.sleep(0)
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.to_thread(wait_until, has_ended, "the measuring thread ends")

    asyncio.run(measure())
    gc.collect()
    assert complaints == []


def test_a_time_limit_of_the_caller_ends_the_engine(server: Server) -> None:
    before = engines()

    async def measure() -> None:
        async with asyncio.timeout(1):
            await tl.aio.http(server.url, duration=60, no_save=True)

    with pytest.raises(TimeoutError):
        asyncio.run(measure())
    assert engines() == before


def test_the_modules_name_is_enough() -> None:
    from trueload import aio

    assert tl.aio is aio
    assert set(aio.__all__) < set(tl.__all__)
