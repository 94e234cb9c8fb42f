"""Optional packages: which extra of ours installs what is missing."""

from __future__ import annotations

import importlib.util

from trueload.errors import UserError


def require(extra: str, what: str, *modules: str) -> None:
    """Raise ``UserError`` unless all modules that ``what`` needs are there. None is imported yet,
    because that takes time."""
    for module in modules:
        try:
            found = importlib.util.find_spec(module)
        except ImportError:  # the package that it is in is missing
            found = None
        if found is None:
            raise UserError(
                f"{what} needs {module}, which is not installed", f"pip install 'trueload[{extra}]'"
            )
