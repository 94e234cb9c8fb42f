"""This machine as the place of an engine that outlasts a pause of its front
(``supervisor``), but not its death. Must not know what the lines mean.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from trueload.places import supervisor
from trueload.places.local import LocalChannel


class KeptPlace:
    """This machine, where the front's own threads may stand still for a while."""

    name = "local"

    def open(self, argv: Sequence[str]) -> LocalChannel:
        """Start a process behind a supervisor. Raises ``OSError`` if that cannot be started."""
        if not sys.executable:  # we are embedded in another program
            return LocalChannel(argv)
        # -S: the supervisor needs nothing that is installed, and begins in half the time.
        return LocalChannel([sys.executable, "-I", "-S", supervisor.__file__, *argv])
