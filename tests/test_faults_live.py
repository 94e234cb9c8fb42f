"""Faults that need a real kernel: ports where nobody listens, limits, signals, servers that die.

Everything goes through the command line, as a user meets it. Faults that the table describes are in
`test_faults_cli.py`.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import needing
import psutil
import pytest
from faults.cases import Script, Step
from faults.engine_lines import Engine, Plan, by_requests
from faults.laws import START_S_MOST, Seen, assert_exit, assert_laws, of_record
from faults.peer import Peer
from harness import COMMAND_TIMEOUT_S, ROOT, Finished, Trueload
from waiting import be_late, has_ended, wait_until

from tools.needs import unshare

pytestmark = pytest.mark.engine

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ANSWERS: Script = (Step("read"), Step("send", data=OK), Step("again"))
FIFTY = ("--requests", "50", "--timeout", "5s", "--json", "-", "--no-save")
IN_NAMESPACE = ROOT / "tests" / "faults" / "in_namespace.py"
WAIT_S = 60.0
SLACK_S = 1.5
"""A loaded machine's share of a bound that is for hanging, not for speed."""


def seen_in(finished: Finished) -> tuple[Seen, Any]:
    """Parse a command's result: the summary and the whole record."""
    assert "Traceback" not in finished.err, finished.err
    record = json.loads(finished.out)
    return of_record(record, finished.code), record


def lawful_run(trueload: Trueload, *words: str) -> tuple[Seen, Any]:
    """Run the command, and check the laws that need no counting server."""
    seen, record = seen_in(trueload.run(*words, timeout_s=5.0 + START_S_MOST))
    assert_laws(seen, requests_at_peer=None)
    return seen, record


