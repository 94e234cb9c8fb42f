"""The plan of a suite: pure, the same for the same seed, and small even for a large suite."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from harness import ROOT
from trueload.commands.load_flags import choose_load
from trueload.errors import UserError
from trueload.protocol.load_options import LoadOptions
from trueload.protocol.plan import Duration, Requests
from trueload.suites.changes import Changes
from trueload.suites.definition import Axes, Suite, load_suite
from trueload.suites.plan import (
    PlannedSubject,
    SuitePlan,
    cells,
    describe,
    make_plan,
    trial_count,
    trials,
)
from trueload.trial.spec import open_load
from trueload.units import NS_PER_S

SUITE = Suite(
    about="a suite",
    contract="http-plaintext",
    window=LoadOptions(duration_ns=30 * NS_PER_S, warmup_ns=2 * NS_PER_S),
    repeat=3,
    seed=7,
    loads=(Axes(connections=(8, 64)),),
)


def subjects(count: int) -> list[PlannedSubject]:
    return [
        PlannedSubject(
            name=f"c/s{number}",
            language="c",
            framework=f"s{number}",
            variant="",
            category="micro",
            trap=False,
            digest="",
        )
        for number in range(count)
    ]


def plan(count: int = 4, **changes: Any) -> SuitePlan:
    return make_plan("suite", SUITE, subjects(count), Changes(**changes))


def test_a_plan_says_what_it_is() -> None:
    assert describe(plan()) == (
        "24 trials, about 13 min: 4 subjects x 2 loads x 3 repetitions, seed 7"
    )
    assert describe(plan(1, connections=(8,), repeat=1, window=LoadOptions(requests=50))) == (
        "1 trial: 1 subject x 1 load x 1 repetition, seed 7"
    )


def test_every_repetition_goes_once_through_all_cells() -> None:
    made = plan()
    everything = {cell.key for cell in cells(made)}
    order = list(trials(made))
    assert len(order) == trial_count(made) == 24
    for repetition in (1, 2, 3):
        part = order[(repetition - 1) * 8 : repetition * 8]
        assert {trial.repetition for trial in part} == {repetition}, "interleaved"
        assert {trial.cell.key for trial in part} == everything


def test_the_same_seed_gives_the_same_order_and_another_another() -> None:
    def keys(seed: int) -> list[str]:
        return [trial.key for trial in trials(plan(seed=seed))]

    assert keys(1) == keys(1)
    assert keys(1) != keys(2)
    assert sorted(keys(1)) == sorted(keys(2))
    first, second = keys(1)[:8], keys(1)[8:16]
    assert [key[:-3] for key in first] != [key[:-3] for key in second], "shuffled again"


CHANGES = [
    ("an axis that is given replaces the suite's", {"connections": (2,)}, "loads", [(2, 1)]),
    ("both axes", {"connections": (2, 4), "pipeline": (1, 9)}, "loads",
     [(2, 1), (4, 1), (2, 9), (4, 9)]),
    ("a duration", {"window": LoadOptions(duration_ns=5)}, "stop", Duration(ns=5)),
    ("a count", {"window": LoadOptions(requests=50)}, "stop", Requests(count=50)),
    ("no warm-up by count", {"window": LoadOptions(requests=50)}, "warmup", None),
    ("the suite's warm-up", {}, "warmup", Duration(ns=2_000_000_000)),
    ("no warm-up at all", {"window": LoadOptions(warmup_ns=0)}, "warmup", None),
    ("a warm-up by time before a count", {"window": LoadOptions(requests=5, warmup_ns=3)},
     "warmup", Duration(ns=3)),
    ("closing", {"close": True}, "close", True),
    ("repetitions", {"repeat": 9}, "repeat", 9),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "changes", "field", "expected"), CHANGES, ids=lambda v: str(v)[:30]
)
def test_the_command_line_changes_the_plan(
    what: str, changes: dict[str, Any], field: str, expected: object
) -> None:
    found = getattr(plan(**changes), field)
    if field == "loads":
        found = [(load.connections, load.pipeline) for load in found]
    assert found == expected, what


def test_loads_that_come_twice_are_measured_once() -> None:
    suite = SUITE.model_copy(
        update={"loads": (Axes(connections=(8, 64)), Axes(connections=(64,), pipeline=(1, 10)))}
    )
    made = make_plan("suite", suite, subjects(1), Changes())
    assert [(load.connections, load.pipeline) for load in made.loads] == [(8, 1), (64, 1), (64, 10)]


def test_a_rate_is_an_axis_and_names_its_cells() -> None:
    made = plan(1, connections=(8,), rate_per_s=(1_000.0, 20_000.0))
    assert [load.title for load in made.loads] == [
        "8 connections, 1,000/s, single core",
        "8 connections, 20,000/s, single core",
    ]
    assert [cell.key for cell in cells(made)] == [
        "c/s0 c8 p1 1000/s single",
        "c/s0 c8 p1 20000/s single",
    ]
    paced = [made.load_of(load).pacing for load in made.loads]
    assert paced == [open_load(rate, made.stop, seed=7) for rate in (1_000, 20_000)]


def test_arrivals_space_every_open_loop_of_the_plan() -> None:
    window = LoadOptions(arrivals="poisson")
    made = plan(1, connections=(8,), rate_per_s=(1_000.0,), window=window)
    assert made.load_of(made.loads[0]).pacing == open_load(1_000, made.stop, "poisson", seed=7)
    assert "poisson arrivals" in describe(made)
    with pytest.raises(UserError, match="--arrivals is for an open loop"):
        plan(window=window)
    open_loop = (Axes(connections=(8,), rate=("1k/s",)),)
    with pytest.raises(ValueError, match="arrivals are of an open loop"):
        Suite(about="a", contract="c", window=LoadOptions(requests=1, arrivals="poisson"))
    written = Suite(
        about="a",
        contract="c",
        loads=open_loop,
        window=LoadOptions(requests=1, arrivals="poisson"),
    )
    made = make_plan("suite", written, subjects(1), Changes())
    assert made.arrivals == "poisson"
    constant = make_plan(
        "suite", written, subjects(1), Changes(window=LoadOptions(arrivals="constant"))
    )
    assert constant.arrivals == "constant", "the command line replaces what is written"


STAGED = SUITE.model_copy(update={"window": LoadOptions(stages="10s@1k,30s@1k..20k")})


def test_every_trial_goes_through_the_stages_of_a_suite() -> None:
    made = make_plan("suite", STAGED, subjects(1), Changes())
    assert [load.title for load in made.loads] == [
        f"{count} connections, stages 10s@1000,30s@1000..20000, single core" for count in (8, 64)
    ]
    flags = LoadOptions(stages="10s@1k,30s@1k..20k", seed=7)
    assert [made.load_of(load) for load in made.loads] == [
        replace(choose_load(flags), connections=count) for count in (8, 64)
    ], "they are those of trueload http"
    assert SuitePlan.model_validate(made.model_dump(mode="json")) == made
    assert made.reference is None, "a short trial of it would be of the beginning only"


def test_stages_of_connections_take_the_place_of_their_number() -> None:
    window = LoadOptions(stages="1s@8..64", stages_of="connections")
    made = plan(1, window=window)
    assert [cell.key for cell in cells(made)] == [
        "c/s0 c64 p1 stages 1s@8..64 of connections single"
    ]
    warmed = LoadOptions(warmup_ns=2 * NS_PER_S).over(window)
    assert made.load_of(made.loads[0]) == choose_load(warmed)


def test_a_ramp_from_nothing_has_no_warm_up_in_a_suite_either() -> None:
    assert plan(1, window=LoadOptions(stages="1s@0..5")).warmup is None
    assert plan(1, window=LoadOptions(stages="1s@5")).warmup == Duration(ns=2 * NS_PER_S)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"window": LoadOptions(stages="1s@5", requests=5)},
            "--requests and --stages cannot be used",
        ),
        ({"window": LoadOptions(stages_of="rate")}, "--stages-of is given, but no --stages"),
        ({"window": LoadOptions(stages="1s@")}, "--stages '1s@', at its end: a value is missing"),
        ({"rate_per_s": (5.0,)}, "--rate and stages of it cannot be used"),
        (
            {
                "connections": (5,),
                "window": LoadOptions(stages="1s@5", stages_of="connections"),
            },
            "--connections and stages of it cannot be used",
        ),
        (
            {"window": LoadOptions(stages="1s@5", stages_of="connections", arrivals="poisson")},
            "--arrivals is for an open loop",
        ),
    ],
)
def test_what_contradicts_the_stages_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError) as caught:
        make_plan("suite", STAGED, subjects(1), Changes(**changes))
    assert message in caught.value.message


def test_a_duration_replaces_the_stages_of_a_suite() -> None:
    window = LoadOptions(duration_ns=NS_PER_S)
    made = make_plan("suite", STAGED, subjects(1), Changes(window=window, rate_per_s=(5.0,)))
    assert (made.stop, made.loads[0].stages) == (Duration(ns=NS_PER_S), None)


def test_broadcasts_are_counted() -> None:
    broadcasts = load_suite(ROOT / "suites" / "ws-broadcast.toml")
    for window, flag in (
        (LoadOptions(stages="1s@5"), "--stages"),
        (LoadOptions(duration_ns=1), "--duration"),
    ):
        with pytest.raises(UserError, match=f"{flag} is not for a suite of broadcasts"):
            make_plan("suite", broadcasts, subjects(1), Changes(window=window))


def test_connections_that_end_and_idle_ones_are_axes_and_name_their_cells() -> None:
    loads = (
        Axes(connections=(8,), close=(True, False)),
        Axes(connections=(8,), idle=(0, 100, 5000)),
        Axes(connections=(8,)),
    )
    suite = SUITE.model_copy(update={"loads": loads, "close": True})
    made = make_plan("suite", suite, subjects(1), Changes())
    assert [cell.key for cell in cells(made)] == [
        "c/s0 c8 p1 close single",
        "c/s0 c8 p1 kept single",
        "c/s0 c8 p1 idle 0-100-5000 single",
        "c/s0 c8 p1 single",
    ]
    assert [load.title for load in made.loads] == [
        "8 connections, one per request, single core",
        "8 connections, kept, single core",
        "8 connections beside 5,000 idle ones, single core",
        "8 connections, single core",
    ]
    assert [made.load_of(load).close for load in made.loads] == [True, False, True, True]
    assert [made.load_of(load).most for load in made.loads] == [8, 8, 5008, 8]
    kept = make_plan("suite", suite, subjects(1), Changes(close=False))
    assert [load.close for load in kept.loads] == [None, None], "what is given replaces the axis"
    assert not kept.close


def test_a_priming_run_is_like_the_one_that_counts() -> None:
    primed = SUITE.model_copy(update={"window": LoadOptions(requests=9), "prime": True})
    for changes, warmup in (
        (LoadOptions(), Requests(count=9)),
        (LoadOptions(requests=7), Requests(count=7)),
        (LoadOptions(duration_ns=5), Duration(ns=5)),
        (LoadOptions(warmup_ns=3), Duration(ns=3)),
        (LoadOptions(warmup_ns=0), None),
    ):
        made = make_plan("suite", primed, subjects(1), Changes(window=changes))
        assert made.warmup == warmup, changes


def test_a_duration_and_a_count_exclude_each_other() -> None:
    with pytest.raises(UserError, match="cannot be used together"):
        plan(window=LoadOptions(duration_ns=1, requests=1))
    with pytest.raises(UserError, match="no subject is selected"):
        plan(0)


def test_a_plan_comes_back_from_the_store_as_it_was() -> None:
    made = plan(window=LoadOptions(requests=9))
    assert SuitePlan.model_validate(made.model_dump(mode="json")) == made


def test_a_suite_of_10000_cells_is_two_short_lists() -> None:
    made = plan(2500, connections=(1, 2, 3, 4), repeat=6)
    assert trial_count(made) == 60_000
    assert len(list(islice(trials(made), 10))) == 10
    assert len({trial.key for trial in trials(made)}) == 60_000


BAD_SUITES = [
    ("about = ''\n", "contract"),
    ("about = ''\ncontract = 'x'\n", "give either duration, requests or stages"),
    ("about = ''\ncontract = 'x'\nduration = '1s'\nrequests = 5\n", "give either"),
    ("about = ''\ncontract = 'x'\nduration = '1x'\n", "duration"),
    ("about = ''\ncontract = 'x'\nduration = '0s'\n", "must be greater than 0"),
    ("about = ''\ncontract = 'x'\nrequests = 5\ntimeout = '0ms'\n", "must be greater than 0"),
    (f"about = ''\ncontract = 'x'\nrequests = 5\nseed = {2**63}\n", "seed"),
    ("about = ''\ncontract = 'x'\nrequests = 5\nseed = -1\n", "seed"),
    ("about = ''\ncontract = 'x'\nduration = '1s'\ncolour = 1\n", "'colour' is not a key"),
    ("about = ''\ncontract = 'x'\nduration = '1s'\n[[loads]]\npace = 1\n", "keys are connections"),
    ("about = ''\ncontract = 'x'\nduration = '1s'\n[[loads]]\nconnections = [0]\n", "loads[0]"),
    ("about = ''\ncontract = 'x'\nduration = '1s'\nrepeat = 0\n", "repeat"),
    (
        "about = ''\ncontract = 'x'\nduration = '1s'\nprime = true\nwarmup = '1s'\n",
        "prime and warmup",
    ),
    ("about = ''\ncontract = 'x'\nduration = '1s'\nreport = 'wrk'\n", "apachebench"),
    ("about = ''\ncontract = 'x'\nduration = '1s'\nstages = '1s@5'\n", "give either"),
    ("about = ''\ncontract = 'x'\nstages = '1s@5..x'\n", "5..x"),
    ("about = ''\ncontract = 'x'\nduration = '1s'\nstages_of = 'rate'\n", "but no stages"),
    ("about = ''\ncontract = 'x'\nstages = '1s@5'\nprime = true\n", "prime and stages"),
    ("about = ''\ncontract = 'x'\nstages = '1s@5'\n[[loads]]\nrate = ['5/s']\n", "rate in"),
    (
        "about = ''\ncontract = 'x'\nstages = '1s@5'\nstages_of = 'connections'\n"
        "[[loads]]\nconnections = [5]\n",
        "connections in [[loads]] and stages",
    ),
    ("about = ''\ncontract = 'x'\nduration = '1s'\nconnect_rate = 'x'\n", "connect_rate"),
    ("about = ''\ncontract = 'x'\nduration = '1s'\n[[loads]]\nidle = [5, 5]\n", "must rise"),
    ("about = ''\ncontract = 'x'\nduration = '1s'\n[[loads]]\nidle = [-1]\n", "loads[0]"),
    ("about = ''\ncontract = 'x'\nduration = '1s'\n[[loads]]\nclose = ['maybe']\n", "loads[0]"),
    ("about = \n", "is not TOML"),
    ("about = " + "[" * 20_000, "nested too deeply"),
    ("#" * 70_000, "larger than 64 KiB"),
]


def test_a_byte_order_mark_before_a_suite_is_no_part_of_it(tmp_path: Path) -> None:
    text = (ROOT / "suites" / "quick.toml").read_text()
    path = tmp_path / "quick.toml"
    path.write_text("\ufeff" + text)
    assert load_suite(path) == load_suite(ROOT / "suites" / "quick.toml")


def test_a_file_whose_size_is_told_as_0_is_read_no_further_than_a_suite_can_be() -> None:
    path = Path("/proc/self/pagemap")
    assert path.stat().st_size == 0
    with pytest.raises(UserError, match="larger than 64 KiB"):
        load_suite(path)


@pytest.mark.parametrize(("text", "word"), BAD_SUITES, ids=lambda value: str(value)[-40:])
def test_a_bad_suite_gets_one_line_with_the_place(tmp_path: Path, text: str, word: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(text)
    with pytest.raises(UserError) as caught:
        load_suite(path)
    assert word in caught.value.message
    assert "bad.toml" in caught.value.message
    assert "\n" not in caught.value.message
