"""Compares two servers by alternating pairs of trials.

The options are those of ``trueload http``. The sides are measured in random order, each trial is
saved as soon as it has ended, and the verdict is that of the trials.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from trueload.commands.ab_servers import CONTRACT, AbServer, find_subject, is_url, open_side
from trueload.commands.host_duration import for_job
from trueload.commands.job import Job, RunWriter
from trueload.commands.job_options import JobOptions
from trueload.commands.locked import locked
from trueload.commands.measure import make_job
from trueload.commands.measure_options import CompareFormat, RatioOptions
from trueload.commands.options import check_one_stdout
from trueload.commands.output import announce
from trueload.commands.place_options import check_all_at_start
from trueload.commands.request_flags import of_curl, read_workload
from trueload.commands.suite_places import SuiteHosts, open_for_subjects
from trueload.compare.difference import MORE_PAIRS, too_few_pairs
from trueload.compare.pairs import turns
from trueload.compare.trials import primary_of
from trueload.engines.binary import find_engine
from trueload.errors import UserError
from trueload.interrupt import Interrupt
from trueload.places.open import open_places
from trueload.protocol.option import flag_of, refuse_beside
from trueload.protocol.request_options import HttpOptions, TlsOptions
from trueload.record.schema import Record
from trueload.record.shortage import memory_fault
from trueload.record.thresholds import RATIO, Condition, parse_condition
from trueload.record.turn import Turn
from trueload.report.ab import PairedTrials
from trueload.report.heading import Heading
from trueload.report.live import Watch, unwatched
from trueload.request.header_files import read_headers
from trueload.request.make import read_body
from trueload.request.redact import redact_url
from trueload.request.targets import open_targets
from trueload.request.url import Url, parse_given_url

PAIRS = 6  # the fewest whose median has a 95 % interval
SEED = 1


# Options that the user may set even if a subject's contract decides the request.
LEFT_OPEN = frozenset({"header", "user", "close", "connect_open_per_s", "local_address"})

# A placeholder for a subject's URL until it is started: nothing is sent there.
NOWHERE = "http://127.0.0.1/"


@dataclass(frozen=True)
class AbJob:
    """Two ``http`` jobs, and how they are compared."""

    sides: tuple[str, str]
    jobs: tuple[Job, Job]
    pairs: int
    seed: int
    conditions: tuple[Condition, ...]
    format: CompareFormat

    def quietly(self, words: tuple[str, ...]) -> AbJob:
        """Return the same job without a live view, with the words of its own command line."""
        a, b = (replace(job, live=False, words=words) for job in self.jobs)
        return replace(self, jobs=(a, b))


def make_ab_job(
    sides: tuple[str, str],
    request: HttpOptions,
    seed: int | None,
    options: JobOptions,
    repeat: int | None,
    ratios: RatioOptions,
) -> AbJob:
    """Check the options as a whole; nothing has been sent. Raises ``UserError``."""
    again = "each trial would send every row again: use another order"
    refuse_beside("compare", {"--data-order unique": request.data_order == "unique"}, again)
    conditions = tuple(parse_condition(text, RATIO) for text in ratios.fail_on)
    if conditions and (why := too_few_pairs(repeat or PAIRS)):
        raise UserError(f"--fail-on cannot be judged: {why}", MORE_PAIRS)
    check_one_stdout(options.given.json_path, ratios.format)
    for side in sides:
        if not is_url(side):
            _refuse_contract_options(find_subject(side).name, request)
        elif options.placement.server is not None:
            raise UserError(
                f"--server-place starts subjects, and {redact_url(side)} is a server that runs",
                "leave it out, or name subjects on both sides",
            )
    urls = [side if is_url(side) else NOWHERE for side in sides]
    urls, request, timeout_ns = _read_once(urls, request)
    chosen = SEED if seed is None else seed
    read = [read_workload(url, _options_for(url, urls, request)) for url in urls]
    workloads = [replace(each, timeout_ns=timeout_ns) for each in read]
    jobs = [_seeded(make_job(each, options), chosen) for each in workloads]
    return AbJob(
        sides=sides,
        jobs=(jobs[0], jobs[1]),
        pairs=repeat or PAIRS,
        seed=chosen,
        conditions=conditions,
        format=ratios.format,
    )


def _read_once(urls: list[str], given: HttpOptions) -> tuple[list[str], HttpOptions, int | None]:
    """Read into memory what both sides are asked: stdin can be read only once.

    The path of a curl command is requested at the origin of each side.
    """
    timeout_ns = None
    if given.curl is not None:
        url, given, timeout_ns = of_curl(given)
        copied = parse_given_url(url)
        urls = [_asked_at(url, copied) for url in urls]
        if copied.credentials is not None:
            line = f"Authorization: {copied.credentials}"
            given = HttpOptions(header=(*given.header, line)).over(given)
        if not any(map(_is_secure, urls)):
            given = given.without(TlsOptions)
    update: dict[str, Any] = {"header": read_headers(given.header)}
    if given.targets is not None:
        update["targets"] = replace(open_targets(given.targets), one_origin=True)
    body = read_body(given.body, given.body_file)
    update["body"] = None if body is None else body.decode("utf-8", "surrogateescape")
    update["body_file"] = None
    return urls, HttpOptions(**{**given.given, **update}), timeout_ns


def _asked_at(url: str, copied: Url) -> str:
    """The path of a curl command at the origin of a side. Raises ``UserError``."""
    side = parse_given_url(url)
    if side.path != "/":
        raise UserError(
            f"the --curl command and {redact_url(url)} both have a path",
            f"write the side without it: {redact_url(side.origin)}",
        )
    return side.origin + copied.path


def _is_secure(url: str) -> bool:
    return url.lower().startswith("https:")


def _seeded(job: Job, seed: int) -> Job:
    """Return the job with the one seed for everything random."""
    return replace(job, spec=replace(job.spec, seed=seed))


def _options_for(url: str, urls: Sequence[str], given: HttpOptions) -> HttpOptions:
    """Return the options of a side: those of TLS only for an https side if the other is not."""
    both = _is_secure(url) or not any(map(_is_secure, urls))
    return given if both else given.without(TlsOptions)


def _refuse_contract_options(subject: str, given: HttpOptions) -> None:
    decided = [field for field in given.given if field not in LEFT_OPEN]
    if decided:
        raise UserError(
            (
                f"{flag_of(decided[0])} cannot be used with a subject: trueload"
                f" starts {subject} and sends the requests of the contract {CONTRACT}"
            ),
            "leave it out, or start the program yourself and give its URL",
        )


def _open(job: AbJob, stack: contextlib.ExitStack) -> SuiteHosts:
    placement = for_job(job.jobs[0], 2 * job.pairs)
    check_all_at_start(placement, "a comparison")
    if not all(map(is_url, job.sides)):
        return stack.enter_context(open_for_subjects(placement))
    return SuiteHosts(stack.enter_context(open_places(placement, find_engine(), announce=announce)))


def measure_ab(
    job: AbJob, interrupt: Interrupt, *, watch: Watch = unwatched
) -> tuple[PairedTrials, RunWriter]:
    """Measure both sides alternately, saving each trial.

    Shows nothing except through ``watch``. Raises ``UserError``.
    """
    with contextlib.ExitStack() as stack:
        pair = list(zip(job.sides, job.jobs, strict=True))
        opened = _open(job, stack)
        what = f"compare {' '.join(map(redact_url, job.sides))}"
        started = not all(map(is_url, job.sides))
        placement = job.jobs[0].placement
        stack.enter_context(
            locked(what, placement, opened.hosts, interrupt, starts_subjects=started)
        )
        sides = [open_side(text, one, opened, interrupt, watch) for text, one in pair]
        names = (sides[0].name, sides[1].name)
        saved = stack.enter_context(
            RunWriter.begin(
                stack,
                job.jobs[0],
                "ab",
                " against ".join(names),
                plan={
                    "a": names[0],
                    "b": names[1],
                    "pairs": job.pairs,
                    "seed": job.seed,
                    "primary": primary_of(job.conditions),
                },
                seed=job.seed,
            )
        )
        taken = _measure(job, dict(zip(("a", "b"), sides, strict=True)), saved, interrupt)
        saved.end(interrupt.requested)
    stopped = interrupt.requested
    done = PairedTrials.of(
        names, taken, seed=job.seed, conditions=job.conditions, interrupted=stopped
    )
    return done, saved


def _measure(
    job: AbJob, sides: dict[str, AbServer], saved: RunWriter, interrupt: Interrupt
) -> list[tuple[Turn, Record]]:
    taken: list[tuple[Turn, Record]] = []
    for turn in turns(job.pairs, job.seed):
        side = sides[turn.letter]
        title = f"pair {turn.pair} of {job.pairs}, {turn.letter.upper()}: {side.name}"
        heading = Heading(title, len(taken) + 1, 2 * job.pairs)
        labels = {"subject": side.name, "side": turn.letter, "pair": str(turn.pair)}
        shown = {"trial": str(len(taken) + 1), **labels}
        record = side.measure(turn.pair, heading, interrupt, shown)
        if record is None:
            break
        saved.add(record, key=f"pair {turn.pair} {turn.letter.upper()}", labels=labels)
        taken.append((turn, record))
        if interrupt.requested or record.connections.established == 0 or memory_fault(record):
            break
    return taken
