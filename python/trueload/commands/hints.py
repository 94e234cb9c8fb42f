"""What was meant by a command line that the parser refused.

How: ``given`` reads the words as the parser does. A word with one dash before a long name, and a
value that is the next option or the URL, are found there, as the parser complains of something
else. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trueload.commands.foreign_flags import ALIASES, foreign_hint, removed_hint
from trueload.near import did_you_mean

TWO_DASHES = "long options have two dashes"
BODY = "-d is --duration, like 10s; to send a body use --body TEXT or --body-file FILE"
ONE_SERVER = (
    "`trueload compare URL URL` compares two servers; `trueload http URL` loads one, as"
    " ApacheBench's ab does"
)
OPTIONS_FOLLOW = "options follow the command, as in `trueload http -c 64 URL`"
SEVERAL = (
    "write several requests into a file (--targets FILE); `trueload compare` compares two servers"
)
_ONE_DASH = re.compile(r"-([A-Za-z][A-Za-z0-9-]+)(?:=.*)?", re.ASCII | re.DOTALL)
_LONG = re.compile(r"-([A-Za-z][A-Za-z-]{2,})(?:=.*)?", re.ASCII | re.DOTALL)
_URL = re.compile(r"[a-z]+://", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True)
class Typed:
    """A command line: the command's name, its parameters by flag, and the words behind its name."""

    path: str
    options: Mapping[str, Any]
    words: Sequence[str] = ()

    def takes_value(self, flag: str) -> bool:
        """Whether a flag is followed by a value."""
        parameter = self.options.get(flag)
        return parameter is not None and not getattr(parameter, "is_flag", False)

    def value_of(self, flag: str) -> str:
        """The hint for a flag whose value is missing, or that has none."""
        if not self.takes_value(flag):
            return f"{flag} takes no value"
        return f"its value is missing: write {self.shown(flag)}"

    def shown(self, flag: str) -> str:
        """A flag with the word for its value: ``-c COUNT``."""
        return f"{flag} {getattr(self.options[flag], 'metavar', None) or 'VALUE'}"

    def given(self) -> Iterator[tuple[str, str, str]]:
        """Yield the options as the parser reads them: the word, the flag in it, and its value."""
        rest = iter(self.words)
        for word in rest:
            if word == "--":
                return
            if word.startswith("--"):
                flag, sign, value = word.partition("=")
                yield word, flag, value if sign or not self.takes_value(flag) else next(rest, "")
            elif word.startswith("-"):
                for end, letter in enumerate(word[1:], start=2):
                    takes = self.takes_value(f"-{letter}")
                    yield word, f"-{letter}", (word[end:] or next(rest, "")) if takes else ""
                    if takes:
                        break


def by_flag(parameters: Iterable[Any]) -> dict[str, Any]:
    """Return those parameters of a command that are options, by flag."""
    return {
        flag: parameter
        for parameter in parameters
        if parameter.param_type_name == "option"
        for flag in (*parameter.opts, *parameter.secondary_opts)
    }


def options_of(context: Any) -> dict[str, Any]:
    """Return the options of a command by flag, also by those that its help does not list."""
    found = by_flag(context.command.get_params(context))
    return found | {alias: found[flag] for alias, flag in ALIASES.items() if flag in found}


def slip(typed: Typed) -> tuple[str, str] | None:
    """Return the first option that itself says what is wrong with it, and the hint for it."""
    for word, flag, value in typed.given():
        if (one_dash := _ONE_DASH.fullmatch(word)) is not None:
            short, long = f"-{one_dash[1]}", f"--{one_dash[1]}"
            if (hint := foreign_hint((short, long), typed.options, typed.words)) is not None:
                return short, hint
            if long in typed.options:
                return short, f"{TWO_DASHES}: {long}"
        if value.startswith("=") and not word.startswith("--"):
            return flag, f"write {typed.shown(flag)}, without ="
    return None


def missing_value(typed: Typed, wrong: Collection[str] | None) -> str | None:
    """Return the hint for an option whose value is another word's.

    ``wrong`` are the flags that the parser complains of; None if it has words too many.
    """
    for _, flag, value in typed.given():
        next_is_flag = value.partition("=")[0] in typed.options
        next_is_url = wrong is not None and _URL.match(value)
        if (wrong is None or flag in wrong) and (next_is_flag or next_is_url):
            return typed.value_of(flag)
    return None


def value_hint(typed: Typed, wrong: Collection[str]) -> str | None:
    """Return the hint for the value of an option that was refused; ``wrong`` are its flags."""
    for word, flag, value in typed.given():
        if flag in wrong and (long := _LONG.fullmatch(word)) is not None:
            near = did_you_mean(f"--{long[1]}", typed.options)
            return near and f"{TWO_DASHES}: {near}"
        is_text = flag == "-d" and "--body" in typed.options and not value[:1].isdigit()
        if is_text and flag in wrong and not _URL.match(value):
            return BODY
    return missing_value(typed, wrong)


def several_urls(typed: Typed) -> str | None:
    """Return the hint for more than one URL."""
    urls = [word for word in typed.words if _URL.match(word)]
    if len(urls) > 2 and typed.path == "trueload compare":
        return "to compare more than two servers use a suite: `trueload suite new NAME`"
    return SEVERAL if len(urls) > 1 and typed.path == "trueload http" else None


def stray(typed: Typed, word: str) -> str | None:
    """Return the hint for a word too many."""
    if typed.path.startswith("trueload serve"):
        return "use --listen 127.0.0.1:8080"
    if typed.path == "trueload doctor":
        return "use --place for a host, as in `trueload doctor --place ssh:HOST`"
    if typed.path != "trueload http" or _URL.match(word):
        return None
    before = typed.words[: typed.words.index(word)][-1:] if word in typed.words else []
    is_port = word.isdigit() and before and not re.search(r":\d+|/", before[0])
    behind = "what follows the URL needs an option, as in `trueload http URL -c 64`"
    return f"write the port behind a colon, as in {before[0]}:{word}" if is_port else behind


def option_hint(flag: str, typed: Typed) -> tuple[str, str | None]:
    """Return the option that a command does not have, as it was typed, and the hint for it."""
    if (hint := removed_hint(typed.path, flag)) is not None:
        return flag, hint
    words = (word for word, each, _ in typed.given() if each == flag)
    long = next(filter(None, map(_LONG.fullmatch, words)), None)
    if long is not None:
        near = did_you_mean(f"--{long[1]}", typed.options)
        return (flag, None) if near is None else (f"-{long[1]}", f"{TWO_DASHES}: {near}")
    if (hint := foreign_hint((flag,), typed.options, typed.words)) is not None:
        return flag, hint
    if len(flag) == 3 and (short := typed.options.get(flag[1:])) is not None:
        long = max((flag[1:], *short.opts), key=len)
        return flag, f"did you mean {long}{f' ({flag[1:]})' if len(long) > 2 else ''}?"
    if (near := did_you_mean(flag, typed.options)) is not None:
        return flag, f"{near} see `{typed.path} --help`"
    return flag, OPTIONS_FOLLOW if typed.path == "trueload" else None
