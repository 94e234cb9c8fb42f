"""The two sides of ``trueload compare``: each is a URL, or a subject of the catalogue.

A subject is started again for each of its trials.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from trueload.commands.folders import find_folder
from trueload.commands.job import TRUELOAD_COMMAND, Job
from trueload.commands.suite_places import SuiteHosts
from trueload.engines.engine import EngineError
from trueload.errors import ExitCode, UserError
from trueload.interrupt import EarlyEnd, Interrupt
from trueload.record.schema import Record
from trueload.report.heading import Heading
from trueload.report.live import Watch
from trueload.request.values import Request
from trueload.runner import needs
from trueload.runner.build import Build, BuildError, build
from trueload.runner.cpus import (
    Layout,
    NoLayout,
    available_cpus,
    lay_out,
    lay_out_there,
    physical_cores,
)
from trueload.runner.hosts import LocalHost, SubjectHost
from trueload.runner.trials import Setting, TrialResult, run_subject
from trueload.subjects.contracts import Contract, load_http_contract
from trueload.subjects.manifest import Subject
from trueload.subjects.selection import parse_selects, select_subjects
from trueload.text import plain
from trueload.trial.run import run_trial
from trueload.trial.spec import TrialSpec, repetition

CONTRACT = "http-plaintext"
_HOST_AND_PORT = re.compile(r"(\[[^]]*\]|[^/:]+):\d+(/|$)", re.ASCII)


@dataclass(frozen=True)
class UrlServer:
    """A server that runs by itself. ``spec`` has its addresses, and the hosts of the load."""

    spec: TrialSpec
    watch: Watch

    @property
    def name(self) -> str:
        return self.spec.url

    def measure(
        self, pair: int, heading: Heading, interrupt: Interrupt, labels: Mapping[str, str]
    ) -> Record:
        spec = repetition(self.spec, pair)
        with self.watch(spec, heading, labels) as on_progress:
            return run_trial(spec, on_progress=on_progress, interrupt=interrupt)


@dataclass(frozen=True)
class SubjectServer:
    """A built subject.

    The load is that of ``spec``. The request is the contract's, with the headers of ``spec``. The
    subject runs where ``opened`` says.
    """

    subject: Subject
    built: Build
    contract: Contract
    spec: TrialSpec
    watch: Watch
    opened: SuiteHosts

    @property
    def name(self) -> str:
        return self.subject.name

    def measure(
        self, pair: int, heading: Heading, interrupt: Interrupt, labels: Mapping[str, str]
    ) -> Record | None:
        """Run its trial of a pair; None if the user asked for the end before anything was measured.
        Raises ``UserError`` if the subject cannot be measured."""
        spec = repetition(self.spec, pair)

        def measured(found: TrialSpec, ended: Callable[[], bool]) -> Record:
            one = replace(
                spec,
                url=found.url,
                addresses=found.addresses,
                traffic=replace(
                    spec.traffic,
                    request=_with_headers(found.traffic.request, spec.traffic.request),
                    expect=found.traffic.expect,
                ),
                engine=found.engine if spec.engine.cpus is None else spec.engine,
                server=found.server,
                server_place=self.opened.server_place,
            )
            with self.watch(one, heading, labels) as on_progress:
                until = EarlyEnd(interrupt, ended)
                return run_trial(one, on_progress=on_progress, interrupt=until)

        try:
            outcome = run_subject(
                self.subject,
                self.built,
                spec.load,
                _layout(self.subject, spec.engine.threads, self.opened.subject_host),
                Setting(contract=self.contract, engine=spec.engine),
                measured,
                subject_host=self.opened.subject_host or LocalHost(TRUELOAD_COMMAND),
                stopped=lambda: interrupt.requested,
            )
        except EngineError as error:  # the subject's host is lost
            raise _unmeasured(self.name, str(error), "look at that host") from error
        if isinstance(outcome, TrialResult):
            return outcome.record
        if interrupt.requested:
            return None
        hint = f"`trueload subjects check {self.name}` shows why"
        raise _unmeasured(self.name, outcome.reason, hint)


AbServer = UrlServer | SubjectServer
"""One of the two sides; ``name`` is shown and stored."""


def _unmeasured(name: str, why: str, hint: str) -> UserError:
    """Return the error of a side that cannot be measured, although the command was right."""
    message = f"{name} cannot be measured: {plain(why)}"
    return UserError(message, hint, ExitCode.NOTHING_MEASURED)


def _with_headers(contract: Request | None, own: Request | None) -> Request | None:
    """Return the request of a contract, with the headers of the command line."""
    if contract is None or own is None:
        return contract
    return replace(contract, headers=own.headers)


def is_url(text: str) -> bool:
    """Whether a side is a URL, or HOST:PORT without a scheme; else it is a subject's name."""
    return "://" in text or _HOST_AND_PORT.match(text) is not None


def open_side(
    text: str, job: Job, opened: SuiteHosts, interrupt: Interrupt, watch: Watch
) -> AbServer:
    """Return the side, resolved or built and ready to be measured. Raises ``UserError``."""
    spec = replace(job.spec, hosts=opened.hosts)
    if is_url(text):
        return UrlServer(replace(job.resolved(), hosts=opened.hosts), watch)
    subject = find_subject(text)
    if reason := needs.missing(subject):
        raise _unmeasured(subject.name, reason, "install that, and repeat")
    try:
        built = build(
            subject,
            trueload_command=TRUELOAD_COMMAND,
            stopped=lambda: interrupt.requested,
            announce=lambda line: print(plain(line), file=sys.stderr),
        )
    except BuildError as error:
        if interrupt.requested:
            raise UserError(
                f"interrupted before {subject.name} was built",
                "repeat the command; nothing was measured",
                ExitCode.INTERRUPTED,
            ) from error
        hint = f"`trueload subjects check {subject.name}` shows the log"
        raise _unmeasured(subject.name, error.reason, hint) from error
    contract = load_http_contract(find_folder("contracts"), CONTRACT)
    return SubjectServer(subject, built, contract, spec, watch, opened)


def find_subject(text: str) -> Subject:
    """Return the one subject that a name selects. Raises ``UserError``."""
    selects = parse_selects([text])
    found = [
        subject
        for subject in select_subjects(find_folder("subjects"), selects)
        if CONTRACT in subject.manifest.contracts
    ]
    exact = [subject for subject in found if subject.name == text]
    plain_ones = [subject for subject in found if not subject.variant]
    for candidates in (exact, found, plain_ones):
        if len(candidates) == 1:
            return candidates[0]
    names = ", ".join(subject.name for subject in found[:3])
    raise UserError(
        f"'{text}' selects {len(found)} subjects with the contract {CONTRACT}"
        + (f": {names}" if names else ""),
        "name one, as `trueload subjects list` does, or write a URL",
    )


def _layout(subject: Subject, threads: int, subject_host: SubjectHost | None) -> Layout:
    """Return the layout for a subject: all CPUs but the engine's, else one each, else shared.

    On another host it is all CPUs, if the subject can use several.
    """
    if subject_host is not None:
        several = "multi" in subject.manifest.cores
        return lay_out_there("multi" if several else "single", subject_host.cpus)
    found: Layout | NoLayout = NoLayout("it supports neither one CPU nor several")
    for share in (False, True):
        for cores in ("multi", "single"):
            if cores in subject.manifest.cores and isinstance(found, NoLayout):
                found = lay_out(cores, available_cpus(), physical_cores(), threads, share)
    if isinstance(found, NoLayout):
        raise UserError(f"{subject.name} cannot be run: {found.reason}", "use fewer --threads")
    return found
