"""The result of a search: as JSON, as a few lines of text, as labels in the store.

How: everything is made from the plan and the steps. The store keeps a step's load and purpose as
labels, and its whole record. That is enough to judge it again, so a stored search is shown by the
same functions. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from trueload.errors import ExitCode
from trueload.record import figures
from trueload.record.accounts.deliveries import across_text
from trueload.record.certainty import Ruling
from trueload.record.schema import REPORTED_STATUSES, SCHEMA, Record
from trueload.record.shortage import Shortage, memory_fault
from trueload.record.thresholds import CLIENTS_LIMIT, LIMIT, parse_condition
from trueload.search.broadcast_rows import clients_header, clients_lines
from trueload.search.decide import Bounds, Done, NoSafeLoad, Purpose, SafeLoad, Try
from trueload.search.execute import Axis, SearchPlan, StepResult, outcome, take
from trueload.search.judge import LimitValue, early_receipts, is_certain, silence, unreached
from trueload.text import REASON_LINES, folded, labelled, plain
from trueload.units import counted, format_count, format_span
from trueload.verdict import CHECKS

SPOILED_OTHERWISE = "the generator failed"


def plan_json(plan: SearchPlan) -> dict[str, Any]:
    """Return the plan in the store's form; ``read_plan`` reads it."""
    of_clients = {
        "step": plan.bounds.step,
        "samples": plan.samples,
        "stop_on_loss": plan.stop_on_loss,
    }
    return {
        "limit": plan.limit.text,
        "axis": plan.axis,
        "start": plan.bounds.start,
        "floor": plan.bounds.floor,
        "ceiling": plan.bounds.ceiling,
        "precision": plan.bounds.precision,
        "step_ns": plan.step_ns,
        **(of_clients if plan.axis == "clients" else {}),
        **({"of_sessions": True} if plan.of_sessions else {}),
    }


def read_plan(stored: Mapping[str, Any]) -> SearchPlan:
    """Read a plan that ``plan_json`` wrote. Raises ``ValueError``, ``KeyError`` or ``UserError``
    for anything else."""
    axis = cast(Axis, stored["axis"])
    bounds = Bounds(
        start=float(stored["start"]),
        floor=float(stored["floor"]),
        ceiling=float(stored["ceiling"]),
        whole=axis != "rate",
        precision=float(stored["precision"]),
        step=stored.get("step"),
    )
    return SearchPlan(
        axis,
        parse_condition(stored["limit"], CLIENTS_LIMIT if axis == "clients" else LIMIT),
        bounds,
        stored["step_ns"],
        samples=stored.get("samples", 0),
        stop_on_loss=stored.get("stop_on_loss", False),
        of_sessions=stored.get("of_sessions", False),
    )


def labels(taken: StepResult) -> dict[str, str]:
    """Return the labels that the store keeps beside a step's record."""
    return {
        "load": f"{taken.next.load:.12g}",
        "stage": taken.next.purpose,
        "outcome": taken.judgement.outcome,
    }


def read_steps(
    plan: SearchPlan, stored: Iterable[tuple[Mapping[str, str], Record]]
) -> list[StepResult]:
    """Return the steps of a stored search, from the labels and the record of each row."""
    taken: list[StepResult] = []
    for found, record in stored:
        following = Try(float(found["load"]), cast(Purpose, found["stage"]))
        taken.append(take(plan, following, record, taken))
    return taken


def deciding(plan: SearchPlan, taken: Sequence[StepResult]) -> StepResult:
    """Return the step whose verdict is the search's.

    It is the step that lost deliveries, the one that ended the search, or the last confirming run,
    even if that did not keep to the limit. Otherwise it is the last step that kept to the limit or,
    if none did, the last step.
    """
    done = outcome(plan, taken)
    if isinstance(done, NoSafeLoad) and done.why == "lost":
        return [each for each in taken if each.next.load == done.lowest][-1]
    kept = [each for each in taken if each.is_kept]
    ended = isinstance(done, NoSafeLoad) and done.why in ("gone", "unrecovered")
    if ended or taken[-1].next.purpose == "confirm" or not kept:
        return taken[-1]
    return kept[-1]


