"""``--server-place``: starts the reference server where the user says, for a command that measures.

It listens at the address of the URL, and is accounted for there like a server of this machine.

How: an engine at the place serves, and an agent beside it samples what that uses. Both end with the
measurement.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from trueload.commands.job import Job
from trueload.commands.serve import SERVERS, Serving, begin, drained
from trueload.commands.serve_options import STREAMS
from trueload.engines.binary import find_engine
from trueload.engines.engine import Engine, EngineError
from trueload.errors import ExitCode, UserError
from trueload.machine.accounting import ProcessTree
from trueload.places import Place
from trueload.places.names import ServerHost, ThisMachine
from trueload.places.open import open_place
from trueload.protocol.exchange import ServeHttp, ServeHttp2
from trueload.protocol.plan import Serve
from trueload.request.route import UNIX
from trueload.runner.remote_agent import RemoteAgent
from trueload.trial.spec import NoInterrupt, Tree, TrialSpec


@contextlib.contextmanager
def with_server(job: Job, spec: TrialSpec) -> Iterator[TrialSpec]:
    """Run the server that was asked for, and yield the specification with it. Raises
    ``UserError``."""
    host = job.placement.server
    assert host is not None, "it is for commands with --server-place"
    plan = serve_plan(job.workload.kind, spec, host)
    with contextlib.ExitStack() as stack:
        place = stack.enter_context(open_place(host.place, find_engine(), keep=job.placement.keep))
        try:
            engine = stack.enter_context(Engine.start(place))
            begin(engine, Serving(plan, job.workload.kind, None, None), NoInterrupt())
        except UserError as error:
            hint = "the URL must name an address of that host, and a port that is free there"
            if error.exit_code == ExitCode.MACHINE:
                hint = error.hint
            message = f"{host.place.name}: {error.message}"
            raise UserError(message, hint, error.exit_code) from error
        except EngineError as error:
            user_error = error.as_user_error("while serving")
            hint = user_error.hint if error.kind == "memory" else "look at that host"
            raise UserError(
                f"{host.place.name}: {user_error.message}", hint, user_error.exit_code
            ) from error
        tree = account_for(host, place, engine.pid, stack)
        stack.enter_context(drained(engine))
        is_here = isinstance(host.place, ThisMachine)
        yield replace(spec, server=tree, server_place=None if is_here else host.place.name)


def serve_plan(kind: str, spec: TrialSpec, host: ServerHost) -> Serve:
    """Return the server's plan, by what will be sent to it. Raises ``UserError``."""
    if not spec.addresses:
        raise UserError(
            "--server-place needs the address to listen on, and the URL's name has none",
            "write the address of that host into the URL",
        )
    address = spec.addresses[0]
    if address.startswith(UNIX) or spec.traffic.tls is not None:
        what = "a socket file" if address.startswith(UNIX) else "TLS"
        raise UserError(
            f"--server-place starts a plain server at an address, without {what}",
            "use a plain URL, or start the server there with `trueload serve`",
        )
    service = SERVERS[kind].service_for(spec.traffic.exchange)
    if isinstance(service, ServeHttp) and spec.traffic.http2 is not None:
        service = service.model_copy(update={"http2": ServeHttp2(max_streams=STREAMS)})
    return Serve(
        listen=address,
        threads=len(host.cpus) if host.cpus else 1,
        cpus=host.cpus or (),
        service=service,
    )


def account_for(host: ServerHost, place: Place, pid: int, stack: contextlib.ExitStack) -> Tree:
    """Return the process tree of a process on that host. Raises ``UserError``."""
    if isinstance(host.place, ThisMachine):
        return ProcessTree(pid)
    agent = stack.enter_context(RemoteAgent(place))
    agent.watch(pid)
    return agent
