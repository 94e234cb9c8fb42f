#!/usr/bin/env python3
"""Every message that trueload can print, as one table: place, kind and text.

A reviewer reads all messages in one go, as a user would. Strategy: the sources are parsed, not run.
A text has a kind by who takes it: an argument of ``UserError``, a field called ``why``, a variable
called ``note``. From there variables, calls and parameters are followed back to the literals, so
that a sentence made of several parts has a row for each part. Rust has no such names: there every
literal with a space counts, except those of tests and of assertions. Only the standard library is
used.

    tools/messages.py            prints `path:line  kind  text` for all kinds
    tools/messages.py KIND...    prints these kinds only: error hint meaning remedy why note
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "python"
KINDS = ("error", "hint", "meaning", "remedy", "why", "note")

# The kind of a text by the name of the field or keyword that takes it.
BY_NAME = {
    **dict.fromkeys(("message", "trouble"), "error"),
    **dict.fromkeys(("hint", "cure", "advice"), "hint"),
    "meaning": "meaning",
    **dict.fromkeys(("remedy", "remedy_where"), "remedy"),
    **dict.fromkeys(("why", "reason", "fault", "of_client"), "why"),
    **dict.fromkeys(("note", "notes", "remark", "remarks", "spoiled", "consequence"), "note"),
}
# The same for variables and functions whose name ends with a word; hints are told from notes.
NAMED = re.compile(r"(?:^|_)(hint|note|remark|sentence|word|warning|doubt)s?$", re.IGNORECASE)

Takes = tuple[tuple[str, str], ...]
"""What a function or class takes: the name of each parameter, and the kind of its text or ''."""

_OF_ERROR: Takes = (("message", "error"), ("hint", "hint"))
SPEAKERS: dict[str, Takes] = {
    "UserError": _OF_ERROR,
    "EngineError": (("kind", ""), ("message", "error")),
    **dict.fromkeys(("BadParameter", "UsageError"), _OF_ERROR[:1]),
    "Trouble": (("kind", ""), ("what", "error")),
    "Mistake": (("keys", ""), ("what", "error")),
    **dict.fromkeys(("talk", "announce", "warn"), (("line", "note"),)),
}
# Raised for programmers, not for users.
FOR_PROGRAMMERS = {"AssertionError", "NotImplementedError"}
# Modules that only format what they are given.
FORMATTERS = {f"trueload.{name}" for name in ("hdr", "stats", "text", "units")}
JOINERS = {"in_one_line", "times"}  # and functions that do
HOPS_MOST = 4  # from where a text is taken back to its literal; beyond, other texts get mixed in

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, order=True)
class Message:
    """One text, or a part of one, where it stands in the sources."""

    path: str
    line: int
    kind: str
    text: str

    @property
    def where(self) -> str:
        """The place as editors take it."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, eq=False)
class Module:
    """A Python module with the names that it binds at its top."""

    name: str
    path: str
    tree: ast.Module

    @cached_property
    def values(self) -> dict[str, list[ast.expr]]:
        """The expressions that are assigned to each name at the top."""
        assigns = (ast.Assign, ast.AnnAssign, ast.AugAssign)
        return bindings(each for each in self.tree.body if isinstance(each, assigns))

    @cached_property
    def imports(self) -> dict[str, tuple[str, str]]:
        """The module and the name there of each imported name."""
        found = [each for each in ast.walk(self.tree) if isinstance(each, ast.ImportFrom)]
        return {
            alias.asname or alias.name: (each.module or "", alias.name)
            for each in found
            for alias in each.names
        }


