"""The check of changing answers: does the server send the same under load as at first?

How: without --expect-body the first answers stand for what is expected. A kind is new if it makes
up a good part of the window, but was not among the answers before. A page with a clock is told from
a server that gives up its work by its bodies. Those of a page are of many kinds of about one
length, or differ in few bytes. Pure.
"""

from __future__ import annotations

from trueload.record.accounts.answers import AnswerKind, Answers, SimilarAnswers
from trueload.record.figures import failed
from trueload.record.schema import Record, Status
from trueload.text import plain
from trueload.units import format_count, format_share
from trueload.verdict.common import Definition, Finding, is_http, not_applicable, times

UNLIKE_WARN = 0.001  # the share that may fail (`errors`)
# A kind with a share s of all answers is missing among the first n by chance with exp(-s n): that
# is one run of 1,100 if s n is 7.
MISSED_MOST = 7
SEVERAL = 3  # new kinds of one length: a clock of seconds makes this many in a window of 4 s
LIKE_BYTES = 4  # of the eight of a sketch: a date or an uptime on a page changes up to three
SIZE_WARN = 0.01  # a changing date or count in a header is within this; a dropped header is not
PROBES_FAIL = 3  # one or two may have met a server that was about to end
KINDS_SHOWN = 4


def check_varying(record: Record) -> Finding:
    """Check that answers in the window are like the first ones, and have the verified size."""
    if not is_http(record):
        return not_applicable("what an echo sends back is compared byte by byte")
    size = _size(record)
    for found in (_probed(record), size):
        if found is not None and found.status != "pass":
            return found
    if record.answers:
        return _kinds(record)
    if size is not None:
        return size
    if record.counts.ok == 0:
        return not_applicable("no request ended well")
    if record.plan.generate.replay is not None:
        return not_applicable("the recorded requests differ, and so do their answers")
    return not_applicable("each body was compared with the expected one")


VARYING = Definition(
    name="varying",
    order=35,
    compute=check_varying,
    of_client="the answers are the reference server's",
    fault="subject",
    meaning=(
        "If the answers under load differ from the first ones, the server may be doing"
        " less work than the figure suggests."
    ),
    remedy=(
        "Look at what it answers under load; name the right answer with --expect-body, or let any"
        " change fail with --expect-same."
    ),
)


def answers_text(record: Record) -> str:
    """Return the kinds of answer, if any request had more than one; else ''."""
    varied = [each for each in record.answers if each.vary]
    return _text(record, varied) if varied else ""


def _probed(record: Record) -> Finding | None:
    """Grade wrong answers to the contract's other requests; None if there were none."""
    probes = record.probes
    if probes is None or not probes.wrong:
        return None
    status: Status = "fail" if probes.wrong >= PROBES_FAIL else "warn"
    why = (
        f"{format_count(probes.wrong)} of {times(probes.asked, 'other request')} of the contract"
        f" were answered wrongly under load: {plain(probes.fault or '')}"
    )
    return Finding(status, why, probes.wrong, PROBES_FAIL)


def _size(record: Record) -> Finding | None:
    """Compare the bytes per answer with the answer that was verified before the load.

    None if no answer was verified, or there is nothing to compare.
    """
    verified, per_s = record.plan.claim.answer_bytes, record.throughput
    counts, generate = record.counts, record.plan.generate
    if not (verified and per_s.ok_per_s and per_s.bytes_in_per_s and counts.ok):
        return None
    each = per_s.bytes_in_per_s / per_s.ok_per_s
    # One answer per slot may have begun in the phase before, and failed answers may have arrived.
    allowed = SIZE_WARN + (generate.connections * generate.pipeline + failed(counts)) / counts.ok
    off = each / verified - 1
    had = times(round(each), "byte")
    why = f"an answer had {had}; the one that was verified had {format_count(verified)}"
    return Finding("warn" if abs(off) > allowed else "pass", why, off, SIZE_WARN)


