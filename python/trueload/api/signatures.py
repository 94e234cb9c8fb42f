"""Signatures that name every option, for ``help()`` and completion in notebooks.

Without them both would show only ``**options``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def naming(*typed: type) -> Callable[[Function], Function]:
    """Return a decorator that gives a function the keys of these ``TypedDict``s as keywords."""
    keywords = {name: hint for each in typed for name, hint in each.__annotations__.items()}

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [each for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        named = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=getattr(hint, "__forward_arg__", hint),
            )
            for name, hint in keywords.items()
        ]
        function.__dict__["__signature__"] = signature.replace(parameters=[*own, *named])
        return function

    return decorate
