"""Inspects what was built for a release, installs it into an empty environment, and uses it.

How: a virtual environment whose commands see a PATH without compilers, a home folder and a store of
their own. `release.py` calls this.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from trueload.places.program import needs

from tools.release_steps import COMPLETIONS, MAN_PAGE, StepError, Target, print_step, run

ENGINE_BYTES_MAX = 8_000_000
VALID_OR_NOT = (0, 4)  # the machine may be busy; it only has to measure

SUBJECT = """role = "server"
about = "http.server of Python"
contracts = ["http-plaintext"]
run = ["python3", "hello.py", "{host}", "{port}"]
"""
PROGRAM = '''"""Answers Hello, World!"""
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hello(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        known = self.path == "/"
        body = b"Hello, World!" if known else b"not here"
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Hello).serve_forever()
'''
SUITE = """about = "one server of Python"
contract = "http-plaintext"
subjects = ["python/hello"]
duration = "500ms"
warmup = "100ms"
repeat = 2

[[loads]]
connections = [4]
"""


def engine_in(wheel: Path) -> bytes:
    """Read the engine's program out of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("/trueload-engine"))
        return archive.read(name)


def inspect_wheel(wheel: Path, target: Target) -> str:
    """Check what a wheel contains, and that its tags are true."""
    engine = engine_in(wheel)
    machine, loader = needs(engine)
    tags = f"-py3-none-manylinux_2_17_{target.cpu}.musllinux_1_1_{target.cpu}.whl"
    with zipfile.ZipFile(wheel) as archive:
        shared = {name.partition("/data/share/")[2] for name in archive.namelist()}
    lacking = {MAN_PAGE, *COMPLETIONS.values()} - shared
    wrong = {
        "its tags are not those of a static engine": not wheel.name.endswith(tags),
        "the engine is for another processor": machine != target.cpu,
        "the engine is not static": loader is not None,
        f"the engine has {len(engine):,} bytes": len(engine) > ENGINE_BYTES_MAX,
        f"it lacks {', '.join(sorted(lacking))}": bool(lacking),
    }
    for why, is_so in wrong.items():
        if is_so:
            raise StepError(f"{wheel.name}: {why}")
    size, of_engine = wheel.stat().st_size / 1e6, len(engine) / 1e6
    return f"wheel {wheel.name}, {size:.1f} MB; its engine: static, {of_engine:.1f} MB unpacked"