def run_with(trueload: Trueload, prefix: Sequence[str], *words: str) -> Finished:
    """Run the command through another one: `prlimit`, `unshare`."""
    command = [*prefix, sys.executable, "-m", "trueload", *words]
    ran = subprocess.run(
        command,
        env=trueload.env(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
    )
    return Finished(ran.returncode, ran.stdout, ran.stderr)


def failing(record: Any) -> set[str]:
    """The names of the checks that fail."""
    return {check["name"] for check in record["checks"] if check["status"] == "fail"}


def child_engine(process: subprocess.Popen[str]) -> int:
    """The pid of the engine that a running command has started."""
    found: list[int] = []

    def look() -> bool:
        children = psutil.Process(process.pid).children(recursive=True)
        found[:] = [child.pid for child in children if "trueload-engine" in child.name()]
        return bool(found)

    wait_until(look, "the command starts its engine")
    return found[0]


def finish(process: subprocess.Popen[str], bound_s: float = WAIT_S) -> Finished:
    """Wait for a running command to end."""
    out, err = process.communicate(timeout=bound_s)
    return Finished(process.returncode, out, err)


def unshare_network() -> tuple[str, ...]:
    """Return the command that runs another in a network of its own; skip if there can be none."""
    needing.need("util-linux", "iproute2")
    return unshare("--net") or needing.skip("namespaces")


# --- answers


@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
def test_an_answer_that_is_http_but_malformed_is_told_by_what_is_wrong_with_it(
    trueload: Trueload, driver: str
) -> None:
    twice = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok"
    script: Script = (Step("read"), Step("send", data=twice), Step("again"))
    with Peer((script,)) as peer:
        seen, record = lawful_run(trueload, "http", peer.url, *FIFTY, "--driver", driver)
    assert (seen.exit_code, dict(seen.failed)) == (4, {"framing": 50})
    assert record["connections"]["reasons"] == {"framing": "two Content-Lengths that differ"}
    assert not any("https://" in check["why"] for check in record["checks"])


# --- connect


def test_a_port_where_nobody_listens_ends_in_3_and_names_it(
    trueload: Trueload, refusing_port: int
) -> None:
    seen, record = lawful_run(trueload, "http", f"http://127.0.0.1:{refusing_port}/", *FIFTY)
    assert (seen.exit_code, dict(seen.failed)) == (3, {"connect.refused": 50})
    assert record["connections"]["established"] == 0


def test_a_name_that_does_not_resolve_ends_in_3_as_dns(trueload: Trueload) -> None:
    seen, _ = lawful_run(trueload, "http", "http://nothing.invalid:8080/", *FIFTY)
    assert (seen.exit_code, dict(seen.failed)) == (3, {"dns": 50})


@contextmanager
def full_backlog() -> Iterator[int]:
    """A port whose accept queue is full for good, so that the kernel drops further SYNs."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.socket())
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port: int = listening.getsockname()[1]
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        # A further attempt that stays pending shows that the queue is full.
        with socket.socket() as probe:
            probe.settimeout(0.1)
            with pytest.raises(TimeoutError):
                probe.connect(("127.0.0.1", port))
        yield port


def test_a_full_backlog_ends_in_3_as_a_connect_timeout(trueload: Trueload) -> None:
    with full_backlog() as port:
        words = (*FIFTY, "--timeout", "200ms")
        seen, _ = lawful_run(trueload, "http", f"http://127.0.0.1:{port}/", *words)
    assert (seen.exit_code, set(seen.failed)) == (3, {"connect.timeout"})


def test_an_interruption_while_connecting_is_not_laid_at_the_servers_door(
    trueload: Trueload,
) -> None:
    with full_backlog() as port:
        before = attempts_at(port)
        process = trueload.start("http", f"http://127.0.0.1:{port}/", "-c", "1", "--timeout", "60s")
        wait_until(lambda: attempts_at(port) != before, "a connection is tried")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=COMMAND_TIMEOUT_S)
    assert (process.returncode, err) == (130, ""), out
    assert "partial      interrupted" in out


def attempts_at(port: int) -> set[str]:
    """The local addresses of connections to a port whose SYN has no answer."""
    lines = map(str.split, Path("/proc/net/tcp").read_text().splitlines()[1:])
    return {line[1] for line in lines if line[2].endswith(f":{port:04X}") and line[3] == "02"}


@pytest.mark.parametrize("kind", ["unreachable", "prohibit"])
def test_an_address_without_a_route_ends_in_3_as_unreachable(trueload: Trueload, kind: str) -> None:
    set_up = f'ip link set lo up && ip route add {kind} 192.0.2.0/24 && exec "$@"'
    prefix = [*unshare_network(), "sh", "-c", set_up, "sh"]
    finished = run_with(trueload, prefix, "http", "http://192.0.2.1:8080/", *FIFTY)
    seen, _ = seen_in(finished)
    assert (seen.exit_code, dict(seen.failed)) == (3, {"connect.unreachable": 50})


def run_with_ports(trueload: Trueload, ports: int, taken: int, *words: str) -> Finished:
    """Run the command against a peer, with `ports` local ports of which `taken` are in use."""
    inner = [sys.executable, "-m", "trueload", *words]
    ran = subprocess.run(
        [*unshare_network(), sys.executable, str(IN_NAMESPACE), str(ports), str(taken), *inner],
        env=trueload.env(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=COMMAND_TIMEOUT_S,
    )
    return Finished(ran.returncode, ran.stdout, ran.stderr)


# Otherwise more ports would be available for a server on this machine.
ONE_ADDRESS = ("--local-address", "127.0.0.1")


@pytest.mark.parametrize("driver", ["epoll", "io_uring"])
def test_ports_that_others_hold_make_a_run_invalid_and_the_generator_limited(
    trueload: Trueload, driver: str
) -> None:
    words = (
        "http",
        "{url}",
        "-c",
        "10",
        "--warmup",
        "0s",
        "--driver",
        driver,
        *FIFTY,
        *ONE_ADDRESS,
    )
    seen, record = seen_in(run_with_ports(trueload, 10, 6, *words))
    assert seen.exit_code == 4
    assert set(seen.failed) == {"local.ports"}
    assert "generator-limit" in failing(record)
    assert record["connections"]["established"] == 4


def test_an_address_without_a_refusing_port_is_still_one_of_ours(trueload: Trueload) -> None:
    words = ("http", "{url}", "-c", "4", "--warmup", "0s", *FIFTY, *ONE_ADDRESS)
    seen, record = seen_in(run_with_ports(trueload, 10, 10, *words))
    assert seen.exit_code in (3, 4)
    assert set(seen.failed) == {"local.ports"}
    assert record["connections"]["established"] == 0


def assert_refused(finished: Finished, *texts: str) -> None:
    """Check for one line that names what is lacking, one hint, and nothing on stdout."""
    assert (finished.code, finished.out) == (2, ""), finished
    lines = finished.err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["error", "hint"], finished
    for text in texts:
        assert text in finished.err, finished


def test_too_few_local_ports_are_told_before_anything_is_sent(trueload: Trueload) -> None:
    words = ("http", "{url}", "-c", "5", *FIFTY, *ONE_ADDRESS)
    finished = run_with_ports(trueload, 4, 0, *words)
    assert_refused(finished, "5 connections from one local address", "there are 4", "--local-addr")


def test_each_local_address_has_all_the_ports(trueload: Trueload) -> None:
    addresses = ("--local-address", "127.0.0.2", "--local-address", "127.0.0.3")
    words = ("http", "{url}", "-c", "8", "--warmup", "0s", *addresses, *FIFTY)
    seen, record = seen_in(run_with_ports(trueload, 4, 0, *words))
    assert (seen.ok, record["connections"]["established"]) == (50, 8)


def test_without_any_named_as_many_addresses_are_taken_as_the_ports_need(
    trueload: Trueload,
) -> None:
    words = ("http", "{url}", "-c", "9", "--warmup", "0s", *FIFTY)
    seen, record = seen_in(run_with_ports(trueload, 4, 0, *words))
    assert (seen.ok, record["connections"]["established"]) == (50, 9)
    assert len(record["plan"]["generate"]["local_addresses"]) > 2


@pytest.mark.needs("util-linux")
def test_too_few_descriptors_are_told_before_anything_is_sent(trueload: Trueload) -> None:
    with Peer((ANSWERS,)) as peer:
        prefix = ["prlimit", "--nofile=40:40"]
        words = ("http", peer.url, "--driver", "epoll", *FIFTY)
        finished = run_with(trueload, prefix, *words)
        assert_refused(finished, "64 connections need", "the limit is 40", "ulimit -n")
        assert (peer.accepted, peer.requests) == (0, 0)


@pytest.mark.needs("util-linux")
def test_a_soft_limit_of_descriptors_is_raised(trueload: Trueload) -> None:
    with Peer((ANSWERS,)) as peer:
        words = ("http", peer.url, "--driver", "epoll", *FIFTY)
        finished = run_with(trueload, ["prlimit", "--nofile=40:400"], *words)
        seen, _ = seen_in(finished)
        assert seen.ok == 50


@pytest.mark.needs("util-linux")
def test_a_search_that_comes_to_the_limit_of_descriptors_says_so(trueload: Trueload) -> None:
    with Peer((ANSWERS,)) as peer:
        words = ("--limit", "p99<10s", "--search", "connections", "--driver", "epoll", "-c", "16")
        flags = ("-d", "100ms", "--warmup", "0", "--json", "-", "--no-save")
        finished = run_with(
            trueload, ["prlimit", "--nofile=40:40"], "http", peer.url, *words, *flags
        )
    found = json.loads(finished.out)
    refused = [step for step in found["steps"] if step["connections"]["established"] == 0]
    assert refused, [step["connections"] for step in found["steps"]]
    for step in refused:
        assert set(step["counts"]["failed"]) == {"local.fds"}
        assert step["connections"]["requested"] > 16, "the first step has what it needs"


def test_descriptors_that_run_out_in_mid_run_fail_the_requests_that_needed_them(
    engine_path: Path,
) -> None:
    with Peer((ANSWERS,)) as peer, Engine(engine_path) as engine:
        plan = Plan(address=f"{peer.host}:{peer.port}", connections=2, close=True)
        engine.wait_for("hello")
        engine.send(plan.line(driver="epoll"))
        engine.wait_for("ready")
        resource.prlimit(engine.process.pid, resource.RLIMIT_NOFILE, (1, 1))
        engine.send(by_requests(6))
        counts = engine.wait_for("phase_done")["measurement"]["counts"]
    # Each open connection is used once more; every other request needs a new connection.
    assert (counts["ok"], counts["failed"]) == (2, {"local.fds": 4})


def test_a_server_that_accepts_late_costs_no_request(trueload: Trueload) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(64)
        port = listening.getsockname()[1]
        url = f"http://127.0.0.1:{port}/"
        process = trueload.start("http", url, "-c", "4", *FIFTY)
        # The kernel completes the connections; start to accept only once one is waiting.
        assert select.select([listening], [], [], WAIT_S)[0]
        stop = threading.Event()
        acceptor = threading.Thread(target=_accept_and_answer, args=(listening, stop))
        acceptor.start()
        finished = finish(process)
        stop.set()
        acceptor.join(WAIT_S)
    seen, _ = seen_in(finished)
    assert seen.ok == 50
    assert_exit(seen, (0,))


def _accept_and_answer(listening: socket.socket, stop: threading.Event) -> None:
    listening.settimeout(0.05)
    threads = []
    while not stop.is_set():
        try:
            sock, _ = listening.accept()
        except TimeoutError:
            continue
        threads.append(threading.Thread(target=_answer, args=(sock,)))
        threads[-1].start()
    for thread in threads:
        thread.join(WAIT_S)


def _answer(sock: socket.socket) -> None:
    with sock:
        sock.settimeout(WAIT_S)
        while sock.recv(65536):
            sock.sendall(OK)


@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", "ipv4"), ("::1", "ipv6")])
def test_the_family_that_answers_is_recorded(trueload: Trueload, host: str, family: str) -> None:
    with Peer((ANSWERS,), host=host) as peer:
        seen, record = lawful_run(trueload, "http", peer.url, *FIFTY)
    assert_exit(seen, (0,))
    assert record["connections"]["family"] == family


@pytest.mark.parametrize(("host", "family"), [("127.0.0.1", "ipv4"), ("::1", "ipv6")])
def test_of_two_families_of_one_name_the_one_that_listens_is_used(
    trueload: Trueload, host: str, family: str
) -> None:
    known = {info[4][0] for info in socket.getaddrinfo("localhost", 80)}
    if known < {"127.0.0.1", "::1"}:
        pytest.skip(f"localhost is only {', '.join(map(str, known))} on this machine")
    with Peer((ANSWERS,), host=host) as peer:
        url = f"http://localhost:{peer.port}/"
        seen, record = lawful_run(trueload, "http", url, *FIFTY)
    assert_exit(seen, (0,))
    assert record["connections"]["family"] == family
    assert record["connections"]["reconnects"] == 0


# --- servers that stop


def test_a_server_that_is_restarted_in_mid_run_makes_it_invalid_with_the_outage(
    trueload: Trueload,
) -> None:
    with Peer((ANSWERS,)) as first:
        words = ["http", first.url, "-c", "4", "-d", "5s", "--warmup", "0s", "--timeout", "500ms"]
        process = trueload.start(*words, "--json", "-", "--no-save")
        wait_until(lambda: first.requests > 100, "the first server is under load")
        port = first.port
    # The time that the server is away, in which reconnecting is refused.
    be_late(0.3)
    with Peer((ANSWERS,), port=port) as second:
        finished = finish(process)
        assert second.requests > 100
    seen, record = seen_in(finished)
    assert seen.exit_code == 4
    assert seen.failed["connect.refused"] > 0
    assert seen.reconnects >= 4
    assert record["connections"]["outages"] == 4
    assert record["connections"]["outage_ns"] > 200_000_000


def test_a_server_that_dies_in_mid_run_is_reported_in_time(trueload: Trueload) -> None:
    with Peer((ANSWERS,)) as peer:
        words = ["http", peer.url, "-c", "4", "-d", "3s", "--warmup", "0s", "--timeout", "500ms"]
        process = trueload.start(*words, "--json", "-", "--no-save")
        wait_until(lambda: peer.requests > 100, "the server is under load")
    # Law 3: connect, duration, timeout and 2 s.
    seen, _ = seen_in(finish(process, 0.5 + 3 + 0.5 + 2 + START_S_MOST))
    assert seen.exit_code == 4
    assert seen.failed["connect.refused"] > 0
    assert_laws(seen, requests_at_peer=None)


def test_a_server_that_is_stopped_by_a_signal_times_out_each_request_once(
    trueload: Trueload, engine_path: Path
) -> None:
    with Engine(engine_path) as server:
        server.wait_for("hello")
        server.send({"type": "serve", "protocol": 1, "listen": "127.0.0.1:0"} | ONE_THREAD)
        address = server.wait_for("ready")["listen"]
        os.kill(server.process.pid, signal.SIGSTOP)
        words = ["http", f"http://{address}/", "-c", "10", "--requests", "10"]
        seen, _ = lawful_run(trueload, *words, "--timeout", "200ms", "--json", "-", "--no-save")
        server.process.kill()
    assert (seen.exit_code, dict(seen.failed)) == (4, {"timeout.first_byte": 10})


ONE_THREAD: dict[str, object] = {"threads": 1, "cpus": []}


# --- the engine's own surroundings


def test_sigterm_to_the_engine_ends_it_within_a_second_and_the_record_is_partial(
    trueload: Trueload,
) -> None:
    with Peer((ANSWERS,)) as peer:
        words = ["http", peer.url, "-c", "4", "-d", "30s", "--warmup", "0s"]
        process = trueload.start(*words, "--json", "-", "--no-save")
        engine = child_engine(process)
        wait_until(lambda: peer.requests > 100, "the server is under load")
        os.kill(engine, signal.SIGTERM)
        wait_until(lambda: has_ended(engine), "the engine ends", 1.0 + SLACK_S)
        seen, record = seen_in(finish(process))
        peer.settle()
    assert (seen.exit_code, record["partial"], record["verdict"]) == (4, True, "invalid")
    assert seen.ok > 0
    assert "audit" in failing(record)
    assert_laws(seen, requests_at_peer=peer.requests)


def test_an_engine_that_is_killed_leaves_a_partial_record_of_its_last_ticks(
    trueload: Trueload,
) -> None:
    with Peer((ANSWERS,)) as peer:
        # Four ticks come in the time of 100 requests.
        words = ["http", peer.url, "-c", "4", "-d", "30s", "--warmup", "0s", "--rate", "100/s"]
        process = trueload.start(*words, "--json", "-", "--no-save")
        engine = child_engine(process)
        wait_until(lambda: peer.requests > 100, "the server is under load")
        os.kill(engine, signal.SIGKILL)
        finished = finish(process)
    record = json.loads(finished.out)
    assert (finished.code, record["partial"], record["verdict"]) == (4, True, "invalid")
    assert record["counts"]["ok"] > 0
    assert "perhaps from the kernel, because memory ran out" in record["trouble"]["what"]


def test_interrupting_the_command_leaves_no_engine_behind(trueload: Trueload) -> None:
    with Peer((ANSWERS,)) as peer:
        process = trueload.start("http", peer.url, "-c", "4", "-d", "30s", "--no-save")
        engine = child_engine(process)
        wait_until(lambda: peer.requests > 100, "the server is under load")
        process.send_signal(signal.SIGINT)
        assert finish(process).code == 130
        wait_until(lambda: has_ended(engine), "the engine ends")


def test_killing_the_command_leaves_no_engine_behind(trueload: Trueload) -> None:
    with Peer((ANSWERS,)) as peer:
        process = trueload.start("http", peer.url, "-c", "4", "-d", "30s", "--no-save")
        engine = child_engine(process)
        wait_until(lambda: peer.requests > 100, "the server is under load")
        process.kill()
        process.wait()
        wait_until(lambda: has_ended(engine), "the engine ends")
