"""The rooms of `python/trueload`, from the top floor down: a room imports lower rooms only.

How: an import counts wherever it is, also within a function or for type checking. Within a room no
two modules may need each other. Pure; `tidy.py` reads the files and prints.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

FLOORS: tuple[tuple[str, ...], ...] = (
    ("pytest_plugin", "__main__"),
    ("aio",),
    ("api", "cli"),
    ("commands",),
    ("metrics", "web"),
    ("report",),
    ("compare",),
    ("suites",),
    ("search",),
    ("runner",),
    ("trial",),
    ("assemble",),
    ("engines",),
    ("places",),
    ("store",),
    ("verdict",),
    ("record",),
    ("subjects",),
    ("request",),
    ("machine", "protocol"),
    ("files",),
    # These are single files, not rooms.
    ("extras", "published", "interrupt", "text"),
    ("closeable", "deadline", "errors", "escapes", "ids", "near", "stats", "units"),
    ("hdr",),
    ("buckets", "grouping", "repetitions", "zigzag"),
)
_FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
PACKAGE = "trueload"


@dataclass(frozen=True)
class Import:
    """One import of one of our modules by another."""

    module: str
    line: int
    imported: str


Modules = Mapping[str, ast.Module]
"""The syntax tree of each module, by its full name."""


def room_of(module: str) -> str:
    """Return the room of a module, ``trueload.cli.app`` -> ``cli``; empty for the package."""
    return module.partition(".")[2].partition(".")[0]


def imports(modules: Modules) -> Iterator[Import]:
    """Yield every import of one of our modules by another."""
    for module, tree in modules.items():
        for node in ast.walk(tree):
            for imported in sorted({_known(name, modules) for name in _names(node, module)}):
                if imported not in ("", module, PACKAGE):
                    yield Import(module, getattr(node, "lineno", 1), imported)


def _names(node: ast.AST, module: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parts = module.split(".")[: -node.level] if node.level else []
        base = ".".join([*parts, *([node.module] if node.module else [])])
        yield from (f"{base}.{alias.name}" for alias in node.names)


def _known(name: str, modules: Modules) -> str:
    """Return the module that a dotted name is, or is in; empty if it is none of ours."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def upward(found: Import) -> str:
    """Return why an import is forbidden, or an empty text if it is not."""
    above, below = room_of(found.module), room_of(found.imported)
    if above == below or not above:
        return ""
    for room in (above, below):
        if room not in _FLOOR:
            return f"'{room}' has no floor: give it one in tools/floors.py"
    if _FLOOR[below] > _FLOOR[above]:
        return ""
    return f"{found.module} imports {found.imported}: {below} is not below {above}"


def circles(found: list[Import]) -> Iterator[tuple[str, ...]]:
    """Yield groups of modules of one room that need each other, directly or through others."""
    uses: dict[str, set[str]] = {}
    for each in found:
        if room_of(each.module) == room_of(each.imported):
            uses.setdefault(each.module, set()).add(each.imported)
    return groups(uses)


def groups(uses: Mapping[str, set[str]]) -> Iterator[tuple[str, ...]]:
    """Yield groups of modules that need each other, directly or through others."""
    reached = {module: reachable(module, uses) for module in uses}
    reported: set[str] = set()
    for module in sorted(uses):
        circle = {other for other in reached[module] if module in reached.get(other, ())}
        if circle and not circle & reported:
            reported |= circle
            yield tuple(sorted(circle))


def reachable(module: str, uses: Mapping[str, set[str]]) -> set[str]:
    """Return every module that `module` needs, directly or through others."""
    found: set[str] = set()
    left = [used for used in uses.get(module, ()) if used != module]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left.extend(uses.get(name, ()))
    return found


def drawn(modules: Modules) -> list[str]:
    """Return a line for each room, from the top: its number of modules and its imports."""
    uses: dict[str, set[str]] = {}
    counts: dict[str, int] = {}
    for module in modules:
        counts[room_of(module)] = counts.get(room_of(module), 0) + 1
    for each in imports(modules):
        above, below = room_of(each.module), room_of(each.imported)
        if above != below:
            uses.setdefault(above, set()).add(below)
    rooms = [room for floor in FLOORS for room in floor if room in counts]
    width = max((len(room) for room in rooms), default=0)
    return [
        f"{room:<{width}}  {counts[room]:>3}  "
        + (" ".join(sorted(uses.get(room, ()), key=lambda each: _FLOOR.get(each, -1))) or "-")
        for room in rooms
    ]
