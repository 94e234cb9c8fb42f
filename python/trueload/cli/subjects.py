"""`trueload subjects`: what there is, whether it works here, and how to add one.

How: each command selects variants from the catalogue and prints one line for each, or one
JSON object. What a subject answers is printed without control characters.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from trueload.commands.folders import find_folder, subjects_home
from trueload.commands.job import TRUELOAD_COMMAND
from trueload.commands.options import AsJsonOption
from trueload.errors import ExitCode, UserError, some_broken
from trueload.interrupt import Interrupt
from trueload.protocol.client import ClientContract
from trueload.report.grid import Grid, markdown_lines, text_lines
from trueload.runner import needs
from trueload.runner.build import Build, BuildError, build
from trueload.runner.client import Client, running_client
from trueload.runner.conduct import answers_more, stops_late
from trueload.runner.cpus import Layout, Unfit, available_cpus, lay_out, physical_cores
from trueload.runner.hosts import LocalHost
from trueload.runner.process import Processes, substitute
from trueload.runner.trials import Failed, Setting, Started, sweep, with_subject
from trueload.runner.verify import ask, over, require_library, verify
from trueload.runner.verify_client import verify_client
from trueload.runner.verify_echo import ask_echo
from trueload.subjects.contracts import (
    AnyContract,
    Contract,
    EchoContract,
    ShootoutContract,
    as_spoken,
    asked_of,
    load_contract,
)
from trueload.subjects.manifest import (
    MANIFEST,
    NAME_PATTERN,
    Entry,
    OnBroken,
    Subject,
    parse_selects,
    select_subjects,
    unless_named,
)
from trueload.subjects.pinned_version import pinned_version
from trueload.text import plain

BODY_SHOWN_BYTES = 400
T = TypeVar("T")

Selects = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SELECT",
        help=(
            "Subjects to use, by NAME, LANGUAGE or LANGUAGE/NAME, with :VARIANT for one variant;"
            " ! excludes.  [default: all]"
        ),
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    subjects = typer.Typer(help="List, create and check the programs under test.")
    subjects.command("list")(list_subjects)
    subjects.command("new")(new_subject)
    subjects.command("check")(check_subjects)
    subjects.command("install")(install_packages)
    subjects.command("versions")(show_versions)
    subjects.command("responses")(show_responses)
    app.add_typer(subjects, name="subjects")


def list_subjects(selects: Selects = None, as_json: AsJsonOption = False) -> None:
    """List subjects with their contracts, and what this machine lacks to run them.

    Exit codes: 0 all can be read; 2 a subject is broken, and is listed as broken.

    Example: trueload subjects list rust go
    """
    broken: dict[str, UserError] = {}
    found = _selected(selects, lambda entry, why: broken.update({entry.name: why}))
    missing = {subject.name: needs.missing(subject) for subject in found}
    if as_json:
        shown = [_as_dict(s) | {"missing": missing[s.name]} for s in found]
        amiss = [{"name": n, "why": why.message, "hint": why.hint} for n, why in broken.items()]
        sys.stdout.write(json.dumps({"subjects": shown, "broken": amiss}, indent=1) + "\n")
    else:
        lines = {subject.name: _facts(subject, missing[subject.name]) for subject in found}
        lines |= {name: f"broken: {why.message}" for name, why in broken.items()}
        for line in text_lines(Grid((), tuple(lines.items()))):
            _print_line(line)
    if broken:
        raise some_broken("subjects", broken)


def _facts(subject: Subject, missing: str | None) -> str:
    manifest = subject.manifest
    facts = f"{manifest.category:<9} {','.join(manifest.cores):<13} {','.join(manifest.contracts)}"
    facts += "" if manifest.tried is None else f"; tried: {manifest.tried}"
    return facts if missing is None else f"{facts}; skipped here: {missing}"


def new_subject(
    name: Annotated[str, typer.Argument(metavar="LANGUAGE/NAME")], as_json: AsJsonOption = False
) -> None:
    """Create a new subject: a manifest, and a README with the next steps.

    Example: trueload subjects new go/my-server
    """
    language, slash, framework = name.partition("/")
    if not slash or not NAME_PATTERN.fullmatch(language) or not NAME_PATTERN.fullmatch(framework):
        raise UserError(
            f"{name!r} is not LANGUAGE/NAME with letters, digits and . _ + -",
            "try trueload subjects new go/my-server",
        )
    folder = subjects_home() / language / framework
    if folder.exists():
        raise UserError(f"{folder} is there already", "choose another name or edit that one")
    try:
        folder.mkdir(parents=True)
        (folder / MANIFEST).write_text(NEW_MANIFEST.format(name=framework), encoding="utf-8")
        (folder / "README.md").write_text(NEW_README.format(name=name), encoding="utf-8")
    except OSError as error:
        raise UserError(f"{folder} cannot be made: {error.strerror}", "check its rights") from None
    if as_json:
        _print_json("subject", {"name": name, "folder": str(folder)})
        return
    _print_line(f"made {folder}")
    _print_line(
        f"next: write the program, fill in {MANIFEST}, then: trueload subjects check {name}"
    )


NEW_MANIFEST = """\
# Language and framework come from the path. docs/adding-a-subject.md explains every key.
role      = "server"
about     = "{name}, default settings"
category  = "platform"            # micro (no general framework), platform, fullstack or proxy
contracts = ["http-plaintext"]    # GET / answers "Hello, World!" as text/plain
# needs   = {{ tools = ["go>=1.22"] }}
# build   = [["go", "build", "-o", "subject", "."]]
run       = ["./subject", "--listen", "{{host}}:{{port}}", "--threads", "{{cpus}}"]
# version = ["go", "version"]

