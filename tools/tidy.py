#!/usr/bin/env python3
"""Checks for style that formatters and linters do not make, and reviewers should not have to.

Strategy: the files that git knows are read once; every rule is a pure function from a file to its
findings, and ``RULES`` is the table of them. It uses only the standard library, so that it runs
before anything is installed. A pattern that would match itself has a bracket within a word.

    tools/tidy.py --floors        prints which room of python/trueload imports which
    tools/tidy.py [FOLDER]        prints `path:line: rule: what to do`; exit 1 if there is any
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

# The script may be run from any folder, so it finds `tools` by its own path.
sys.path.append(str(Path(__file__).resolve().parent.parent))
from tools import floors, modules, prose

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70

CODE_SUFFIXES = {
    *(".py", ".rs", ".c", ".h", ".cpp", ".d", ".go", ".js", ".mjs", ".java", ".sh"),
    *(".hs", ".rb", ".ex", ".clj"),
}
# The beginning of a comment, in languages where it is not as in C.
COMMENT_MARKS = {
    ".sh": ("#",),
    ".rb": ("#",),
    ".ex": ("#",),
    ".hs": ("--", "{-"),
    ".clj": (";",),
}
LOCK_NAMES = {"Cargo.lock", "go.sum", "package-lock.json"}
# Languages that indent with tabs.
TAB_SUFFIXES = {".go", ".sum", ".mod"}
# Texts by others, and files that hold faults on purpose.
UNTIDIED = ("LICENSE", "tests/faults/")


@dataclass(frozen=True)
class Finding:
    """One place that breaks one rule, and what to do about it."""

    path: PurePosixPath
    line: int
    rule: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.advice}"


@dataclass(frozen=True)
class File:
    """A text file, by its path from the top of the repository."""

    path: PurePosixPath
    text: str

    @property
    def suffix(self) -> str:
        return self.path.suffix

    @property
    def is_lock(self) -> bool:
        return self.path.name in LOCK_NAMES or self.suffix == ".lock"

    @property
    def is_code(self) -> bool:
        return self.suffix in CODE_SUFFIXES or self.path.name == "Makefile"

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")

    @cached_property
    def tree(self) -> ast.Module | None:
        """The syntax tree of a Python file; None for others or on a syntax error (which ruff
        reports)."""
        if self.suffix != ".py":
            return None
        try:
            return ast.parse(self.text)
        except SyntaxError:
            return None

    @cached_property
    def code(self) -> str:
        """The text with comments and literals of the C family blanked; the lines stay the same."""
        return blank_literals(self.text)

    def within(self, *folders: str) -> bool:
        return str(self.path).startswith(folders)

    def line_of(self, offset: int) -> int:
        return self.text.count("\n", 0, offset) + 1

    def finding(self, line: int, rule: str, advice: str) -> Finding:
        return Finding(self.path, line, rule, advice)


Rule = Callable[[File], Iterable[Finding]]

# Comments, raw strings, strings and characters of Rust, C, Go and JavaScript. A lifetime ('a) is
# not taken for a character, because no quote follows its letter.
_LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|\bb?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|`[^`]*`'
    r"|b?'(?:\\[^\n']+|\\'|[^\\'\n])'",
    re.DOTALL,
)


def blank_literals(text: str) -> str:
    """Replace comments and literals by spaces; newlines stay."""
    return _LITERAL.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


# --- size -----------------------------------------------------------------------------------------


def short_files(file: File) -> Iterator[Finding]:
    """No source or text file of ours is longer than FILE_LINES_MAX lines."""
    count = len(file.lines)
    if (file.is_code or file.suffix == ".md") and count > FILE_LINES_MAX:
        yield file.finding(count, "short-files", f"{count} lines, split it ({FILE_LINES_MAX})")


def short_functions(file: File) -> Iterator[Finding]:
    """No function is longer than FUNCTION_LINES_MAX lines, without signature and docstring."""
    spans = python_functions(file) if file.suffix == ".py" else brace_functions(file)
    for name, first, last in spans:
        count = last - first + 1
        if count > FUNCTION_LINES_MAX:
            advice = f"{name} has {count} lines, split it ({FUNCTION_LINES_MAX})"
            yield file.finding(first, "short-functions", advice)


def python_functions(file: File) -> Iterator[tuple[str, int, int]]:
    """Yield (name, first line, last line) of each function's body without its docstring."""
    for node in ast.walk(file.tree) if file.tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if body:
                yield node.name, body[0].lineno, node.end_lineno or body[0].lineno


