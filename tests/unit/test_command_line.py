"""Keyword arguments become the words of a command line, and mean the same."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trueload.commands import http, suite_job, ws
from trueload.commands.command_line import CommandLine, understand
from trueload.commands.job import Job
from trueload.errors import UserError
from trueload.protocol.plan import Duration
from trueload.request.exchange import WsEcho

URL = "http://127.0.0.1:8080/"


def of_http(*arguments: object, **options: object) -> CommandLine[Job]:
    return understand(("http",), http.read_job, arguments, options, {"json": "call .to_dict()"})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"connections": 8}, ["--connections=8"]),
        ({"connections": "1k"}, ["--connections=1k"]),
        ({"rate": 20_000.0}, ["--rate=20000"]),
        ({"rate": 0.5}, ["--rate=0.5"]),
        ({"duration": 5}, ["--duration=5s"]),
        ({"duration": 0.25}, ["--duration=0.25s"]),
        ({"timeout": 1e-6}, ["--timeout=0.000001s"]),
        ({"warmup": 0}, ["--warmup=0s"]),
        ({"coalesce": Fraction(1, 20_000)}, ["--coalesce=0.00005s"]),
        ({"duration": Decimal("1.50")}, ["--duration=1.5s"]),
        ({"duration": "500ms"}, ["--duration=500ms"]),
        ({"duration": timedelta(seconds=1.5)}, ["--duration=1500000us"]),
        ({"connections": np.int64(8)}, ["--connections=8"]),
        ({"duration": np.float64(0.5)}, ["--duration=0.5s"]),
        ({"cpus": [0, 1]}, ["--cpus=0,1"]),
        ({"expect_status": [200, 404]}, ["--expect-status=200", "--expect-status=404"]),
        ({"header": {"Accept": "text/plain"}}, ["--header=Accept: text/plain"]),
        ({"header": "Accept: text/plain"}, ["--header=Accept: text/plain"]),
        ({"body": b"-\xff"}, ["--body=-\udcff"]),
        ({"unix": Path("/run/a")}, ["--unix=/run/a"]),
        ({"close": True, "insecure": False}, ["--close"]),
        ({"duration": None}, []),
    ],
)
def test_a_value_is_written_as_one_would_type_it(
    options: dict[str, Any], words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trueload.commands.place_options.check_cpus", lambda chosen: None)
    assert of_http(URL, **options).words == ("http", URL, *words)


def test_what_was_understood_is_what_the_command_would_do() -> None:
    job = of_http(URL, connections=8, duration="5s", fail_on="p99>20ms", no_save=True).value
    assert (job.spec.load.connections, job.spec.load.stop, job.given.no_save) == (
        8,
        Duration(ns=5 * 10**9),
        True,
    )
    assert [each.text for each in job.thresholds] == ["p99>20ms"]


def test_both_words_of_a_flag_can_be_said() -> None:
    for options in ({"text": False}, {"binary": True}):
        words: CommandLine[Job] = understand(
            ("ws",), ws.read_job, ("ws://127.0.0.1:1/",), options, {}
        )
        assert "--binary" in words.words
        exchange = words.value.spec.traffic.exchange
        assert isinstance(exchange, WsEcho)
        assert not exchange.text


def test_a_list_of_a_suite_is_one_word_and_a_repeated_option_several() -> None:
    words = understand(
        ("suite", "run"),
        suite_job.read_suite,
        ("http-servers",),
        {"connections": [8, 64], "subjects": ["nginx", "go"]},
        {},
    )
    assert words.words[2:] == (
        *("http-servers", "--connections=8,64", "--subjects=nginx", "--subjects=go"),
    )
    assert words.value.changes.connections == (8, 64)
    assert words.value.given.subjects == ("nginx", "go")


@pytest.mark.parametrize(
    ("arguments", "options", "message", "hint"),
    [
        ([URL], {"conections": 8}, "no option --conections", "did you mean"),
        ([URL], {"connections": "many"}, "'many' is not a count", "trueload http --help"),
        ([URL], {"duration": "5x"}, "unit 'x' is not known", "trueload http --help"),
        ([URL], {"duration": 0}, "'0s' must be greater than 0", "trueload http --help"),
        ([URL], {"duration": -1}, "--duration cannot be -1", "seconds as a number"),
        ([URL], {"duration": -0.5}, "--duration cannot be -0.5", "a text like '500ms'"),
        ([URL], {"duration": timedelta(-1)}, "--duration cannot be", "or a timedelta"),
        ([URL], {"timeout": float("nan")}, "--timeout cannot be nan", "seconds as a number"),
        ([URL], {"timeout": float("inf")}, "--timeout cannot be inf", "seconds as a number"),
        ([URL], {"warmup": True}, "--warmup cannot be True", "seconds as a number"),
        ([URL], {"warmup": Decimal("NaN")}, "--warmup cannot be", "seconds as a number"),
        ([URL], {"warmup": [1]}, "--warmup cannot be [1]", "seconds as a number"),
        ([URL], {"warmup": "-1s"}, "'-1s' is not a duration", "trueload http --help"),
        ([URL], {"duration": 1e9}, "is too long", "trueload http --help"),
        ([URL], {"connections": True}, "--connections cannot be True", "as on the command line"),
        ([URL], {"connections": timedelta(1)}, "--connections cannot be", "on the command line"),
        ([URL], {"duration": "5s", "requests": 3}, "--duration and --requests", "keep one"),
        ([URL], {"close": 1}, "--close is 1", "True or False"),
        ([URL], {"body": "\ud800"}, "--body has half of a surrogate pair", "or bytes"),
        ([URL], {"rate": float("nan")}, "--rate cannot be nan", "as on the command line"),
        ([URL], {"connections": object}, "--connections cannot be", "as on the command line"),
        ([URL], {"user": {"me": "pw"}}, "--user cannot be a dict", "as text"),
        ([URL], {"json": "-"}, "json is an option of the command line only", "to_dict"),
        ([URL], {"data": {"a": 1}}, "--data cannot be a dict", "a body to send is body={…}"),
        ([URL], {"c": 4}, "no option --c", "did you mean --connections (-c)?"),
        ([URL], {"n": 4}, "no option --n", "did you mean --requests (-n)?"),
        ([URL], {"help": True}, "no option --help", "trueload http --help"),
        ([URL, URL], {}, "unexpected extra argument", "trueload http --help"),
        (["--close"], {}, "'--close'", "http"),
        ([None], {}, "there is no URL", "trueload http URL"),
    ],
)
def test_a_mistake_is_told_as_on_the_command_line(
    arguments: list[object], options: dict[str, object], message: str, hint: str
) -> None:
    with pytest.raises(UserError) as refused:
        of_http(*arguments, **options)
    assert message in refused.value.message
    assert hint in refused.value.hint
