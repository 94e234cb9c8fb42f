"""Hosts that come later: which are refused, who is tried again, when they join, what is judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from samples import GOOD_HOST, check_of, good_record
from trueload.commands.late_hosts import check_joining
from trueload.commands.place_options import choose_places, read_placement
from trueload.engines.elastic_fleet import second_to_join
from trueload.errors import HostError, UserError
from trueload.places import EngineHost
from trueload.places.host_wait import HostWait
from trueload.places.late_hosts import LateHosts
from trueload.places.names import HostRange, Placement, parse_place
from trueload.places.open import prepare
from trueload.places.ray.cluster import suitable
from trueload.protocol.plan import Closed, Requests
from trueload.protocol.tick import Second
from trueload.record.schema import Host
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.trial.spec import Load, make_stage
from trueload.units import NS_PER_S

FAR_NS = 600 * NS_PER_S
PROGRAM = Path("engine")
NAMED = ("ssh:a", "ssh:b", "ssh:c")
LATER = HostError("it is not there", "is it up?")
NEVER = UserError("it is a different type of machine", "use another")


def where(hosts: HostRange | None, *places: str) -> Placement:
    return choose_places([parse_place(text) for text in places or NAMED], hosts)


def test_a_range_names_how_many_hosts_are_enough_to_begin_with() -> None:
    for hosts, places in ((HostRange(2, 3), NAMED), (HostRange(2, 3), ("ray",))):
        found = where(hosts, *places)
        assert (found.hosts_least, found.host_count) == (2, 3), places
    assert where(None).hosts_least is None


@pytest.mark.parametrize(
    ("hosts", "places", "words"),
    [
        (HostRange(2, 10), NAMED, "up to 10 hosts, and --place names 3 hosts"),
        (HostRange(1, 2), ("ssh:a",), "up to 2 hosts, and --place names 1 host"),
        (HostRange(1, 2), ("ray", "ssh:a"), "either for a cluster or for hosts"),
        (HostRange(2, 3), ("ssh:a", "ssh:a", "ssh:b"), "ssh:a is given twice"),
    ],
)
def test_a_range_that_does_not_fit_the_hosts_is_refused(
    hosts: HostRange, places: tuple[str, ...], words: str
) -> None:
    with pytest.raises(UserError, match=words) as caught:
        where(hosts, *places)
    assert caught.value.exit_code == 2
    assert caught.value.hint


def test_a_lab_takes_no_range(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--lab and --hosts cannot be used together"):
        read_placement(hosts=HostRange(1, 2), lab=tmp_path / "places.toml")


def sent(path: str = "/") -> Traffic:
    return Traffic(request=Request(host="127.0.0.1:8080", path=path))


@pytest.mark.parametrize(
    ("load", "path", "more", "words"),
    [
        (Load(), "/", {"--limit": None, "--repeat": False}, None),
        (Load(connections=3), "/{random}", {}, None),
        (Load(), "/", {"--limit": "p99<10ms"}, "2..3 and --limit cannot be used together"),
        (Load(), "/{counter}", {}, "{counter} cannot be used together"),
        (Load(stop=Requests(count=5)), "/", {}, "--requests cannot be used together"),
        (Load(idle=(10,)), "/", {}, "--idle cannot be used together"),
        (Load(connect_open=True), "/", {}, "--connect-open cannot be used together"),
        (Load(pacing=Closed(active=(make_stage(1, 1, 2),))), "/", {}, "--stages-of connections"),
        (Load(connections=2), "/", {}, "2 connections are too few for 3 hosts"),
    ],
)
def test_what_cannot_be_divided_anew_is_refused(
    load: Load, path: str, more: dict[str, Any], words: str | None
) -> None:
    check_joining(where(None), sent("/{counter}"), Load(stop=Requests(count=1)), {"--limit": "x"})
    if words is None:
        check_joining(where(HostRange(2, 3)), sent(path), load, more)
        return
    with pytest.raises(UserError) as caught:
        check_joining(where(HostRange(2, 3)), sent(path), load, more)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("into_s", "length_s", "second"),
    [
        (0.0, 60.0, 2),
        (40.2, 60.0, 42),
        (40.5, 60.0, 42),
        (40.6, 60.0, 43),
        (57.5, 60.0, 59),
        (57.6, 60.0, None),
        (0.0, 1.0, None),
        (100.0, 3600.0, 102),
        (101.0, 7200.0, 104),
        (101.0, 7201.0, 104),
        (100.0, 86_400.0, 128),
    ],
)
def test_a_host_joins_at_a_second_that_all_engines_count_from(
    into_s: float, length_s: float, second: int | None
) -> None:
    assert second_to_join(into_s, length_s) == second


class Place:
    """A place that answers its tries in turn, the last answer for ever: None is a success."""

    def __init__(self, name: str, *answers: UserError | None) -> None:
        self.name = name
        self.tries = 0
        self._answers = answers

    def prepare(self, program: Path, copying: object = None) -> None:
        answer = self._answers[min(self.tries, len(self._answers) - 1)]
        self.tries += 1
        if answer is not None:
            raise answer

    def open(self, argv: object) -> Any:
        raise AssertionError("it is only prepared")


def late(announce: Callable[[str], object], *places: Place) -> LateHosts:
    return LateHosts([EngineHost(each) for each in places], PROGRAM, announce, 0.0)


def test_late_hosts_are_tried_until_each_is_there_or_can_never_be() -> None:
    told: list[str] = []
    places = [Place("a", LATER, LATER, None), Place("b", LATER, None), Place("c", LATER, NEVER)]
    with late(told.append, *places) as hosts:
        assert [host.place.name for host in hosts] == ["b", "a"]
    assert told == ["c cannot join: it is a different type of machine"]


def test_late_hosts_that_are_closed_are_tried_no_more() -> None:
    places = [Place("a", None), Place("b", LATER)]
    hosts = late(print, *places)
    came = []
    for host in hosts:
        came.append(host.place.name)
        hosts.close()
    assert came == ["a"]
    assert all(place.tries <= 1 for place in places)


@pytest.mark.parametrize(
    ("least", "places", "missing"),
    [
        (1, [Place("a", None), Place("b", LATER)], ["b"]),
        (2, [Place("a", None), Place("b", None), Place("c", LATER)], ["c"]),
        (1, [Place("a", None), Place("b", None)], []),
        (2, [Place("a", None), Place("b", LATER)], None),
    ],
)
def test_enough_hosts_are_enough_to_begin_with(
    least: int, places: list[Place], missing: list[str] | None
) -> None:
    if missing is None:
        with pytest.raises(HostError, match="it is not there"):
            prepare(places, PROGRAM, least=least)
        return
    found = prepare(places, PROGRAM, least=least)
    assert [place.name for place in found] == missing


def test_only_hosts_that_are_missing_are_tried_again() -> None:
    told: list[str] = []
    places = [Place("a", None), Place("b", LATER, LATER, None)]
    prepare(places, PROGRAM, wait=HostWait(FAR_NS, told.append, pause_s=0.0))
    assert [place.tries for place in places] == [1, 3]
    assert len(told) == 1, "nothing changes between the tries"
    assert told[0].startswith("waiting for hosts: 1 of 2 are there, ")
    assert told[0].endswith(f" s left: {LATER}")


@pytest.mark.parametrize(
    ("why", "error", "wait_ns", "message"),
    [
        ("without a wait nothing is tried again", LATER, None, str(LATER)),
        ("a mistake is no host that comes later", NEVER, FAR_NS, str(NEVER)),
        ("the time is over", LATER, 0, f"0 of 1 host came within 0ns: {LATER}"),
    ],
)
def test_a_wait_that_ends(why: str, error: UserError, wait_ns: int | None, message: str) -> None:
    place = Place("b", error)
    with pytest.raises(UserError) as caught:
        prepare([place], PROGRAM, wait=None if wait_ns is None else HostWait(wait_ns))
    assert caught.value.message == message, why
    assert (caught.value.exit_code, place.tries) == (2, 1), why


def test_the_user_may_stop_the_wait() -> None:
    with pytest.raises(KeyboardInterrupt):
        prepare([Place("b", LATER)], PROGRAM, wait=HostWait(FAR_NS, stopped=lambda: True))


def test_hosts_of_a_cluster_count_if_they_have_a_cpu_and_the_labels() -> None:
    def node(cpus: float, alive: bool = True, **labels: str) -> dict[str, object]:
        return {"Alive": alive, "Resources": {"CPU": cpus}, "Labels": labels}

    nodes = [node(0.0, role="load"), node(1.0, role="load"), node(4.0), node(4.0, alive=False)]
    assert suitable(nodes, {}) == 2
    assert suitable(nodes, {"role": "load"}) == 1


def test_a_wait_without_other_hosts_is_refused() -> None:
    with pytest.raises(UserError, match="--hosts-wait waits for other hosts"):
        read_placement(hosts_wait=NS_PER_S)


def host(place: str, ok: tuple[int, ...], joined_s: int | None = None) -> Host:
    seconds = tuple(
        Second(t_s=t_s, width_s=1, ok=each, failed=0, latency={}) for t_s, each in enumerate(ok)
    )
    changes = {"place": place, "ok": sum(ok), "connections": 5, "series": seconds}
    return GOOD_HOST.model_copy(update={**changes, "joined_s": joined_s})


@pytest.mark.parametrize(
    ("why", "joiner", "status"),
    [
        ("it did as much as the others since it joined", (0, 500), "pass"),
        ("it did less since it joined", (0, 100), "fail"),
    ],
)
def test_replies_are_compared_over_the_time_that_all_hosts_shared(
    why: str, joiner: tuple[int, ...], status: str
) -> None:
    early = [host(place, (5000, 500)) for place in "ab"]
    hosts = (*early, host("c", joiner, joined_s=1))
    window = good_record().window.model_copy(update={"window_ns": 2 * NS_PER_S})
    record = good_record(hosts=hosts, window=window)
    assert check_of(record, "host-bias").status == status, why
    fairness = check_of(record, "fairness")
    assert fairness.status == "n/a"
    assert fairness.why == "hosts joined later, so connections were open for different times"
