#!/usr/bin/env python3
"""Autobahn's testsuite against our WebSocket reference server and our client: `make conformance`.

How: the suite is a program for Python 2.7; it is installed from ``autobahn.lock`` into a folder
below ``target/``. Its fuzzing client tests `/echo` of a server on each driver. Its fuzzing server
tests the protocol machine of our generator's clients, which is built as an example of the crate.
The suite's reports are read as data: every case of the groups below has to pass strictly, or be
informational. The cases of compression are for our client alone, and take half an hour; given
some (`tools/conformance.py 12.1.*`), only these are run.

Exit: 0 all passed, 1 a case failed, 77 there is no Python 2.7 (nothing was tested).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# The script may be run from any folder, so it finds `tools` by its own path.
sys.path.append(str(Path(__file__).resolve().parent.parent))
from tools.conformance_server import READY_S, ROOT, serving

LOCK = ROOT / "tools" / "autobahn.lock"
FOLDER = ROOT / "target" / "conformance"

# Group 9 measures speed.
GROUPS = {
    1: "framing",
    2: "pings and pongs",
    3: "reserved bits",
    4: "opcodes",
    5: "fragmentation",
    6: "UTF-8",
    7: "closing",
    10: "auto-fragmentation",
}
# The number of these cases in version 0.8.2; a suite that ran fewer has shown nothing.
CASES = 247
# What our client offers covers these: it keeps no context. Cases 13.3 to 13.6 need a window that it
# does not offer, and are not run.
COMPRESSION = ("12.*", "13.1.*", "13.2.*", "13.7.*")
COMPRESSION_CASES = 144
COMPRESSION_GROUPS = {12: "compression", 13: "parameters of compression"}
PASSED = {"OK", "INFORMATIONAL"}
DRIVERS = ("io_uring", "epoll")
NO_PYTHON = 77
INSTALL_S = 600.0
SUITE_S = 300.0
COMPRESSION_S = 7200.0


@dataclass(frozen=True)
class Suite:
    """The installed suite: its program, and the environment that it runs in."""

    wstest: Path
    env: Mapping[str, str]

    def command(self, mode: str, what: Mapping[str, Any]) -> list[str]:
        """Return the command for a mode; also writes its specification and empties its reports."""
        shutil.rmtree(reports(mode), ignore_errors=True)
        spec = {
            "outdir": str(reports(mode)),
            "cases": [f"{group}.*" for group in GROUPS],
            "exclude-cases": [],
            "exclude-agent-cases": {},
            **what,
        }
        path = FOLDER / f"{mode}.json"
        path.write_text(json.dumps(spec), encoding="utf-8")
        return [str(self.wstest), "-m", mode, "-s", str(path), "--webport", "0"]

    def test_servers(self, urls: Mapping[str, str]) -> Any:
        """Run all cases against all servers; return the suite's own index of results."""
        servers = [{"agent": name, "url": url} for name, url in urls.items()]
        command = self.command("fuzzingclient", {"servers": servers})
        with (FOLDER / "fuzzingclient.log").open("wb") as log:
            subprocess.run(
                command, env=self.env, stdout=log, stderr=log, timeout=SUITE_S, check=True
            )
        return index("fuzzingclient")

    def test_client(self, client: Path, cases: Sequence[str]) -> Any:
        """Run these cases against a client; return the suite's own index of results."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        command = self.command("fuzzingserver", {"url": f"ws://{address}", "cases": cases})
        with (
            (FOLDER / "fuzzingserver.log").open("wb") as log,
            subprocess.Popen(command, env=self.env, stdout=log, stderr=log) as suite,
        ):
            try:
                wait_until_it_listens(address, suite)
                subprocess.run([str(client), address, "client"], timeout=COMPRESSION_S, check=True)
            finally:
                suite.kill()
        return index("fuzzingserver")


def python27() -> Path | None:
    """Find a Python 2.7: ``$PYTHON27``, one on the PATH, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [os.environ.get("PYTHON27"), shutil.which("python2.7"), shutil.which("python2")]
    found += sorted(map(str, pyenv.glob("versions/2.7.*/bin/python")), reverse=True)
    for name in filter(None, found):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            result = subprocess.run(
                [name, "-c", "import sys; print(sys.version_info[:2] == (2, 7))"],
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
            )
            if result.stdout.strip() == "True":
                return Path(name)
    return None


