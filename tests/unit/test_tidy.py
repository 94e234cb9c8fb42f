"""Each rule of tools/tidy.py finds what it is for, and leaves its lawful neighbours alone."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from tools import tidy

ROOT = Path(__file__).resolve().parents[2]


def rules_broken(path: str, text: str) -> set[str]:
    return {finding.rule for finding in tidy.check(tidy.File(PurePosixPath(path), text))}


def python_function(lines: int) -> str:
    body = "\n".join(f"    x = {n}" for n in range(lines))
    return f'"""A module."""\n\n\ndef long() -> None:\n    """What it does."""\n{body}\n'


def brace_function(head: str, lines: int) -> str:
    body = "\n".join("    step();" for _ in range(lines - 2))
    return f"//! A file.\n{head} {{\n{body}\n}}\n"


WORDS = "word " * 31
# (the test's name, path, text, the one rule that it breaks)
BROKEN = [
    ("a long sentence", "docs/a.md", f"{WORDS[:79]}\n{WORDS[80:-1]}.\n", "plain-english"),
    ("a wide line", "docs/a.md", "Here." + " Ten words." * 10 + "\n", "plain-english"),
    ("a fragment", "tools/a.py", '"""Of those that there are."""\n', "plain-english"),
    ("a retired word", "crates/drive/a.rs", "//! The steward of a host.\n", "plain-english"),
    ("a long file", "python/trueload/a.py", '"""A."""\n' + "x = 1\n" * 600, "short-files"),
    ("a long page", "docs/a.md", "x\n\n" * 300 + "x\n", "short-files"),
    ("a long Python function", "tools/a.py", python_function(71), "short-functions"),
    ("a long Rust function", "crates/drive/a.rs", brace_function("fn f()", 71), "short-functions"),
    (
        "a long Rust function with a where clause",
        "crates/drive/a.rs",
        brace_function("fn f<T>(a: [u8; 3]) -> Option<T>\nwhere\n    T: Fn(u8) -> u8,\n", 71),
        "short-functions",
    ),
    (
        "a long Rust function with braces in its literals",
        "crates/drive/a.rs",
        brace_function("fn f()", 71).replace("step();", 's(\'}\', "}}", r#"}"}"#); // }', 1),
        "short-functions",
    ),
    ("a long Go function", "subjects/go/a/a.go", brace_function("func f()", 71), "short-functions"),
    (
        "a long C function",
        "subjects/c/a/a.c",
        brace_function("static int f(int a)", 71),
        "short-functions",
    ),
    (
        "a long D method",
        "subjects/d/a/a.d",
        brace_function("    T[] f(T)(ref int a) @nogc", 71),
        "short-functions",
    ),
    (
        "a long JavaScript function",
        "subjects/js/a/a.js",
        brace_function("function f(a)", 71),
        "short-functions",
    ),
    ("a module that says nothing", "tools/a.py", "x = 1\n", "opens-with-purpose"),
    ("a crate that says nothing", "crates/wire/src/a.rs", "fn f() {}\n", "opens-with-purpose"),
    ("a script that says nothing", "tools/a.sh", "#!/bin/sh\nset -e\n", "opens-with-purpose"),
    ("a blank at a line's end", "docs/a.md", "one \ntwo\n", "clean-whitespace"),
    ("a tab in Python", "tools/a.py", '"""A."""\nif 1:\n\tx = 1\n', "clean-whitespace"),
    ("no newline at the end", "docs/a.md", "one", "clean-whitespace"),
    ("two newlines at the end", "docs/a.md", "one\n\n", "clean-whitespace"),
    ("something left to do", "docs/a.md", "TO" + "DO: more\n", "nothing-left-to-do"),
    ("something left to fix", "docs/a.md", "FIX" + "ME\n", "nothing-left-to-do"),
    ("a home folder", "docs/a.md", "run /home" + "/ann/x\n", "no-machine-paths"),
    ("root's home", "docs/a.md", "run /ro" + "ot/x\n", "no-machine-paths"),
    ("how it was written", "docs/a.md", "as instruc" + "ted\n", "speaks-of-the-project"),
    ("an index option", "docs/a.md", "pip --index" + "-url x\n", "no-mirrors"),
    ("a mirror's host", "docs/a.md", "from https://pypi.mir" + "ror.example/x\n", "no-mirrors"),
    ("a lock file with a host", "x/go.sum", "a https://cache.example/x\n", "no-mirrors"),
    ("a lock file with a path", "requirements.lock", "a @ file:///opt/x\n", "no-mirrors"),
    (
        "a lock file from a private registry",
        "Cargo.lock",
        'source = "registry+https://crates.example/index"\n',
        "no-mirrors",
    ),
    ("a test that sleeps", "tests/a.py", '"""A."""\ntime.sle' + "ep(1)\n", "tests-wait-for-events"),
    (
        "a program of a test that sleeps",
        "tests/unit/a.py",
        '"""A."""\nPROGRAM = "from time import *; sle' + 'ep(9)"\n',
        "tests-wait-for-events",
    ),
    (
        "a sleep by another name",
        "tests/a.py",
        '"""A."""\nthreading.Event().wa' + "it(0.1)\n",
        "tests-wait-for-events",
    ),
    (
        "a test by the clock",
        "tests/a.py",
        '"""A."""\nassert time.monotonic' + "() - began_s < 3\n",
        "tests-wait-for-events",
    ),
    ("unsafe in a machine", "crates/wire/src/a.rs", "//! A.\nunsafe fn f() {}\n", "unsafe-at-home"),
    ("a clock in a load", "crates/load/src/a.rs", "//! A.\nInstant::now();\n", "pure-crates"),
    ("a socket in a machine", "crates/wire/src/a.rs", "//! A.\nTcpStream;\n", "pure-crates"),
    (
        "a machine that uses the driver",
        "crates/wire/Cargo.toml",
        '[package]\nname = "trueload-wire"\n[dependencies]\ntrueload-drive.workspace = true\n',
        "crates-point-one-way",
    ),
    (
        "an option defined twice",
        "python/trueload/cli/http.py",
        '"""A."""\nA = typer.Option("-c", "--connections")\nB = typer.Option("--connections")\n',
        "options-defined-once",
    ),
    (
        "a flag defined twice",
        "python/trueload/cli/http.py",
        '"""A."""\nA = Annotated[bool, typer.Option("--json")]\n'
        'B = Annotated[bool, typer.Option("--json")]\n',
        "options-defined-once",
    ),
    (
        "a percentile of its own",
        "python/trueload/report/a.py",
        '"""A."""\nfrom trueload.stats import median, quantile\n',
        "figures-at-home",
    ),
    (
        "a summary of its own",
        "python/trueload/report/a.py",
        '"""A."""\nfrom trueload import stats\n\nA = stats.summarise(B)\n',
        "figures-at-home",
    ),
]

LAWFUL = [
    ("a function of 70 lines", "tools/a.py", python_function(70)),
    ("a Rust function of 70 lines", "crates/drive/a.rs", brace_function("fn f()", 70)),
    ("a declared Rust function", "crates/drive/a.rs", "//! A.\nfn f();\n" + "a();\n" * 80),
    ("a sleep in a tool", "tools/a.py", '"""A."""\ntime.sle' + "ep(1)\n"),
    ("a clock of a test", "tests/a.py", '"""A."""\ndef sle' + "ep(wanted_s): ...\n"),
    ("a turn of a loop", "tests/a.py", '"""A."""\nawait asyncio.sle' + "ep(0)\n"),
    ("a bound", "tests/a.py", '"""A."""\nassert program.wait(time.monotonic() + 30)\n'),
    ("a lifetime", "crates/drive/a.rs", "//! A.\nfn f<'a>(x: &'a str) {}\nfn g() {}\n"),
    (
        "percentiles where they belong",
        "python/trueload/record/figures.py",
        '"""A."""\nfrom trueload.stats import quantile\n',
    ),
    ("an empty module", "python/trueload/a/__init__.py", ""),
    ("a wide table", "docs/a.md", "| " + "word " * 40 + "|\n"),
    ("a wide command", "docs/a.md", "```\n" + "word" * 40 + "\n```\n"),
    ("a long list", "docs/a.md", "".join(f"- item {n}\n" for n in range(40))),
    (
        "a generated text",
        "docs/a.md",
        "<!-- a: written by b -->\n" + WORDS[:-1] + "\n<!-- end of a -->\n",
    ),
    ("a docstring that is a sentence", "tools/a.py", '"""Offer what is there."""\n'),
    ("a Java class", "subjects/java/a/A.java", "import b;\n\n/** A. */\nclass A {}\n"),
    ("a tab in Go", "subjects/go/a/a.go", "// A.\nfunc f() {\n\treturn\n}\n"),
    ("a tab in a Makefile", "Makefile", "# A.\na:\n\ttrue\n"),
    ("a relative path", "docs/a.md", "see tests/home" + "/ann and {build}/ro" + "ot/x\n"),
    ("a manifest's URL", "docs/a.md", "see https://www.rfc-editor.org/rfc/rfc9112\n"),
    ("unsafe in the driver", "crates/drive/src/a.rs", "//! A.\nunsafe fn f() {}\n"),
    ("unsafe in a comment", "crates/wire/src/a.rs", "//! No unsafe here.\n"),
    ("the unsafe_code lint", "crates/wire/src/a.rs", "//! A.\n#![deny(unsafe_code)]\n"),
    ("a clock in the driver", "crates/drive/src/a.rs", "//! A.\nInstant::now();\n"),
    (
        "a lock file of crates.io",
        "Cargo.lock",
        'source = "registry+https://github.com/rust-lang/crates.io-index"\n',
    ),
    (
        "an engine that uses the driver",
        "crates/engine/Cargo.toml",
        '[package]\nname = "trueload-engine"\n[dependencies]\ntrueload-drive.workspace = true\n',
    ),
    (
        "two options",
        "python/trueload/cli/http.py",
        '"""A."""\nA = typer.Option("-c", "--connections")\nB = typer.Option("-d", "--duration")\n',
    ),
    (
        "a flag and an option with a value",
        "python/trueload/cli/http.py",
        '"""A."""\nA = Annotated[bool, typer.Option("--json")]\n'
        'B = Annotated[Path, typer.Option("--json")]\n',
    ),
]


@pytest.mark.parametrize(
    ("sentence", "path", "text", "rule"), BROKEN, ids=[row[0] for row in BROKEN]
)
def test_a_broken_rule_is_found(sentence: str, path: str, text: str, rule: str) -> None:
    assert rules_broken(path, text) == {rule}, sentence


@pytest.mark.parametrize(("sentence", "path", "text"), LAWFUL, ids=[row[0] for row in LAWFUL])
def test_what_is_lawful_is_left_alone(sentence: str, path: str, text: str) -> None:
    assert rules_broken(path, text) == set(), sentence


def test_every_rule_has_a_case_that_breaks_it() -> None:
    names = {rule.__name__.replace("_", "-") for rule in tidy.RULES}
    assert {rule for _, _, _, rule in BROKEN} == names


TESTS = "#[cfg(test)]\nmod tests {\n    use super::b::T;\n}\n"
TEST_FILE = {"a": "#[cfg(test)]\nmod tests;", "a/tests": "use crate::b;", "b": "use crate::a;"}
EXPORTED = {"lib": "mod a;\npub use a::T;", "a": "use crate::b::c::U;", "b": "mod c;"}
COUSINS = {"a": "mod b;\nmod c;", "a/b": "use super::c::d::T;", "a/c": "mod d;"}

# (the test's name, the modules of a crate and their text, the circles that are found)
CIRCLES = [
    ("each uses the next", {"a": "use crate::b;", "b": "use crate::c::{self, T};", "c": ""}, []),
    (
        "the last uses the first",
        {"a": "use crate::b;", "b": "use crate::c::T;", "c": "fn g() { crate::a::f(); }"},
        ["x::a, x::b, x::c"],
    ),
    (
        "two use each other in a group",
        {"a": "use crate::{b::{T, c}, d};", "b/mod": "pub use super::{e, a as f};"},
        ["x::a, x::b"],
    ),
    ("a module uses itself", {"a": "use crate::a::T;\nuse self::U;"}, []),
    ("in a comment", {"a": "// crate::b", "b": "use crate::a;"}, []),
    ("a library of that name", {"a": "use b::T;\nuse x_b::U;", "b": "use crate::a;"}, []),
    ("in tests", {"a": f"use crate::c;\n{TESTS}", "b": "use crate::a;", "c": ""}, []),
    ("behind tests", {"a": f"{TESTS}use super::b;", "b": "use super::a;"}, ["x::a, x::b"]),
    ("in a file for tests", TEST_FILE, []),
    ("a parent and its child", {"a/mod": "mod b;\nuse b::T;", "a/b": "use super::U;"}, []),
    ("a name that the crate exports", EXPORTED | {"b/c": "use crate::T;"}, ["x::a, x::b"]),
    (
        "a name that the parent imports",
        {"lib": "mod a;\nmod b;\nuse b::T as U;", "a": "use super::U;", "b": "use super::a;"},
        ["x::a, x::b"],
    ),
    ("a name of another crate", {"lib": "use y::T;", "a": "use crate::T;"}, []),
    ("two rooms within one", COUSINS | {"a/c/d": "use crate::a::{b, e};"}, ["x::a::b, x::a::c"]),
    ("an import of itself", {"a": "use crate::b::T;", "b": "use crate::b::T;"}, []),
]


def crate(texts: dict[str, str]) -> list[tidy.File]:
    return [tidy.File(PurePosixPath(f"crates/x/src/{name}.rs"), t) for name, t in texts.items()]


@pytest.mark.parametrize(("sentence", "texts", "found"), CIRCLES, ids=[row[0] for row in CIRCLES])
def test_modules_of_a_crate_that_need_each_other_are_found(
    sentence: str, texts: dict[str, str], found: list[str]
) -> None:
    advice = [finding.advice for finding in tidy.modules_without_circles(crate(texts))]
    assert advice == [f"these need each other: {circle}" for circle in found], sentence


RUNS_NOTHING = "a report reads records, it runs nothing"

# (the test's name, the modules and their text, what is said of them)
ROOMS = [
    ("a lower room", {"record/a": "", "cli/a": "import trueload.record.a"}, []),
    ("a library", {"stats": "import math"}, []),
    ("a neighbour in the room", {"cli/a": "", "cli/b": "from trueload.cli.a import f"}, []),
    (
        "a higher room",
        {"record/a": "from trueload.cli import a", "cli/a": ""},
        ["trueload.record.a imports trueload.cli.a: cli is not below record"],
    ),
    (
        "a higher room, by a dot",
        {"stats": "from .units import parse", "units": ""},
        ["trueload.stats imports trueload.units: units is not below stats"],
    ),
    (
        "a higher room, in a function",
        {"verdict/a": "def f():\n    from trueload.store.runs import Store", "store/runs": ""},
        ["trueload.verdict.a imports trueload.store.runs: store is not below verdict"],
    ),
    (
        "a room that nobody knows",
        {"attic/a": "import trueload.units", "units": ""},
        ["'attic' has no floor: give it one in tools/floors.py"],
    ),
    (
        "two of a room that need each other",
        {"cli/a": "import trueload.cli.b", "cli/b": "import trueload.cli.a"},
        ["these need each other: trueload.cli.a, trueload.cli.b"],
    ),
    (
        "a report that runs suites",
        {"report/a": "import trueload.suites.execute", "suites/execute": ""},
        [f"trueload.report.a imports trueload.suites.execute: {RUNS_NOTHING}"],
    ),
    (
        "a report on what a suite has found",
        {"report/a": "from trueload.suites.summary import Summary", "suites/summary": ""},
        [],
    ),
]


@pytest.mark.parametrize(("sentence", "texts", "expected"), ROOMS, ids=[row[0] for row in ROOMS])
def test_a_room_imports_lower_rooms_only(
    sentence: str, texts: dict[str, str], expected: list[str]
) -> None:
    files = [
        tidy.File(PurePosixPath(f"python/trueload/{name}.py"), f'"""A."""\n{text}\n')
        for name, text in texts.items()
    ]
    assert [finding.advice for finding in tidy.imports_point_down(files)] == expected, sentence


@pytest.mark.needs("git")
def test_the_floors_can_be_printed() -> None:
    tool = [sys.executable, str(ROOT / "tools" / "tidy.py"), "--floors"]
    ended = subprocess.run(tool, capture_output=True, text=True, check=True)
    rooms = {line.split()[0]: line.split()[2:] for line in ended.stdout.splitlines()}
    assert "commands" in rooms["api"]
    assert rooms["units"] == ["-"]


def test_a_finding_names_the_line() -> None:
    found = tidy.check(tidy.File(PurePosixPath("docs/a.md"), "one\ntwo \n"))
    assert [str(f).split(": ")[0] for f in found] == ["docs/a.md:2"]


@pytest.mark.needs("git")
def test_the_command_fails_when_something_is_found(tmp_path: Path) -> None:
    for command in (["init", "-q"], ["add", "."]):
        (tmp_path / "a.py").write_text("x = 1\n")
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    tool = [sys.executable, str(ROOT / "tools" / "tidy.py"), str(tmp_path)]
    ended = subprocess.run(tool, capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended
    assert ended.stdout.splitlines()[-1] == "tidy: 1 files, 1 findings"