def exit_code(
    plan: SearchPlan,
    taken: Sequence[StepResult],
    *,
    rulings: Sequence[Ruling] = (),
    interrupted: bool = False,
    strict: bool = False,
) -> ExitCode:
    """Return the exit code of a search, by the verdict of its deciding step.

    It is 1 if no load was confirmed to keep to the limit. If several apply, the first of 130, 71,
    3, 4, 1, 0 is taken. But a confirmed load whose limit is certain comes before 4.
    """
    done = outcome(plan, taken) if taken else None
    if interrupted:
        return ExitCode.INTERRUPTED
    if taken and not isinstance(done, SafeLoad) and memory_fault(taken[-1].record):
        return ExitCode.MACHINE
    if done is None or not any(each.record.connections.established for each in taken):
        return ExitCode.NOTHING_MEASURED
    record, states = deciding(plan, taken).record, {each.state for each in rulings}
    certain = isinstance(done, SafeLoad) and is_certain(plan.limit, record) and not strict
    bad = {"invalid", "suspect"} if strict else {"invalid"}
    if "undecided" in states or (record.verdict in bad and not certain):
        return ExitCode.INVALID
    is_over = "crossed" in states or not isinstance(done, SafeLoad)
    return ExitCode.THRESHOLD if is_over else ExitCode.OK


def search_json(
    plan: SearchPlan, taken: Sequence[StepResult], run_id: str | None, *, interrupted: bool
) -> dict[str, Any]:
    """Return one object: verdict, checks and result at the top, the records under ``steps``."""
    decided = deciding(plan, taken)
    record, result = decided.record, result_json(plan, taken)
    return {
        "schema": SCHEMA,
        "id": run_id or taken[0].record.id,
        "started_at": taken[0].record.started_at,
        "partial": interrupted,
        "verdict": record.verdict,
        "lower_bound": record.lower_bound or result["lower_bound"],
        "checks": [check.model_dump(mode="json") for check in record.checks],
        "search": plan_json(plan),
        "result": result,
        "steps": [_step_json(plan, each) for each in taken],
    }


def result_json(plan: SearchPlan, taken: Sequence[StepResult]) -> dict[str, Any]:
    """Return the result alone.

    ``load`` is null unless one was confirmed. ``interval`` is the range of the largest load; its
    ``high`` is null if nothing larger failed. ``limited_by`` says what failed there: ``server`` or
    ``generator``, or the shortage (``files``, ``ports`` or ``memory``). It is ``ceiling`` if
    nothing did.
    """
    done, decided = outcome(plan, taken), deciding(plan, taken)
    found = done if isinstance(done, SafeLoad) else None
    return {
        "outcome": _outcome_word(done),
        "unit": plan.unit,
        "load": found.load if found else None,
        "interval": {"low": found.load, "high": found.above} if found else None,
        "limited_by": limited_by(taken, found) if found else None,
        "lower_bound": found is not None
        and (found.limited_by != "server" or decided.record.lower_bound),
        "lowest": min(each.next.load for each in taken),
        "ok_per_s": decided.record.throughput.ok_per_s if found else None,
        "values": [_value_json(each) for each in decided.judgement.values],
        "sentence": sentence(plan, taken),
    }


def limited_by(taken: Sequence[StepResult], found: SafeLoad) -> str:
    """Return what failed at the next larger load; for a shortage, what was short."""
    if found.limited_by != "shortage":
        return found.limited_by
    short = _shortage_at(taken, found.above)
    return short.of if short is not None else found.limited_by


def _shortage_at(taken: Sequence[StepResult], load: float | None) -> Shortage | None:
    found = [each.judgement.shortage for each in taken if each.next.load == load]
    return next((each for each in reversed(found) if each is not None), None)


