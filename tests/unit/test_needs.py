"""What `make test` installs, what it skips, and what it says of both (tools/needs.py)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import ROOT, put_script

from tools import needs
from tools.needs import NEEDS

ASKED = "Some tests need Debian packages that are missing: chromium ldc\n"


def test_the_summary_counts_each_test_once_and_says_how_to_get_what_it_needs() -> None:
    skipped = [("go", "a"), ("chromium", "b"), ("chromium", "c"), ("chromium", "b"), ("root", "d")]
    assert needs.summary(skipped) == (
        "skipped, as a package or a tool is missing:\n"
        "     2 for chromium: apt-get install chromium\n"
        "     1 for go: Go 1.24 or newer from https://go.dev/dl\n"
        "     1 for root: run as root"
    )
    assert needs.summary([]) == "skipped, as a package or a tool is missing: no tests"


def test_every_need_can_be_checked_and_has_a_cure() -> None:
    for name, need in NEEDS.items():
        assert need.cure, name
        assert need.parts or name in ("root", "namespaces")


def test_a_tool_that_is_too_old_is_as_good_as_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(needs, "SEARCHED", str(tmp_path))
    for version, good in (("go1.19.8", False), ("go1.24", True), ("go1.24.1", True), ("go2", True)):
        put_script(tmp_path / "go", f"echo go version {version} linux/amd64")
        assert NEEDS["go"].is_met() is good, version
    put_script(tmp_path / "go", "exit 1")
    assert not NEEDS["go"].is_met()


@pytest.fixture
def ordinary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs of an ordinary user, who has apt-get."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    put_script(tmp_path / "apt-get", "exit 1")
    return tmp_path


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A terminal, at which the user has typed some text."""
    keyboard, screen = os.openpty()

    def type_in(text: str) -> None:
        os.write(keyboard, text.encode())

    monkeypatch.setattr(sys, "stdin", os.fdopen(screen, "r"))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    return type_in


@pytest.mark.parametrize(
    ("answer", "how"),
    [("\n", ("sudo",)), ("y\n", ("sudo",)), ("Yes\n", ("sudo",)), ("n\n", None), ("\x04", None)],
    ids=["enter", "y", "yes", "n", "end of input"],
)
def test_a_user_at_a_terminal_is_asked_once(
    ordinary: Path,
    terminal: Callable[[str], None],
    answer: str,
    how: tuple[str, ...] | None,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    put_script(ordinary / "sudo", "exit 1")
    terminal(answer)
    assert needs._permitted(["chromium", "ldc"]) == how
    assert capsys.readouterr().out.startswith(ASKED)


@pytest.mark.parametrize(("code", "how"), [(0, ("sudo", "-n")), (1, None)])
@pytest.mark.parametrize("environment", ["CI", "no terminal"])
def test_without_a_terminal_or_in_ci_nobody_is_asked(
    ordinary: Path,
    environment: str,
    code: int,
    how: tuple[str, ...] | None,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if environment == "CI":
        request.getfixturevalue("terminal")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("CI", "true")
    put_script(ordinary / "sudo", f'[ "$*" = "-n true" ] && exit {code}')
    assert needs._permitted(["chromium"]) == how
    assert capsys.readouterr().out == ""


def test_without_sudo_or_apt_nothing_is_installed(ordinary: Path) -> None:
    assert needs._permitted(["chromium"]) is None, "no sudo"
    (ordinary / "apt-get").unlink()
    put_script(ordinary / "sudo", "exit 0")
    assert needs._permitted(["chromium"]) is None, "no apt-get"


# A test that needs a program that nobody has.
NEEDY = """
import needing
import pytest
from tools.needs import NEEDS, Need

NEEDS["nothing"] = Need("nothing", ("no-such-program",), ("libnothing-dev",))

@pytest.mark.needs("nothing")
def test_by_a_mark():
    raise AssertionError

def test_by_a_call():
    needing.need("nothing")
    raise AssertionError

@pytest.mark.needs("nothing", "util-linux")
@pytest.mark.parametrize("number", range(2))
def test_of_several(number):
    raise AssertionError
"""


def run_needy(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_needy.py").write_text(NEEDY)
    words = ["-p", "needing", "-p", "no:cacheprovider", "--rootdir", str(folder), "test_needy.py"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TEST_NEEDS")}
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, *words],
        cwd=folder,
        env={**kept, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_test_is_skipped_for_what_is_missing_and_is_on_the_list(tmp_path: Path) -> None:
    listed = tmp_path / "skipped"
    for _ in range(2):
        ended = run_needy(tmp_path, SKIPPED_TESTS=str(listed))
        assert ended.returncode == 0, ended
        assert "\n     4 for nothing: apt-get install libnothing-dev\n" in ended.stdout
    assert {line.split()[0] for line in listed.read_text().splitlines()} == {"nothing"}
    assert len(set(listed.read_text().splitlines())) == 4


def test_where_nothing_may_be_skipped_such_a_test_fails(tmp_path: Path) -> None:
    ended = run_needy(tmp_path, TEST_NEEDS="all")
    assert ended.returncode == 1, ended
    assert "needs nothing (apt-get install libnothing-dev); nothing may be skipped" in ended.stdout
    assert "passed" not in ended.stdout
    assert "skipped," not in ended.stdout


@pytest.mark.parametrize(("need", "code"), [("root", 7), ("nothing", 0)])
def test_a_check_runs_if_what_it_needs_is_here(
    need: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(needs, "STRICT", False)
    monkeypatch.setenv("SKIPPED_TESTS", str(tmp_path / "skipped"))
    monkeypatch.setitem(NEEDS, "nothing", needs.Need("nothing", ("no-such-program",), ("none",)))
    assert needs.run(need, ["sh", "-c", "exit 7"]) == code
    assert (tmp_path / "skipped").exists() is (code == 0)


LACKING = {
    "cc": "no C compiler (cc); install one, on Debian: apt-get install gcc libc6-dev",
    "python3": "no python3; install Python 3.11 or newer, on Debian: apt-get install python3 ",
    "cargo": "no Rust toolchain (cargo); install 1.88 or newer from https://rustup.rs",
    "headers": "cc cannot build a program; install the C library's headers, on Debian: ",
    "old": "rustc is 1.63 and 1.88 is needed; with rustup: rustup update stable",
    "clippy": "no clippy or rustfmt to check the sources with; with rustup: rustup component add ",
}


@pytest.mark.parametrize("lacking", LACKING)
def test_the_set_up_names_what_is_missing_in_one_line_with_its_cure(
    tmp_path: Path, lacking: str
) -> None:
    for name in ("sed", "cut"):
        (tmp_path / name).symlink_to(f"/usr/bin/{name}")
    put_script(tmp_path / "cc", "exit 1" if lacking == "headers" else "exit 0")
    put_script(tmp_path / "python3", "exit 0")
    put_script(tmp_path / "cargo", "exit 1" if lacking == "clippy" else "exit 0")
    put_script(
        tmp_path / "rustc", f"echo 'rustc 1.{63 if lacking == 'old' else 95}.0 (abc 2026-01-01)'"
    )
    (tmp_path / lacking).unlink(missing_ok=True)
    script = ["/bin/sh", str(ROOT / "tools" / "preflight.sh"), "python3", "lint"]
    ended = subprocess.run(script, env={"PATH": str(tmp_path)}, capture_output=True, check=False)
    (line,) = ended.stderr.decode().splitlines()
    assert line.startswith(f"set-up: {LACKING[lacking]}")
    assert ended.returncode == 1