# A variant states only what differs:
# [variants.tuned]
# run     = ["./subject", "--listen", "{{host}}:{{port}}", "--threads", "{{cpus}}", "--tuned"]
"""

NEW_README = """\
# {name}

1. Put the program here. It listens on the address and port that it is given.
2. Fill in `subject.toml`: how to build it and how to run it.
3. `trueload subjects check {name}` builds it, starts it and verifies its answers.
4. `trueload suite run quick --subjects {name}` measures it.
5. Replace this file by what is unusual about it, or remove it.
"""


@dataclass(frozen=True)
class Checked:
    """What `check` found of one variant under one contract."""

    subject: str
    contract: str | None
    outcome: str
    why: str
    detail: str = ""


def check_subjects(selects: Selects = None, as_json: AsJsonOption = False) -> int:
    """Build and start subjects, and verify that they keep their contracts.

    Exit codes: 0 all keep them or are skipped; 4 at least one does not.

    Example: trueload subjects check go/fasthttp
    """
    results: list[Checked] = []

    def note(result: Checked) -> None:
        results.append(result)
        if not as_json:
            _print_checked(result)

    sweep()
    with Interrupt() as interrupt:
        for subject in _going_on(
            selects, lambda entry, why: note(Checked(entry.name, None, "failed", why.message))
        ):
            for result in _check(subject, lambda: interrupt.requested):
                note(result)
            if interrupt.requested:
                return ExitCode.INTERRUPTED
    if as_json:
        _print_json("checks", [asdict(result) for result in results])
    failed = any(result.outcome == "failed" for result in results)
    return ExitCode.INVALID if failed else ExitCode.OK


def _print_checked(result: Checked) -> None:
    contract = f" {result.contract}" if result.contract else ""
    why = f": {result.why}" if result.why else ""
    _print_line(f"{result.outcome:<7} {result.subject}{contract}{why}")
    for line in result.detail.splitlines()[-20:]:
        _print_line(f"    | {line}")


def _check(subject: Subject, stopped: Callable[[], bool]) -> Iterator[Checked]:
    built = _built(subject, stopped)
    if isinstance(built, Checked):
        yield built
        return
    for name in subject.manifest.contracts:
        contract = _contract_of(subject, name)
        if contract.role != subject.manifest.role:
            why = f"the contract is one of {contract.role}s, the subject a {subject.manifest.role}"
            yield Checked(subject.name, name, "failed", why)
            continue
        if isinstance(contract, ClientContract):
            yield _checked_client(subject, built, name, contract, stopped)
            continue
        of_http = isinstance(contract, Contract) and subject.manifest.tls
        for tls in (False, True) if of_http else (False,):
            act = _verifier(subject, contract, tls)
            outcome = _with_started(subject, built, contract, act, stopped, tls=tls)
            shown = f"{name} over TLS" if tls else name
            if isinstance(outcome, Failed):
                yield Checked(subject.name, shown, "failed", outcome.reason, outcome.log_tail)
            else:
                yield Checked(subject.name, shown, "ok", outcome)


def _checked_client(
    subject: Subject, built: Build, name: str, contract: ClientContract, stopped: Callable[[], bool]
) -> Checked:
    """A client, in every run of its contract; what it cannot do is only noted."""

    def start() -> AbstractContextManager[Client]:
        layout = _any_layout(subject)
        return running_client(
            subject, built, layout, trueload_command=TRUELOAD_COMMAND, stopped=stopped
        )

    manifest = subject.manifest
    found = verify_client(contract, start, tls=manifest.tls, keep_alive=manifest.keep_alive)
    if found.fault is not None:
        why = f"it does not keep the contract: {found.fault}"
        return Checked(subject.name, name, "failed", why, found.log_tail)
    return Checked(subject.name, name, "ok", "; ".join(found.notes))


def _contract_of(subject: Subject, name: str) -> AnyContract | ClientContract:
    """A contract, as that subject keeps it."""
    contract = load_contract(find_folder("contracts"), name)
    require_library(contract)
    if isinstance(contract, ClientContract):
        return contract
    return as_spoken(contract, subject.manifest.path, subject.manifest.dialect)


def _verifier(
    subject: Subject, contract: AnyContract, tls: bool
) -> Callable[[Started], str | Failed]:
    """Every exchange, and how it behaves besides; pipelining is only noted, because not every load
    needs it. A trap misbehaves on purpose."""
    category = subject.manifest.category
    is_http1 = isinstance(contract, Contract) and contract.http != "2"

    def act(started: Started) -> str | Failed:
        fault = verify(contract, category, started.address, pipelined=False, tls=tls)
        if fault is not None:
            return Failed(f"it does not keep the contract: {fault}", "")
        pipelining = None
        if is_http1:
            pipelining = verify(contract, category, started.address, pipelined=True, tls=tls)
        if not subject.manifest.trap and (found := misconduct(started)):
            return Failed(f"it does not keep the rules: {found}", started.processes.log_tail())
        return f"but not pipelined: {pipelining}" if pipelining is not None else ""

    def misconduct(started: Started) -> str | None:
        more = None
        if isinstance(contract, Contract) and is_http1:
            more = answers_more(contract, started.address, tls=tls)
        if more is not None:
            return more
        assert isinstance(started.processes, Processes), "a check runs here"
        return stops_late(started.processes)

    return act


def _built(subject: Subject, stopped: Callable[[], bool]) -> Build | Checked:
    if reason := needs.missing(subject):
        return Checked(subject.name, None, "skipped", reason)
    try:
        return build(subject, trueload_command=TRUELOAD_COMMAND, stopped=stopped)
    except BuildError as error:
        # The line that a skipped one ends with is enough.
        detail = error.log_tail if error.outcome == "failed" else ""
        return Checked(subject.name, None, error.outcome, error.reason, detail)
    except UserError as error:
        return Checked(subject.name, None, "failed", error.message)


def _with_started(
    subject: Subject,
    built: Build,
    contract: AnyContract,
    act: Callable[[Started], T | Failed],
    stopped: Callable[[], bool] = lambda: False,
    *,
    tls: bool = False,
) -> T | Failed:
    return with_subject(
        subject,
        built,
        _any_layout(subject),
        Setting(contract=contract, tls=tls),
        act,
        subject_host=LocalHost(TRUELOAD_COMMAND),
        stopped=stopped,
    )


def _any_layout(subject: Subject) -> Layout:
    """Nothing is measured here, so that sharing CPUs does no harm."""
    layout = lay_out(subject.manifest.cores[0], available_cpus(), physical_cores(), 1, share=True)
    assert not isinstance(layout, Unfit)  # sharing always fits
    return layout


def install_packages(selects: Selects = None, as_json: AsJsonOption = False) -> int:
    """Install the Debian packages that subjects need; as root only.

    Example: sudo trueload subjects install c/nginx
    """
    chosen = _going_on(selects, _report_broken)
    packages = sorted({p for s in chosen for p in needs.missing_packages(s)})
    if as_json:
        _print_json("packages", packages)
    elif packages:
        _print_line(f"packages: {' '.join(packages)}")
    if not packages:
        if not as_json:
            _print_line("nothing to install")
        return ExitCode.OK
    if os.geteuid() != 0:
        raise UserError(
            f"installing {' '.join(packages)} needs root",
            f"sudo apt-get install {' '.join(packages)}",
        )
    apt = shutil.which("apt-get")
    if apt is None:
        raise UserError("this is no Debian: there is no apt-get", "install the packages by hand")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(
        [apt, "install", "--yes", "--no-install-recommends", "--", *packages],
        env=env,
        stdout=sys.stderr,
        check=False,
    )
    if done.returncode != 0:
        raise UserError(
            f"apt-get ended with {done.returncode}", "try `apt-get update` first", ExitCode.USAGE
        )
    return ExitCode.OK


def show_versions(selects: Selects = None, as_json: AsJsonOption = False) -> None:
    """Print the versions of languages and frameworks as a Markdown table.

    Example: trueload subjects versions
    """
    rows: dict[tuple[str, str], str] = {}
    broken: dict[str, UserError] = {}
    for subject in _going_on(selects, lambda entry, why: broken.update({entry.name: why})):
        if not subject.variant:
            rows[subject.language, subject.framework] = _version(subject)
    if as_json:
        shown = [{"language": key[0], "framework": key[1], "version": v} for key, v in rows.items()]
        _print_json("versions", shown)
    else:
        found = tuple((*key, version) for key, version in rows.items())
        for line in markdown_lines(Grid(("Language", "Framework", "Version"), found)):
            _print_line(line)
    if broken:
        raise some_broken("subjects", broken)


def _version(subject: Subject) -> str:
    """The version of its library, as pinned, before what its version command says."""
    library = subject.manifest.library
    pinned = None if library is None else pinned_version(subject.folder, library)
    version = _printed_version(subject)
    return version if pinned is None else f"{library} {pinned} ({version})"


def _printed_version(subject: Subject) -> str:
    argv = subject.manifest.version
    if reason := needs.missing(subject):
        return f"skipped here: {reason}"
    if argv is None:
        return "; ".join(needs.tool_versions(subject).values()) or "unknown"
    folder = Path("/")
    if "/" in argv[0]:
        built = _built(subject, lambda: False)
        if isinstance(built, Checked):
            return built.why
        folder = built.folder
    command = substitute(argv, {"build": str(folder)}, TRUELOAD_COMMAND)
    return needs.first_line(tuple(command), folder) or "unknown"


def show_responses(selects: Selects = None, as_json: AsJsonOption = False) -> int:
    """Print what subjects answer to each exchange of their first contract.

    Example: trueload subjects responses nginx
    """
    shown: list[dict[str, Any]] = []

    def note(answers: dict[str, Any]) -> None:
        shown.append(answers)
        if not as_json:
            _print_responses(answers)

    sweep()
    for subject in _going_on(
        selects,
        lambda entry, why: note({"subject": entry.name, "outcome": "failed", "why": why.message}),
    ):
        note(_responses(subject))
    if as_json:
        _print_json("responses", shown)
    failed = any(answers.get("outcome") == "failed" for answers in shown)
    return ExitCode.INVALID if failed else ExitCode.OK


def _responses(subject: Subject) -> dict[str, Any]:
    built = _built(subject, lambda: False)
    if isinstance(built, Checked):
        return {"subject": subject.name, "outcome": built.outcome, "why": built.why}
    name = subject.manifest.contracts[0]
    contract = _contract_of(subject, name)
    if isinstance(contract, ClientContract):
        why = "a client answers nobody; `trueload subjects check` verifies it"
        return {"subject": subject.name, "outcome": "skipped", "why": why}

    def act(started: Started) -> list[dict[str, Any]] | Failed:
        if isinstance(contract, EchoContract):
            return _echoes(contract, started)
        if isinstance(contract, ShootoutContract):
            return _messages(contract, started)
        return _replies(contract, subject.manifest.category, started)

    outcome = _with_started(subject, built, contract, act)
    if isinstance(outcome, Failed):
        return {"subject": subject.name, "outcome": "failed", "why": outcome.reason}
    return {"subject": subject.name, "outcome": "ok", "contract": name, "answers": outcome}


def _replies(contract: Contract, category: str, started: Started) -> list[dict[str, Any]]:
    asked = [e for e in asked_of(contract, category, False) if e.form == "plain"]
    answers = []
    means = over(contract, tls=False)
    for exchange in asked:
        answer = ask(exchange, asked, started.address, means=means)
        head = answer.reply.raw_head if answer.reply is not None else b""
        body = answer.reply.body if answer.reply is not None else b""
        answers.append(
            {
                "request": f"{exchange.method} {exchange.path}",
                "head": [plain(line) for line in head.decode("latin-1").splitlines()],
                "body": _shown_body(body),
                "bytes": answer.reply.wire_bytes if answer.reply is not None else None,
                "fault": answer.fault,
            }
        )
    return answers


def _messages(contract: ShootoutContract, started: Started) -> list[dict[str, Any]]:
    """Nothing to look at but whether everybody got what was due."""
    from trueload.runner.verify_shootout import ask_message

    answers: list[dict[str, Any]] = []
    for message in contract.messages:
        fault = ask_message(contract, message, started.address, contract.clients)
        size_bytes = message.padding_bytes * message.count if fault is None else None
        answers.append(
            {"request": message.what, "head": [], "body": "", "bytes": size_bytes, "fault": fault}
        )
    return answers


def _echoes(contract: EchoContract, started: Started) -> list[dict[str, Any]]:
    """Nothing to look at but whether the bytes came back."""
    answers: list[dict[str, Any]] = []
    for echo in contract.echoes:
        fault = ask_echo(echo, started.address)
        size_bytes = echo.size_bytes if fault is None else None
        answers.append(
            {"request": echo.what, "head": [], "body": "", "bytes": size_bytes, "fault": fault}
        )
    return answers


def _shown_body(body: bytes) -> str:
    """The start of a body on one line, safe on a terminal."""
    start = plain(body[:BODY_SHOWN_BYTES].decode("utf-8", errors="backslashreplace"))
    more = len(body) - BODY_SHOWN_BYTES
    return f"{start} … and {more} bytes more" if more > 0 else start


def _print_responses(answers: dict[str, Any]) -> None:
    why = f": {answers['outcome']}: {answers['why']}" if "why" in answers else ""
    _print_line(f"{answers['subject']}{why}")
    for answer in answers.get("answers", ()):
        fault = f" (wrong: {answer['fault']})" if answer["fault"] else ""
        _print_line(f"  {answer['request']}: {answer['bytes']} bytes{fault}")
        for line in answer["head"]:
            _print_line(f"    {line}")
        if answer["head"]:
            _print_line(f"    > {answer['body']}")


def _selected(selects: Sequence[str] | None, on_broken: OnBroken) -> list[Subject]:
    return select_subjects(find_folder("subjects"), parse_selects(selects or ()), on_broken)


def _going_on(selects: Sequence[str] | None, on_broken: OnBroken) -> list[Subject]:
    """Without those that are broken, unless one of them is asked for by its name."""
    return _selected(selects, unless_named(parse_selects(selects or ()), on_broken))


def _report_broken(entry: Entry, why: UserError) -> None:
    sys.stderr.write(f"note: {plain(entry.name)} is broken: {plain(why.message)}\n")


def _as_dict(subject: Subject) -> dict[str, Any]:
    return {
        "language": subject.language,
        "framework": subject.framework,
        "name": subject.variant,
        "folder": str(subject.folder),
        **subject.manifest.model_dump(mode="json"),
    }


def _print_json(key: str, value: Any) -> None:
    sys.stdout.write(json.dumps({key: value}, indent=1) + "\n")


def _print_line(line: str) -> None:
    sys.stdout.write(plain(line).rstrip() + "\n")
    sys.stdout.flush()