def install(python: Path) -> Suite:
    """Install the suite, once for each lock file."""
    name = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]
    home = FOLDER / f"python27-{name}"
    env = os.environ | {"PYTHONUSERBASE": str(home), "PYTHONWARNINGS": "ignore"}
    env.pop("PYTHONPATH", None)
    if not (home / "installed").exists():
        print(f"installing Autobahn's testsuite into {home.relative_to(ROOT)}", flush=True)
        shutil.rmtree(home, ignore_errors=True)
        pip = [str(python), "-m", "pip", "--disable-pip-version-check", "--quiet"]
        has_pip = subprocess.run([*pip, "--version"], env=env, capture_output=True, check=False)
        if has_pip.returncode:
            subprocess.run([str(python), "-m", "ensurepip", "--user"], env=env, check=True)
        wanted = ["install", "--user", "--no-deps", "--no-warn-script-location", "-r", str(LOCK)]
        subprocess.run([*pip, *wanted], env=env, check=True, timeout=INSTALL_S)
        (home / "installed").touch()
    return Suite(home / "bin" / "wstest", env)


@contextlib.contextmanager
def server(driver: str) -> Iterator[str]:
    """Run our server on one driver; yields the URL of its echo."""
    with serving("ws", "--driver", driver) as url:
        yield url.removesuffix("/ws") + "/echo"


def wait_until_it_listens(address: str, process: subprocess.Popen[bytes]) -> None:
    """Wait until a local port takes connections, for at most `READY_S`."""
    host, _, port = address.rpartition(":")
    until = time.monotonic() + READY_S
    while time.monotonic() < until and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.05)
    raise SystemExit(f"Autobahn's server does not listen at {address}: see {FOLDER}")


def build_client() -> Path:
    """Build our client, an example of the crate."""
    command = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "trueload-wire"]
    subprocess.run([*command, "--example", "autobahn_client"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "examples" / "autobahn_client"


def reports(mode: str) -> Path:
    """The folder into which the suite writes its page for each case."""
    return FOLDER / f"{mode}-reports"


def index(mode: str) -> Any:
    """Read the suite's own index of results: the cases of each agent."""
    return json.loads((reports(mode) / "index.json").read_text(encoding="utf-8"))


def findings(results: Mapping[str, Mapping[str, Any]], count: int | None = CASES) -> list[str]:
    """Return a line for each case that an agent did not pass; none if it passed all. ``count`` is
    the number of cases, if that is known."""
    lines = [
        f"case {case}: {result['behavior']}, closing {result['behaviorClose']}"
        for case, result in sorted(results.items(), key=lambda item: case_key(item[0]))
        if not {result["behavior"], result["behaviorClose"]} <= PASSED
    ]
    if len(results) != count and (count or not results):
        lines.append(f"{len(results)} cases were run, not {count}")
    return lines


def case_key(case: str) -> tuple[int, ...]:
    """Sort key that puts case 10 after 9."""
    return tuple(int(number) for number in case.split("."))


def table(results: Mapping[str, Mapping[str, Any]]) -> str:
    """A Markdown table with a row for each group: its cases, strictly passed and informational."""
    rows = ["| group | | cases | strict | informational |", "|---|---|---|---|---|"]
    for group, what in (GROUPS | COMPRESSION_GROUPS).items():
        of_group = [result for case, result in results.items() if case_key(case)[0] == group]
        if not of_group:
            continue
        how = Counter(result["behavior"] for result in of_group)
        row = (group, what, len(of_group), how["OK"], how["INFORMATIONAL"])
        rows.append("| " + " | ".join(map(str, row)) + " |")
    return "\n".join(rows)


def main() -> int:
    """Set up, run, and judge."""
    python = python27()
    if python is None:
        print("skipped: Autobahn's testsuite needs Python 2.7, and there is none")
        print("hint: pyenv install 2.7.18, or name one: PYTHON27=/path/to/python2.7")
        return NO_PYTHON
    FOLDER.mkdir(parents=True, exist_ok=True)
    suite = install(python)
    client, some, tested = build_client(), sys.argv[1:], {}
    if not some:
        with contextlib.ExitStack() as stack:
            urls = {driver: stack.enter_context(server(driver)) for driver in DRIVERS}
            tested = suite.test_servers(urls)
    every = [*(f"{group}.*" for group in GROUPS), *COMPRESSION]
    tested |= suite.test_client(client, some or every)
    status = 0
    counts = dict.fromkeys(DRIVERS, CASES) | {"client": CASES + COMPRESSION_CASES}
    for name, count in ({"client": None} if some else counts).items():
        results = tested.get(name, {})
        wrong = findings(results, count)
        what = "our client" if name == "client" else f"our server over {name}"
        print(f"\n{what}: {len(results)} cases, {'passed' if not wrong else 'FAILED'}")
        print("\n".join(wrong) if wrong else table(results))
        status = 1 if wrong else status
    for mode in ("fuzzingserver",) if some else ("fuzzingclient", "fuzzingserver"):
        print(f"\neach case: {(reports(mode) / 'index.html').relative_to(ROOT)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
