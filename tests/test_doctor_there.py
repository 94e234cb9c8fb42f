"""`trueload doctor --place`: each host is examined as this one is, and one that cannot be is told.

`env` stands for `docker exec` and the like: it runs what is appended to it.
"""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

import psutil
import pytest
from harness import Trueload, put_script
from scripted_cluster import ScriptedCluster
from waiting import wait_until

ONE, TWO = "exec:env HOST=one", "exec:env HOST=two"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"TRUELOAD_CACHE": str(tmp_path / "cache")}


def test_each_host_has_the_findings_of_this_machine(
    trueload: Trueload, env: dict[str, str]
) -> None:
    ended = trueload.run("doctor", "--json", "--place", ONE, "--place", "local", env=env)
    assert (ended.code, ended.err) == (0, "")
    told = ended.json()
    there, here = told["hosts"]
    assert [there["place"], here["place"]] == [ONE, "local"]
    names = [[finding["name"] for finding in host["findings"]] for host in (there, here)]
    assert names[0] == names[1]
    ranks = ("pass", "warn", "fail")
    assert told["status"] == max(there["status"], here["status"], key=ranks.index)
    found = {finding["name"]: finding for finding in there["findings"]}
    same = {finding["name"]: finding for finding in here["findings"]}
    for name in ("cpus", "cpu-quota", "frequency", "open-files", "local-ports", "backlog"):
        assert found[name] == same[name], name
    assert found["engine"]["value"].endswith(f", as sent to {ONE}")
    assert "requests are sent" in found["wake-ups"]["value"]
    assert "pipelined" in found["ceiling"]["value"]


def test_a_quick_look_at_two_hosts_is_one_text(trueload: Trueload, env: dict[str, str]) -> None:
    ended = trueload.run("doctor", "--quick", "--place", ONE, "--place", TWO, env=env)
    assert ended.code == 0, ended.err
    parts = ended.out.split("\n\n")
    assert [part.splitlines()[0] for part in parts[::2]] == [ONE, TWO]
    assert len(parts) == 4, "findings and a summary of each"


def test_hosts_of_a_lab_are_examined(
    trueload: Trueload, env: dict[str, str], tmp_path: Path
) -> None:
    lab = tmp_path / "places.toml"
    lab.write_text(f'[[generators]]\nplace = "{ONE}"\n')
    ended = trueload.run("doctor", "--quick", "--json", "--lab", lab, env=env)
    assert [host["place"] for host in ended.json()["hosts"]] == [ONE]


def test_pods_are_made_to_be_examined_and_deleted_at_the_end(
    trueload: Trueload, env: dict[str, str], tmp_path: Path
) -> None:
    cluster = ScriptedCluster(tmp_path / "cluster")
    words = ("doctor", "--quick", "--json", "--place", "k8s:load", "--hosts", "2")
    ended = trueload.run(*words, env={**env, "PATH": cluster.path()})
    assert ended.code == 0, ended
    places = [host["place"] for host in ended.json()["hosts"]]
    assert len(places) == 2
    assert all(place.startswith("load/trueload-") for place in places)
    assert not list(cluster.objects("jobs"))


@pytest.mark.parametrize(
    ("words", "error", "hint"),
    [
        (("--place", "nowhere"), "'nowhere' is not a place", "trueload doctor --help"),
        (("--place", "exec:false"), "exec:false runs no commands", "`false echo ok` must print ok"),
        (("--place", ONE, "--place", ONE), f"{ONE} is given twice", "once"),
        (
            ("--place", ONE, "--place", TWO, "--hosts", "1..2"),
            "a check of hosts needs all of its hosts from the start",
            "--hosts-wait",
        ),
        (("--lab", "none.toml"), "none.toml cannot be read", "correct the file"),
        (("--hosts-wait", "1s"), "all load comes from this machine", "--place"),
    ],
)
def test_what_cannot_be_examined_gets_a_line_and_a_hint(
    trueload: Trueload, env: dict[str, str], words: tuple[str, ...], error: str, hint: str
) -> None:
    ended = trueload.run("doctor", "--quick", *words, env=env)
    assert (ended.code, ended.out) == (2, "")
    first, second = ended.err.splitlines()
    assert first.startswith("error: ")
    assert error in first
    assert second.startswith("hint: ")
    assert hint in second


CUT = 'case "$5" in trueload-facts-*) "$@" | head -n 4;; *) exec "$@";; esac'


def test_a_host_that_does_not_tell_all_about_itself_is_named(
    trueload: Trueload, env: dict[str, str], tmp_path: Path
) -> None:
    cut = put_script(tmp_path / "cut", CUT)
    ended = trueload.run("doctor", "--quick", "--place", ONE, "--place", f"exec:{cut}", env=env)
    assert (ended.code, ended.out) == (2, "")
    error, hint = ended.err.splitlines()[-2:]
    assert error.startswith(f"error: exec:{cut} does not describe itself: "), error
    assert hint.startswith("hint: it must stay reachable, and its shell must have cat")


@pytest.mark.parametrize("started", ["trueload-facts", "trueload-engine"])
def test_ctrl_c_ends_all_there_is(trueload: Trueload, env: dict[str, str], started: str) -> None:
    front = trueload.start("doctor", "--place", ONE, "--place", TWO, env=env)
    below: list[psutil.Process] = []

    def begun() -> bool:
        below[:] = psutil.Process(front.pid).children(recursive=True)
        with contextlib.suppress(psutil.Error):  # one of them has just ended
            return sum(started in " ".join(each.cmdline()) for each in below) >= 2
        return False

    wait_until(begun, f"{started} runs on both hosts")
    front.send_signal(signal.SIGINT)
    out, err = front.communicate(timeout=60)
    assert (front.returncode, out) == (130, "")
    assert [line.split(":")[0] for line in err.splitlines()[-2:]] == ["error", "hint"]
    wait_until(lambda: not any(each.is_running() for each in below), "nothing is left")