def _kinds(record: Record) -> Finding:
    """Compare the kinds of answer in the window with those before."""
    answers = record.answers
    kinds_text = answers_text(record)
    if kinds_text and record.plan.claim.same:
        return Finding(
            "fail", f"--expect-same, but {kinds_text}", sum(each.vary for each in answers), 0
        )
    slots = record.plan.generate.connections * record.plan.generate.pipeline
    unlike = {each.target: _unlike(each, slots) for each in answers}
    window = sum(each.window for each in answers)
    share = sum(unlike.values()) / window if window else 0.0
    if share < UNLIKE_WARN:
        why = kinds_text or "the answers to each request were alike"
        return Finding("pass", why, share, UNLIKE_WARN)
    worst = max(answers, key=lambda each: unlike[each.target])
    why = (
        f"{_text(record, [worst])}; {format_share(share)} of the answers in the window differ"
        " from those before"
    )
    return Finding("warn", why, share, UNLIKE_WARN)


def _unlike(answers: Answers, slots: int) -> int:
    """Count the window's answers of a new kind that is not like a known one."""

    def is_known(each: SimilarAnswers) -> bool:
        # The first answer on each connection may be of a kind of its own.
        missed = (each.before - slots) * each.window / answers.window
        return missed <= MISSED_MOST

    if not answers.window:
        return 0
    reference = [kind for kind in answers.kinds if is_known(kind)]
    lengths = {kind.bytes.bit_length() for kind in reference}
    for each in sorted(answers.others, key=lambda each: each.before):
        # A counter gets longer step by step.
        if is_known(each) or _is_near(each.bits, lengths):
            lengths.add(each.bits)
    near = [kind for kind in answers.kinds if _is_near(kind.bytes.bit_length(), lengths)]
    others = [each for each in answers.others if each.bits in lengths]
    sizes = [kind.bytes for kind in near if kind not in reference]
    if not others and all(sizes.count(size) < SEVERAL for size in sizes):
        near = [kind for kind in near if any(_is_like(kind, each) for each in reference)]
    return answers.window - sum(each.window for each in (*near, *others))


def _is_near(bits: int, lengths: set[int]) -> bool:
    """Whether lengths of ``bits`` binary digits are close to one of ``lengths``.

    An empty body is close to an empty one only.
    """
    return bits in lengths or (bits > 0 and bool({bits - 1, bits + 1} & (lengths - {0})))


def _is_like(one: AnswerKind, two: AnswerKind) -> bool:
    """Whether bodies have the same length and differ in few bytes."""
    pairs = zip(bytes.fromhex(one.sketch), bytes.fromhex(two.sketch), strict=True)
    return one.bytes == two.bytes and sum(a == b for a, b in pairs) >= LIKE_BYTES


def _text(record: Record, varied: list[Answers]) -> str:
    """A text: ``2 kinds of answer: 13 bytes 1,000, 0 bytes 338,000``.

    Names the first of several requests.
    """
    first = varied[0]
    more = f" (and {times(len(varied) - 1, 'request')} more)" if len(varied) > 1 else ""
    of = ""
    if first.target is not None and record.targets is not None:
        target = record.targets[first.target]
        of = f"{plain(target.name or f'{target.method} {target.url}')} had "
    return f"{of}{_kinds_text(first)}{more}"


def _kinds_text(answers: Answers) -> str:
    """Return the kinds of answer to one request, in the order of their first answers."""
    kinds = answers.kinds
    shown = [f"{times(kind.bytes, 'byte')} {format_count(kind.count)}" for kind in kinds]
    rest = sum(each.count for each in (*kinds[KINDS_SHOWN:], *answers.others))
    if rest:
        shown[KINDS_SHOWN:] = [f"others {format_count(rest)}"]
    count = f"more than {len(kinds)} kinds" if answers.others else times(len(kinds), "kind")
    return f"{count} of answer: {', '.join(shown)}"
