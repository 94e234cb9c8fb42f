"""Runs a plan: builds first, then trial after trial, each a row in the store at once.

How: what cannot be built or is not there is a row with its reason for each of its cells,
and the others go ahead. A trial that is in the store already (`--resume`) is not done
again. Every row is on disk before the next trial begins, so that whatever ends the run
leaves what was measured.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Literal

from trueload.engines.engine import EngineError
from trueload.errors import ExitCode, HostError, UserError
from trueload.machine.facts import count_ports
from trueload.protocol.client import ClientContract
from trueload.protocol.client_progress import WatchClient, unwatched_client
from trueload.runner import needs
from trueload.runner.build import Build, BuildError, build
from trueload.runner.cpus import (
    Layout,
    NoLayout,
    available_cpus,
    lay_out,
    lay_out_client,
    lay_out_there,
    physical_cores,
)
from trueload.runner.files import hard_limit
from trueload.runner.hosts import LocalHost, SubjectHost
from trueload.runner.trials import Measure, TrialFailure, TrialResult, run_subject
from trueload.store.rows import Row, Run
from trueload.store.runs import Store
from trueload.subjects.contracts import AnyContract, document_bytes
from trueload.subjects.manifest import Subject
from trueload.suites.clients import ClientTrials
from trueload.suites.http import http_labels
from trueload.suites.pairs import reference_labels, reference_load
from trueload.suites.plan import (
    ALL_REPETITIONS,
    PARTIAL,
    Cell,
    PlannedLoad,
    SuitePlan,
    Trial,
    cells,
    trial_count,
    trials,
)
from trueload.suites.pools import beyond_limits, pool_labels
from trueload.suites.repeats import owed, still_disturbed
from trueload.suites.summary import collect
from trueload.units import NS_PER_S, close_text, counted, idle_text

Talk = Callable[[str], None]
BUILDS_AT_ONCE = 2
TRIES_MAX = 3  # of a trial in which a host was lost
# Characters shown of the last line that a failed program printed.
LINE_MAX = 200
Unmeasured = Literal["skipped", "failed", "unsupported"]


@dataclass(frozen=True)
class Events:
    """What a run reports while it goes on. All are optional and must not raise."""

    talk: Talk = lambda line: None
    trial_starts: Callable[[Trial, int, int], None] = lambda trial, number, of: None
    trial_ended: Callable[[Trial, TrialResult | TrialFailure], None] = lambda trial, outcome: None


@dataclass
class Execution:
    """One run of a plan. `subjects` by name, and what their figures depend on now; `stopped`
    says whether the user asks to stop; `subject_host` is where servers run, None for here."""

    plan: SuitePlan
    contract: AnyContract | ClientContract
    subjects: Mapping[str, Subject]
    digests: Mapping[str, str]
    store: Store
    run: Run
    measure: Measure
    trueload_command: tuple[str, ...]
    stopped: Callable[[], bool] = lambda: False
    events: Events = Events()
    watch_client: WatchClient = unwatched_client
    subject_host: SubjectHost | None = None
    _done: set[str] = field(default_factory=set)
    _builds: dict[str, Build] = field(default_factory=dict)
    _given_up: dict[tuple[str, str, bool, bool], str] = field(default_factory=dict)
    _measured: set[str] = field(default_factory=set)
    _measured_cells: set[str] = field(default_factory=set)
    _clients: ClientTrials = field(init=False)
    _references: int = 0
    _beside: str = ""

    def __post_init__(self) -> None:
        self._clients = ClientTrials(
            self.plan, self.trueload_command, self.stopped, self.watch_client
        )

    def execute(self) -> None:
        """Everything of the plan that is not in the store yet, and again what the machine spoiled.
        Ends early when stopped."""
        for key, subject_name in done_trials(self.store, self.run):
            self._done.add(key)
            if subject_name is not None:
                self._measured.add(subject_name)
                self._measured_cells.add(key.rpartition(" r")[0])
        owing = {trial.cell.subject.name for trial in self._owed()}
        names = [p.name for p in self.plan.subjects]
        if self.plan.reference is not None and self.plan.reference.name not in names:
            self._prepare([self.plan.reference.name])
        self._prepare(
            [
                name
                for name in names
                if name in owing or not all(map(self._is_done, self._cells_of(name)))
            ]
        )
        of = trial_count(self.plan)
        with contextlib.closing(self._clients):
            for number, trial in enumerate(trials(self.plan), 1):
                if self.stopped():
                    return
                if trial.key not in self._done and self._all_key(trial.cell) not in self._done:
                    self.events.trial_starts(trial, number, of)
                    self._run_trial(trial)
            self._take_again(of)

    def _take_again(self, done: int) -> None:
        """Repetitions that the machine spoiled, as long as the plan's patience lasts."""
        began_s = time.monotonic()
        while trials_owed := self._owed():
            count = counted(len(trials_owed), "repetition")
            self.events.talk(f"taking {count} again that the machine disturbed")
            for number, trial in enumerate(trials_owed, done + 1):
                if self.stopped():
                    return
                if (time.monotonic() - began_s) * NS_PER_S >= self.plan.patience_ns:
                    self.events.talk("no more repetitions are taken again: --patience is over")
                    return
                self.events.trial_starts(trial, number, done + len(trials_owed))
                self._run_trial(trial)
            done += len(trials_owed)

    def _owed(self) -> list[Trial]:
        if not self.plan.takes_again or not self.plan.patience_ns:
            return []
        found = collect(self.plan, self.store.rows(self.run)).cells
        if still_disturbed(found):
            return []
        return [trial for trial in owed(self.plan, found) if trial.key not in self._done]

    def _prepare(self, names: Sequence[str]) -> None:
        """Builds subjects, two at a time because much of it waits for the network; what
        cannot be built is a row with the reason for each of its cells."""
        with ThreadPoolExecutor(BUILDS_AT_ONCE) as pool:
            waiting = {}
            for name in names:
                subject = self.subjects.get(name)
                if subject is None:
                    self._drop(name, "skipped", "it is no longer in the catalogue")
                elif reason := needs.missing(subject):
                    self._drop(name, "skipped", reason)
                else:
                    waiting[pool.submit(self._build, subject)] = name
            for future in as_completed(waiting):
                built = future.result()
                if isinstance(built, Build):
                    self._builds[waiting[future]] = built
                elif not self.stopped():
                    self._drop(waiting[future], built.outcome, built.reason, built.log_tail)

    def _build(self, subject: Subject) -> Build | BuildError:
        """In a thread of its own: touches nothing of ours."""
        if self.stopped():
            return BuildError("interrupted before it was built", "")
        try:
            return build(
                subject,
                trueload_command=self.trueload_command,
                stopped=self.stopped,
                announce=self.events.talk,
            )
        except BuildError as error:
            return error
        except (OSError, UserError) as error:
            return BuildError(f"it cannot be built: {error}", "")

    def _drop(
        self, name: str, outcome: Literal["skipped", "failed"], reason: str, detail: str = ""
    ) -> None:
        self.events.talk(f"{name}: {outcome}: {reason}")
        for cell in self._cells_of(name):
            if not self._is_done(cell):
                self._add_row(cell, ALL_REPETITIONS, outcome, reason, detail)

    def _run_trial(self, trial: Trial) -> None:
        cell = trial.cell
        if beyond := self._beyond(cell):
            self._add_row(cell, ALL_REPETITIONS, "unsupported", beyond)
            return
        layout = self._layout(cell)
        if isinstance(layout, str):
            self._add_row(cell, ALL_REPETITIONS, "skipped", layout)
            return
        given_up = self._manner(cell)
        if given_up in self._given_up:
            reason = self._given_up[given_up]
            self._add_row(cell, ALL_REPETITIONS, "failed", reason)
            return
        if self._beside != cell.load.key:
            self._measure_reference(cell.load, opens=True)
        outcome = self._measure_with_all_hosts(trial, layout)
        if outcome is None:
            return
        self.events.trial_ended(trial, outcome)
        if isinstance(outcome, TrialResult):
            self._add_record(trial, outcome)
            self._measure_reference(cell.load, opens=False)
        elif cell.load.pools is not None:
            self._give_up_client(trial, outcome)
        elif outcome.again or cell.subject.name in self._measured:
            number = f"r{trial.repetition}"
            self._add_row(cell, number, "failed", outcome.reason, outcome.log_tail)
        else:
            self._given_up[given_up] = outcome.reason
            self._add_row(cell, ALL_REPETITIONS, "failed", outcome.reason, outcome.log_tail)

    def _measure_reference(self, load: PlannedLoad, *, opens: bool) -> None:
        """The reference of a paired plan, right beside a trial under that load; what it fails at
        leaves the trial without a ratio."""
        self._beside, planned = "", self.plan.reference
        if planned is None or planned.name not in self._builds or self.stopped():
            return
        trial = Trial(Cell(planned, load), 1)
        layout = self._layout(trial.cell)
        outcome = (
            None if isinstance(layout, str) else self._measure(trial, layout, is_reference=True)
        )
        if not isinstance(outcome, TrialResult) or outcome.record.partial:
            return
        self._references += 1
        key = f"{load.key} reference {self._references} {outcome.record.id}"
        labels = reference_labels(load.key, opens=opens)
        self.store.add_record(self.run, outcome.record, key=key, labels=labels)
        self._beside = load.key

    def _give_up_client(self, trial: Trial, outcome: TrialFailure) -> None:
        """What did not go well is not tried again: its process has gone, and the others of the cell
        would wait as long for another."""
        cell = trial.cell
        if outcome.unsupported:
            self._add_row(cell, ALL_REPETITIONS, "unsupported", outcome.reason)
        elif cell.key in self._measured_cells:
            for number in range(trial.repetition, self.plan.repeat + 1):
                self._add_row(cell, f"r{number}", "failed", outcome.reason, outcome.log_tail)
        else:
            if not outcome.again:
                self._given_up[self._manner(cell)] = outcome.reason
            self._add_row(cell, ALL_REPETITIONS, "failed", outcome.reason, outcome.log_tail)

    def _beyond(self, cell: Cell) -> str | None:
        """Why no client can do that here; None of servers."""
        pools = cell.load.pools
        return None if pools is None else beyond_limits(pools, hard_limit(), count_ports())

    def _manner(self, cell: Cell) -> tuple[str, str, bool, bool]:
        """What a subject that failed once will fail at again."""
        return (cell.subject.name, cell.load.cores, cell.load.at_once > 1, cell.load.over_tls)

    def _measure_with_all_hosts(
        self, trial: Trial, layout: Layout
    ) -> TrialResult | TrialFailure | None:
        """Measure again what a lost host has spoiled. What was heard of it is kept. Raises
        ``HostsLostError`` if a host stays away."""
        why = ""
        for _ in range(TRIES_MAX):
            if why:
                self.events.talk(f"{trial.key}: {why}; measuring it again")
            outcome = self._measure(trial, layout)
            if self.stopped() or (why := lost_host(outcome)) == "":
                return outcome
            if isinstance(outcome, TrialResult):
                self.events.trial_ended(trial, outcome)
                self._add_record(trial, outcome)
        raise HostsLostError(self.run.id, trial.key, why)

    def _measure(
        self, trial: Trial, layout: Layout, *, is_reference: bool = False
    ) -> TrialResult | TrialFailure | None:
        """None if the user wanted the end before anything was measured."""
        load = self.plan.load_of(trial.cell.load)
        name = trial.cell.subject.name
        subject, built = self.subjects[name], self._builds[name]
        try:
            if isinstance(self.contract, ClientContract):
                outcome = self._clients.measure(trial, subject, built, layout)
            else:
                outcome = run_subject(
                    subject,
                    built,
                    reference_load(load) if is_reference else load,
                    layout,
                    self.plan.setting(self.contract, trial.cell.load),
                    self.measure,
                    subject_host=self.subject_host or LocalHost(self.trueload_command),
                    stopped=self.stopped,
                )
        except BuildError as error:
            return TrialFailure(error.reason, error.log_tail, again=True)
        except UserError as error:
            lost = isinstance(error, HostError)
            return TrialFailure(f"{error.message}; {error.hint}", "", again=True, lost=lost)
        except (OSError, EngineError) as error:
            lost = isinstance(error, EngineError) and error.kind == "lost"
            return TrialFailure(f"it cannot be run: {error}", "", again=True, lost=lost)
        return None if self.stopped() and isinstance(outcome, TrialFailure) else outcome

    def _layout(self, cell: Cell) -> Layout | str:
        """Where both run, or why the cell is skipped. A client that can do with one CPU only gets
        one: how many the others have is the machine's affair."""
        manifest, cores = self.subjects[cell.subject.name].manifest, cell.load.cores
        if cell.load.over_tls and not manifest.tls:
            return "it does not answer over TLS"
        allowed = manifest.cores
        if self.subject_host is not None and cores in allowed:
            return lay_out_there(cores, self.subject_host.cpus)
        choose = lay_out
        if cell.load.pools is not None:
            choose, cores = lay_out_client, cores if cores in allowed else allowed[0]
        elif cores not in allowed:
            return f"it runs with --cores {' or '.join(allowed)} only"
        layout = choose(
            cores,
            available_cpus(),
            physical_cores(),
            self.plan.threads,
            self.plan.share_cpus,
        )
        return layout.reason if isinstance(layout, NoLayout) else layout

    def _add_record(self, trial: Trial, outcome: TrialResult) -> None:
        # What the user or a lost host cut short is kept, and done again: its key is another.
        searched = outcome.searched
        partial = outcome.record.partial or (searched is not None and not searched.finished)
        cut_short = partial and (self.stopped() or lost_host(outcome) != "")
        key = f"{trial.key}{PARTIAL}" if cut_short else trial.key
        labels = self._labels(trial.cell, f"r{trial.repetition}")
        if outcome.response_bytes is not None:
            labels["response_bytes"] = str(outcome.response_bytes)
        http = trial.cell.load.http
        path = http.path or None if http is not None else None
        if (length := document_bytes(self.contract, path)) is not None:
            labels["document_bytes"] = str(length)
        if outcome.died:
            labels["died"] = outcome.died
        if outcome.fault:
            labels["fault"] = outcome.fault
        for step in searched.steps if searched is not None else ():
            which = {**labels, **step.labels}
            name = f"{key} step {step.labels['step']}"
            self.store.add_record(self.run, step.record, key=name, labels=which)
        labels |= searched.labels if searched is not None else {}
        self.store.add_record(self.run, outcome.record, key=key, labels=labels)
        self._done.add(key)
        self._measured.add(trial.cell.subject.name)
        self._measured_cells.add(trial.cell.key)

    def _add_row(
        self,
        cell: Cell,
        repetition: str,
        outcome: Unmeasured,
        reason: str,
        detail: str = "",
    ) -> None:
        key = f"{cell.key} {repetition}"
        self.store.add_row(
            self.run,
            outcome,
            with_last_line(reason, detail) if outcome == "failed" else reason,
            key=key,
            labels=self._labels(cell, repetition),
            detail=detail or None,
        )
        self._done.add(key)

    def _labels(self, cell: Cell, repetition: str) -> dict[str, str]:
        subject, load = cell.subject, cell.load
        return {
            "subject": subject.name,
            "language": subject.language,
            "framework": subject.framework,
            "category": subject.category,
            "name": subject.variant,
            "connections": str(load.connections),
            "pipeline": str(load.pipeline),
            "rate": load.offered,
            "cores": load.cores,
            "close": close_text(load.close),
            "idle": idle_text(load.idle),
            **({} if load.pools is None else pool_labels(load.pools)),
            **({} if load.http is None else http_labels(load.http)),
            "repetition": repetition,
            "digest": self.digests.get(subject.name, ""),
        }

    def _cells_of(self, name: str) -> Iterator[Cell]:
        return (cell for cell in cells(self.plan) if cell.subject.name == name)

    def _is_done(self, cell: Cell) -> bool:
        if self._all_key(cell) in self._done:
            return True
        repetitions = range(1, self.plan.repeat + 1)
        return all(Trial(cell, number).key in self._done for number in repetitions)

    def _all_key(self, cell: Cell) -> str:
        return f"{cell.key} {ALL_REPETITIONS}"


