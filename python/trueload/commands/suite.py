"""A suite run: begun, or gone on with.

Options become a plan, and the plan is executed into the store.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from trueload.commands.folders import find_folder
from trueload.commands.host_duration import for_suite, print_manifest
from trueload.commands.job import TRUELOAD_COMMAND
from trueload.commands.locked import locked
from trueload.commands.suite_job import STDOUT, SuiteJob
from trueload.commands.suite_pair import check_paired, find_reference
from trueload.commands.suite_places import SuiteHosts, check_for_suite, open_for_suite
from trueload.commands.suite_progress import Progress
from trueload.commands.web import web_page
from trueload.commands.weights import division_lines
from trueload.engines.binary import find_engine
from trueload.errors import ExitCode, UserError
from trueload.interrupt import EarlyEnd, Interrupt
from trueload.machine.facts import count_ports
from trueload.metrics.exports import exporting
from trueload.protocol.client import ClientContract
from trueload.protocol.load_options import LoadOptions
from trueload.record.schema import Record
from trueload.report.live import stop_key
from trueload.report.suite_json import plan_json, read_plan
from trueload.request.redact import redact_command
from trueload.runner.build import manifest_digest
from trueload.runner.files import check_files, hard_limit
from trueload.runner.trials import SearchOutcome, sweep
from trueload.runner.verify import require_library
from trueload.store.rows import Run
from trueload.store.runs import Store, StoreError
from trueload.subjects.contracts import AnyContract, load_contract
from trueload.subjects.manifest import Subject
from trueload.subjects.selection import parse_selects
from trueload.suites.broadcast import measure_broadcast
from trueload.suites.choose import choose_subjects
from trueload.suites.definition import Suite, find_suite, load_suite
from trueload.suites.execute import Execution, changed_subjects
from trueload.suites.plan import (
    PlannedLoad,
    SuitePlan,
    check_contract,
    describe,
    make_plan,
    planned,
)
from trueload.suites.pools import beyond_limits
from trueload.text import plain
from trueload.trial.run import run_trial
from trueload.trial.spec import TrialSpec

Finish = Callable[[Execution, Interrupt], int]
"""Executes what was begun; what it returns is handed on."""


def start_suite(job: SuiteJob, finish: Finish) -> int:
    """Begin a run, or go on with one, and finish it. Raises ``UserError``."""
    if job.given.resume is not None:
        return _resume(job, job.given.resume, finish)
    if job.name is None:
        raise UserError("no suite is named", "`trueload suite list` shows the suites")
    return _begin(job, job.name, finish)


def _begin(job: SuiteJob, name: str, finish: Finish) -> int:
    suites = find_folder("suites") if not name.endswith(".toml") else Path()
    path = find_suite(name, suites)
    suite = load_suite(path)
    contract = _contract(suite.contract, clients=suite.clients is not None)
    check_contract(suite, contract)
    chosen = choose_subjects(
        find_folder("subjects"), suite, parse_selects(job.given.subjects), talk
    )
    if job.given.dry_run:
        digests = dict.fromkeys((subject.name for subject in chosen), "")
    else:
        digests = _digests(chosen)
    entries = [planned(subject, digests[subject.name]) for subject in chosen]
    changes = job.changes
    reference = find_reference(job.given.pair, suite.reference, changes.repeat or suite.repeat)
    if reference is not None and reference.name not in digests:
        chosen = [*chosen, reference]
    paired_with = None if reference is None else planned(reference, "")
    plan = make_plan(path.stem, suite, entries, changes, paired_with)
    check_paired(job.given.pair, paired=plan.reference is not None)
    if plan.files == 0 and plan.broadcast is None and plan.client_wait_ms is None:
        # Else the suite limits them itself, to see what becomes of it.
        check_files(max(load.most for load in plan.loads), hard_limit())
    check_for_suite(job.placement, plan)
    if job.given.dry_run:
        _print_plan(plan, suite, job)
        return ExitCode.OK
    find_engine()
    with (
        open_for_suite(job.placement, plan) as opened,
        Interrupt() as interrupt,
        stop_key(interrupt.request, wanted=job.live),
        exporting(job.metrics, _about(path.stem), interrupt, talk) as exports,
        _locked(path.stem, job, opened, interrupt),
        web_page(job.given.web, interrupt, talk) as (page, show_report),
        Store.open() as store,
    ):
        run = store.new_run(
            kind="suite",
            title=path.stem,
            plan=plan.model_dump(mode="json"),
            seed=plan.seed,
            command=redact_command(
                ["trueload", *(sys.argv[1:] if job.words is None else job.words)]
            ),
        )
        talk(f"run {run.id}: {describe(plan)}")
        progress = Progress(sys.stderr, exports, live=job.live, page=page)
        work = _execution(plan, contract, chosen, digests, store, run, interrupt, progress, opened)
        code = finish(work, interrupt)
        show_report(run.id)
        return code


def _resume(job: SuiteJob, selector: str, finish: Finish) -> int:
    if job.changes.are_some or job.given.subjects:
        raise UserError(
            (
                "--resume goes on with the plan of the run: its loads, subjects and"
                " repetitions cannot be changed"
            ),
            f"leave those options out: trueload suite run --resume {selector}",
        )
    find_engine()
    with (
        Interrupt() as interrupt,
        stop_key(interrupt.request, wanted=job.live),
        Store.open() as store,
        contextlib.ExitStack() as stack,
    ):
        run = store.find_run(selector)
        plan = read_plan(run)
        exports = stack.enter_context(exporting(job.metrics, _about(plan.suite), interrupt, talk))
        page, show_report = stack.enter_context(web_page(job.given.web, interrupt, talk))
        if job.name is not None and Path(job.name).stem != plan.suite:
            raise UserError(
                f"run {run.id} is of the suite {plan.suite!r}, not of {job.name!r}",
                f"trueload suite run {plan.suite} --resume {run.id}",
            )
        store.hold_run(run)
        contract = _contract(plan.contract, clients=plan.client_wait_ms is not None)
        beside = () if plan.reference is None else (plan.reference,)
        chosen = _still_there([subject.name for subject in (*plan.subjects, *beside)])
        digests = _digests(chosen)
        opened = stack.enter_context(open_for_suite(job.placement, plan))
        stack.enter_context(_locked(plan.suite, job, opened, interrupt))
        talk(f"run {run.id}, resumed: {describe(plan)}")
        for changed in changed_subjects(plan, digests):
            talk(
                f"note: {changed} has changed since the run began; the remaining trials"
                " measure the new version"
            )
        progress = Progress(sys.stderr, exports, live=job.live, page=page)
        work = _execution(plan, contract, chosen, digests, store, run, interrupt, progress, opened)
        code = finish(work, interrupt)
        show_report(run.id)
        return code


def _locked(
    suite: str, job: SuiteJob, opened: SuiteHosts, interrupt: Interrupt
) -> contextlib.AbstractContextManager[None]:
    what = f"suite run {suite}"
    return locked(what, job.placement, opened.hosts, interrupt, starts_subjects=True)


def _about(suite: str) -> dict[str, str]:
    return {"command": "suite", "suite": suite}


def _contract(name: str, *, clients: bool) -> AnyContract | ClientContract:
    """The contract of a suite of clients or of servers. Raises ``UserError`` for the other, and
    for one that takes what is not installed."""
    contract = load_contract(find_folder("contracts"), name)
    if isinstance(contract, ClientContract) != clients:
        has, needs = ("clients", "servers") if not clients else ("servers", "clients")
        raise UserError(
            f"the contract {name!r} is one of {has}, and the suite measures {needs}",
            "add the table [clients] with its wait to the suite, or remove it",
        )
    require_library(contract)
    return contract


def _digests(subjects: Sequence[Subject]) -> dict[str, str]:
    """By name; "" of one whose files cannot be read: its rows will say why it is not built."""
    found = dict.fromkeys((subject.name for subject in subjects), "")
    for subject in subjects:
        with contextlib.suppress(UserError):
            found[subject.name] = manifest_digest(subject)
    return found


def _still_there(names: Sequence[str]) -> list[Subject]:
    """The subjects of a stored plan that the catalogue still has."""
    wanted = set(names)
    suite = Suite(about="", contract="", subjects=tuple(names), window=LoadOptions(requests=1))
    found = choose_subjects(find_folder("subjects"), suite, [], talk, any_contract=True)
    return [subject for subject in found if subject.name in wanted]


def _execution(
    plan: SuitePlan,
    contract: AnyContract | ClientContract,
    chosen: Sequence[Subject],
    digests: dict[str, str],
    store: Store,
    run: Run,
    interrupt: Interrupt,
    progress: Progress,
    opened: SuiteHosts,
) -> Execution:
    def measure(spec: TrialSpec, ended: Callable[[], bool]) -> Record | SearchOutcome:
        until = EarlyEnd(interrupt, ended)
        spec = replace(spec, hosts=opened.hosts, server_place=opened.server_place)
        with progress.watching(spec) as on_progress:
            if plan.broadcast is not None:
                return measure_broadcast(plan, spec, until, on_progress)
            return run_trial(spec, on_progress=on_progress, interrupt=until)

    return Execution(
        plan=plan,
        contract=contract,
        subjects={subject.name: subject for subject in chosen},
        digests=digests,
        store=store,
        run=run,
        measure=measure,
        trueload_command=TRUELOAD_COMMAND,
        stopped=lambda: interrupt.requested,
        events=progress.events(),
        watch_client=progress.watching_client,
        subject_host=opened.subject_host,
    )


def execute(work: Execution, interrupt: Interrupt) -> Run:
    """Execute, and say in the store how the run ended. Raises ``StoreError`` if that cannot be
    written."""
    sweep()
    try:
        try:
            work.execute()
        except BaseException:
            # What had been saved is there; to end the run as well mostly fails as the row before.
            with contextlib.suppress(StoreError):
                work.store.end_run(work.run, "interrupted")
            raise
        return work.store.end_run(work.run, "interrupted" if interrupt.requested else "finished")
    except StoreError as error:
        raise _not_saved(work, interrupt, error) from error


def _not_saved(work: Execution, interrupt: Interrupt, error: StoreError) -> StoreError:
    go_on = f"then go on with: trueload suite run --resume {work.run.id}"
    code = ExitCode.INTERRUPTED if interrupt.requested else ExitCode.OUTPUT
    return StoreError(error.message, f"{error.hint}; {go_on}", code)


def _print_plan(plan: SuitePlan, suite: Suite, job: SuiteJob) -> None:
    if job.json_path == STDOUT:
        sys.stdout.write(plan_json(plan, describe(plan)))
        return
    lines = [describe(plan), "", "subjects:"]
    lines += [f"  {plain(subject.name)}" for subject in plan.subjects]
    lines += ["loads:", *(f"  {_load_line(load)}" for load in plan.loads)]
    lines += division_lines(job.placement)
    lines += [f"note: {plain(note)}" for note in suite.notes]
    sys.stdout.write("\n".join(lines) + "\n")
    print_manifest(for_suite(job.placement, plan))


def _load_line(load: PlannedLoad) -> str:
    """A load, and why it cannot be measured here if that is known."""
    beyond = None
    if load.pools is not None:
        beyond = beyond_limits(load.pools, hard_limit(), count_ports())
    return load.title if beyond is None else f"{load.title}: unsupported: {beyond}"


def talk(line: str) -> None:
    """A line for people; whoever read them may have gone."""
    with contextlib.suppress(OSError):
        sys.stderr.write(plain(line) + "\n")
