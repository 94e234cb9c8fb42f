"""``trueload ws URL``: load a WebSocket server, by echoes or broadcasts, and say what it carried.

Must not know how its flags are read, or how a trial works.
"""

from __future__ import annotations

import typer

from trueload.cli.run import run_job
from trueload.commands.flags import command
from trueload.commands.ws import read_ws

HELP = """Load a WebSocket server and say what it carried, and whether that can be trusted.

With --mode echo each connection sends a message, and the next one as soon as it has come back; a
message counts as what a request is of HTTP. With --mode broadcast clients join step by step, each
message goes to all of them, and its sender waits for its receipt; beside the receipts every
delivery is timed and settled. The largest number of clients that keeps to --limit is bisected and
confirmed. --dialect says how the server wants its messages wrapped.

Example: trueload ws ws://127.0.0.1:8080/ws --mode broadcast --step 1000 --limit 'p95<500ms'
"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("ws", help=HELP)(command(read_ws, run_job))
