"""Attacks on `trueload http` with a proxy, a container, a process namespace or a long path."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from process import BenchError, prepare
from redteam.demands import Seen
from redteam.scenes import with_truth
from redteam.spaces import container, path
from redteam.stage import Stage, adversary, command
from servers import by_command, free_port, stop, wait_until_listening
from setting import SERVER_CPU, find_setting

PROXY = """
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    keepalive_requests 1000000000;
    upstream behind {{ server 127.0.0.1:{behind}; keepalive 256; keepalive_requests 1000000000; }}
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://behind;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
        }}
    }}
}}
"""
UNSHARED = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


@dataclass(frozen=True)
class Proxied:
    """nginx in front of `server.c`, both on the server's CPU."""

    server: str
    flags: str

    def play(self, stage: Stage) -> Seen:
        """Run it; the truth is that of the server behind."""
        with ExitStack() as stack:
            behind = stack.enter_context(adversary(stage, self.server.split()))
            port = stack.enter_context(_proxy(stage, behind.port))
            words = ("http", f"http://127.0.0.1:{port}/", "--no-save", *self.flags.split())
            return with_truth(stack.enter_context(command(stage, *words)), behind)


@contextmanager
def _proxy(stage: Stage, behind: int) -> Iterator[int]:
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/bin")
    if program is None:
        raise BenchError("there is no nginx")
    port, folder = free_port(), stage.folder / "nginx"
    folder.mkdir(exist_ok=True)
    (folder / "nginx.conf").write_text(PROXY.format(behind=behind, port=port))
    process = subprocess.Popen(
        [program, "-e", "stderr", "-p", f"{folder}/", "-c", "nginx.conf"],
        preexec_fn=prepare(SERVER_CPU),
        start_new_session=True,
    )
    try:
        wait_until_listening(port, process)
        yield port
    finally:
        stop(process)


@dataclass(frozen=True)
class Contained:
    """`server.c` in a network namespace, as in a container."""

    server: str
    flags: str

    def play(self, stage: Stage) -> Seen:
        """Run it there."""
        with container() as space:
            options = self.server.split()
            with adversary(stage, options, space.enter, space.address) as server:
                words = ("http", server.url, "--no-save", *self.flags.split())
                with command(stage, *words) as running:
                    return with_truth(running, server)


@dataclass(frozen=True)
class Unshared:
    """trueload in a process namespace."""

    server: str
    flags: str

    def play(self, stage: Stage) -> Seen:
        """Run it there."""
        if shutil.which(UNSHARED[0]) is None:
            raise BenchError("there is no unshare: install Debian's util-linux")
        with adversary(stage, self.server.split()) as server:
            words = ("http", server.url, "--no-save", *self.flags.split())
            with command(stage, *words, enter=UNSHARED) as running:
                return with_truth(running, server)


@dataclass(frozen=True)
class Far:
    """`server.c` behind a path with this delay each way."""

    delay_ms: float
    server: str
    flags: str

    def play(self, stage: Stage) -> Seen:
        """Run it over the path."""
        with path(stage, self.delay_ms) as (here, there):
            options = self.server.split()
            with adversary(stage, options, there.enter, there.address) as server:
                words = ("http", server.url, "--no-save", *self.flags.split())
                with command(stage, *words, enter=here.enter) as running:
                    return with_truth(running, server)


@dataclass(frozen=True)
class Reference:
    """The reference server on a CPU of its own: as fast as the generator, or faster."""

    flags: str

    def play(self, stage: Stage) -> Seen:
        """Run it; there is no truth, as the server's own maximum is not known."""
        with by_command("the reference server", find_setting(), SERVER_CPU) as server:
            words = ("http", f"http://127.0.0.1:{server.port}/", "--no-save", *self.flags.split())
            with command(stage, *words) as running:
                return running.seen()
