"""The keyword arguments of the functions are the options of their commands, both ways."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
import typer
from trueload import aio, api
from trueload.api import options, protocols
from trueload.api.measure import OF_PRINTING
from trueload.commands.ab_options import read_ab
from trueload.commands.protocols import PROTOCOLS, reader_of_job
from trueload.commands.serve_flags import reader_of_serving
from trueload.commands.suite_job import read_suite


def _keywords(name: str) -> type:
    """The keyword arguments of the function that loads a server of this protocol."""
    found: type = getattr(options, f"{name.capitalize()}Options")
    return found


COMMANDS: list[tuple[type, Callable[..., Any], Mapping[str, str]]] = [
    *((_keywords(name), reader_of_job(name), OF_PRINTING) for name in PROTOCOLS),
    (options.AbOptions, read_ab, OF_PRINTING),
    (options.SuiteOptions, read_suite, api._OF_SUITES),
    (options.ServeHttpOptions, reader_of_serving("http"), OF_PRINTING),
    (options.ServeWsOptions, reader_of_serving("ws"), OF_PRINTING),
    (options.ServeStreamOptions, reader_of_serving("tcp"), OF_PRINTING),
    (options.ServeOptions, reader_of_serving("udp"), OF_PRINTING),
]


def keywords_of(read: Callable[..., Any], refused: Mapping[str, str]) -> dict[str, Any]:
    """The options of a command, by their keyword."""
    app = typer.Typer(add_completion=False)
    app.command(add_help_option=False)(read)
    command: Any = typer.main.get_command(app)
    found = {
        word.removeprefix("--").replace("-", "_"): parameter
        for parameter in command.params
        for word in (*parameter.opts, *parameter.secondary_opts)
        if word.startswith("--")
    }
    return {name: parameter for name, parameter in found.items() if name not in refused}


def parts(hint: Any) -> set[Any]:
    """The members of a union type."""
    return set(get_args(hint)) if get_origin(hint) in (Union, types.UnionType) else {hint}


@pytest.mark.parametrize(("typed", "read", "refused"), COMMANDS, ids=lambda each: "")
def test_every_option_has_its_keyword_and_every_keyword_its_option(
    typed: type, read: Callable[..., Any], refused: Mapping[str, str]
) -> None:
    assert set(get_type_hints(typed)) == set(keywords_of(read, refused))


@pytest.mark.parametrize(("typed", "read", "refused"), COMMANDS, ids=lambda each: "")
def test_a_keyword_takes_what_its_option_takes(
    typed: type, read: Callable[..., Any], refused: Mapping[str, str]
) -> None:
    hints = get_type_hints(typed)
    for name, parameter in keywords_of(read, refused).items():
        found = parts(hints[name])
        annotation = parameter.type_descriptor.annotation
        assert type(None) in found, f"{name} may be left out by None"
        assert (hints[name] == options.Duration) is (parameter.metavar == "TIME"), name
        assert (bool in found) is bool(parameter.is_flag), name
        choices = [get_args(each) for each in found if get_origin(each) is Literal]
        if isinstance(annotation, type) and issubclass(annotation, StrEnum):
            assert sorted(*choices) == sorted(annotation), name
        if parameter.multiple or parameter.metavar == "LIST":
            assert any(get_origin(each) is not None for each in found), f"{name} takes several"


@pytest.mark.parametrize("function", [protocols.http, aio.http], ids=["api", "aio"])
def test_a_functions_signature_names_its_options(function: Callable[..., Any]) -> None:
    found = inspect.signature(function).parameters
    assert next(iter(found)) == "url"
    assert set(found) == {"url", *get_type_hints(options.HttpOptions)}
    assert found["duration"].annotation == "Duration"
    assert {"stall_for", "dialect"} < set(inspect.signature(protocols.serve).parameters)
