"""Lists in the options of ``suite run``, such as ``1k/s,20k/s``."""

from __future__ import annotations

from typing import cast

from trueload.errors import UserError
from trueload.protocol.load_options import positive_rate
from trueload.subjects.manifest import Cores


def read_rates(text: str | None) -> tuple[float, ...] | None:
    """A list such as 1k/s,20k/s; raises ``UserError``."""
    if text is None:
        return None
    try:
        rates = [positive_rate(part) for part in text.split(",")]
    except ValueError as error:
        raise UserError(f"--rate: {error}", "try --rate 1k/s,20k/s") from None
    return tuple(dict.fromkeys(rates))


def read_cores(text: str | None) -> tuple[Cores, ...] | None:
    """A list such as single,multi; raises ``UserError``."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part in ("single", "multi") for part in parts):
        raise UserError(f"--cores: {text!r} is neither single nor multi", "try --cores single")
    return tuple(cast(Cores, part) for part in dict.fromkeys(parts))
