"""The ``trueload`` command: combines the commands, and ends each of them properly.

Strategy: typer parses and calls. ``main`` turns the outcome, a return value or an exception, into
an exit code and at most two lines on stderr. ``error:`` names the mistake, ``hint:`` the next step.
Only the module of the requested command is imported, so that ``trueload serve`` does not wait for
the statistics.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import importlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn, get_args

import typer
import typer.core
import typer.main

from trueload import __version__
from trueload.cli import completion
from trueload.cli.first_words import meant
from trueload.cli.help_groups import has_short_help, short_help, use_texts, write_options
from trueload.cli.streams import hold_open, write_whole
from trueload.commands.foreign_flags import ALIASES, renamed
from trueload.commands.protocols import PROTOCOLS
from trueload.commands.usage import explain_usage_error, one_line
from trueload.errors import ExitCode, UserError, machine_fault, path_fault, shortage_hint
from trueload.files.private import make_folder, open_text, user_folder
from trueload.interrupt import end_like_ctrl_c, raise_at_ctrl_c

# The commands in the order of `trueload --help`, with its text on each. The module of that name
# registers a command; one module registers those of protocols. A module is imported only when its
# command is asked for: the help of all needs none of them.
COMMANDS: dict[str, str] = {
    **{name: protocol.about for name, protocol in PROTOCOLS.items()},
    "compare": "Compare two servers by pairs of trials.",
    "serve": "Run a reference server.",
    "subjects": "List, create and check the programs under test.",
    "suite": "Compare many subjects on the same work.",
    "import": "Make a scenario of recorded traffic.",
    "runs": "List, show, compare, export and delete stored runs.",
    "report": "Write runs as one HTML page, and their charts as files.",
    "doctor": "Check whether this machine, or another host, is fit to measure.",
    "completion": "Print the completion script for a shell.",
}

# A module cannot be called like a keyword of Python, nor like another one.
MODULES = {"import": "imports", "compare": "ab"}

# The code that a shell reports for a program ended by SIGPIPE (128 + 13). It is not 0, as the
# output is cut short, and a script that checks it (pipefail) must not take it for a verdict.
EXIT_CODE_BROKEN_PIPE = 141

# A pipe without a reader, or a terminal that has hung up.
_READER_GONE = (errno.EPIPE, errno.EIO)
# Errors of an open stream without a file name, such as a full disk behind `> FILE`.
_OF_OUTPUT = (*_READER_GONE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

ABOUT = """Measure how much load a network program can carry, and say whether the numbers
can be trusted.

Example: trueload http http://127.0.0.1:8080/ -c 64 -d 10s

Without a command, a URL is loaded: trueload http://127.0.0.1:8080/ -c 64 -d 10s

Exit codes: 0 measured, verdict valid or suspect; 1 a --fail-on threshold was crossed, or no load
keeps to the --limit; 2 wrong command or file, nothing was sent; 3 nothing could be measured;
4 measured, but invalid (with --strict, also suspect), or too disturbed to decide a threshold;
70 a bug in trueload; 71 the machine refused a thread, memory or a system call; 74 the result could
not be saved or written; 130 interrupted.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line of this process and return its exit code. Never shows a traceback."""
    hold_open()
    write_whole()
    # Plugins are for models of other programs, and to look for them takes as long as a help.
    os.environ["PYDANTIC_DISABLE_PLUGINS"] = "1"
    end_like_ctrl_c()
    code = run(sys.argv[1:] if argv is None else argv, begins=raise_at_ctrl_c)
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError as error:
        code = _close_output(error)
    return code


def run(argv: Sequence[str], begins: Callable[[], object] = lambda: None) -> int:
    """Run one command line and return its exit code; errors have been printed.

    ``begins`` is called once the command is there, and before it does anything.
    """
    if (words := renamed(meant(argv, COMMANDS))) != list(argv):
        # The stored command must be one that repeats the run.
        argv = sys.argv[1:] = words
    try:
        if completion.VARIABLE in os.environ and not argv:
            return completion.answer(build_command)
        return _invoke(argv, begins)
    except UserError as error:
        _report_error_of(argv, error.message, error.hint)
        return error.exit_code
    except typer.TyperException as error:
        explained = explain_usage_error(error, lambda: _find_context(argv), argv)
        _report_error_of(argv, *explained)
        return ExitCode.USAGE
    except (KeyboardInterrupt, typer.Abort):
        _report_error("interrupted", "what had been saved is kept: `trueload runs list` shows it")
        return ExitCode.INTERRUPTED
    except OSError as error:
        if error.filename is None and error.errno in _OF_OUTPUT:
            return _close_output(error)
        if (hint := shortage_hint(error)) is not None:
            _report_error(f"this machine has no more of what was needed: {error}", hint)
            return ExitCode.USAGE
        if (fault := path_fault(error) or _fault_of_here()) is not None:
            _report_error(*fault)
            return ExitCode.USAGE
        return _refused_or_bug(error, argv)
    except Exception as error:
        return _refused_or_bug(error, argv)


def build_app(first_word: str | None = None) -> typer.Typer:
    """Return the typer application.

    With a first word only the command that it names is there. If it names none, all are there by
    name only.
    """
    app = typer.Typer(
        name="trueload",
        help=ABOUT,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback()(_root)
    for name in COMMANDS:
        if first_word in (None, name):
            _register(app, name)
        elif first_word not in COMMANDS:
            app.command(name)(_not_imported)
    return app


def _register(app: typer.Typer, name: str) -> None:
    if name in PROTOCOLS:
        importlib.import_module("trueload.cli.load").register(app, name)
    else:
        module = MODULES.get(name, name)
        importlib.import_module(f"trueload.cli.{module}").register(app)


def build_command(first_word: str | None = None) -> typer.core.TyperGroup:
    """Return the application as a parser: commands in the table's order, help in plain text."""
    group = typer.main.get_group(build_app(first_word))
    group.commands = {name: group.commands[name] for name in COMMANDS if name in group.commands}
    for name, command in group.commands.items():
        command.short_help = COMMANDS[name]
    _use_plain_help(group)
    _take_aliases(group)
    _take_flags(group, _parameters_of(_of_colour), _parameters_of(_of_short_help))
    return group


