"""Copies to hosts: what is shown of them, how they end, and log-ins that are tried again."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness import put_script
from trueload.errors import UserError
from trueload.places.copying import CalledOffError, Copying, run_fed
from trueload.places.open import prepare
from trueload.places.program import read_program
from trueload.places.ssh import SshPlace, logins
from trueload.places.ssh.connection import DroppedError

WAIT_S = 30.0


@pytest.mark.parametrize(
    ("why", "hosts", "sent", "line"),
    [
        ("nothing is copied", 0, 0, None),
        ("one host", 1, 25, "copying to 1 host, 25 %"),
        ("many", 60, 2_400, "copying to 60 hosts, 40 %"),
        ("all is there", 2, 200, None),
    ],
)
def test_what_is_shown_of_copies(why: str, hosts: int, sent: int, line: str | None) -> None:
    copying = Copying()
    for _ in range(hosts):
        copying.begin(100)
    copying.sent(sent)
    assert copying.line() == line, why


def test_a_process_gets_all_bytes_and_its_words_come_back() -> None:
    data = bytes(range(256)) * 4_096  # more than a pipe holds
    copying = Copying()
    copying.begin(len(data))
    argv = ["sh", "-c", "cksum; echo oops >&2; exit 3"]
    ended = run_fed(argv, data, copying, timeout_s=WAIT_S)
    assert (ended.code, ended.out.split()[1], ended.err) == (3, str(len(data)), "oops\n")
    assert copying.line() is None


def test_a_process_that_reads_nothing_ends_with_its_own_code() -> None:
    copying = Copying()
    copying.begin(2**20)
    assert run_fed(["sh", "-c", "exit 5"], bytes(2**20), copying, timeout_s=WAIT_S).code == 5
    assert copying.line() is None, "the copy is not under way any more"


def test_a_process_that_takes_too_long_is_ended() -> None:
    assert run_fed(["sleep", "60"], b"", Copying(), timeout_s=0).code is None


def test_a_copy_that_is_called_off_ends() -> None:
    copying = Copying()
    copying.call_off()
    with pytest.raises(CalledOffError):
        run_fed(["sleep", "60"], bytes(2**20), copying, timeout_s=WAIT_S)


def test_all_hosts_share_what_was_read_once(tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(b"one")
    first = read_program(path)
    assert read_program(path).data is first.data
    path.write_bytes(b"other")
    assert read_program(path).data == b"other"


class Place:
    """A place whose preparation is a function."""

    def __init__(self, act: Callable[[Copying], None]) -> None:
        self.name = "place"
        self._act = act

    def open(self, argv: Any) -> Any:
        raise NotImplementedError

    def prepare(self, program: Path, copying: Copying | None = None) -> None:
        assert copying is not None
        self._act(copying)


def test_ctrl_c_ends_what_is_copied() -> None:
    under_way, ended = threading.Event(), threading.Event()

    def copy(copying: Copying) -> None:
        under_way.set()
        try:
            copying.wait(WAIT_S)
        except CalledOffError:
            ended.set()
            raise

    with pytest.raises(KeyboardInterrupt):
        prepare([Place(copy)], Path("p"), stopped=under_way.is_set)
    assert ended.is_set()


# Logs in, and says goodbye only once its input has ended. It passes nothing on, as a slow link.
SLOW_SSH = """
case "$*" in *ControlMaster=no*) exec sleep 60;; esac
printf "\\ntrueload-host Linux x86_64 yes no\\n"
cat >/dev/null
touch "$GOODBYE"
"""


def test_ctrl_c_does_not_wait_for_a_goodbye_over_a_slow_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_script(tmp_path / "ssh", SLOW_SSH)
    (tmp_path / "program").write_bytes(bytes(2**20))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("GOODBYE", str(tmp_path / "goodbye"))
    lines: list[str] = []
    monkeypatch.setattr("trueload.places.open.TELL_EVERY_S", 0.0)
    with SshPlace("host") as place, pytest.raises(KeyboardInterrupt):
        prepare([place], tmp_path / "program", lines.append, lambda: bool(lines))
    assert not (tmp_path / "goodbye").exists()


def test_a_host_that_fails_calls_off_the_others() -> None:
    def fail(copying: Copying) -> None:
        raise UserError("no route", "is it up?")

    with pytest.raises(UserError, match="no route"):
        prepare([Place(lambda copying: copying.wait(WAIT_S)), Place(fail)], Path("p"))


def test_a_long_copy_is_announced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trueload.places.open.TELL_EVERY_S", 0.0)
    told = threading.Event()
    lines: list[str] = []

    def copy(copying: Copying) -> None:
        copying.begin(10)
        copying.sent(4)
        assert told.wait(WAIT_S)

    def announce(line: str) -> None:
        lines.append(line)
        told.set()

    prepare([Place(copy)], Path("p"), announce)
    assert set(lines) == {"copying to 1 host, 40 %"}


class Patient(Copying):
    """Notes the pauses instead of waiting."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__(lines.append)
        self.pauses_s: list[float] = []

    def wait(self, timeout_s: float) -> None:
        self.pauses_s.append(timeout_s)


@pytest.mark.parametrize(
    ("failures", "final"),
    [(0, False), (3, False), (logins.TRIES_MAX, True)],
)
def test_a_dropped_log_in_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failures: int, final: bool
) -> None:
    tries: list[str] = []

    def connect(destination: str, *rest: Any, **more: Any) -> Any:
        tries.append(destination)
        if len(tries) <= failures:
            raise DroppedError("h1 dropped the login", "raise MaxStartups")
        return "connected"

    monkeypatch.setattr(logins, "Connection", connect)
    (tmp_path / "program").write_bytes(b"x")
    program = read_program(tmp_path / "program")
    lines: list[str] = []
    patient = Patient(lines)
    if final:
        with pytest.raises(UserError, match="dropped"):
            logins.log_in("h1", program, patient)
        assert len(tries) == logins.TRIES_MAX
    else:
        assert str(logins.log_in("h1", program, patient)) == "connected"
    assert len(patient.pauses_s) == len(tries) - 1 == len(lines)
    for number, pause_s in enumerate(patient.pauses_s, 1):
        usual_s = logins.pause_after(number)
        assert 0.5 * usual_s <= pause_s <= 1.5 * usual_s
    assert all("h1 dropped the login; trying again in" in line for line in lines)