@dataclass(frozen=True, eq=False)
class Scope:
    """Where an expression stands: a module, or a function in one."""

    module: Module
    function: FunctionNode | None = None
    owner: str = ""
    """The class around it, or an empty text."""
    outer: Scope | None = None

    @cached_property
    def bound(self) -> dict[str, list[ast.expr]]:
        """The expressions that the function assigns to each name."""
        return bindings(ast.walk(self.function)) if self.function is not None else {}

    @cached_property
    def parameters(self) -> list[str]:
        """The names of the parameters in their order, without self and cls."""
        if self.function is None:
            return []
        taken = self.function.args
        names = [each.arg for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)]
        return names[1:] if names[:1] in (["self"], ["cls"]) else names

    @property
    def called(self) -> str:
        """The name by which the function is called: its own, or that of its class."""
        name = self.function.name if self.function is not None else ""
        return self.owner if name == "__init__" else name

    def default(self, parameter: str) -> ast.expr | None:
        """The default value of a parameter, if it has one."""
        if self.function is None:
            return None
        taken = self.function.args
        names = [each.arg for each in (*taken.posonlyargs, *taken.args)]
        values: list[tuple[str, ast.expr | None]] = list(
            zip(reversed(names), reversed(taken.defaults), strict=False)
        )
        values += zip((each.arg for each in taken.kwonlyargs), taken.kw_defaults, strict=True)
        return dict(values).get(parameter)


# --- what the syntax says -------------------------------------------------------------------------


def bindings(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr]]:
    """The expressions that statements assign, loop over or append, by name."""
    found: dict[str, list[ast.expr]] = defaultdict(list)
    for node in nodes:
        for target, value in assigned(node):
            for name, part in pairs(target, value):
                found[name].append(part)
    return dict(found)


def assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Pairs of target and value of one statement or expression."""
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr):
        if node.value is not None:
            yield node.target, node.value
    elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        rows = node.iter.elts if isinstance(node.iter, ast.Tuple | ast.List) else [node.iter]
        yield from ((node.target, row) for row in rows)
    elif (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in ("append", "extend")
        and node.args
    ):
        yield node.func.value, node.args[0]


def pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Names and their values; a value that cannot be taken apart belongs to each name."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Starred | ast.Subscript):
        yield from pairs(target.value, value)
    elif isinstance(target, ast.Tuple | ast.List):
        parts: Sequence[ast.expr] = [value] * len(target.elts)
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
            parts = value.elts
        for each, part in zip(target.elts, parts, strict=True):
            yield from pairs(each, part)


def branches(node: ast.expr) -> Iterator[ast.expr]:
    """The parts of an expression of which its text may come, calls and names aside."""
    if isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.BoolOp):
        yield from node.values
    elif isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        yield from node.elts
    elif isinstance(node, ast.Dict | ast.DictComp):
        yield from node.values if isinstance(node, ast.Dict) else [node.value]
    elif isinstance(node, ast.Starred | ast.NamedExpr | ast.Subscript | ast.Await):
        yield node.value
    elif isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp):
        yield node.elt
    elif isinstance(node, ast.Lambda):
        yield node.body


def returned(function: FunctionNode) -> Iterator[ast.expr]:
    """What a function returns or yields; functions inside it are left out."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Return | ast.Yield | ast.YieldFrom) and node.value is not None:
            yield node.value
        if not isinstance(node, FunctionNode | ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


def bare(node: ast.expr) -> str:
    """The last name of what is called: ``UserError`` of ``errors.UserError``."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """The argument of a call for one parameter, by its position or its name."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    before = call.args[: position + 1]
    if len(before) <= position or any(isinstance(each, ast.Starred) for each in before):
        return None
    return before[position]


def text_of(node: ast.expr) -> str:
    """The text of a literal; what is filled in stands in braces."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if not isinstance(node, ast.JoinedStr):
        return f"{{{ast.unparse(node)}}}"
    parts = []
    for each in node.values:
        if isinstance(each, ast.FormattedValue):
            form = f":{text_of(each.format_spec)}" if each.format_spec is not None else ""
            parts.append(f"{{{ast.unparse(each.value)}{form}}}")
        else:
            parts.append(text_of(each))
    return "".join(parts)


def fields_of(node: ast.ClassDef) -> Takes:
    """The fields of a class in their order; empty unless one of them takes a message."""
    takes = tuple(
        (each.target.id, BY_NAME.get(each.target.id, ""))
        for each in node.body
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    )
    return takes if any(kind for _, kind in takes) else ()


def kind_named(name: str) -> str:
    """The kind of a text by the name of its variable or function; empty if it tells none."""
    found = NAMED.search(name)
    if found is None:
        return ""
    return "hint" if found[1].lower() == "hint" else "note"


def kind_returned(function: str) -> str:
    """The kind of what a function returns, by its name; empty if that tells none."""
    return "note" if function.endswith("_text") else kind_named(function)


# --- Python ---------------------------------------------------------------------------------------


@dataclass
class Search:
    """Finds the messages of Python modules: ``read`` each of them first, then ``find``."""

    speakers: dict[str, list[Takes]] = field(
        default_factory=lambda: {name: [takes] for name, takes in SPEAKERS.items()}
    )
    bases: dict[str, list[str]] = field(default_factory=dict)
    modules: dict[str, Module] = field(default_factory=dict)
    functions: dict[str, list[Scope]] = field(default_factory=lambda: defaultdict(list))
    calls: dict[str, list[tuple[Scope, ast.Call]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    raised: list[tuple[Scope, ast.Call]] = field(default_factory=list)
    named: list[tuple[Scope, str, ast.expr]] = field(default_factory=list)
    hops: dict[tuple[int, str], int] = field(default_factory=dict)
    found: dict[tuple[str, int, str], Message] = field(default_factory=dict)

    def read(self, module: Module) -> None:
        """Takes down the calls, functions, classes and variables of a module."""
        self.modules[module.name] = module
        self._read(module.tree, Scope(module))

    def _read(self, parent: ast.AST, scope: Scope) -> None:
        for node in ast.iter_child_nodes(parent):
            inner = scope
            if isinstance(node, FunctionNode):
                inner = Scope(scope.module, node, scope.owner, scope)
                self.functions[inner.called].append(inner)
            elif isinstance(node, ast.ClassDef):
                inner = Scope(scope.module, scope.function, node.name, scope.outer)
                self.bases[node.name] = [bare(base) for base in node.bases]
                if takes := fields_of(node):
                    self.speakers.setdefault(node.name, []).append(takes)
            elif isinstance(node, ast.Call):
                self.calls[bare(node.func)].append((scope, node))
            elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                self.raised.append((scope, node.exc))
            for target, value in assigned(node):
                for name, part in pairs(target, value):
                    if kind := kind_named(name):
                        self.named.append((scope, kind, part))
            self._read(node, inner)

    def find(self) -> list[Message]:
        """Every message of the modules that were read."""
        for name in self.bases:
            self._inherit(name)
        for name, calls in self.calls.items():
            for scope, call in calls:
                self._of_call(name, scope, call)
        for scope, call in self.raised:
            name = bare(call.func)
            if name not in FOR_PROGRAMMERS and not self.speakers.get(name):
                for value in call.args:
                    self._follow(value, scope, "error", 0)
        for scopes in self.functions.values():
            for scope in scopes:
                if scope.function is not None and (kind := kind_returned(scope.function.name)):
                    for value in returned(scope.function):
                        self._follow(value, scope, kind, 1)
        for scope, kind, value in self.named:
            self._follow(value, scope, kind, 1)
        return list(self.found.values())

    def _inherit(self, name: str) -> list[Takes]:
        """Gives a class what its bases take, unless it has fields or parameters of its own."""
        if name not in self.speakers:
            self.speakers[name] = []  # ends a circle of classes with the same name
            has_own = any(scope.owner == name for scope in self.functions.get(name, ()))
            bases = [] if has_own else self.bases.get(name, [])
            takes = (found for base in bases if (found := self._inherit(base)))
            self.speakers[name] = next(takes, [])
        return self.speakers[name]

    def _of_call(self, name: str, scope: Scope, call: ast.Call) -> None:
        """Follows the arguments of a call that take messages."""
        if name == "__init__":  # super().__init__(...)
            bases = self.bases.get(scope.owner, [])
            name = next((base for base in bases if self.speakers.get(base)), name)
        by_parameter = [
            tuple((parameter, BY_NAME.get(parameter, "")) for parameter in callee.parameters)
            for callee in self._callees(call, scope)
        ]
        for takes in (*self.speakers.get(name, ()), *by_parameter):
            for position, (parameter, kind) in enumerate(takes):
                value = argument(call, position, parameter) if kind else None
                if value is not None:
                    self._follow(value, scope, kind, 0)
        for keyword in call.keywords:
            if kind := BY_NAME.get(keyword.arg or "", ""):
                self._follow(keyword.value, scope, kind, 0)

    def _follow(self, node: ast.expr, scope: Scope, kind: str, hops: int) -> None:
        """Keeps the literals that an expression may come to."""
        key = (id(node), kind)
        if hops > HOPS_MOST or self.hops.get(key, HOPS_MOST + 1) <= hops:
            return
        self.hops[key] = hops
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                self._keep(node, scope, kind, hops)
        elif isinstance(node, ast.JoinedStr):
            self._keep(node, scope, kind, hops)
            for part in node.values:
                if isinstance(part, ast.FormattedValue):
                    self._follow(part.value, scope, kind, hops + 1)
        elif isinstance(node, ast.Name):
            self._follow_name(node.id, scope, kind, hops + 1)
        elif isinstance(node, ast.Call):
            self._follow_call(node, scope, kind, hops + 1)
        else:
            for part in branches(node):
                self._follow(part, scope, kind, hops)

    def _keep(self, node: ast.expr, scope: Scope, kind: str, hops: int) -> None:
        text = text_of(node)
        is_whole = hops == 0 and kind in ("error", "hint")
        if not re.search(r"[A-Za-z]", text) or not (is_whole or " " in text.strip()):
            return
        if "\r" not in text:
            key = (scope.module.path, node.lineno, text)
            self.found.setdefault(key, Message(scope.module.path, node.lineno, kind, text))

    def _follow_name(self, name: str, scope: Scope, kind: str, hops: int) -> None:
        """Follows a name to what is assigned to it, from the innermost function outwards."""
        each: Scope | None = scope
        while each is not None:
            if name in each.bound or name in each.parameters:
                for value in each.bound.get(name, ()):
                    self._follow(value, each, kind, hops)
                if name in each.parameters:
                    self._follow_parameter(each, name, kind, hops)
                return
            each = each.outer
        module, known = scope.module, name
        if name in module.imports and name not in module.values:
            origin, known = module.imports[name]
            module = self.modules.get(origin, module)
        for value in module.values.get(known, ()):
            self._follow(value, Scope(module), kind, hops)
        for callee in self.functions.get(known, ()):
            if callee.module is module and callee.function is not None:
                for value in returned(callee.function):
                    self._follow(value, callee, kind, hops)

    def _follow_parameter(self, scope: Scope, name: str, kind: str, hops: int) -> None:
        """Follows a parameter to its default, and to the arguments of all calls."""
        default = scope.default(name)
        if default is not None:
            self._follow(default, scope, kind, hops)
        position = scope.parameters.index(name)
        for caller, call in self.calls.get(scope.called, ()):
            if scope in self._callees(call, caller):
                value = argument(call, position, name)
                if value is not None:
                    self._follow(value, caller, kind, hops)

    def _follow_call(self, call: ast.Call, scope: Scope, kind: str, hops: int) -> None:
        """Follows a call to what our function returns, or to the arguments of another's."""
        callees = [] if bare(call.func) in JOINERS else self._callees(call, scope)
        ours = [each for each in callees if each.module.name not in FORMATTERS]
        for callee in ours:
            if callee.function is not None and callee.function.name != "__init__":
                for value in returned(callee.function):
                    self._follow(value, callee, kind, hops)
        if ours:
            return
        if isinstance(call.func, ast.Attribute):
            self._follow(call.func.value, scope, kind, hops)
        for value in (*call.args, *(keyword.value for keyword in call.keywords)):
            self._follow(value, scope, kind, hops)

    def _callees(self, call: ast.Call, scope: Scope) -> list[Scope]:
        """The functions of ours that a call may mean; none if the name alone does not tell."""
        name = bare(call.func)
        found = self.functions.get(name, [])
        local = [each for each in found if each.module is scope.module]
        if local:
            return local
        if isinstance(call.func, ast.Name):
            module, known = scope.module.imports.get(name, ("", ""))
            return [each for each in self.functions.get(known, ()) if each.module.name == module]
        return found if len(found) == 1 else []


def in_python(paths: Iterable[Path]) -> list[Message]:
    """The messages of the Python sources."""
    search = Search()
    for path in paths:
        name = ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        shown = path.relative_to(ROOT).as_posix()
        search.read(Module(name.removesuffix(".__init__"), shown, tree))
    return search.find()


# --- Rust -----------------------------------------------------------------------------------------

# Comments, raw strings, strings and characters. A lifetime is no character.
_LITERAL = re.compile(
    r'//[^\n]*|/\*.*?\*/|\bb?r(#*)"(?P<raw>.*?)"\1|b?"(?P<text>(?:\\.|[^"\\])*)"'
    r"|b?'(?:\\[^\n']+|\\'|[^\\'\n])'",
    re.DOTALL,
)
_OF_TESTS = re.compile(r"^#\[cfg\(test\)\]", re.MULTILINE)
# What a user never reads: assertions and reasons of attributes.
_UNSPOKEN = re.compile(r"assert|\bexpect\(|panic!|unreachable!|reason =|must_use|#\[doc")
_NOT_SHIPPED = ("crates/sim/", "/fake/", "/tests/", "/tests.rs")


def in_rust(paths: Iterable[Path]) -> Iterator[Message]:
    """The messages of the Rust sources: all are errors, or become a reason of one."""
    for path in paths:
        shown = path.relative_to(ROOT).as_posix()
        if any(part in shown for part in _NOT_SHIPPED):
            continue
        text = path.read_text(encoding="utf-8")
        tests = _OF_TESTS.search(text)
        text = text[: tests.start()] if tests else text
        blanked = _LITERAL.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
        for found in _LITERAL.finditer(text):
            literal = found["text"] or found["raw"] or ""
            began = max(blanked.rfind(mark, 0, found.start()) for mark in ";{}")
            statement = blanked[began + 1 : found.start()]
            if _is_prose(literal) and not _UNSPOKEN.search(statement):
                line = text.count("\n", 0, found.start()) + 1
                yield Message(shown, line, "error", re.sub(r"\\\n\s*", "", literal))


def _is_prose(text: str) -> bool:
    """Whether a literal has at least two words and is no line of a protocol."""
    return re.search(r"[A-Za-z}] +[A-Za-z{]", text) is not None and "\\r" not in text


# --- the table ------------------------------------------------------------------------------------


def table(messages: Iterable[Message]) -> Iterator[str]:
    """A line for each message, in the order of the sources."""
    rows = sorted(messages)
    width = max((len(row.where) for row in rows), default=0)
    for row in rows:
        text = row.text.replace("\n", "\\n")
        yield f"{row.where:<{width}}  {row.kind:<7}  {text}"


def main(arguments: list[str]) -> int:
    """Prints the table of the kinds that are named, or of all."""
    unknown = [word for word in arguments if word not in KINDS]
    if unknown:
        print(f"no such kind: {', '.join(unknown)}; kinds are {' '.join(KINDS)}", file=sys.stderr)
        return 2
    wanted = arguments or KINDS
    found = [
        *in_python(sorted(SOURCES.rglob("*.py"))),
        *in_rust(sorted(ROOT.glob("crates/*/src/**/*.rs"))),
    ]
    for line in table(each for each in found if each.kind in wanted):
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
