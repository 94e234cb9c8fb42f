"""The entry point of ``trueload`` and of ``python -m trueload``.

How: Ctrl-C ends the process with 130 from here on. Only then is anything imported that takes time,
as a traceback of imports would tell the user nothing. Must not import anything else before that.
"""

import os
import signal
import sys

INTERRUPTED = 130  # ``ExitCode.INTERRUPTED``, which is not imported yet
GARBAGE_AFTER = 50_000
"""The number of new objects after which Python looks for garbage; its own is 700."""


def main() -> None:
    """Run the command line of this process, and end with its exit code."""
    _leave_at_ctrl_c()
    import gc

    # To look for garbage among modules, which stay, while they are imported and again at the end,
    # takes some 6 % of a short run.
    gc.set_threshold(GARBAGE_AFTER)
    from trueload.cli.app import main as run

    try:
        code = run()
        _leave_at_ctrl_c()
        gc.freeze()
    except KeyboardInterrupt:  # another one, while the first was reported
        os._exit(INTERRUPTED)
    sys.exit(code)


def _leave_at_ctrl_c() -> None:
    """Let Ctrl-C end this process at once, unless it is to be ignored, as behind ``&``."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(INTERRUPTED))


if __name__ == "__main__":
    main()
