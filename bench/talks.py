"""What does a conversation over WebSocket cost? CPU per message against our echo and k6; memory.

The reference server echoes on CPU 0; each generator runs on CPU 1, one at a time, as a closed loop
of 64 connections with a text of 64 bytes. In a conversation each message is a step that expects the
same text, 1,000 times; the echo compares bytes; k6 sends the next message when one has come. A
round runs every one of them once, in an order that `--seed` shuffles. CPU time is that of a
generator's whole life; ours is the engine's. Each ratio is one of the medians of all rounds.

Memory: the peak of 10,000 connections that only listen, against that of as many clients of a
broadcast.

Targets: a conversation costs at most 1.15 times an echo, k6 at least 6 times a conversation, and
listeners take at most 1.2 times the memory of broadcast clients. k6 is looked for on the PATH.
Prints Markdown with marks. Exit code 1 if a target is missed, 2 if it cannot measure.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

from commanded import Commanded, run_http
from engine import serving
from machine import describe
from marks import Limit, Mark, exit_code, mark, mark_table
from process import BenchError, run
from scenario import Load, Turn, measure, table
from setting import GENERATOR_CPU, SERVER_CPU, Quiet, SettingError, prepare_setting
from trueload.protocol.exchange import ServeWs

ROUNDS = 5
CONNECTIONS, LISTENERS = 64, 10_000
PATIENCE_S = 60.0
TALK, ECHO, K6 = "conversation", "echo", "k6"
OF_ECHO, OF_K6, OF_MEMORY = Limit(1.15), Limit(6, at_least=True), Limit(1.2)
TEXT = "0123456789abcdef" * 4
SCENARIO = f"""
[[step]]
name = "say"
send = "{TEXT}"
expect = "text:{TEXT}"
repeat = 1000
"""
LISTEN = """
[[step]]
name = "listen"
expect = "any"
"""
K6_SCRIPT = """
import ws from "k6/ws";
export const options = { vus: CONNECTIONS, duration: "SECONDSs" };
export default function () {
  ws.connect("URL", {}, (socket) => {
    socket.on("open", () => socket.send("TEXT"));
    let left = 1000;
    socket.on("message", () => (--left ? socket.send("TEXT") : socket.close()));
  });
}
"""


def _ours(load: Load, *flags: str) -> Commanded:
    done = run_http(load.binary, load.url, flags, load.seconds + PATIENCE_S, "ws")
    if done.record["counts"]["failed"] or done.cpu_s is None:
        raise BenchError(f"our generator failed, or did not end: {done.record['counts']}")
    return done


def _talk(load: Load) -> Turn:
    file = load.folder / "talk.toml"
    file.write_text(SCENARIO)
    asked = ("-c", str(CONNECTIONS), "-d", f"{load.seconds:g}s", "--scenario", str(file))
    done = _ours(load, *asked)
    return Turn(done.record["messages"]["received"], done.cpu_s or 0)


def _echo(load: Load) -> Turn:
    asked = ("-c", str(CONNECTIONS), "-d", f"{load.seconds:g}s", "--size", str(len(TEXT)))
    done = _ours(load, *asked)
    return Turn(done.record["counts"]["ok"], done.cpu_s or 0)


def _k6(load: Load) -> Turn:
    script, summary = load.folder / "k6.js", load.folder / "k6.json"
    text = K6_SCRIPT.replace("CONNECTIONS", str(CONNECTIONS)).replace("TEXT", TEXT)
    script.write_text(text.replace("SECONDS", f"{load.seconds:g}").replace("URL", load.url))
    summary.unlink(missing_ok=True)
    command = ["k6", "run", "--quiet", "--no-usage-report", "--summary-export", str(summary)]
    ended = run([*command, str(script)], cpu=GENERATOR_CPU, timeout_s=load.seconds + PATIENCE_S)
    return Turn(read_k6(summary.read_text()), ended.cpu_s)


def read_k6(summary: str) -> int:
    """Return the messages in k6's summary. Raises ``BenchError`` if there were none."""
    received = json.loads(summary)["metrics"].get("ws_msgs_received", {}).get("count", 0)
    if not received:
        raise BenchError("k6 received no message")
    return int(received)


def memory(load: Load) -> float:
    """Return the memory of listeners / that of clients of a broadcast."""
    file = load.folder / "listen.toml"
    file.write_text(LISTEN)
    many, wait = str(LISTENERS), ("--timeout", "30s")
    listening = _ours(load, "-c", many, "-d", "3s", "--scenario", str(file), *wait)
    flags = ("--mode", "broadcast", "--step", many, "--steps", "1", "--samples", "4", *wait)
    patience_s = load.seconds + PATIENCE_S
    joined = run_http(load.binary, load.url, (*flags, "--limit", "p95<30s"), patience_s, "ws")
    own = listening.record["generator"]["peak_rss_bytes"]
    return float(own / max(s["generator"]["peak_rss_bytes"] for s in joined.record["steps"]))


def generators() -> dict[str, Callable[[Load], Turn]]:
    """Return the generators that can be had."""
    found: dict[str, Callable[[Load], Turn]] = {TALK: _talk, ECHO: _echo}
    return found | ({} if shutil.which(K6) is None else {K6: _k6})


def judge(turns: Mapping[str, Sequence[Turn]], of_memory: float) -> list[Mark]:
    """Judge the ratios of medians. Pure."""
    costs = {name: median(turn.cpu_us for turn in found) for name, found in turns.items()}
    marked = []
    for one, other, limit in ((TALK, ECHO, OF_ECHO), (K6, TALK, OF_K6)):
        what = f"CPU per message, {one} / {other}"
        ratio = costs[one] / costs[other] if one in costs else None
        shown = "not installed" if ratio is None else f"{ratio:.3g}, {len(turns[one])} rounds"
        marked.append(mark(what, limit, ratio, shown))
    what = f"memory of {LISTENERS:,} listeners / of clients of a broadcast"
    return [*marked, mark(what, OF_MEMORY, of_memory, f"{of_memory:.3g}")]


def main() -> int:
    """Measure, print Markdown, and judge the targets."""
    parser = argparse.ArgumentParser(description="CPU and memory of conversations.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"rounds ({ROUNDS})")
    parser.add_argument("--seconds", type=float, default=5.0, help="a run (5)")
    parser.add_argument("--seed", type=int, default=1, help="order of the generators (1)")
    options = parser.parse_args()
    quiet = Quiet()
    try:
        binary = prepare_setting()
        with (
            serving(binary, SERVER_CPU, service=ServeWs(dialect="json")) as (port, _, _),
            tempfile.TemporaryDirectory() as folder,
        ):
            url, folder_path = f"ws://127.0.0.1:{port}/echo", Path(folder)
            load = Load(url, options.seconds, folder_path, binary)
            turns = measure(generators(), load, options.rounds, options.seed)
            everybody = Load(url.replace("/echo", "/ws"), options.seconds, folder_path, binary)
            of_memory = memory(everybody)
    except (BenchError, SettingError) as error:
        print(error, file=sys.stderr)
        return 2
    marked = judge(turns, of_memory)
    versions = {K6: (K6, "--version")} if K6 in turns else {}
    print(describe(versions), f"\n{options.rounds} rounds. {quiet}\n", sep="\n")
    print(*table(turns, "message"), "", *mark_table(marked), sep="\n")
    return exit_code(marked)


if __name__ == "__main__":
    sys.exit(main())
