"""The modules of our Rust crates, and which of them need each other.

How: the modules of one parent are compared, each together with all that is below it. One needs
another if a path in its code leads there. A path to what is above or below a module does not
count: a child may use its parent's items, and a parent is made of its children. A name that a
module only imports or exports counts for the module that defines it. Code for tests does not
count. Pure; `tidy.py` reads the files and prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from tools import floors

Module = tuple[str, ...]
"""The name of a module: its crate, and the modules down to it. Paths have this form, too."""
Imports = Mapping[Module, Mapping[str, Module]]
"""The names that each module brings in by `use`, with their paths."""

_USE = re.compile(r"\buse\s+([^;]+);")
_PATH = re.compile(r"\b(?:crate|self|super)(?:::\w+)+")
_FOR_TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:#\[[^]]*\]\s*)*(?:mod\s+(\w+);)?")


def findings(codes: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each circle, with a file of it."""
    for circle in circles(codes):
        first = tuple(circle[0].split("::"))
        path = next(path for path in codes if _module_of(path)[: len(first)] == first)
        yield path, f"these need each other: {', '.join(circle)}"


def circles(codes: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield groups of modules that need each other, from the code of each file by its path."""
    modules = dict(_modules(codes))
    imports = {module: dict(_imports(code)) for module, code in modules.items()}
    uses: dict[str, set[str]] = {}
    for module, code in modules.items():
        for path in _paths(code):
            used = _definer(path, module, imports)
            if used and (pair := _siblings(module, used)):
                uses.setdefault(pair[0], set()).add(pair[1])
    return floors.groups(uses)


def _modules(codes: Mapping[str, str]) -> Iterator[tuple[Module, str]]:
    """Yield the modules that are not for tests, with their code that is not for tests."""
    tests: list[Module] = []
    found: dict[Module, str] = {}
    for path, code in codes.items():
        module = _module_of(path)
        found[module], names = _without_tests(code)
        tests += [(*module, name) for name in names]
    for module, code in found.items():
        if not any(module[: len(test)] == test for test in tests):
            yield module, code


def _module_of(path: str) -> Module:
    crate, _, *folders, name = PurePosixPath(path).with_suffix("").parts[1:]
    return (crate, *folders) if name in ("lib", "mod") else (crate, *folders, name)


def _without_tests(code: str) -> tuple[str, list[str]]:
    """Return the code without its items for tests, and the names of the files that are such."""
    names: list[str] = []
    while found := _FOR_TESTS.search(code):
        names += [found[1]] if found[1] else []
        end = found.end() if found[1] else _item_end(code, found.end())
        code = code[: found.start()] + code[end:]
    return code, names


def _item_end(code: str, start: int) -> int:
    # An item ends with its last brace, or with a semicolon outside brackets.
    depth = 0
    for offset in range(start, len(code)):
        depth += (code[offset] in "{([") - (code[offset] in "})]")
        if depth == 0 and code[offset] in ";}":
            return offset + 1
    return len(code)


def _paths(code: str) -> Iterator[Module]:
    """Yield the paths in the code of one module."""
    yield from (path for _, path in _imports(code))
    for found in _PATH.finditer(_USE.sub("", code)):
        yield tuple(found[0].split("::"))


def _imports(code: str) -> Iterator[tuple[str, Module]]:
    """Yield the names that `use` brings in, each with its path."""
    for found in _USE.finditer(code):
        yield from _tree(found[1], ())


def _tree(text: str, before: Module) -> Iterator[tuple[str, Module]]:
    """Yield the names and paths of one tree of a `use`."""
    head, brace, inner = text.partition("{")
    *steps, last = (*before, *head.split("::"))
    steps = [step.strip() for step in steps]
    if brace:
        for branch in _branches(inner[: inner.rindex("}")]):
            yield from _tree(branch, tuple(steps))
        return
    name, _, alias = last.strip().partition(" as ")
    path = tuple(steps) if name == "self" and steps else (*steps, name)
    yield alias.strip() or path[-1], path


def _branches(text: str) -> Iterator[str]:
    """Split at commas outside braces."""
    depth, start = 0, 0
    for offset, char in enumerate(text + ","):
        depth += (char == "{") - (char == "}")
        if depth == 0 and char == ",":
            if text[start:offset].strip():
                yield text[start:offset]
            start = offset + 1


def _definer(
    path: Module, module: Module, imports: Imports, seen: frozenset[Module] = frozenset()
) -> Module | None:
    """Return the module that defines what a path within `module` leads to; None if it is not ours.

    `seen` are the paths that led here, so that a name imported from itself ends.
    """
    at = module
    for number, name in enumerate(path):
        if name == "crate":
            at = module[:1]
        elif name == "super":
            at = at[:-1]
        elif name == "self":
            pass
        elif (*at, name) in imports:
            at = (*at, name)
        elif number == 0:
            return None
        elif (further := imports.get(at, {}).get(name)) and (*at, name) not in seen:
            rest = (*further, *path[number + 1 :])
            return _definer(rest, at, imports, seen | {(*at, name)})
        else:
            return at
    return at


def _siblings(one: Module, two: Module) -> tuple[str, str] | None:
    """Return the modules of one parent in which both are; None if one is above the other."""
    for depth, (here, there) in enumerate(zip(one, two, strict=False), 1):
        if here != there:
            return "::".join(one[:depth]), "::".join(two[:depth])
    return None
