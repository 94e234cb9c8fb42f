"""A catalogue of tiny scripted clients, to test their suite: one program, many ways to fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from harness import Finished
from subject_world import World

# A short HTTP client with one thread and one connection for each connection of its pools. Its first
# argument says how it misbehaves.
PROGRAM = """
import http.client, json, os, signal, socket, sys, threading, time
from urllib.parse import urlsplit

how = sys.argv[1]
setup = json.loads(sys.stdin.readline())
url = urlsplit(setup["url"])
workers = min(setup["concurrency"], setup["pools"] * setup["pool_size"]) + (how == "one-over")

def say(line):
    print(line if isinstance(line, str) else json.dumps(line), flush=True)

if how == "cannot" or how == "cannot-large" and setup["pool_size"] > 2:
    say({"unsupported": "it has no pools"})
    sys.exit()
if how == "never-ready":
    signal.pause()
if how == "floods-stderr":
    sys.stderr.write(("x" * 1023 + "\\n") * 1024 * 64)
say({"ready": True} if how != "garbage" else {"ready": "perhaps"})
idle = []
def connect():
    return http.client.HTTPConnection(url.hostname, url.port, timeout=10)

connections = [connect() for _ in range(workers)]

def get(connection):
    connection.request("GET", url.path)
    answer = connection.getresponse()
    answer.read()
    return answer.status

def work(connection, count, took):
    for _ in range(count):
        begun = time.perf_counter()
        if how == "hides-retries":
            get(connection)
        assert get(connection) == 200
        took.append((time.perf_counter() - begun) * 1e6)
        if how == "churns":
            connection.close()

def perform(number):
    took, threads = [], []
    for index, connection in enumerate(connections):
        count = number // workers + (index < number % workers)
        threads.append(threading.Thread(target=work, args=(connection, count, took)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(took)

orders = 0
for line in sys.stdin:
    orders += 1
    number = int(line.split()[1])
    late = orders > 3  # two to warm up, one that counts
    if how == "hangs" or how == "hangs-late" and late:
        signal.pause()
    if how == "dies" or how == "dies-late" and late:
        os._exit(7)
    if how == "killed":
        os.kill(os.getpid(), 9)
    if how == "floods":
        while True:
            os.write(1, b"x" * 65536)
    if how == "floods-lines":
        while True:
            os.write(1, b"hello\\n" * 10000)
    if how == "half-a-line":
        os.write(1, b'{"ok": 1')
        signal.pause()
    if how == "leaves-connections":
        idle += [socket.create_connection((url.hostname, url.port)) for _ in range(20)]
    if how == "sends-nothing":
        refused = {"connect.refused": number}
        say({"ok": 0, "failed": refused, "elapsed_s": 0.0, "latency_us": None})
        continue
    begun = time.perf_counter()
    took = perform(number - (how == "invents"))
    elapsed = time.perf_counter() - begun
    ok, failed = number, {}
    if how == "claims-more":
        ok = number + 1
    if how == "claims-less":
        ok = number - 1
    if how == "gives-up":
        ok, failed = number // 5, {"timeout.total": number - number // 5}
    latency = {"p50": took[len(took) // 2], "p90": took[-1], "p99": took[-1], "max": took[-1]}
    if how == "no-time":
        latency["p50"] = 3.0
    claim = {"ok": ok, "failed": failed, "elapsed_s": elapsed, "latency_us": latency}
    if how == "nan":
        claim["elapsed_s"] = float("nan")
    if how == "negative":
        claim["ok"] = -1
    say(claim)
    if how == "talks":
        say("and by the way")
if how == "stays":
    signal.pause()
if how == "leaves-children" and os.fork() == 0:
    os.close(1)
    os.setsid()
    signal.pause()
sys.exit(3 if how == "ends-badly" else 0)
"""

SUITE = """
about    = "tiny clients"
contract = "http-client"
duration = "200ms"
warmup   = "100ms"
timeout  = "1s"
repeat   = 2

[clients]
wait = "10ms"

[[loads]]
pools       = [1]
pool_size   = [2]
concurrency = [4]
cores       = ["multi"]

[[full]]
pools       = [1]
pool_size   = [2, 4]
concurrency = [4, 5000]
files       = [0, 64]
"""


def add_client(world: World, how: str, **keys: Any) -> Path:
    """Add a client with this name that behaves as ``how`` says."""
    folder = world.subjects / "python" / how
    folder.mkdir(parents=True)
    (folder / "program.py").write_text(PROGRAM)
    manifest = {"ready_s": 20, **keys}
    lines = [f"{key} = {json.dumps(value)}" for key, value in manifest.items()]
    text = f"""
role = "client"
about = "it {how}"
contracts = ["http-client"]
run = ["python3", "program.py", "{how}"]
"""
    (folder / "subject.toml").write_text(text + "\n".join(lines) + "\n")
    return folder


def clients_command(world: World, *args: str) -> tuple[str, ...]:
    """The command that runs the suite of tiny clients over all clients of the world."""
    path = world.folder / "clients.toml"
    path.write_text(SUITE)
    return ("suite", "run", str(path), "--share-cpus", *args)


def run_clients(world: World, *args: str, timeout_s: float = 90.0) -> Finished:
    """Run that command with its output in a pipe."""
    words = clients_command(world, *args)
    return world.trueload.run(*words, cwd=world.folder, env=world.env, timeout_s=timeout_s)


def rows_of(found: Any) -> dict[str, Any]:
    """Return the rows of a run with one load, by the client's behaviour."""
    return {row["framework"]: row for row in found["rows"]}
