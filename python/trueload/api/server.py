"""``trueload.serve``: a reference server that runs as long as a ``with`` block.

How: the command's own code parses the options and starts an engine that serves.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Self

from trueload.closeable import Closeable
from trueload.commands.serve import Serving, begin, drained, url_of, write_certificate
from trueload.engines.binary import find_engine
from trueload.engines.engine import Engine, EngineError
from trueload.errors import UserError
from trueload.places.local import SupervisedPlace
from trueload.places.names import ThisMachine
from trueload.places.open import open_place
from trueload.protocol.plan import Served
from trueload.trial.spec import NoInterrupt


class Server(Closeable):
    """A reference server, for a ``with`` block, or from ``start`` to ``close``.

    While it runs, ``url`` is the URL to load, and ``cacert`` the certificate that it made, if it
    speaks TLS. Afterwards ``served`` holds what it saw.
    """

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._stack = contextlib.ExitStack()
        self._url: str | None = None
        self.cacert: Path | None = None
        self.served: Served | None = None

    @property
    def url(self) -> str:
        """The URL to load. Raises ``UserError`` before the server was started."""
        if self._url is None:
            raise UserError(
                "the server does not run",
                "write `with trueload.serve(…) as server:`, or call start()",
            )
        return self._url

    def __enter__(self) -> Self:
        return self.start()

    def start(self) -> Self:
        """Start the server, and wait until it listens. Raises ``UserError``."""
        with contextlib.ExitStack() as stack:
            try:
                place = stack.enter_context(open_place(self._serving.place, find_engine()))
                # The caller's computing may pause our threads, which must not end the engine.
                kept = SupervisedPlace() if isinstance(self._serving.place, ThisMachine) else place
                engine = stack.enter_context(Engine.start(kept))
                ready = begin(engine, self._serving, NoInterrupt())
            except EngineError as error:
                raise error.as_user_error("while serving") from error
            assert ready is not None, "nobody has asked for the end"
            self._url = url_of(ready, self._serving)
            self.cacert = write_certificate(ready, stack)
            stack.enter_context(drained(engine, self._ended))
            self._stack = stack.pop_all()
        return self

    def close(self) -> None:
        """End the server; ``served`` is then set."""
        self._stack.close()

    def __repr__(self) -> str:
        return f"<reference server {self._url or 'that does not run'}>"

    def _ended(self, served: Served | None) -> None:
        self.served, self._url = served, None
