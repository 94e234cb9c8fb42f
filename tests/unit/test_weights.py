"""Hosts with weights: how the load is divided, which weights are refused, and what is shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import good_record
from trueload.commands.weights import check_weights, division_lines
from trueload.errors import UserError
from trueload.places.lab import read_lab
from trueload.places.names import GeneratorHost, Placement, SshHost
from trueload.protocol.fleet import LoadShare, load_shares
from trueload.report.accounts.hosts import host_grid, host_line
from trueload.report.sheets import host_values


def slots(part: LoadShare, total: int) -> int:
    """How many of ``total`` connections a part has, as the engine divides them."""
    own = (part.index, *part.more)
    return sum((total - place - 1) // part.of + 1 for place in own if place < total)


@pytest.mark.parametrize(
    ("weights", "total", "divided"),
    [
        ((1,), 7, (7,)),
        ((1, 1), 7, (4, 3)),
        ((3, 3), 7, (4, 3)),
        ((2, 1), 2, (1, 1)),
        ((2, 1), 3, (2, 1)),
        ((2, 1), 300, (200, 100)),
        ((2, 1), 64, (43, 21)),
        ((1, 2), 64, (21, 43)),
        ((4, 2), 9, (6, 3)),
        ((100, 1), 2, (1, 1)),
        ((100, 1), 64, (63, 1)),
        ((100, 1), 10, (9, 1)),
        ((10, *[1] * 9), 29, (15, *[2] * 5, *[1] * 4)),
        ((1, 100, 1), 102, (1, 100, 1)),
        ((3, 2, 1), 6, (3, 2, 1)),
    ],
)
def test_connections_are_divided_by_weight(
    weights: tuple[int, ...], total: int, divided: tuple[int, ...]
) -> None:
    assert tuple(slots(part, total) for part in load_shares(weights, total)) == divided


def test_equal_hosts_have_one_part_each() -> None:
    assert load_shares([2, 2, 2], 9) == tuple(LoadShare(index=index, of=3) for index in range(3))
    assert "more" not in load_shares([5], 1)[0].model_dump()


@given(st.lists(st.integers(1, 20), min_size=1, max_size=6), st.integers(0, 300))
def test_nothing_is_lost_and_every_host_has_a_connection(weights: list[int], more: int) -> None:
    total = len(weights) + more
    parts = load_shares(weights, total)
    places = sorted(place for part in parts for place in (part.index, *part.more))
    assert places == list(range(parts[0].of))
    assert all(list(part.more) == sorted(part.more) for part in parts)
    divided = [slots(part, total) for part in parts]
    assert sum(divided) == total
    assert min(divided) >= 1
    if total % sum(weights) == 0:
        assert divided == [total * weight // sum(weights) for weight in weights]


LAB = '[[generators]]\nplace = "ssh:a"\nweight = {}\n\n[[generators]]\nplace = "ssh:b"\n'


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1.5", '"2"', "true", "101", "[2]"])
def test_a_bad_weight_is_one_line_and_a_hint(tmp_path: Path, text: str) -> None:
    path = tmp_path / "places.toml"
    path.write_text(LAB.format(text))
    with pytest.raises(UserError) as refused:
        read_lab(path)
    assert refused.value.message.startswith(f"{path}: generators[0].weight: ")
    assert refused.value.message.endswith("is not a weight: use a whole number from 1 to 100")
    assert "\n" not in refused.value.message
    assert refused.value.hint


def test_a_lab_names_the_weights_and_the_division_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "places.toml"
    path.write_text(LAB.format("4") + "weight = 2\n")
    where = read_lab(path)
    assert [each.weight for each in where.generators] == [4, 2]
    assert division_lines(where) == ["hosts, by weight:", "  ssh:a: 2", "  ssh:b: 1"]
    path.write_text(LAB.format("3") + "weight = 3\n")
    assert division_lines(read_lab(path)) == []


@pytest.mark.parametrize(
    ("refuse", "message"),
    [
        (lambda where: check_weights(where, broadcast=True), "cannot share a broadcast"),
        (lambda where: check_weights(where, replay=True), "cannot share a replay"),
        (lambda where: check_weights(where, origins=2), "targets of several servers"),
    ],
)
def test_what_weights_exclude_is_refused(refuse: Callable[[Placement], None], message: str) -> None:
    hosts = [
        GeneratorHost(place=SshHost(name), weight=weight) for name, weight in (("a", 2), ("b", 1))
    ]
    with pytest.raises(UserError, match=message):
        refuse(Placement(generators=tuple(hosts)))
    check_weights(Placement(generators=tuple(hosts)))
    refuse(Placement(generators=(hosts[1],)))


def test_the_result_the_table_and_csv_show_the_weight() -> None:
    host = good_record().hosts[0]
    heavy = host.model_copy(update={"weight": 2, "ok": 7, "connections": 4})
    assert "7 ok on 4   weight 2" in host_line(heavy)
    assert "weight" not in host_line(host)
    assert host_values(heavy)["weight"] == 2
    grid = host_grid(good_record(hosts=(heavy, host)))
    assert grid is not None
    column = grid.header.index("weight")
    assert [row[column] for row in grid.rows] == ["2", "1"]