def _outcome_word(done: Done | None) -> str:
    if done is None:
        return "cut short"
    return "found" if isinstance(done, SafeLoad) else done.why


def _step_json(plan: SearchPlan, taken: StepResult) -> dict[str, Any]:
    return {
        **taken.record.model_dump(mode="json"),
        "step": {
            "load": taken.next.load,
            "unit": plan.unit,
            "stage": taken.next.purpose,
            "outcome": taken.judgement.outcome,
            "why": taken.judgement.why,
            "values": [_value_json(each) for each in taken.judgement.values],
        },
    }


def _value_json(found: LimitValue) -> dict[str, Any]:
    within = found.within
    return {
        "metric": found.threshold.metric,
        "limit": found.threshold.limit,
        "value": None if math.isinf(found.value) else found.value,
        "low": within[0] if within else None,
        "high": within[1] if within else None,
    }


def sentence(plan: SearchPlan, taken: Sequence[StepResult], *, by_user: bool = False) -> str:
    """Return the result in one sentence; ``by_user`` says that the user ended the search."""
    done, limit = outcome(plan, taken), plan.limit.text
    kept = max((each.next.load for each in taken if each.judgement.outcome == "kept"), default=None)
    if done is None:
        stopped = f"stopped {'by you ' if by_user else ''}before a load was confirmed"
        if kept is None:
            return f"{stopped}; none had kept {limit} until then"
        return f"{stopped}; the largest that kept {limit} until then was {load_text(plan, kept)}"
    if isinstance(done, SafeLoad):
        text = f"{load_text(plan, done.load)} is the largest load confirmed to keep {limit}"
        if done.limited_by == "server":
            return f"{text}; {load_text(plan, done.above or 0)} did not"
        if done.limited_by == "ceiling":
            return f"{text}: a lower bound, larger loads were not tried"
        short = _shortage_at(taken, done.above)
        if done.limited_by == "shortage" and short is not None:
            return (
                f"at least {load_text(plan, done.load)} keep {limit}: {short.limit} ended the"
                f" search, not the server; {short.hint}"
            )
        spoiled = _blame([each for each in taken if each.next.load == done.above])
        return f"{text}: a lower bound, because {spoiled} at {load_text(plan, done.above or 0)}"
    lowest = load_text(plan, done.lowest)
    if done.why == "lost":
        if plan.stop_on_loss:
            return f"ended at {lowest}, where deliveries were lost or doubled (--stop-on-loss)"
        return f"no result for {limit}: at {lowest} deliveries were lost or doubled"
    if done.why == "unconfirmed":
        return f"no load was confirmed to keep {limit}; the last tried was {lowest}"
    before = "" if kept is None else f"; {load_text(plan, kept)} had kept {limit}, not confirmed"
    if done.why == "unrecovered":
        last = taken[-1]
        slow = f"at {load_text(plan, last.next.load)} {last.judgement.why}"
        return f"the server does not recover from {lowest}: {slow}{before}"
    if done.why == "gone":
        if len(taken) == 1:
            why = "; ".join(each.sentence() for each in unreached(taken[0].record))
            return f"the search ended at its first step, {lowest}: {plain(why)}"
        last = taken[-1]
        why = last.judgement.why if last.judgement.outcome == "gone" else silence(last.record)
        return f"the server no longer answered at {lowest}: {why}{before}"
    if done.why == "generator" and kept is not None:
        spoiled = _blame([each for each in taken if each.next.purpose == "confirm"])
        return (
            f"{load_text(plan, kept)} kept {limit}, a lower bound that is not confirmed: {spoiled}"
            " in each confirming run"
        )
    answered = any(each.step.answered for each in taken)
    tried = f"the lowest tried was {lowest}"
    tried += "" if answered else f", and {silence(taken[-1].record)}"
    if done.why == "generator":
        return f"{_blame(taken)} at every load, which says nothing about the server; {tried}"
    return f"no load keeps to {limit}; {tried}"


