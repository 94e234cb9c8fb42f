"""The flags that say when to send: what they mean, and which contradict each other."""

from __future__ import annotations

from typing import Any

import pytest
from trueload.commands.load_flags import choose_load
from trueload.errors import UserError
from trueload.protocol.load_options import LoadOptions
from trueload.protocol.plan import Closed, Duration, Open, Requests
from trueload.trial.spec import warmup_load
from trueload.units import DURATION_NS_MAX

S = 1_000_000_000


def test_without_flags_it_is_a_closed_loop_of_ten_seconds() -> None:
    chosen = choose_load(LoadOptions())
    assert (chosen.pacing, chosen.stop, chosen.warmup) == (
        Closed(),
        Duration(ns=10 * S),
        Duration(ns=S),
    )
    assert chosen.connections == 64


def test_a_rate_is_an_open_loop_as_long_as_the_window() -> None:
    chosen = choose_load(
        LoadOptions(rate_per_s=20e3, duration_ns=2 * S, arrivals="poisson", seed=7)
    )
    assert isinstance(chosen.pacing, Open)
    assert (chosen.pacing.arrivals, chosen.pacing.seed) == ("poisson", 7)
    [stage] = chosen.pacing.stages
    assert (stage.ns, stage.from_, stage.to) == (2 * S, 20e3, 20e3)


def test_a_rate_by_count_is_scheduled_for_as_long_as_it_may_take() -> None:
    chosen = choose_load(LoadOptions(rate_per_s=10, requests=5))
    assert isinstance(chosen.pacing, Open)
    assert (chosen.stop, chosen.warmup) == (Requests(count=5), None)
    assert chosen.pacing.stages[0].ns == DURATION_NS_MAX


def test_stages_are_the_window_and_the_warm_up_is_at_their_beginning() -> None:
    chosen = choose_load(LoadOptions(stages="10s@1k,30s@1k..20k", warmup_ns=3 * S))
    assert isinstance(chosen.pacing, Open)
    assert chosen.stop == Duration(ns=40 * S)
    assert chosen.warmup == Duration(ns=3 * S)
    warmup = warmup_load(chosen.pacing, chosen.warmup)
    assert isinstance(warmup, Open)
    [stage] = warmup.stages
    assert (stage.ns, stage.from_, stage.to) == (3 * S, 1000, 1000)


def test_a_ramp_from_nothing_has_no_warm_up() -> None:
    assert choose_load(LoadOptions(stages="10s@0..1k")).warmup is None


def test_stages_of_connections_are_a_closed_loop_with_the_most_of_them() -> None:
    chosen = choose_load(LoadOptions(stages="1s@8,1s@8..64,1s@2", stages_of="connections"))
    assert isinstance(chosen.pacing, Closed)
    assert chosen.connections == 64
    assert [(stage.from_, stage.to) for stage in chosen.pacing.active] == [(8, 8), (8, 64), (2, 2)]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"duration_ns": S, "requests": 5}, "--duration and --requests cannot be used together"),
        ({"rate_per_s": 5, "stages": "1s@5"}, "--rate and --stages cannot be used together"),
        ({"duration_ns": S, "stages": "1s@5"}, "--duration and --stages cannot be used together"),
        ({"requests": 5, "stages": "1s@5"}, "--requests and --stages cannot be used together"),
        (
            {"connections": 5, "stages": "1s@5", "stages_of": "connections"},
            "--connections and --stages-of connections cannot be used together",
        ),
        ({"stages_of": "rate"}, "--stages-of is given, but no --stages"),
        ({"arrivals": "poisson"}, "--arrivals needs an open loop"),
        (
            {"seed": 5},
            "--seed is for the arrivals of an open loop, for {random}",
        ),
        ({"stages": "1s@5,x"}, "--stages '1s@5,x', at character 6: stage 'x' has no @"),
        ({"stages": "1s@9G/s"}, "at character 4: '9G/s' is more than 1,000,000,000/s"),
        ({"stages": "1s@1.5", "stages_of": "connections"}, "'1.5' is not a whole number"),
        ({"stages": "1s@9M", "stages_of": "connections"}, "more than 1,000,000 conn"),
    ],
)
def test_flags_that_contradict_get_one_line_and_one_hint(
    flags: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as caught:
        choose_load(LoadOptions(**flags))
    assert message in caught.value.message
    assert "\n" not in caught.value.message + caught.value.hint
    assert caught.value.hint
