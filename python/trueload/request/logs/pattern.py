"""``--log-format``: a log whose format is written down as its server's configuration has it, with
nginx's ``$variables`` or Apache's ``%directives``. Pure.

How: the pattern becomes a regular expression. Apache's directives get the names of nginx's
variables, so that both mean the same. A field ends where the text behind it in the pattern comes
next, and is never tried with another end: the time for a line is linear.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NoReturn

from trueload.errors import UserError
from trueload.request.logs.line import LineFormat, plain
from trueload.request.logs.nginx import ASKED, TIMES, Time, of_variables
from trueload.request.recorded_request import RecordedRequest, since_1970

NAME = "log of your --log-format"
_FLAG = "--log-format"
_EXAMPLE = "write it as in the server's configuration: '$remote_addr [$time_local] \"$request\"'"
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))", re.ASCII)
_DIRECTIVE = re.compile(r"%(?:%|[!\d,]*[<>]?(?:\{([^}]*)\})?(\^t[io]|[A-Za-z]))", re.ASCII)
_OF_APACHE = {
    "t": "time_local",
    "r": "request",
    "s": "status",
    "m": "request_method",
    "U": "uri",
    "q": "args",
    **dict.fromkeys("vV", "host"),
}
_UNUSED = frozenset("aABbCDefhHIikLlnoOpPRSTuX") | {"^ti", "^to"}  # mod_log_config of Apache 2.4
_TIMES_OF_APACHE = {"sec": 1, "msec": 1000, "usec": 1_000_000}
_STRFTIME = {"%T": "%H:%M:%S", "%D": "%m/%d/%y", "%F": "%Y-%m-%d", "%R": "%H:%M"}

# What a field is, if another follows without a text between them.
_HOST, _PATH = r"[^/\s\"]*", r"[^?\s\"]*"
_ALONE = {
    **dict.fromkeys(("host", "http_host", "server_name"), _HOST),
    "scheme": r"[a-z]*",
    "uri": _PATH,
    "is_args": r"\??",
}
# What a field with spaces is, if a space ends it.
_SPACED = {
    "request": r"\S+ \S+ \S+",
    "time_local": r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}",
}
_ANY = r"(?:\\.|[^\\])*?"  # an escaped quote does not end a field


@dataclass(frozen=True)
class _Field:
    """A field of a pattern by nginx's name, and the text that follows it. A time that nginx does
    not have is read by a ``clock``, and has so many spaces in it."""

    name: str
    behind: str = ""
    clock: Callable[[str], Time] | None = None
    spaces: int = 0

    def expression(self, *, last: bool) -> str:
        if not self.behind:
            return f"({'.*' if last else _ALONE[self.name]})"
        shape = r"\S+" + r" \S+" * self.spaces if self.spaces else _ANY
        if self.behind[0] in " \t":
            shape = _SPACED.get(self.name, shape)
        return f"(?>({shape}){_literal(self.behind)})"


def parse_pattern(pattern: str) -> LineFormat:
    """Return the format that a pattern describes. Raises ``UserError``."""
    # Apache's configuration has the whole between quotes.
    begins, fields = _fields(pattern.replace('\\"', '"').replace("\\t", "\t"))
    names = [field.name for field in fields]
    if not any(name in names for name in ("clock", *TIMES)):
        _refuse("has no time", "add $time_local, $time_iso8601 or $msec, or Apache's %t")
    if not any(name in names for name in ASKED):
        _refuse("has no request", "add $request, $request_uri or $uri, or Apache's %r")
    expression = _literal(begins) + "".join(
        field.expression(last=field is fields[-1]) for field in fields
    )
    clock = next((field.clock for field in fields if field.clock is not None), None)
    parser = _Parser(re.compile(expression, re.ASCII), tuple(names), clock)
    return LineFormat(name=NAME, begin=lambda _: parser)


@dataclass(frozen=True)
class _Parser:
    expression: re.Pattern[str]
    names: tuple[str, ...]
    clock: Callable[[str], Time] | None

    def __call__(self, line: str) -> RecordedRequest:
        """Parse a line. Raises ``ValueError`` and ``UnsendableError``."""
        found = self.expression.match(line)
        if found is None:
            raise ValueError("not a line of the pattern")
        texts: dict[str, str] = {}
        for name, text in zip(self.names, found.groups(), strict=True):
            texts.setdefault(name, plain(text))
        texts["args"] = texts.get("args", "").removeprefix("?")
        return of_variables(texts, self._time if self.clock is not None else None)

    def _time(self, texts: Mapping[str, str]) -> Time:
        try:
            return (self.clock or _no_clock)(texts["clock"])
        except (ValueError, OverflowError):
            raise ValueError("no time that can be read") from None


def _no_clock(text: str) -> Time:
    raise ValueError(text)


def _fields(text: str) -> tuple[str, list[_Field]]:
    """Return the text before the first field, and the fields with the texts behind them."""
    is_nginx = _VARIABLE.search(text) is not None
    if not is_nginx:
        text = text.replace("%t", "[%t]")  # Apache writes the brackets itself
    begins, end = "", 0
    fields: list[_Field] = []
    for found in (_VARIABLE if is_nginx else _DIRECTIVE).finditer(text):
        begins, fields = _behind(begins, fields, text[end : found.start()])
        end = found.end()
        if found[0] == "%%":
            begins, fields = _behind(begins, fields, "%")
            continue
        if fields and not fields[-1].behind and fields[-1].name not in _ALONE:
            _refuse(f"has nothing between {found[0]} and the field before it", _EXAMPLE)
        named = _Field(found[1] or found[2]) if is_nginx else _of_apache(*found.group(0, 1, 2))
        fields.append(named)
    if not fields:
        _refuse("has no $variable and no %directive", _EXAMPLE)
    return _behind(begins, fields, text[end:])


def _behind(begins: str, fields: list[_Field], text: str) -> tuple[str, list[_Field]]:
    """Add a text behind what there is so far."""
    if not fields:
        return begins + text, fields
    return begins, [*fields[:-1], replace(fields[-1], behind=fields[-1].behind + text)]


def _of_apache(directive: str, argument: str | None, letter: str) -> _Field:
    if letter == "t" and argument is not None:
        form = argument.removeprefix("begin:").removeprefix("end:")
        return _Field("clock", clock=_clock(form), spaces=form.count(" "))
    if letter == "i" and argument is not None:
        return _Field(f"http_{argument.lower().replace('-', '_')}")
    if letter not in _OF_APACHE and letter not in _UNUSED:
        _refuse(f"has {directive}, which Apache does not have", _EXAMPLE)
    return _Field(_OF_APACHE.get(letter, "unused"))


def _clock(form: str) -> Callable[[str], Time]:
    """A reader of times: of numbers since 1970, or of the form that strftime has."""
    if form in _TIMES_OF_APACHE:
        unit_ns = 10**9 // _TIMES_OF_APACHE[form]
        return lambda text: (int(text) * unit_ns, form == "sec")
    for short, long in _STRFTIME.items():
        form = form.replace(short, long)

    def read(text: str) -> Time:
        at = datetime.strptime(text, form)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return since_1970(at) + at.microsecond * 1000, "%f" not in form

    return read


def _literal(text: str) -> str:
    """A text of the pattern; columns may be filled up with spaces."""
    return re.sub(r"(?:\\ )+", " +", re.escape(text))


def _refuse(what: str, hint: str) -> NoReturn:
    raise UserError(f"{_FLAG} {what}", hint)
