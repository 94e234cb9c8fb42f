"""The functions that measure, for coroutines: ``await trueload.aio.http(url, duration=5)``.

How: each call runs the function of the same name in a thread of its own, so the event loop goes on.
If the task is cancelled, the measurement ends as by Ctrl-C: its engine ends, what was measured is
saved, and then the cancellation goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

from trueload import api
from trueload.api import protocols
from trueload.errors import UserError
from trueload.interrupt import Interrupt, within

__all__ = ["ab", "suite"]

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def _awaited(
    measure: Callable[Given, Returned],
) -> Callable[Given, Coroutine[Any, Any, Returned]]:
    @wraps(measure)
    async def run(*arguments: Given.args, **options: Given.kwargs) -> Returned:
        interrupt = Interrupt()
        with within(interrupt):
            context = copy_context()
        thread = ThreadPoolExecutor(1, "trueload")
        call = partial(context.run, measure, *arguments, **options)
        work = asyncio.get_running_loop().run_in_executor(thread, call)
        thread.shutdown(wait=False)
        # Retrieve the exception: after a cancellation nobody else does.
        work.add_done_callback(lambda done: done.cancelled() or done.exception())
        __tracebackhide__ = True  # pytest shows the test's own line
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            interrupt.request()
            await asyncio.wait([work])
            raise
        try:
            return work.result()
        except UserError as error:
            raise error.with_traceback(None) from None

    return run


ab = _awaited(api.ab)
suite = _awaited(api.suite)

# Written by tools/options.py.

__all__ += ["http", "tcp", "udp", "ws"]
http = _awaited(protocols.http)
tcp = _awaited(protocols.tcp)
udp = _awaited(protocols.udp)
ws = _awaited(protocols.ws)

# End of what is written.