# The beginning of a function, up to its name.
_FUNCTION_START = {
    ".rs": re.compile(r"\bfn\s+(\w+)"),
    ".go": re.compile(r"^func\s+(?:\([^)]*\)\s*)?(\w+)", re.MULTILINE),
    ".js": re.compile(r"\bfunction\s*\*?\s*(\w+)"),
    ".mjs": re.compile(r"\bfunction\s*\*?\s*(\w+)"),
    ".c": re.compile(r"^[a-z][\w\s*]*?\b(\w+)\s*(?=\()", re.MULTILINE),
    ".d": re.compile(r"^\s*\w[^;={}()\n]*?\b(\w+)\s*(?=\()", re.MULTILINE),
    ".java": re.compile(
        r"^\s+(?:@\w+\s+)*(?:public|private|protected|static)[^;={}]*?(\w+)(?=\()", re.M
    ),
}


def brace_functions(file: File) -> Iterator[tuple[str, int, int]]:
    """Yield (name, line of the opening brace, line of the closing one) of each function."""
    start = _FUNCTION_START.get(file.suffix)
    for found in start.finditer(file.code) if start else ():
        opening = _body_opening(file.code, found.end())
        if opening is not None:
            closing = _matching_brace(file.code, opening)
            yield found[1], file.line_of(opening), file.line_of(closing)


def _body_opening(code: str, position: int) -> int | None:
    # Find the first brace outside parentheses; a semicolon before it means a mere declaration.
    depth = 0
    for offset in range(position, len(code)):
        char = code[offset]
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif depth == 0 and char == ";":
            return None
        elif depth == 0 and char == "{":
            return offset
    return None


def _matching_brace(code: str, opening: int) -> int:
    depth = 0
    for offset in range(opening, len(code)):
        depth += (code[offset] == "{") - (code[offset] == "}")
        if depth == 0:
            return offset
    return len(code) - 1


# --- text -----------------------------------------------------------------------------------------


def opens_with_purpose(file: File) -> Iterator[Finding]:
    """Each source file opens with a comment that says what it is."""
    if not file.is_code or not file.text.strip():
        return
    if file.suffix == ".py":
        has_header = file.tree is None or ast.get_docstring(file.tree) is not None
    else:
        # In Java that comment is above the class, below the imports. In Haskell pragmas come first.
        before = {".java": ("#!", "import ", "package "), ".hs": ("{-#",)}.get(file.suffix, ("#!",))
        lines = [line for line in file.lines if line.strip() and not line.startswith(before)]
        is_makefile = file.path.name == "Makefile"
        marks = ("#",) if is_makefile else COMMENT_MARKS.get(file.suffix, ("//", "/*"))
        has_header = bool(lines) and lines[0].startswith(marks)
    if not has_header:
        yield file.finding(1, "opens-with-purpose", "begin with a comment: what the file is")


def clean_whitespace(file: File) -> Iterator[Finding]:
    """No trailing blanks, no tabs except where the language uses them, one newline at the end."""
    if file.is_lock or file.within(*UNTIDIED):
        return
    tabs_wrong = file.is_code and file.suffix not in TAB_SUFFIXES and file.path.name != "Makefile"
    for number, line in enumerate(file.lines, 1):
        if line != line.rstrip():
            yield file.finding(number, "clean-whitespace", "remove the blanks at the line's end")
        if tabs_wrong and "\t" in line:
            yield file.finding(number, "clean-whitespace", "indent with spaces, write \\t")
    if file.text and (not file.text.endswith("\n") or file.text.endswith("\n\n")):
        yield file.finding(len(file.lines), "clean-whitespace", "end with one newline")


def _forbid(rule: str, pattern: re.Pattern[str], advice: str, file: File) -> Iterator[Finding]:
    for number, line in enumerate(file.lines, 1):
        found = pattern.search(line)
        if found:
            yield file.finding(number, rule, f"'{found[0].strip()}': {advice}")


_LEFT_TO_DO = re.compile(r"\b(TO[D]O|FIX[M]E|X[X]X)\b")