def resolve_dependencies(wheel: Path, target: Target) -> str:
    """Ask pip what it would install on each kind of Linux, from wheels alone."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    pip += ["--only-binary", ":all:", "--python-version", "3.11", str(wheel)]
    with tempfile.TemporaryDirectory() as nowhere:
        for kind in ("manylinux_2_17", "musllinux_1_1"):
            run([*pip, "--platform", f"{kind}_{target.cpu}", "--target", nowhere])
    return f"on {target.cpu}, with glibc and with musl, pip finds a wheel of all that it needs"


def ask_engine(words: Sequence[str]) -> None:
    """Check that an engine says hello and ends when its input does."""
    output = run(words).splitlines()
    if not output or json.loads(output[0]).get("type") != "hello":
        raise StepError(f"`{' '.join(words)}` does not say hello: {output}")


def try_emulated(wheel: Path, target: Target, folder: Path) -> str:
    """Check that an engine for another processor says hello, if there is an emulator for it."""
    emulator = shutil.which(f"qemu-{target.cpu}") or shutil.which(f"qemu-{target.cpu}-static")
    if emulator is None:
        return f"the engine for {target.cpu} was not run: no qemu-{target.cpu} (qemu-user)"
    folder.mkdir(parents=True, exist_ok=True)
    engine = folder / "trueload-engine"
    engine.write_bytes(engine_in(wheel))
    engine.chmod(0o755)
    ask_engine([emulator, str(engine)])
    return f"the engine for {target.cpu} answers, emulated"


class Place:
    """An empty environment: its folder, and the variables of its commands."""

    def __init__(self, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.folder = folder
        self.venv = folder / "venv"
        self.bin = self.venv / "bin"
        run([sys.executable, "-m", "venv", str(self.venv)])
        needed = ("PIP_", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_")
        kept = {name: each for name, each in os.environ.items() if name.upper().startswith(needed)}
        self.env = {
            **kept,
            "PATH": str(self.bin),
            "HOME": str(folder),
            "LANG": "C.UTF-8",
            "TRUELOAD_STORE": str(folder / "store"),
        }

    def install(self, what: str, *options: str, env: Mapping[str, str] | None = None) -> None:
        """Install with pip, in the place's environment unless another one is given."""
        words = [str(self.bin / "pip"), "install", "--quiet", *options, what]
        run(words, env=self.env if env is None else env, cwd=self.folder)

    def trueload(self, *words: str, codes: Sequence[int] = (0,)) -> str:
        """Run the installed command; return what it prints."""
        command = [str(self.bin / "trueload"), *words]
        return run(command, env=self.env, cwd=self.folder, codes=codes)

    @contextmanager
    def server(self) -> Iterator[str]:
        """Run the reference server; yields its URL."""
        words = [str(self.bin / "trueload"), "serve", "http", "--listen", "127.0.0.1:0"]
        with subprocess.Popen(
            words, env=self.env, cwd=self.folder, stderr=subprocess.STDOUT, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            try:
                output = process.stdout.readline().decode()
                url = re.search(r"http://[\d.:]+/", output)
                if url is None:
                    raise StepError(f"`trueload serve http` says {output!r}")
                yield url[0]
            finally:
                process.terminate()


def try_wheel(wheel: Path, folder: Path) -> None:
    """Install a wheel with no compiler on the PATH, and use it. Each use prints its line."""
    place = Place(folder)
    place.install(f"{wheel}[report]", "--only-binary", ":all:")
    print_step(f"installed without a compiler: {place.trueload('--version').strip()}")
    for use in (try_http, try_suite, try_report, try_man_page, try_completion):
        print_step(use(place))


def try_http(place: Place) -> str:
    """Run `trueload http` against `trueload serve http`."""
    words = ("-c", "4", "-d", "500ms", "--warmup", "100ms", "--json", "result.json")
    with place.server() as url:
        place.trueload("http", url, *words, codes=VALID_OR_NOT)
    result = json.loads((place.folder / "result.json").read_text())
    if not result["counts"]["ok"]:
        raise StepError("`trueload http` measured no request")
    return f"`trueload http`: {result['counts']['ok']:,} requests, {result['verdict']}"


def try_suite(place: Place) -> str:
    """Run a suite of one subject, a program in Python."""
    subject = place.folder / "subjects" / "python" / "hello"
    subject.mkdir(parents=True)
    (subject / "subject.toml").write_text(SUBJECT)
    (subject / "hello.py").write_text(PROGRAM)
    (place.folder / "mine.toml").write_text(SUITE)
    output = place.trueload("suite", "run", "mine.toml", "--share-cpus", codes=VALID_OR_NOT)
    row = re.search(r"^python +hello .*", output, re.MULTILINE)
    if row is None:
        raise StepError(f"`trueload suite run` shows no row of the subject:\n{output}")
    return f"`trueload suite run`: {' '.join(row[0].split())}"


def try_report(place: Place) -> str:
    """Make a page of the last run."""
    place.trueload("report", "last", "-o", "report.html")
    page = (place.folder / "report.html").read_text()
    if "hello" not in page or "<svg" not in page:
        raise StepError("the page of `trueload report` has no chart, or not the subject")
    return f"`trueload report`: a page of {len(page) / 1e3:.0f} kB with charts"


def try_man_page(place: Place) -> str:
    """Show `man trueload`, which man finds beside the command."""
    man = shutil.which("man")
    if man is None:
        return "the manual page was not shown: there is no man here"
    env = {"PATH": f"{place.bin}:{os.defpath}", "MANWIDTH": "80", "LANG": "C.UTF-8"}
    output = run([man, "trueload"], env=env)
    if "trueload http [OPTIONS] [URL]" not in output:
        raise StepError(f"`man trueload` shows {output.splitlines()[:5]}")
    return f"`man trueload`: {len(output.splitlines())} lines"


def try_completion(place: Place) -> str:
    """Complete a command line in bash, with the installed script."""
    bash = shutil.which("bash")
    if bash is None:
        return "completion was not tried: there is no bash here"
    script = place.venv / "share" / COMPLETIONS["bash"]
    code = (
        f". {script}; COMP_WORDS=(trueload runs sh); COMP_CWORD=2;"
        '_trueload_completion trueload; echo "${COMPREPLY[@]}"'
    )
    env = {**place.env, "PATH": f"{place.bin}:{os.defpath}"}
    output = run([bash, "--norc", "-c", code], env=env, cwd=place.folder).strip()
    if output != "show":
        raise StepError(f"bash completes `trueload runs sh` by {output!r}")
    return "bash completes `trueload runs sh` by `show`"


def try_sdist(sdist: Path, folder: Path, build_env: Mapping[str, str]) -> str:
    """Install the source distribution as pip does, with build tools of pip's own choice."""
    place = Place(folder)
    place.install(str(sdist), env=build_env)
    ask_engine([str(place.bin / "trueload-engine")])
    return f"installed from the sdist: {place.trueload('--version').strip()}"
