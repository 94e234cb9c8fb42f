"""Signatures that name every option, for ``help()`` and completion in notebooks, and errors that
name them alike.

Without them both would show only ``**options``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from trueload.api.wording import in_python
from trueload.errors import UserError

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

        @wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            __tracebackhide__ = True  # pytest shows the test's own line
            try:
                return function(*arguments, **options)
            except UserError as error:
                raise in_python(error, keywords) from None

        call.__dict__["__signature__"] = signature.replace(parameters=[*own, *named])
        return cast(Function, call)

    return decorate