class HostsLostError(UserError):
    """A host was lost in a trial, and in each that was to take its place."""

    def __init__(self, run_id: str, key: str, why: str) -> None:
        super().__init__(
            f"{key}: {why}",
            f"bring the host back, then go on with: trueload suite run --resume {run_id}",
            ExitCode.INVALID,
        )


def lost_host(outcome: TrialResult | TrialFailure | None) -> str:
    """How a host of the load or of the subject was lost in a trial; empty if none was. Pure."""
    if isinstance(outcome, TrialFailure):
        return outcome.reason if outcome.lost else ""
    if outcome is None:
        return ""
    steps = () if outcome.searched is None else outcome.searched.steps
    troubles = [each.trouble for each in (outcome.record, *(step.record for step in steps))]
    again = ("lost", "paused")
    return next((each.what for each in troubles if each is not None and each.kind in again), "")


def with_last_line(reason: str, log_tail: str) -> str:
    """The reason, and what the program said last, which mostly tells more."""
    lines = [line.strip() for line in log_tail.splitlines() if line.strip()]
    return f"{reason}; it said: {lines[-1][:LINE_MAX]}" if lines else reason


def done_trials(store: Store, run: Run) -> Iterator[tuple[str, str | None]]:
    """Keys in the store, each with the subject's name if it was measured. What was skipped
    or failed for all repetitions counts too; a damaged row does not, and is done again."""
    for row in store.rows(run):
        if isinstance(row, Row):
            measured = row.outcome == "measured"
            yield row.key, row.labels.get("subject") if measured else None


def changed_subjects(plan: SuitePlan, digests: Mapping[str, str]) -> list[str]:
    """Names of the plan's subjects whose digest is another now, or that have gone. Pure."""
    return [s.name for s in plan.subjects if digests.get(s.name) != s.digest]
