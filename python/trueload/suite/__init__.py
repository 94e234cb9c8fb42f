"""Suites: subjects x loads x repetitions.

`definition` the TOML file · `plan` what is to be done, as a pure value · `execute` doing
it, row by row, into the store · `summary` the rows as figures of one cell.

The package itself can be called: ``trueload.suite("http-servers")`` is ``api.suite``.
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A package that runs a suite: the name is one that users know, too."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from trueload.api import suite

        return suite(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
