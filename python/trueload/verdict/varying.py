"""The check of answers that change: does the server still send under load what it sent at first?

How: in suites the contract fixes what is right. The size of an answer is compared with the one that
was verified before the load, and a few other requests are asked meanwhile. Pure.
"""

from __future__ import annotations

from trueload.record.figures import failed
from trueload.record.schema import Record, Status
from trueload.text import plain
from trueload.units import format_count
from trueload.verdict.common import Definition, Finding, is_http, not_applicable, times

SIZE_WARN = 0.01  # a date or a count in a header is within; a header that is dropped is not
PROBES_FAIL = 3  # one or two may have met a server that was about to end


def check_varying(record: Record) -> Finding:
    """Whether answers under load are of the size verified, and other requests answered rightly."""
    if not is_http(record):
        return not_applicable("what an echo sends back is compared byte by byte")
    return (
        _probed(record)
        or _size(record)
        or not_applicable("no answer was verified that is asked for under load")
    )


VARYING = Definition(
    name="varying",
    order=35,
    compute=check_varying,
    of_client="the answers are the reference server's",
    fault="subject",
    meaning=(
        "A server that answers something else under load than at first is fast at something else."
    ),
    remedy="Look at what it answers under load.",
)


def _probed(record: Record) -> Finding | None:
    """Wrong answers to what else the contract fixes; None where there was none."""
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
    """Bytes per answer against the answer that was verified before the load; None where there was
    none, or nothing to compare."""
    verified, per_s = record.plan.claim.answer_bytes, record.throughput.bytes_in_per_s
    counts, generate = record.counts, record.plan.generate
    if not verified or not per_s or not counts.ok:
        return None
    each = per_s * record.window.window_ns / 1e9 / counts.ok
    # One answer a slot may have begun in the phase before; what failed may have come, too.
    allowed = SIZE_WARN + (generate.connections * generate.pipeline + failed(counts)) / counts.ok
    off = each / verified - 1
    why = f"an answer had {each:.0f} bytes; the one that was verified had {format_count(verified)}"
    return Finding("warn" if abs(off) > allowed else "pass", why, off, SIZE_WARN)