def _parameters_of(function: Callable[..., Any]) -> list[Any]:
    only = typer.Typer(add_completion=False)
    only.command()(function)
    command: Any = typer.main.get_command(only)
    return list(command.params)


def _find_context(argv: Sequence[str]) -> Any:
    # The parser does not always name its command: for `trueload runs show` the words do.
    named, command = _named(build_command(argv[0] if argv else ""), argv)
    return command.context_class(command, info_name=" ".join(["trueload", *named]))


def _named(node: Any, argv: Sequence[str]) -> tuple[list[str], Any]:
    """Return the words that name a command, and that command."""
    path: list[str] = []
    for word in argv:
        inner = getattr(node, "commands", {}).get(word)
        if inner is None:
            break
        path, node = [*path, word], inner
    return path, node


def _invoke(argv: Sequence[str], begins: Callable[[], object]) -> int:
    command = build_command(argv[0] if argv else "")
    path, named = _named(command, argv)
    if hasattr(named, "commands") and len(path) == len(argv):
        # The command line is empty.
        with contextlib.redirect_stdout(sys.stderr):
            _invoke([*argv, "--help"], begins)
        return ExitCode.USAGE
    words = list(argv) if hasattr(named, "commands") else _with_defaults(argv, path, named)
    # Not command.main(): it would end the process at a broken pipe before we can see it.
    try:
        with command.make_context("trueload", words) as context:
            begins()
            result = command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    return int(result) if isinstance(result, int) else ExitCode.OK


def _with_defaults(argv: Sequence[str], path: Sequence[str], command: Any) -> list[str]:
    """Return the command line with the defaults of the environment and of a file in it."""
    words = argv[len(path) :]
    if {"-h", "--help"} & set(words):
        return list(argv)
    from trueload.commands import defaults

    def announce(line: str) -> None:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{one_line(line)}\n")

    config = defaults.find_config(defaults.current_folder(), os.environ, announce)
    found = defaults.read_defaults(path, command, os.environ, config, list(COMMANDS))
    whole, used = defaults.in_front(words, command, found)
    if text := defaults.defaults_text(used):
        if "--quiet" not in whole:
            announce(text)
        # The stored command must be the one that ran.
        sys.argv[1:] = [*path, *whole]
    return [*path, *whole]


def _not_imported() -> NoReturn:
    raise AssertionError("a command is invoked by its name, and then its module is imported")


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"trueload {__version__}\n")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            "-V",
            help="Print the version and exit.",
            is_eager=True,
            callback=_print_version,
        ),
    ] = False,
) -> None:
    """Options of trueload itself; each of them ends the command."""


def _use_plain_help(command: Any, path: str = "") -> None:
    # rich's help draws boxes and colours; plain text is the same on a terminal and in a pipe.
    command.rich_markup_mode = None
    children = getattr(command, "commands", {})
    command.get_params = functools.partial(_parameters, command.get_params)
    for name, child in children.items():
        _use_plain_help(child, f"{path} {name}".strip())
    if not children:
        use_texts(command, path)
        command.format_options = functools.partial(write_options, command)


def _parameters(of: Callable[..., list[Any]], context: Any) -> list[Any]:
    """Return the parameters of a command, which read what is typed by our parsers."""
    found = of(context)
    for each in found:
        each.get_runtime_param = _Reader
    return found


