"""Every command of a page that loads a server does what it says, against the reference server.

Strategy: each runs as it stands, with the files that its page shows. Only what depends on the
machine is replaced: addresses, and how long it takes. Commands that need more than this machine are
named in one place, with the reason.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from documented import PAGES, commands_in, files_in, words_of
from harness import Server, Trueload, start_server

pytestmark = pytest.mark.engine

LOADING = ("http", "ws", "tcp", "udp", "compare")
# What a command line has that cannot be had here.
ELSEWHERE = {
    r"--place|--lab|10\.0\.0\.|//web\b": "other hosts, Kubernetes or Ray",
    r"example\.org/|--proxy": "the Internet, or a proxy",
    r"/run/app\.sock": "a socket of the reader's own server",
    r"ws \S+ --scenario": "a server of that protocol: tests/test_websocket_examples.py has them",
    r"/v1/chat/completions": "a language model",
    r"--otlp": "a collector of metrics",
    r"--limit|--mode broadcast": "minutes: searches have tests of their own",
    r"8443/ --quiet|--http 2 --quiet": "a mistake, which the page explains",
    r"--max-streams|--timeout 500ms": "a server that fails on purpose",
    r"URL|FILE|HOST:PORT|…|--help": "what the reader puts in its place",
}
# Files that a reader has, or that the page shows in part.
FILES = {
    "users.csv": "name,id\nann,1\nbob,2\n",
    "upload.bin": "x" * 1000,
    "targets.jsonl": '{"url": "/", "weight": 3}\n{"url": "/item/{counter}"}\n',
    "traffic.jsonl": '{"at": 0, "path": "/"}\n{"at": 0.1, "path": "/item/1"}\n',
    "access.log": '::1 - - [27/Nov/2026:10:00:00 +0000] "GET /perf HTTP/1.1" 200 84\n',
    "scenario.toml": '[[step]]\nname = "one"\nrequest = { url = "/perf" }\n',
    "odd.log": '[1764237600.125] "GET / HTTP/1.1" 200\n',
}
# Another page has other columns.
FILES_OF = {"scenarios.md": {"users.csv": "user,password\nann,secret\nbob,secret\n"}}
# Times that are of no interest here.
SHORTER = (
    (r"(-d|--duration) \S+", r"\1 300ms"),
    (r"--stages '[^']*'", "--stages 100ms@100,100ms@100..200"),
    (r"-c 1000 ", "-c 10 "),
    (r"--prometheus 9464", "--prometheus 0"),
)


def examples() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        for command in dict.fromkeys(commands_in(page.read_text(), page.suffix != ".md")):
            words = words_of(command)
            is_here = not any(re.search(what, command) for what in ELSEWHERE)
            if words[0] in LOADING and len(words) > 1 and is_here:
                yield page, command


EXAMPLES = list(examples())


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The addresses of the pages, and where the reference servers for them listen."""
    command = Trueload(tmp_path_factory.mktemp("servers"))

    @cache
    def start(service: str, *flags: str) -> Server:
        return start_server(command, *flags, "--threads", "1", service=service)

    yield {
        "ws://127.0.0.1:8080": f"ws://127.0.0.1:{start('ws').port}",
        "tcp 127.0.0.1:9000": f"tcp 127.0.0.1:{start('tcp').port}",
        "udp 127.0.0.1:9000": f"udp 127.0.0.1:{start('udp').port}",
        "https://127.0.0.1:8443": f"https://127.0.0.1:{start('http', '--http', '2', '--tls').port}",
        "127.0.0.1:8080": f"127.0.0.1:{start('http', '--http', '2').port}",
        "127.0.0.1:8081": f"127.0.0.1:{start('http', '--http', '2').port}",
        "localhost:8080": f"127.0.0.1:{start('http', '--http', '2').port}",
        "example.org:8080": f"example.org:{start('http', '--http', '2').port}",
    }
    command.close()


def test_there_are_many_and_of_every_kind() -> None:
    assert len(EXAMPLES) > 30
    assert {words_of(command)[0] for _, command in EXAMPLES} == set(LOADING)
    shown = [command for page in PAGES for command in commands_in(page.read_text())]
    for what in ELSEWHERE:
        assert any(re.search(what, command) for command in shown), f"no command has {what}"


@pytest.mark.parametrize(("page", "command"), EXAMPLES, ids=[command for _, command in EXAMPLES])
def test_it_runs_as_it_stands_and_nothing_fails(
    trueload: Trueload, servers: dict[str, str], tmp_path: Path, page: Path, command: str
) -> None:
    for name, text in (FILES | FILES_OF.get(page.name, {}) | files_in(page.read_text())).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "access.log.1.gz").write_bytes(gzip.compress(FILES["access.log"].encode()))
    if not re.search(r" -d |--requests|--stages|--replay", command):
        command += " -d 300ms"
    if " -d " in command:
        command += " --warmup 0"
    for was, becomes in (*SHORTER, *((re.escape(at), here) for at, here in servers.items())):
        command = re.sub(was, becomes, command)
    words = words_of(command)
    result = [] if "--json" in words else ["--json", "result.json"]
    ended = trueload.run(*words, *result, cwd=tmp_path, env={"TOKEN": "t"})
    # A threshold of the page, or the verdict, may be against it on a busy machine.
    assert ended.code in (0, 1, 4), ended
    if words[0] != "compare":
        for row in trueload.last_rows():
            counts = row["record"]["counts"]
            assert (counts["failed"], counts["ok"] > 0) == ({}, True), ended