def nothing_left_to_do(file: File) -> Iterator[Finding]:
    """Open work is recorded in an issue, not in the code."""
    if not file.is_lock:
        yield from _forbid("nothing-left-to-do", _LEFT_TO_DO, "do it, or open an issue", file)


_MACHINE_PATH = re.compile(r"(?<![\w.}*])/(?:ro[o]t|home/[a-z_][\w-]*|Use[r]s/\w+|wor[k])/[\w.]")


def no_machine_paths(file: File) -> Iterator[Finding]:
    """No path of the machine on which a file was written."""
    yield from _forbid("no-machine-paths", _MACHINE_PATH, "use a relative path", file)


# Phrases about how the repository was written.
_OFF_TOPIC = re.compile(
    r"\b(agent sessio[n]|this sessio[n]|previous sessio[n]|sub-?agen[t]s?|as instructe[d]"
    r"|the brief say[s]|as the lead wante[d]|co-authored-b[y]|generated wit[h])\b",
    re.IGNORECASE,
)


def speaks_of_the_project(file: File) -> Iterator[Finding]:
    """Texts speak of the project, never of how it was written."""
    yield from _forbid("speaks-of-the-project", _OFF_TOPIC, "say what the code does", file)


# A package mirror, as it appears in options and host names.
_MIRROR = re.compile(
    r"--(?:extra-)?inde[x]-url|--find-link[s]\b|--trusted-hos[t]"
    r"|https?://[^/\s\"'`>)]*(?:mirro[r]|artifactor[y]|nexu[s]|packages?-prox[y])[^\s\"'`>)]*",
    re.IGNORECASE,
)
_URL = re.compile(r"(?:[a-z]+\+)?(https?|file|git|ssh)://[^\s\"'>)]+")
# The public registries that lock files may name.
_LOCK_HOSTS = {"github.com", "registry.npmjs.org"}


def no_mirrors(file: File) -> Iterator[Finding]:
    """Lock files and texts name no mirror: each user fetches packages from their usual source."""
    yield from _forbid("no-mirrors", _MIRROR, "leave the source of packages to the user", file)
    if not file.is_lock:
        return
    for number, line in enumerate(file.lines, 1):
        for found in _URL.finditer(line):
            if urlsplit(found[0]).hostname not in _LOCK_HOSTS:
                yield file.finding(number, "no-mirrors", f"'{found[0]}' in a lock file")


# A sleep by any name, or an assertion on how long something took. sleep(0) only yields to the loop.
_BY_THE_CLOCK = re.compile(
    r"(?<!def )\b(?:u|nano)?sleep\((?!0\))|\b(?:time|asyncio)\.sleep\b(?!\(0\))"
    r"|\bEvent\(\)\.wait\([^)]"
    r"|assert [^(]*(?:monotonic|perf_counter)\(\) *[-<>]"
)
_WAITING = PurePosixPath("tests/waiting.py")


def tests_wait_for_events(file: File) -> Iterator[Finding]:
    """A test waits for an event, not for a time; only _WAITING may sleep."""
    if file.suffix == ".py" and file.within("tests/") and file.path != _WAITING:
        advice = f"wait for an event, by {_WAITING}"
        yield from _forbid("tests-wait-for-events", _BY_THE_CLOCK, advice, file)


# --- the shape ------------------------------------------------------------------------------------

_UNSAFE = re.compile(r"\bunsafe\b")
_UNSAFE_HOMES = ("crates/drive/", "crates/ffi/", "subjects/")


def unsafe_at_home(file: File) -> Iterator[Finding]:
    """Unsafe Rust is allowed only in _UNSAFE_HOMES."""
    if file.suffix == ".rs" and not file.within(*_UNSAFE_HOMES):
        for found in _UNSAFE.finditer(file.code):
            line = file.line_of(found.start())
            yield file.finding(line, "unsafe-at-home", "unsafe code belongs to crates/drive")


_IMPURE = re.compile(
    r"\b(?:Instant|SystemTime)::now\b|\bstd::(?:fs|process|thread|env)\b|\bTcp(?:Stream|Listener)\b"
)
_PURE_CRATES = ("crates/wire/src/", "crates/load/src/", "crates/meter/src/")


