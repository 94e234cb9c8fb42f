"""Waiting for hosts that come later: who is tried again, for how long, and what is said."""

from __future__ import annotations

from pathlib import Path

import pytest
from trueload.commands.place_options import read_where
from trueload.errors import HostError, UserError
from trueload.places.arriving import Arriving
from trueload.places.open import prepare
from trueload.places.ray.cluster import suitable
from trueload.places.ssh.refusals import explain

NS_PER_S = 1_000_000_000
FAR_NS = 600 * NS_PER_S
PROGRAM = Path("engine")


class Later:
    """A place that is there from a later try on."""

    def __init__(self, name: str, failures: int, error: UserError) -> None:
        self.name = name
        self.tries = 0
        self._failures = failures
        self._error = error

    def prepare(self, program: Path, copying: object = None) -> None:
        self.tries += 1
        if self.tries <= self._failures:
            raise self._error

    def open(self, argv: object) -> None:
        raise AssertionError("it is only prepared")


REFUSES = HostError("b refuses connections of ssh", "is sshd running there?")
UNKNOWN = UserError("ssh knows another key of c", "find out why")


def prepare_all(places: list[Later], waiting: Arriving | None) -> None:
    prepare(places, PROGRAM, arriving=waiting)  # type: ignore[arg-type]


def test_only_hosts_that_are_missing_are_tried_again() -> None:
    told: list[str] = []
    places = [Later("a", 0, REFUSES), Later("b", 2, REFUSES)]
    prepare_all(places, Arriving(FAR_NS, told.append, pause_s=0.0))
    assert [place.tries for place in places] == [1, 3]
    assert len(told) == 1, "nothing changes between the tries"
    assert told[0].startswith("waiting for hosts: 1 of 2 are there, ")
    assert told[0].endswith(" s left: b refuses connections of ssh")


@pytest.mark.parametrize(
    ("why", "place", "wait_ns", "message", "tries"),
    [
        ("without a wait nothing is tried again", Later("b", 9, REFUSES), None, str(REFUSES), 1),
        ("a mistake is no host that comes later", Later("c", 9, UNKNOWN), FAR_NS, str(UNKNOWN), 1),
        (
            "the time is over",
            Later("b", 9, REFUSES),
            0,
            f"0 of 1 hosts came within 0ns: {REFUSES}",
            1,
        ),
    ],
)
def test_a_wait_that_ends(
    why: str, place: Later, wait_ns: int | None, message: str, tries: int
) -> None:
    with pytest.raises(UserError) as caught:
        prepare_all([place], None if wait_ns is None else Arriving(wait_ns))
    assert caught.value.message == message, why
    assert (caught.value.exit_code, place.tries) == (2, tries), why


def test_the_user_may_stop_the_wait() -> None:
    with pytest.raises(KeyboardInterrupt):
        prepare_all([Later("b", 9, REFUSES)], Arriving(FAR_NS, stopped=lambda: True))


@pytest.mark.parametrize(
    ("output", "comes_later"),
    [
        ("ssh: connect to host b port 22: Connection refused", True),
        ("ssh: connect to host b port 22: No route to host", True),
        ("b: Permission denied (publickey).", True),
        ("Connection closed by 10.0.0.1 port 22", True),
        ("Host key verification failed.", False),
        ("command-line: line 0: Bad configuration option: x", False),
    ],
)
def test_which_refusals_of_ssh_may_pass(output: str, comes_later: bool) -> None:
    assert isinstance(explain("b", output, ""), HostError) is comes_later


def test_hosts_of_a_cluster_count_if_they_have_a_cpu_and_the_labels() -> None:
    def node(cpus: float, alive: bool = True, **labels: str) -> dict[str, object]:
        return {"Alive": alive, "Resources": {"CPU": cpus}, "Labels": labels}

    nodes = [node(0.0, role="load"), node(1.0, role="load"), node(4.0), node(4.0, alive=False)]
    assert suitable(nodes, {}) == 2
    assert suitable(nodes, {"role": "load"}) == 1


def test_a_wait_without_other_hosts_is_refused() -> None:
    with pytest.raises(UserError, match="--hosts-wait waits for other hosts"):
        read_where(hosts_wait=NS_PER_S)
