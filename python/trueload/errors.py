"""What the user is told when something cannot go on, and the exit codes of every command.

An error that a user can cause or mend is a ``UserError``: one line that names the mistake, one line
with the next step, and the exit code. The command line prints the two lines; nobody else prints.
This module must not know any other module of ours, so that every one of them may import it.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended, for scripts. The numbers are part of the interface."""

    OK = 0
    """Done; what was measured is valid or suspect."""
    THRESHOLD = 1
    """Measured, and a limit that the user set (``--fail-on``) was passed."""
    USAGE = 2
    """The command line, a file or a manifest is wrong: nothing was started."""
    NOTHING_MEASURED = 3
    """No request succeeded (the server is down, for example), so there is nothing to judge."""
    INVALID = 4
    """Measured, and the result cannot be vouched for; the failed checks say why."""
    INTERNAL = 70
    """A mistake in trueload itself; the traceback was written to a file, which is named."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C; what had been measured is kept."""


class UserError(Exception):
    """A mistake that the user can mend.

    ``message`` names the mistake and ``hint`` the next step, each on one line and without a final
    full stop; ``exit_code`` is what the command ends with.
    """

    def __init__(
        self, message: str, hint: str, exit_code: ExitCode | int = ExitCode.USAGE
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = ExitCode(exit_code)

    def __str__(self) -> str:
        return self.message