def pure_crates(file: File) -> Iterator[Finding]:
    """The crates of protocol machines, loads and meters use no socket, clock or file."""
    if file.suffix == ".rs" and file.within(*_PURE_CRATES):
        for found in _IMPURE.finditer(file.code):
            advice = f"'{found[0]}': pass it in, I/O and clock belong to crates/drive"
            yield file.finding(file.line_of(found.start()), "pure-crates", advice)


# The crates of ours that each crate may depend on.
CRATE_MAY_USE: dict[str, set[str]] = {
    "trueload-wire": set(),
    "trueload-load": {"trueload-meter"},
    "trueload-meter": set(),
    "trueload-drive": {"trueload-wire", "trueload-load", "trueload-meter"},
    "trueload-engine": {"trueload-wire", "trueload-load", "trueload-meter", "trueload-drive"},
    "trueload-sim": {
        "trueload-engine",
        "trueload-drive",
        "trueload-wire",
        "trueload-load",
        "trueload-meter",
    },
}


def crates_point_one_way(file: File) -> Iterator[Finding]:
    """Crates depend in one direction: sim -> engine -> drive -> wire, engine -> load -> meter."""
    if file.path.name != "Cargo.toml" or not file.within("crates/"):
        return
    manifest = tomllib.loads(file.text)
    name = manifest["package"]["name"]
    used = {u for u in manifest.get("dependencies", {}) if u.startswith("trueload-")}
    for crate in sorted(used - CRATE_MAY_USE.get(name, set())):
        yield file.finding(1, "crates-point-one-way", f"{name} may not depend on {crate}")


def modules_without_circles(files: Iterable[File]) -> Iterator[Finding]:
    """No modules of a Rust crate need each other, directly or through others (tools/modules.py)."""
    sources = (file for file in files if file.within("crates/") and file.suffix == ".rs")
    codes = {str(file.path): file.code for file in sources if file.path.parts[2] == "src"}
    for path, why in modules.findings(codes) if codes else ():
        yield Finding(PurePosixPath(path), 1, "modules-without-circles", why)


# Imports that the order of the floors would allow but that are forbidden (prefix, what, why).
MODULE_MAY_NOT_USE: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "trueload.suites.summary",
        ("trueload.suites.execute", "trueload.runner", "trueload.places"),
        "a summary reads records, it runs nothing",
    ),
    (
        "trueload.suites.load_tables",
        ("trueload.suites.execute", "trueload.runner", "trueload.places"),
        "a table shows summaries, it runs nothing",
    ),
    (
        "trueload.report",
        # not trueload.suites: its plans and summaries are values that a report shows
        (
            *("trueload.suites.execute", "trueload.runner", "trueload.subjects"),
            *("trueload.places", "trueload.engines", "trueload.trial.run"),
        ),
        "a report reads records, it runs nothing",
    ),
)


def modules_of(files: Iterable[File]) -> dict[str, tuple[File, ast.Module]]:
    """Return our Python modules by their full name."""
    return {
        ".".join(file.path.with_suffix("").parts[1:]).removesuffix(".__init__"): (file, file.tree)
        for file in files
        if file.within("python/") and file.tree is not None
    }


def imports_point_down(files: Iterable[File]) -> Iterator[Finding]:
    """A room imports lower rooms only (tools/floors.py), and its modules form no circle."""
    modules = modules_of(files)
    found = list(floors.imports({name: tree for name, (_, tree) in modules.items()}))
    for each in found:
        why = floors.upward(each) or _forbidden(each)
        if why:
            yield modules[each.module][0].finding(each.line, "imports-point-down", why)
    for circle in floors.circles(found):
        advice = f"these need each other: {', '.join(circle)}"
        yield modules[circle[0]][0].finding(1, "imports-point-down", advice)


def _forbidden(found: floors.Import) -> str:
    for prefix, forbidden, why in MODULE_MAY_NOT_USE:
        if _inside(found.module, prefix) and any(_inside(found.imported, f) for f in forbidden):
            return f"{found.module} imports {found.imported}: {why}"
    return ""


def _inside(module: str, prefix: str) -> bool:
    return module == prefix or module.startswith(prefix + ".")