def _blame(taken: Iterable[StepResult]) -> str:
    """Say how our side spoiled these steps, or what they lacked."""
    reasons: list[str] = []
    for each in taken:
        if each.judgement.shortage is not None:
            reasons.append(f"{each.judgement.shortage.limit} was reached")
        elif each.step.outcome == "limited":
            check = CHECKS.get(each.judgement.why.partition(":")[0])
            reasons.append((check and check.spoiled) or SPOILED_OTHERWISE)
    return " or ".join(dict.fromkeys(reasons))


def _largest(plan: SearchPlan, taken: Iterable[StepResult]) -> str:
    """A text on how few receipts the maximum of a broadcast's step is the largest of."""
    found = [figures.latency(each.record).figures.largest_of for each in taken]
    few = [format_count(of) for of in sorted(of for of in found if of is not None)]
    if plan.axis != "clients" or not few:
        return ""
    between = few[0] if few[0] == few[-1] else f"{few[0]} to {few[-1]}"
    return f"the largest of {between} receipts in a step"


def search_lines(
    plan: SearchPlan, taken: Sequence[StepResult], *, steps: bool = True, by_user: bool = False
) -> list[str]:
    """Return the lines to show: the steps, if ``steps`` is set, the result and the deciding step.

    ``by_user`` is passed to ``sentence``.
    """
    if not taken:
        return ["nothing was tried"]
    generate = taken[0].record.plan.generate
    connections = counted(generate.connections, "connection")
    over = "" if plan.axis != "rate" else f", over {connections}"
    what = "rate" if plan.axis == "rate" else f"number of {plan.axis}"
    url = plain(taken[0].record.plan.url)
    lines = folded(f"{url}  the largest {what} with {plan.limit.text}{over}", indent="  ")
    decided = deciding(plan, taken)
    record = decided.record
    lines += ["", *labelled("verdict", record.verdict_text)]
    for check in record.checks:
        if check.status in REPORTED_STATUSES:
            lines += folded(f"  {check.status} {check.name}: {plain(check.why)}", REASON_LINES)
    shown = [*step_header(plan), *(line for each in taken for line in step_lines(plan, each))]
    lines += ["", *shown, ""] if steps else [""]
    lines += labelled("max", _largest(plan, taken))
    if isinstance(outcome(plan, taken), SafeLoad):
        measured = ", ".join(value.sentence() for value in decided.judgement.values)
        lines += labelled("confirmed", measured)
    lines += labelled("result", sentence(plan, taken, by_user=by_user))
    if record.deliveries is not None:
        lines += labelled("hosts", across_text(record.deliveries))
    return [*lines, *labelled("receipts", early_receipts(record))]


def step_header(plan: SearchPlan) -> list[str]:
    return clients_header().splitlines() if plan.axis == "clients" else []


def step_lines(plan: SearchPlan, taken: StepResult) -> list[str]:
    """Return the lines of one step: ``bracket  2,000/s  for 2s  p99 0.42 ms  kept``."""
    if plan.axis == "clients":
        return clients_lines(taken)
    judged = taken.judgement
    shown = "  ".join(f"{v.threshold.label} {v.shown}" for v in judged.values)
    why = f": {plain(judged.note)}" if judged.note else ""
    span = format_span(taken.record.window.window_ns // 10**6 * 10**6)
    load = load_text(plan, taken.next.load)
    return folded(f"{taken.next.purpose:<9}{load:>18}  {span:>7}  {shown}  {judged.outcome}{why}")


def load_text(plan: SearchPlan, load: float) -> str:
    """Return a load as text: ``2,000 requests/s``, ``1 session/s``, ``1 client``."""
    if plan.axis == "rate":
        what = plan.unit.removesuffix("/s")
        return f"{format_count(load)} {what if load != 1 else what.removesuffix('s')}/s"
    return f"{format_count(load)} {plan.axis if load != 1 else plan.axis.removesuffix('s')}"
