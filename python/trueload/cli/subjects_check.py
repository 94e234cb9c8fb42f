"""``trueload subjects check`` and ``responses``: subjects are built and started, and asked what
their contracts ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from trueload.cli.subjects_output import going_on, print_json, print_line
from trueload.commands.folders import find_folder
from trueload.commands.job import TRUELOAD_COMMAND
from trueload.errors import ExitCode, UserError
from trueload.interrupt import Interrupt
from trueload.protocol.client import ClientContract
from trueload.runner import needs
from trueload.runner.build import Build, BuildError, build
from trueload.runner.client import Client, running_client
from trueload.runner.conduct import answers_more, stops_late
from trueload.runner.cpus import Layout, NoLayout, available_cpus, lay_out, physical_cores
from trueload.runner.hosts import LocalHost
from trueload.runner.process import Processes
from trueload.runner.trials import RunningSubject, Setting, TrialFailure, sweep, with_subject
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
from trueload.subjects.manifest import Subject
from trueload.text import plain
from trueload.units import counted

BODY_SHOWN_BYTES = 400


T = TypeVar("T")


@dataclass(frozen=True)
class CheckOutcome:
    """What `check` found of one variant under one contract."""

    subject: str
    contract: str | None
    outcome: str
    why: str
    detail: str = ""


def check_each(selects: Sequence[str] | None, *, as_json: bool) -> int:
    """Check subjects, print what was found of each, and return the exit code."""
    results: list[CheckOutcome] = []

    def note(result: CheckOutcome) -> None:
        results.append(result)
        if not as_json:
            _print_checked(result)

    sweep()
    with Interrupt() as interrupt:
        for subject in going_on(
            selects, lambda entry, why: note(CheckOutcome(entry.name, None, "failed", why.message))
        ):
            for result in _check(subject, lambda: interrupt.requested):
                note(result)
            if interrupt.requested:
                return ExitCode.INTERRUPTED
    if as_json:
        print_json("checks", [asdict(result) for result in results])
    failed = any(result.outcome == "failed" for result in results)
    return ExitCode.INVALID if failed else ExitCode.OK


def _print_checked(result: CheckOutcome) -> None:
    contract = f" {result.contract}" if result.contract else ""
    why = f": {result.why}" if result.why else ""
    print_line(f"{result.outcome:<7} {result.subject}{contract}{why}")
    for line in result.detail.splitlines()[-20:]:
        print_line(f"    | {line}")


def _check(subject: Subject, stopped: Callable[[], bool]) -> Iterator[CheckOutcome]:
    built = build_here(subject, stopped)
    if isinstance(built, CheckOutcome):
        yield built
        return
    for name in subject.manifest.contracts:
        contract = _contract_of(subject, name)
        if contract.role != subject.manifest.role:
            why = f"the contract is one of {contract.role}s, the subject a {subject.manifest.role}"
            yield CheckOutcome(subject.name, name, "failed", why)
            continue
        if isinstance(contract, ClientContract):
            yield _checked_client(subject, built, name, contract, stopped)
            continue
        of_http = isinstance(contract, Contract) and subject.manifest.tls
        for tls in (False, True) if of_http else (False,):
            act = _verifier(subject, contract, tls)
            outcome = _with_started(subject, built, contract, act, stopped, tls=tls)
            shown = f"{name} over TLS" if tls else name
            if isinstance(outcome, TrialFailure):
                yield CheckOutcome(subject.name, shown, "failed", outcome.reason, outcome.log_tail)
            else:
                yield CheckOutcome(subject.name, shown, "ok", outcome)


def _checked_client(
    subject: Subject, built: Build, name: str, contract: ClientContract, stopped: Callable[[], bool]
) -> CheckOutcome:
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
        return CheckOutcome(subject.name, name, "failed", why, found.log_tail)
    return CheckOutcome(subject.name, name, "ok", "; ".join(found.notes))


def _contract_of(subject: Subject, name: str) -> AnyContract | ClientContract:
    """A contract, as that subject keeps it."""
    contract = load_contract(find_folder("contracts"), name)
    require_library(contract)
    if isinstance(contract, ClientContract):
        return contract
    return as_spoken(contract, subject.manifest.path, subject.manifest.dialect)


def _verifier(
    subject: Subject, contract: AnyContract, tls: bool
) -> Callable[[RunningSubject], str | TrialFailure]:
    """Every exchange, and how it behaves besides; pipelining is only noted, because not every load
    needs it. A trap misbehaves on purpose."""
    category = subject.manifest.category
    is_http1 = isinstance(contract, Contract) and contract.http != "2"

    def act(started: RunningSubject) -> str | TrialFailure:
        fault = verify(contract, category, started.address, pipelined=False, tls=tls)
        if fault is not None:
            return TrialFailure(f"it does not keep the contract: {fault}", "")
        pipelining = None
        if is_http1:
            pipelining = verify(contract, category, started.address, pipelined=True, tls=tls)
        if not subject.manifest.trap and (found := misconduct(started)):
            return TrialFailure(
                f"it does not keep the rules: {found}", started.processes.log_tail()
            )
        return f"but not pipelined: {pipelining}" if pipelining is not None else ""

    def misconduct(started: RunningSubject) -> str | None:
        more = None
        if isinstance(contract, Contract) and is_http1:
            more = answers_more(contract, started.address, tls=tls)
        if more is not None:
            return more
        assert isinstance(started.processes, Processes), "a check runs here"
        return stops_late(started.processes)

    return act


def build_here(subject: Subject, stopped: Callable[[], bool]) -> Build | CheckOutcome:
    if reason := needs.missing(subject):
        return CheckOutcome(subject.name, None, "skipped", reason)
    try:
        return build(subject, trueload_command=TRUELOAD_COMMAND, stopped=stopped)
    except BuildError as error:
        # The line that a skipped one ends with is enough.
        detail = error.log_tail if error.outcome == "failed" else ""
        return CheckOutcome(subject.name, None, error.outcome, error.reason, detail)
    except UserError as error:
        return CheckOutcome(subject.name, None, "failed", error.message)


def _with_started(
    subject: Subject,
    built: Build,
    contract: AnyContract,
    act: Callable[[RunningSubject], T | TrialFailure],
    stopped: Callable[[], bool] = lambda: False,
    *,
    tls: bool = False,
) -> T | TrialFailure:
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
    assert not isinstance(layout, NoLayout)  # sharing always fits
    return layout


def show_each(selects: Sequence[str] | None, *, as_json: bool) -> int:
    """Print what subjects answer, and return the exit code."""
    shown: list[dict[str, Any]] = []

    def note(answers: dict[str, Any]) -> None:
        shown.append(answers)
        if not as_json:
            _print_responses(answers)

    sweep()
    for subject in going_on(
        selects,
        lambda entry, why: note({"subject": entry.name, "outcome": "failed", "why": why.message}),
    ):
        note(_responses(subject))
    if as_json:
        print_json("responses", shown)
    failed = any(answers.get("outcome") == "failed" for answers in shown)
    return ExitCode.INVALID if failed else ExitCode.OK


def _responses(subject: Subject) -> dict[str, Any]:
    built = build_here(subject, lambda: False)
    if isinstance(built, CheckOutcome):
        return {"subject": subject.name, "outcome": built.outcome, "why": built.why}
    name = subject.manifest.contracts[0]
    contract = _contract_of(subject, name)
    if isinstance(contract, ClientContract):
        why = "a client answers no requests; `trueload subjects check` verifies it"
        return {"subject": subject.name, "outcome": "skipped", "why": why}

    def act(started: RunningSubject) -> list[dict[str, Any]] | TrialFailure:
        if isinstance(contract, EchoContract):
            return _echoes(contract, started)
        if isinstance(contract, ShootoutContract):
            return _messages(contract, started)
        return _replies(contract, subject.manifest.category, started)

    outcome = _with_started(subject, built, contract, act)
    if isinstance(outcome, TrialFailure):
        return {"subject": subject.name, "outcome": "failed", "why": outcome.reason}
    return {"subject": subject.name, "outcome": "ok", "contract": name, "answers": outcome}


def _replies(contract: Contract, category: str, started: RunningSubject) -> list[dict[str, Any]]:
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


def _messages(contract: ShootoutContract, started: RunningSubject) -> list[dict[str, Any]]:
    """Whether everybody got what was due."""
    from trueload.runner.verify_shootout import ask_message

    return [
        _bare_answer(
            message.what,
            message.padding_bytes * message.count,
            ask_message(contract, message, started.address, contract.clients),
        )
        for message in contract.messages
    ]


def _echoes(contract: EchoContract, started: RunningSubject) -> list[dict[str, Any]]:
    """Whether the bytes came back."""
    return [
        _bare_answer(echo.what, echo.size_bytes, ask_echo(echo, started.address))
        for echo in contract.echoes
    ]


def _bare_answer(what: str, size_bytes: int, fault: str | None) -> dict[str, Any]:
    """An answer with nothing to look at but its length."""
    known = size_bytes if fault is None else None
    return {"request": what, "head": [], "body": "", "bytes": known, "fault": fault}


def _shown_body(body: bytes) -> str:
    """The start of a body on one line, safe on a terminal."""
    start = plain(body[:BODY_SHOWN_BYTES].decode("utf-8", errors="backslashreplace"))
    more = len(body) - BODY_SHOWN_BYTES
    return f"{start} … and {counted(more, 'byte')} more" if more > 0 else start


def _print_responses(answers: dict[str, Any]) -> None:
    why = f": {answers['outcome']}: {answers['why']}" if "why" in answers else ""
    print_line(f"{answers['subject']}{why}")
    for answer in answers.get("answers", ()):
        fault = f" (wrong: {answer['fault']})" if answer["fault"] else ""
        size = "? bytes" if answer["bytes"] is None else counted(answer["bytes"], "byte")
        print_line(f"  {answer['request']}: {size}{fault}")
        for line in answer["head"]:
            print_line(f"    {line}")
        if answer["head"]:
            print_line(f"    > {answer['body']}")
