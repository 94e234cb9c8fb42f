"""Lets commands share their flags: a function that parses them, and an action on the result.

How: a command's flags are the parameters of one function, declared once. Another command takes them
over through its signature, without those it has no use for. So a flag added to one of them is added
to all.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Parsed = TypeVar("Parsed")


def command(understand: Callable[..., Parsed], act: Callable[[Parsed], int]) -> Callable[..., int]:
    """Return a command with the flags of ``understand``, whose result goes to ``act``."""

    @functools.wraps(understand)
    def run(**flags: Any) -> int:
        return act(understand(**flags))

    return run


def take_flags(reader: Callable[..., Any], flags: dict[str, Any]) -> dict[str, Any]:
    """Take the flags that ``reader`` declares out of ``flags``, and return them."""
    return {name: flags.pop(name) for name in inspect.signature(reader).parameters if name in flags}


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return a function's parameters with their types.

    The type of its result may be imported only while it runs, and is left out.
    """
    function.__annotations__.pop("return", None)
    return list(inspect.signature(function, eval_str=True).parameters.values())


def with_flags_of(
    other: Callable[..., Any], *, without: Iterable[str] = ()
) -> Callable[[Callable[..., Parsed]], Callable[..., Parsed]]:
    """Return a decorator that adds the parameters of ``other`` to a command, as ``**flags``."""
    return with_read(without=without, flags=other, as_typed=True)


def with_read(
    *, without: Iterable[str] = (), as_typed: bool = False, **readers: Callable[..., Any]
) -> Callable[[Callable[..., Parsed]], Callable[..., Parsed]]:
    """Return a decorator that adds the parameters of ``readers`` to a command.

    The command gets what each reader makes of them, by the reader's name; ``as_typed``: unread.
    """

    def decorate(own: Callable[..., Parsed]) -> Callable[..., Parsed]:
        mine = (each for each in parameters_of(own) if each.name not in readers)
        named = [each for each in mine if each.kind is not inspect.Parameter.VAR_KEYWORD]
        hidden = {*without, *(each.name for each in named)}
        offered = (each for read in readers.values() for each in parameters_of(read))
        taken = [each for each in offered if each.name not in hidden]
        parameters = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*named, *taken)
        ]

        def run(**flags: Any) -> Parsed:
            if as_typed:
                return own(**flags)
            read = {name: each(**take_flags(each, flags)) for name, each in readers.items()}
            return own(**read, **flags)

        run.__doc__ = own.__doc__
        # typer reads both of these.
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__dict__["__signature__"] = inspect.Signature(parameters)
        return run

    return decorate
