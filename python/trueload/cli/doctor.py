"""``trueload doctor``: gathers the facts, has them judged, and shows the findings."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import Counter
from dataclasses import asdict, replace
from typing import Annotated

import typer

from trueload import __version__
from trueload.commands import doctor
from trueload.commands.flags import with_read
from trueload.commands.options import AsJsonOption
from trueload.commands.place_options import check_all_at_start, read_placement
from trueload.errors import UserError
from trueload.machine import facts as machine
from trueload.places.names import Placement
from trueload.text import plain
from trueload.units import NS_PER_S

# Long enough to see a background job that wakes once a second, and short enough to wait for.
WATCH_S = 3.0
QUICK_WATCH_S = 0.5
PLANNED_NS = 10 * NS_PER_S  # what the hosts are needed for, besides the margin of Pods


def register(app: typer.Typer) -> None:
    app.command("doctor")(show_doctor)


@with_read(without=("server_place", "server_pid", "wait"), placement=read_placement)
def show_doctor(
    placement: Placement,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help=(
                f"Watch the CPUs for {QUICK_WATCH_S:g} s instead of {WATCH_S:g} s, do not measure"
                " the ceiling, and do not look at what subjects need."
            ),
        ),
    ] = False,
    as_json: AsJsonOption = False,
) -> None:
    """Check whether this machine, or each host of --place, is fit to measure.

    Each finding says what it would spoil and how to fix it. The exit code is 0 whatever is found.

    Example: trueload doctor --place ssh:load1 --place ssh:load2
    """
    check_all_at_start(placement, "a check of hosts")
    if placement.is_named:
        hosts = [(place, doctor.examine(facts)) for place, facts in gather_all(placement, quick)]
        worst = doctor.worst(finding for _, findings in hosts for finding in findings)
        told = [{"place": place, **_as_json(findings)} for place, findings in hosts]
        shown: dict[str, object] = {"status": worst, "hosts": told}
        text = "\n".join(f"{plain(place)}\n{render(findings)}" for place, findings in hosts)
    else:
        findings = doctor.examine(gather(quick))
        shown, text = _as_json(findings), render(findings)
    sys.stdout.write(json.dumps(shown, indent=2) + "\n" if as_json else text)


def _as_json(findings: list[doctor.Finding]) -> dict[str, object]:
    return {"status": doctor.worst(findings), "findings": [asdict(each) for each in findings]}


def gather_all(placement: Placement, quick: bool) -> list[tuple[str, doctor.Facts]]:
    """Gather every fact about these hosts, in their order, each by its place's name. Raises
    ``UserError`` if one of them cannot be used."""
    from trueload.commands.doctor_hosts import gather_there
    from trueload.commands.output import announce
    from trueload.engines.binary import find_engine
    from trueload.places.local import LocalPlace
    from trueload.places.open import open_places

    new = replace(placement.new_pods, planned_ns=PLANNED_NS)
    with open_places(replace(placement, new_pods=new), find_engine(), announce=announce) as hosts:
        places = [host.place for host in hosts]
        there = [place for place in places if not isinstance(place, LocalPlace)]
        # The other hosts are idle meanwhile: some may be on this machine.
        here = [gather(quick) for _ in range(len(places) - len(there))]
        watch_s = QUICK_WATCH_S if quick else WATCH_S
        found = iter(gather_there(there, watch_s, quick=quick))
        return [
            (place.name, here[0] if isinstance(place, LocalPlace) else next(found))
            for place in places
        ]


def gather(quick: bool) -> doctor.Facts:
    """Gather every fact about this machine, in some 7 seconds, or half a second if ``quick``."""
    from trueload.commands.doctor_engine import look_here
    from trueload.engines.binary import find_engine

    skipped = None if quick else _find_skipped()
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    path: str | None = None
    core_latencies_ns: tuple[float, ...] = ()
    try:
        path = str(find_engine())
        version, core_latencies_ns = look_here(cpus)
        engine = doctor.EngineFound(path, version, None)
    except UserError as error:
        engine = doctor.EngineFound(path, None, str(error))
    watched = machine.observe(QUICK_WATCH_S if quick else WATCH_S)
    core_latencies_ns += _core_latency(cpus)
    calibrated = None
    if not quick and engine.version is not None:
        from trueload.trial.ceiling import calibrate  # imported late: it takes all of a trial

        calibrated = calibrate(cpus)
    core_latencies_ns += _core_latency(cpus) if calibrated else ()
    return doctor.Facts(
        machine=watched,
        engine=engine,
        front_version=__version__,
        skipped=None if skipped is None else skipped[0],
        subjects=0 if skipped is None else skipped[1],
        untried=0 if skipped is None else skipped[2],
        ceiling=calibrated,
        core_latencies_ns=core_latencies_ns,
    )


def _core_latency(cpus: tuple[int, ...]) -> tuple[float, ...]:
    from trueload.commands.doctor_engine import look_here

    with contextlib.suppress(UserError):
        return look_here(cpus)[1]
    return ()


def render(findings: list[doctor.Finding]) -> str:
    """Return the findings as text: a line each, and two more if there is something to fix.

    Control codes are removed, as texts of tools are quoted.
    """
    lines = []
    for finding in findings:
        lines.append(f"{finding.status:<5}{finding.name:<12} {finding.value}")
        if finding.consequence:
            lines.append(f"     {'':<12} spoils: {finding.consequence}")
        if finding.cure:
            lines.append(f"     {'':<12} cure:   {finding.cure}")
    count = Counter(finding.status for finding in findings)
    summary = f"{count['pass']} pass, {count['warn']} warn, {count['fail']} fail"
    lines.append(f"\n{len(findings)} findings: {summary}, {count['n/a']} n/a")
    text = "\n".join(lines) + "\n"
    return "".join(c for c in text if c.isprintable() or c == "\n")


def _find_skipped() -> tuple[dict[str, str], int, int] | None:
    """Subjects that lack something, with what; how many subjects there are; how many of them were
    not built from their registries."""
    from trueload.commands.folders import find_folder
    from trueload.runner import needs
    from trueload.subjects.selection import select_subjects

    try:
        folder = find_folder("subjects")
        subjects = select_subjects(folder, (), on_broken=lambda entry, why: None)
    except UserError:
        return None
    reasons = ((subject.name, needs.missing(subject)) for subject in subjects)
    untried = sum(subject.manifest.tried is not None for subject in subjects)
    return {name: reason for name, reason in reasons if reason is not None}, len(subjects), untried
