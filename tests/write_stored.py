"""Writes ``stored/VERSION.tar.xz``: a store with runs of every kind, made by this version.

How: each release adds one, and ``test_stored_runs.py`` reads them all. So a later version that can
no longer read what an earlier one has stored fails. Run it with the Python of the environment:
``.venv/bin/python tests/write_stored.py``.
"""

from __future__ import annotations

import signal
import tarfile
import tempfile
from pathlib import Path

from harness import ROOT, start_server
from subject_world import World
from trueload import __version__

FOLDER = ROOT / "tests" / "stored"
SUBJECT = "fine"
"""The subject of the suite, which ``World.add`` makes."""
FEW = ("--requests", "200", "-c", "2")
SHORT = ("-d", "200ms", "--warmup", "0s", "-c", "2")
ROOM = ("--limit", "p95<1us", "--step", "4", "--steps", "1", "--samples", "50")
REPETITIONS = 4
SUITE = ("quick", "--subjects", SUBJECT, *SHORT, "--repeat", str(REPETITIONS), "--share-cpus")


def write_runs(world: World) -> None:
    """Measure each kind of run once."""
    http, ws, tcp, udp = (
        start_server(world.trueload, *words, service=service)
        for service, words in (("http", ("--http", "2")), ("ws", ()), ("tcp", ()), ("udp", ()))
    )
    scenario = world.folder / "scenario.toml"
    scenario.write_text('[[step]]\nname = "first"\nrequest = { url = "/" }\n')
    targets = world.folder / "targets.jsonl"
    targets.write_text('{"url": "/", "weight": 2}\n{"url": "/", "name": "other"}\n')
    url = http.url
    for words in (
        ("http", url, *FEW),
        ("http", url, *FEW, "--http", "2", "--streams", "5"),
        ("http", url, *FEW, "--repeat", "2", "--rate", "2k/s"),
        ("http", url, *FEW, "--targets", targets),
        ("http", url, *FEW, "--scenario", scenario),
        ("http", url, *FEW, "--follow", "3", "--header", "Authorization: secret"),
        ("http", url, *FEW, "--http", "2", "--stream", "chunks"),
        ("http", url, *SHORT, "--connect-open", "100/s"),
        ("http", url, *SHORT, "--limit", "p99<1us"),
        ("compare", url, url, *FEW, "--repeat", "2"),
        ("ws", f"ws://127.0.0.1:{ws.port}/echo", *FEW),
        ("ws", f"ws://127.0.0.1:{ws.port}/ws", "--mode", "broadcast", *ROOM),
        ("tcp", f"127.0.0.1:{tcp.port}", *FEW),
        ("udp", f"127.0.0.1:{udp.port}", *FEW),
    ):
        done = world.run(*map(str, words))
        assert done.code in (0, 1, 4), (words, done)


def interrupt_suite(world: World) -> None:
    """Begin a suite, and interrupt it in its second trial."""
    process = world.trueload.start("suite", "run", *SUITE, cwd=world.folder, env=world.env)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[2/"):
            process.send_signal(signal.SIGINT)
            break
    process.communicate(timeout=60)
    assert process.returncode == 130, process.returncode


def pack(store: Path, path: Path) -> None:
    """Pack a store that nobody has open."""
    with tarfile.open(path, "w:xz") as packed:
        packed.add(store, store.name, filter=_anonymous)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        world.add(SUBJECT)
        try:
            write_runs(world)
            interrupt_suite(world)
        finally:
            world.trueload.close()
        pack(world.trueload.store, FOLDER / f"{__version__}.tar.xz")


if __name__ == "__main__":
    main()
