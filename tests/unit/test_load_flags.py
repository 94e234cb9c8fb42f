"""The flags that say when to send: what they come to, and which of them contradict."""

from __future__ import annotations

from typing import Any

import pytest
from trueload.cli.load_flags import LoadFlags, choose_load
from trueload.cli.options import Arrivals, StagesOf
from trueload.errors import UserError
from trueload.protocol.plan import Closed, Duration, Open, Requests
from trueload.trial.spec import warmup_load
from trueload.units import DURATION_NS_MAX

S = 1_000_000_000


def test_without_flags_it_is_a_closed_loop_of_ten_seconds() -> None:
    chosen = choose_load(LoadFlags())
    assert (chosen.load, chosen.stop, chosen.warmup) == (
        Closed(),
        Duration(ns=10 * S),
        Duration(ns=S),
    )
    assert chosen.connections == 64


def test_a_rate_is_an_open_loop_as_long_as_the_window() -> None:
    chosen = choose_load(
        LoadFlags(rate_per_s=20e3, duration_ns=2 * S, arrivals=Arrivals.POISSON, seed=7)
    )
    assert isinstance(chosen.load, Open)
    assert (chosen.load.arrivals, chosen.load.seed) == ("poisson", 7)
    [stage] = chosen.load.stages
    assert (stage.ns, stage.from_, stage.to) == (2 * S, 20e3, 20e3)


def test_a_rate_by_count_is_scheduled_for_as_long_as_it_may_take() -> None:
    chosen = choose_load(LoadFlags(rate_per_s=10, requests=5))
    assert isinstance(chosen.load, Open)
    assert (chosen.stop, chosen.warmup) == (Requests(count=5), None)
    assert chosen.load.stages[0].ns == DURATION_NS_MAX


def test_stages_are_the_window_and_the_warm_up_is_at_their_beginning() -> None:
    chosen = choose_load(LoadFlags(stages="10s@1k,30s@1k..20k", warmup_ns=3 * S))
    assert isinstance(chosen.load, Open)
    assert chosen.stop == Duration(ns=40 * S)
    assert chosen.warmup == Duration(ns=3 * S)
    warmup = warmup_load(chosen.load, chosen.warmup)
    assert isinstance(warmup, Open)
    [stage] = warmup.stages
    assert (stage.ns, stage.from_, stage.to) == (3 * S, 1000, 1000)


def test_a_ramp_from_nothing_has_no_warm_up() -> None:
    assert choose_load(LoadFlags(stages="10s@0..1k")).warmup is None


def test_stages_of_connections_are_a_closed_loop_with_the_most_of_them() -> None:
    chosen = choose_load(LoadFlags(stages="1s@8,1s@8..64,1s@2", stages_of=StagesOf.CONNECTIONS))
    assert isinstance(chosen.load, Closed)
    assert chosen.connections == 64
    assert [(stage.from_, stage.to) for stage in chosen.load.active] == [(8, 8), (8, 64), (2, 2)]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"duration_ns": S, "requests": 5}, "--duration and --requests exclude each other"),
        ({"rate_per_s": 5, "stages": "1s@5"}, "--rate and --stages exclude each other"),
        ({"duration_ns": S, "stages": "1s@5"}, "--duration and --stages exclude each other"),
        ({"requests": 5, "stages": "1s@5"}, "--requests and --stages exclude each other"),
        (
            {"connections": 5, "stages": "1s@5", "stages_of": StagesOf.CONNECTIONS},
            "--connections and --stages-of connections exclude each other",
        ),
        ({"stages_of": StagesOf.RATE}, "--stages-of is given, but no --stages"),
        ({"arrivals": Arrivals.POISSON}, "--arrivals is of an open loop"),
        ({"seed": 5}, "--seed is of an open loop's arrivals or of a {random} in a request, and"),
        ({"stages": "1s@5,x"}, "--stages '1s@5,x', at character 6: stage 'x' has no @"),
        ({"stages": "1s@9G/s"}, "at character 4: '9G/s' is more than 1,000,000,000/s"),
        ({"stages": "1s@1.5", "stages_of": StagesOf.CONNECTIONS}, "'1.5' is not a whole number"),
        ({"stages": "1s@9M", "stages_of": StagesOf.CONNECTIONS}, "more than 1,000,000 conn"),
    ],
)
def test_flags_that_contradict_get_one_line_and_one_hint(
    flags: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        choose_load(LoadFlags(**flags))
    assert message in caught.value.message
    assert "\n" not in caught.value.message + caught.value.hint
    assert caught.value.hint
