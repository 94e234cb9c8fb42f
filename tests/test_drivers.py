"""The driver of the sockets: chosen by a flag, named in the record, never a reason to fail."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from harness import Finished, Server, Trueload, start_server

WITHOUT_IO_URING = Path(__file__).parent / "faults" / "without_io_uring.py"
FEW = ("--requests", "100", "-c", "4", "--json", "-")


def where_io_uring_is_forbidden(
    trueload: Trueload, *args: str, call: str = "setup", error: str = "EPERM"
) -> Finished:
    without = [sys.executable, str(WITHOUT_IO_URING), call, error]
    command = [*without, sys.executable, "-m", "trueload", *args]
    done = subprocess.run(
        command, env=trueload.env(), capture_output=True, text=True, check=False, timeout=60
    )
    return Finished(done.returncode, done.stdout, done.stderr)


def measure(trueload: Trueload, *args: str) -> Any:
    """A record; on a busy machine its verdict may be invalid."""
    done = trueload.run("http", *args, *FEW)
    assert done.code in (0, 4), done
    return done.json()


@pytest.mark.parametrize("asked", ["auto", "io_uring"])
def test_where_io_uring_is_forbidden_epoll_measures_and_the_record_says_so(
    trueload: Trueload, server: Server, asked: str
) -> None:
    done = where_io_uring_is_forbidden(trueload, "http", server.url, "--driver", asked, *FEW)
    assert done.code in (0, 4), done
    record = done.json()
    assert record["counts"]["ok"] == 100
    assert record["plan"]["generate"]["driver"] == asked
    assert record["generator"]["driver"] == "epoll"
    assert record["generator"]["driver_note"] == "io_uring is forbidden here"
    assert ("driver       epoll (io_uring is forbidden here)" in done.err) == (asked == "io_uring")


@pytest.mark.parametrize(
    ("call", "error", "note"),
    [
        ("enter", "EPERM", "io_uring is forbidden here"),
        ("enter", "ENOTSUP", "io_uring: Operation not supported (os error 95)"),
        ("register", "EPERM", "io_uring is forbidden here"),
    ],
)
def test_a_ring_that_may_be_made_but_not_used_is_none(
    trueload: Trueload, server: Server, call: str, error: str, note: str
) -> None:
    words = ("http", server.url, *FEW)
    done = where_io_uring_is_forbidden(trueload, *words, call=call, error=error)
    assert done.code in (0, 4), done
    record = done.json()
    assert record["counts"]["ok"] == 100
    assert record["generator"]["driver"] == "epoll"
    assert record["generator"]["driver_note"] == note


def test_where_io_uring_is_forbidden_the_reference_server_uses_epoll(trueload: Trueload) -> None:
    without = [sys.executable, str(WITHOUT_IO_URING), "setup", "EPERM"]
    command = [*without, sys.executable, "-m", "trueload", "serve"]
    process = subprocess.Popen(
        [*command, "http", "--listen", "127.0.0.1:0", "--driver", "io_uring", "--json", "-"],
        env=trueload.env(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    listening, _, note = (process.stderr.readline() for _ in range(3))
    assert measure(trueload, listening.split()[-1])["counts"]["ok"] == 100
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert note == "note: the driver is epoll (io_uring is forbidden here)\n"
    served = json.loads(out)
    assert (served["driver"], served["driver_note"]) == ("epoll", "io_uring is forbidden here")
    assert served["responses"] == 100


@pytest.mark.parametrize("driver", ["auto", "io_uring", "epoll"])
def test_either_end_takes_any_driver_and_says_which_one_ran(
    trueload: Trueload, driver: str
) -> None:
    server = start_server(trueload, "--driver", driver)
    generator = measure(trueload, server.url, "--driver", driver)["generator"]
    assert generator["driver"] in ({driver} if driver == "epoll" else {"io_uring", "epoll"})
    fell_back = generator["driver"] == "epoll" and driver != "epoll"
    assert fell_back == (generator["driver_note"] is not None)


def test_the_record_says_from_when_on_a_pipeline_was_filled_again(
    trueload: Trueload, server: Server
) -> None:
    for flags, refill in (((), 8), (("--refill", "3"), 3)):
        record = measure(trueload, server.url, "--pipeline", "16", *flags)
        assert record["generator"]["refill"] == refill


def test_the_record_says_how_fast_connections_came_and_what_each_takes(
    trueload: Trueload, server: Server
) -> None:
    flags = ("--requests", "1000", "--connect-rate", "1M/s", "--timeout", "20s", "--json", "-")
    many = trueload.run("http", server.url, "-c", "1000", *flags).json()
    assert many["connections"]["connect_rate_per_s"] > 0
    # A slot alone takes some hundred bytes; the engine's fixed memory is not included.
    assert 100 < many["generator"]["bytes_per_connection"] < 10_000
    few = trueload.run("http", server.url, "-c", "4", *flags).json()
    assert few["generator"]["bytes_per_connection"] is None
    assert few["connections"]["connect_rate_per_s"] > 0


def test_a_refill_beyond_the_pipeline_is_refused(trueload: Trueload) -> None:
    done = trueload.run("http", "http://127.0.0.1:9/", "--refill", "2")
    assert done.code == 2, done
    assert "--refill 2 must be at most --pipeline 1" in done.err
    assert done.err.splitlines()[1].startswith("hint: ")


def test_a_spin_is_no_saturation(trueload: Trueload, server: Server) -> None:
    flags = ("--driver", "epoll", "-c", "1", "-d", "400ms", "--warmup", "0", "--json", "-")
    # Every answer takes 5 ms, so that nearly all of the window is waiting, which spinning fills.
    url = f"{server.url}/wait/5"
    spun = trueload.run("http", url, "--spin", "10ms", *flags).json()["generator"]
    assert spun["spin_ns"] == 10_000_000
    assert spun["spun_s"] > 0
    assert spun["saturation"] < 0.9
    slept = trueload.run("http", url, *flags).json()["generator"]
    assert (slept["spin_ns"], slept["spun_s"]) == (0, 0.0)


def test_answers_that_may_not_wait_for_each_other_do_not(
    trueload: Trueload, server: Server
) -> None:
    flags = ("-c", "64", "-d", "300ms", "--warmup", "0", "--json", "-")
    at_once = trueload.run("http", server.url, "--coalesce", "0", *flags).json()["generator"]
    assert at_once["coalesced_ns"] == 0
    bounded = trueload.run("http", server.url, "--coalesce", "10us", *flags).json()["generator"]
    # Whether the thread is busy enough to coalesce depends on the machine; the bound does not.
    assert bounded["coalesced_ns"] <= 10_000
    few = trueload.run("http", server.url, "-c", "1", *flags[2:]).json()["generator"]
    assert few["coalesced_ns"] == 0, "one answer has no other to wait for"


def test_a_coalescing_that_makes_answers_late_is_refused(trueload: Trueload) -> None:
    done = trueload.run("http", "http://127.0.0.1:9/", "--coalesce", "2ms")
    assert done.code == 2, done
    assert "'2ms' is more than 1ms" in done.err
    assert len(done.err.splitlines()) == 2
