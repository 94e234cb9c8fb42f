"""Scenario files: what they mean, and what is refused before anything is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trueload.commands.http import read_job
from trueload.errors import UserError
from trueload.protocol.plan import Generate
from trueload.protocol.scenario import FromHeader, FromJson, FromRegex
from trueload.request.scenario import used_values
from trueload.request.steps import StepSpec
from trueload.request.values import Request
from trueload.trial.plan import make_plan

URL = "http://127.0.0.1:8080/"
HOME = '[[step]]\nname = "home"\nrequest = { url = "/" }\n'


def job(folder: Path, text: str, **flags: Any) -> Any:
    """Read a scenario as the command does."""
    file = folder / "s.toml"
    file.write_text(text)
    return read_job(**{"url": URL, "scenario": file, **flags})


def plan(folder: Path, text: str, **flags: Any) -> Generate:
    """Return the plan of a scenario."""
    return make_plan(job(folder, text, **flags).spec, ())


def test_a_step_has_its_request_expectation_values_pause_and_repetitions(tmp_path: Path) -> None:
    text = """
    [[step]]
    name = "log in"
    request = { method = "PUT", url = "/login", body = "{vu}", headers = { A = "b" } }
    expect = { status = [200, 302] }
    take = { token = "json:/a~1b/0", id = "header:X-Id", csrf = 'regex:value="([^"]+)"' }
    [[step]]
    name = "list"
    request = { url = "http://127.0.0.1:8080/items?t={token}" }
    think = "100ms..300ms"
    repeat = 3
    """
    first, second = plan(tmp_path, text, header=["A: c", "B: {counter}"]).scenario
    assert (first.name, first.request.method, first.request.path) == ("log in", "PUT", "/login")
    assert first.request.headers == (
        ("Host", "127.0.0.1:8080"),
        ("A", "b"),
        ("B", "{counter}"),
    )
    assert first.request.template
    assert first.expect.statuses == (200, 302)
    assert [(take.value, take.from_) for take in first.take] == [
        ("token", FromJson(pointer="/a~1b/0")),
        ("id", FromHeader(name="X-Id")),
        ("csrf", FromRegex(pattern='value="([^"]+)"')),
    ]
    assert (first.think.most_ns, first.repeat) == (0, 1)
    assert second.request.path == "/items?t={token}"
    assert (second.think.least_ns, second.think.most_ns) == (100_000_000, 300_000_000)
    assert second.repeat == 3


def test_without_a_url_the_first_step_names_the_server(tmp_path: Path) -> None:
    first = HOME.replace('"/"', '"http://127.0.0.1:9/a"')
    found = job(tmp_path, first + HOME.replace("home", "b"), url=None)
    assert found.workload.endpoint.authority == "127.0.0.1:9"
    assert [step.url for step in found.spec.traffic.scenario] == [
        "http://127.0.0.1:9/a",
        "http://127.0.0.1:9/",
    ]


def step(name: str = "x", more: str = "", **request: str) -> str:
    """One step as text."""
    fields = ", ".join(f"{key} = {value!r}" for key, value in {"url": "/", **request}.items())
    return f"[[step]]\nname = {name!r}\nrequest = {{ {fields} }}\n{more}\n"


REFUSED = [
    ("", "has no step", "[[step]]"),
    ("step = 3", "has no step", "[[step]]"),
    ("[step", "is not TOML", "[[step]]"),
    ("[other]", "'other' is not a key", "[[step]]"),
    ('[[step]]\nname = "a"', "'request' is missing", "request"),
    ('[[step]]\nrequest = { url = "/" }', "'name' is missing", "name"),
    (HOME + HOME, "another step has this name", "differently"),
    (HOME + "extra = 1", "'extra' is not a key", "keys are"),
    (step(path="/"), "'path' is not a key of 'request'", "url"),
    (step() + step("y", url="http://other/"), "another server", "one server"),
    (step(url="/{token}"), "no step before it takes {token}", "{{token}"),
    (step(more='take = { t = "json:/t" }', url="/{t}"), "takes {t}", "its own answer"),
    (
        step("a", url="/{t}") + step("b", more='take = { t = "json:/t" }'),
        "takes {t}",
        "'b' takes it, and comes later",
    ),
    (
        step("a", more='take = { u = "json:/u" }', url="/{t}")
        + step("b", more='take = { t = "json:/t" }', url="/{u}"),
        "takes {t}",
        "'b' need values of each other",
    ),
    (step(more='take = { t = "json:token" }'), "is not a JSON pointer", "json:/user/id"),
    (step(more='take = { t = "json:/a~" }'), "is not a JSON pointer", "~0"),
    (step(more="take = { t = 'regex:value' }"), "has no group", "( )"),
    (step(more=r"take = { t = 'regex:\((?:a)[(]' }"), "has no group", "( )"),
    (step(more='take = { t = "header:" }'), "is not the name of a header", "header:NAME"),
    (step(more='take = { t = "xpath:/a" }'), "not taken from any part", "regex:PATTERN"),
    (step(more='take = { counter = "json:/a" }'), "is built in", "another name"),
    (step(more='take = { "a b" = "json:/a" }'), "not a name for a value", "letters"),
    (step(more='think = "6s"'), "longer than the timeout", "--timeout"),
    (step(more='think = "2ms..1ms"'), "the longer pause", "shorter one first"),
    (step(more='think = "soon"'), "'think'", "100ms..300ms"),
    (step(more="repeat = 0"), "'repeat'", "write for example 3"),
    (step(more="expect = { status = 99 }"), "not a final status code", "200"),
    (step(body="a", body_file="b"), "cannot be used together", "keep one"),
]


@pytest.mark.parametrize(("text", "what", "hint"), REFUSED)
def test_a_mistake_gets_one_line_and_a_hint(
    tmp_path: Path, text: str, what: str, hint: str
) -> None:
    with pytest.raises(UserError) as caught:
        job(tmp_path, text)
    assert what in caught.value.message
    assert hint in (caught.value.hint or "")
    assert "\n" not in caught.value.message + (caught.value.hint or "")


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        ({"close": True}, "--scenario and --close"),
        ({"pipeline": 2}, "--scenario and --pipeline"),
        ({"requests": 10, "warmup": 10**9}, "--warmup excludes --requests with --scenario"),
        ({"method": "POST"}, "--scenario and --method"),
        ({"body": "x"}, "--scenario and --body"),
        ({"expect_body": "x"}, "--scenario and --expect-body"),
        ({"targets": Path("t")}, "--scenario and --targets"),
        ({"http": "2", "streams": 2}, "--scenario and --streams"),
    ],
)
def test_flags_of_other_loads_are_refused(tmp_path: Path, flags: dict[str, Any], what: str) -> None:
    with pytest.raises(UserError, match=what):
        job(tmp_path, HOME, **flags)


def test_any_other_file_is_refused_in_one_line(tmp_path: Path) -> None:
    @given(st.text(max_size=200))
    def refused(text: str) -> None:
        with pytest.raises(UserError) as caught:
            job(tmp_path, text)
        assert caught.value.hint
        assert "\n" not in caught.value.message

    refused()


def test_places_are_named_by_what_fills_them() -> None:
    for text, names in [
        ("/{a}/{b-1}?{counter}", ["a", "b-1", "counter"]),
        ('/{{a}{"x"}{ a }', []),
        ("/{1}{}{a", []),
    ]:
        step = StepSpec(name="home", url="", request=Request(host="h", path=text))
        assert list(used_values(step)) == names
