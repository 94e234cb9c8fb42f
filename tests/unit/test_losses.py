"""Losses of hosts: is each host to blame, or the way that they share?"""

from __future__ import annotations

import pytest
from trueload.engines.losses import ChannelEnd, LifeSign, Loss, judge

NOW_S, SILENCE_S = 100.0, 1.5
JUMP = "the jump host j"


def there(index: int) -> LifeSign:
    return LifeSign(index, NOW_S - 0.1)


def silent(index: int, for_s: float = 1.6) -> LifeSign:
    return LifeSign(index, NOW_S - for_s)


def cut(index: int, *, ago_s: float = 0.5, heard_s: float = 0.6) -> LifeSign:
    ended = ChannelEnd(NOW_S - ago_s, f"ssh has lost h{index}: gone", "gone")
    return LifeSign(index, NOW_S - heard_s, ended)


def told(index: int) -> LifeSign:
    ended = ChannelEnd(NOW_S - 0.5, "the API server is gone", "", names_way=True)
    return LifeSign(index, NOW_S - 0.6, ended)


def awaited(index: int) -> LifeSign:
    return LifeSign(index, NOW_S - 1.6, is_awaited=True)


def alone(index: int, what: str) -> Loss:
    return Loss((index,), what)


def silent_alone(index: int) -> Loss:
    return alone(index, "nothing was heard from it for 1.6 s")


ALL_SILENT = "the way to all 3 hosts is lost: nothing was heard from any of them for 1.6 s"
NO_WAY: dict[int, str] = {}
ALL_BY_JUMP = dict.fromkeys(range(3), JUMP)
TWO_BY_JUMP = {0: JUMP, 1: JUMP}
CASES: list[tuple[str, list[LifeSign], dict[int, str], list[Loss]]] = [
    ("none", [there(0), there(1)], NO_WAY, []),
    ("one of two falls silent", [silent(0), there(1)], NO_WAY, [silent_alone(0)]),
    ("the only one falls silent", [silent(0)], NO_WAY, [silent_alone(0)]),
    (
        "two of three fall silent, by no known cause",
        [silent(0), silent(1), there(2)],
        NO_WAY,
        [silent_alone(0), silent_alone(1)],
    ),
    ("another may be next", [silent(0), silent(1, 1.2), there(2)], NO_WAY, []),
    (
        "all fall silent, not quite at once",
        [silent(0, 1.52), silent(1, 1.6), silent(2, 1.54)],
        NO_WAY,
        [Loss((0, 1, 2), ALL_SILENT, of_way=True)],
    ),
    (
        "all fall silent behind a jump host",
        [silent(0), silent(1), silent(2)],
        ALL_BY_JUMP,
        [
            Loss(
                (0, 1, 2),
                "the way to all 3 hosts through the jump host j is lost: nothing was heard from any"
                " of them for 1.6 s",
                of_way=True,
            )
        ],
    ),
    (
        "those behind a jump host are cut off",
        [cut(0), cut(1), there(2)],
        TWO_BY_JUMP,
        [Loss((0, 1), "the way to 2 hosts through the jump host j is lost: gone", of_way=True)],
    ),
    (
        "one behind a jump host is cut off, the other answers",
        [cut(0), there(1), there(2)],
        TWO_BY_JUMP,
        [alone(0, "ssh has lost h0: gone")],
    ),
    ("one is cut off, and the others may be next", [cut(0, ago_s=0.1), there(1)], NO_WAY, []),
    ("one is cut off, and the other quiet for less", [cut(0), silent(1, 0.7)], NO_WAY, []),
    (
        "all are cut off or silent",
        [cut(0), cut(1), silent(2)],
        {2: JUMP},
        [Loss((0, 1, 2), "the way to all 3 hosts is lost: gone", of_way=True)],
    ),
    (
        "the way names itself",
        [told(0), told(1), there(2)],
        NO_WAY,
        [Loss((0, 1), "the API server is gone", of_way=True)],
    ),
    ("one that finds out by itself is waited for", [told(0), awaited(1)], NO_WAY, []),
    ("nothing else is said of it", [awaited(0), there(1)], NO_WAY, []),
]


@pytest.mark.parametrize(("why", "hosts", "ways", "losses"), CASES, ids=[case[0] for case in CASES])
def test_who_is_to_blame(
    why: str, hosts: list[LifeSign], ways: dict[int, str], losses: list[Loss]
) -> None:
    assert judge(hosts, NOW_S, SILENCE_S, ways.get) == losses, why
