"""Commands that share their flags: a function that understands them, and what to do with that.

How: a command's flags are the parameters of one function, declared once; another command takes the
same ones by its signature, less those that it has no use for. So a flag that one of them gets, all
of them have. Must not know any flag.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

Understood = TypeVar("Understood")


def command(
    understand: Callable[..., Understood], act: Callable[[Understood], int]
) -> Callable[..., int]:
    """A command with the flags of ``understand``, which does ``act`` with what that returns."""

    @functools.wraps(understand)
    def run(**flags: Any) -> int:
        return act(understand(**flags))

    return run


def take_flags(reader: Callable[..., Any], flags: dict[str, Any]) -> dict[str, Any]:
    """Take the flags that ``reader`` declares out of ``flags``, and return them."""
    return {name: flags.pop(name) for name in inspect.signature(reader).parameters if name in flags}


def with_flags_of(
    other: Callable[..., Any], *, without: Iterable[str]
) -> Callable[[Callable[..., Understood]], Callable[..., Understood]]:
    """A decorator: the command takes its own parameters, and by ``**flags`` those of ``other``."""

    def decorate(own: Callable[..., Understood]) -> Callable[..., Understood]:
        mine = inspect.signature(own, eval_str=True).parameters.values()
        named = [each for each in mine if each.kind is not inspect.Parameter.VAR_KEYWORD]
        hidden = {*without, *(each.name for each in named)}
        theirs = inspect.signature(other, eval_str=True).parameters.values()
        taken = [each for each in theirs if each.name not in hidden]
        parameters = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in (*named, *taken)
        ]

        def run(**flags: Any) -> Understood:
            return own(**flags)

        run.__doc__ = own.__doc__
        # typer reads both of these.
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__dict__["__signature__"] = inspect.Signature(parameters)
        return run

    return decorate