def options_defined_once(file: File) -> Iterator[Finding]:
    """An option is defined once in a file; commands that share it share its definition.

    A flag and an option with a value (--json, --json FILE) count as two.
    """
    rooms = ("python/trueload/cli/", "python/trueload/commands/")
    if file.tree is None or not any(map(file.within, rooms)):
        return
    flags = {
        id(part)
        for node in ast.walk(file.tree)
        if isinstance(node, ast.Tuple)
        and ast.unparse(node.elts[0] if node.elts else node) == "bool"
        for part in node.elts
    }
    seen: Counter[tuple[str, bool]] = Counter()
    for node in ast.walk(file.tree):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "typer.Option"):
            continue
        for word in node.args:
            if isinstance(word, ast.Constant) and isinstance(word.value, str):
                name = word.value
                seen[name, id(node) in flags] += 1
                if name.startswith("--") and seen[name, id(node) in flags] > 1:
                    advice = f"{name} is defined before; share that definition"
                    yield file.finding(node.lineno, "options-defined-once", advice)


_FIGURES_HOME = ("python/trueload/record/figures.py", "python/trueload/record/sample.py")
_OF_FIGURES = frozenset({"quantile", "rank_interval", "summarise"})


def figures_at_home(file: File) -> Iterator[Finding]:
    """Percentiles and summaries of requests are computed in one module only.

    It alone knows how many requests have no time.
    """
    if file.tree is None or not file.within("python/trueload/") or file.within(*_FIGURES_HOME):
        return
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ImportFrom) and node.module == "trueload.stats":
            names = {alias.name for alias in node.names}
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "stats":
            names = {node.attr}
        else:
            continue
        for name in sorted(names & _OF_FIGURES):
            advice = f"'{name}': take it from record/figures.py, which knows what has no time"
            yield file.finding(node.lineno, "figures-at-home", advice)


def plain_english(file: File) -> Iterator[Finding]:
    """Sentences are short, lines of prose are narrow, docstrings are sentences, words are the
    field's (tools/prose.py)."""
    if file.within("tools/prose.py", "tests/unit/test_tidy.py", *UNTIDIED):
        return
    remarks: list[prose.Remark] = []
    if file.suffix == ".md":
        remarks += [*prose.long_sentences(file.text), *prose.wide_lines(file.text)]
    if file.tree is not None:
        remarks += prose.fragments(file.tree)
    if file.suffix in (".md", ".py", ".rs"):
        remarks += prose.retired_words(file.text)
    for line, advice in remarks:
        yield file.finding(line, "plain-english", advice)


RULES: tuple[Rule, ...] = (
    short_files,
    short_functions,
    opens_with_purpose,
    clean_whitespace,
    nothing_left_to_do,
    no_machine_paths,
    speaks_of_the_project,
    no_mirrors,
    tests_wait_for_events,
    unsafe_at_home,
    pure_crates,
    crates_point_one_way,
    options_defined_once,
    figures_at_home,
    plain_english,
)


def check(file: File) -> list[Finding]:
    """Return every finding of every rule in one file."""
    return [finding for rule in RULES for finding in rule(file)]


# Rules that look at several files together.
RULES_OF_ALL: tuple[Callable[[Sequence[File]], Iterable[Finding]], ...] = (
    modules_without_circles,
    imports_point_down,
)


def read_files(folder: Path) -> Iterator[File]:
    """Yield the text files that git knows or would add, sorted by path."""
    listed = subprocess.run(
        [
            "git",
            "-c",
            "safe.directory=*",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    ).stdout.decode()
    for name in sorted(set(listed.split("\0")) - {""}):
        path = folder / name
        if path.is_symlink() or not path.is_file():
            continue
        content = path.read_bytes()
        if b"\0" not in content:
            yield File(PurePosixPath(name), content.decode(errors="replace"))


def main(arguments: list[str]) -> int:
    drawing = arguments[:1] == ["--floors"]
    folders = arguments[1:] if drawing else arguments
    folder = Path(folders[0]) if folders else Path(__file__).resolve().parent.parent
    files = list(read_files(folder))
    if drawing:
        trees = {name: tree for name, (_, tree) in modules_of(files).items()}
        print("\n".join(floors.drawn(trees)))
        return 0
    findings = [finding for file in files for finding in check(file)]
    findings += [finding for rule in RULES_OF_ALL for finding in rule(files)]
    for finding in findings:
        print(finding)
    print(f"tidy: {len(files)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