class _Reader:
    """Reads values by the parser of their parameter, or its type: what typer has instead of this
    imports pydantic, which takes longer than a help."""

    @classmethod
    def coerce(cls, value: Any, param: Any, ctx: Any) -> Any:
        kind = param.type_descriptor.annotation
        if not (param.multiple or param.nargs == -1):
            return None if value is None else cls._read(value, param, kind)
        return tuple(cls._read(each, param, *get_args(kind)) for each in value or ())

    @staticmethod
    def _read(text: Any, param: Any, kind: Callable[[Any], Any]) -> Any:
        choices = param.type_descriptor.choices
        if choices is not None and text not in choices:
            shown = ", ".join(f"'{each}'" for each in choices)
            raise typer.BadParameter(f"'{text}' is not one of {shown}")
        return (param.type_descriptor.parameter_info.parser or kind)(text)


def _take_aliases(command: Any) -> None:
    """Let commands take flags by their names in other tools.

    A flag that the command itself has is left alone.
    """
    for child in getattr(command, "commands", {}).values():
        _take_aliases(child)
    by_flag = {flag: param for param in command.params for flag in param.opts}
    for alias, flag in ALIASES.items():
        if alias not in by_flag and flag in by_flag:
            _take_alias(by_flag[flag], alias)


def _take_flags(command: Any, flags: Sequence[Any], short_help: Sequence[Any]) -> None:
    """Give every command these flags, too, and ``-h`` for a short help to those with many."""
    children = getattr(command, "commands", {}).values()
    for child in children:
        _take_flags(child, flags, short_help)
    if not children:
        command.params += [*flags, *(short_help if has_short_help(command) else [])]


def _print_short_help(context: typer.Context, wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"{short_help(context)}\n")
        raise typer.Exit


def _of_short_help(
    short: Annotated[
        bool,
        typer.Option(
            "-h",
            expose_value=False,
            is_eager=True,
            callback=_print_short_help,
            help="Show the usual options, in a line each, and exit.",
        ),
    ] = False,
) -> None:
    """The short help."""


def _of_colour(
    no_color: Annotated[
        bool,
        typer.Option(
            "--no-color",
            expose_value=False,
            callback=lambda given: os.environ.update({"NO_COLOR": "1"} if given else {}),
            help=(
                "Print without colours, as with NO_COLOR=1; CLICOLOR_FORCE=1 keeps them in a pipe."
            ),
        ),
    ] = False,
) -> None:
    """The one option that every command has."""


def _take_alias(param: Any, alias: str) -> None:
    # Not added to its `opts`, as the help lists those.
    add_own = param.add_to_parser

    def add(parser: Any, context: Any) -> None:
        add_own(parser, context)
        parser.add_option(obj=param, opts=[alias], dest=param.name, action="store", nargs=1)

    param.add_to_parser = add


def _report_error(message: str, hint: str) -> None:
    try:
        sys.stderr.write(f"error: {one_line(message)}\nhint: {one_line(hint)}\n")
    except OSError:
        _discard(sys.stderr)  # nobody reads it any more


def _report_error_of(argv: Sequence[str], message: str, hint: str) -> None:
    """Report an error of a command line, without the secrets in it."""
    from trueload.request.redact import hide_arguments  # not needed without an error

    words = [*argv, *sys.argv[1:]]  # the latter include the defaults
    _report_error(hide_arguments(message, words), hide_arguments(hint, words))


def _discard(stream: Any) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _close_output(error: OSError) -> int:
    # The interpreter must not report it at its own end.
    _discard(sys.stdout)
    if error.errno in _READER_GONE:
        return EXIT_CODE_BROKEN_PIPE
    _report_error(
        f"the output could not be written: {error.strerror}", "free some space and repeat"
    )
    return ExitCode.OUTPUT


def _fault_of_here() -> tuple[str, str] | None:
    try:
        os.getcwd()
    except OSError as error:
        return f"the current folder cannot be used: {error.strerror}", "change to another one"
    return None


def _refused_or_bug(error: Exception, argv: Sequence[str]) -> int:
    if (fault := machine_fault(error)) is None:
        return _report_bug(error, argv)
    _report_error(*fault)
    return ExitCode.MACHINE


def _report_bug(error: Exception, argv: Sequence[str]) -> int:
    kind = type(error).__name__
    path = _write_traceback(error, argv)
    where = f"the details are in {path}" if path else "the details could not be written"
    _report_error_of(
        argv,
        f"trueload failed ({kind}: {error}); {where}",
        "this is a bug of trueload: please report it with that file",
    )
    return ExitCode.INTERNAL


def _write_traceback(error: Exception, argv: Sequence[str]) -> Path | None:
    import tempfile

    from trueload.request.redact import hide_arguments

    name = f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    text = f"trueload {__version__}, Python {sys.version.split()[0]}\n" + "".join(
        traceback.format_exception(error)
    )
    text = hide_arguments(text, argv)
    for folder in (user_folder("state"), Path(tempfile.gettempdir())):
        try:
            make_folder(folder)
            path = folder / name
            with open_text(path, errors="backslashreplace") as file:
                file.write(text)
        except OSError:
            continue
        return path
    return None
