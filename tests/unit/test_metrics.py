"""Metrics: from a trial's progress to samples, and to the formats of both libraries."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.resources import Resource
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics import parser as strict
from prometheus_client.parser import text_string_to_metric_families
from samples import counts, good_record, histogram
from trueload.buckets import Buckets
from trueload.metrics import names
from trueload.metrics.families import LABEL_LENGTH_MAX, Family, make_families
from trueload.metrics.names import METRICS, Metric
from trueload.metrics.otlp import make_data
from trueload.metrics.scrape import Collector
from trueload.metrics.tally import Tally
from trueload.metrics.times import BOUNDS_S, Times, make_times
from trueload.protocol.plan import Histograms
from trueload.protocol.tick import Tick
from trueload.request.traffic import Traffic
from trueload.request.values import Request
from trueload.trial.spec import HostTick, Load, Progress, TrialSpec, open_load

SPEC = TrialSpec(
    url="http://h/", addresses=("127.0.0.1:1",), traffic=Traffic(request=Request(host="h"))
)
OPEN = TrialSpec(
    url="http://h/",
    addresses=("127.0.0.1:1",),
    traffic=Traffic(request=Request(host="h")),
    load=Load(pacing=open_load(1_000, SPEC.load.stop)),
)
NS_500 = 500 * 1_000_000  # the lower bound of its bucket in the sparse histogram


def begun(spec: TrialSpec = SPEC, **labels: str) -> Tally:
    return Tally.of(spec, tuple({"trial": "1", **labels}.items()), (("version", "1"),), 5)


def tick(at_s: float, ok: int, issued: int | None = None, **changes: Any) -> Progress:
    """A tick of a quarter of a second with ten answers that took half a second each."""
    made = Tick(
        type="tick",
        at_ns=int(at_s * 1e9),
        id=changes.pop("id", "window"),
        counts=counts(
            ok=ok,
            issued=ok if issued is None else issued,
            scheduled=changes.pop("scheduled", ok),
            failed=changes.pop("failed", {}),
            statuses={"200": ok},
        ),
        latency=changes.pop("latency", {1527: 10}),
        service=changes.pop("service", {}),
        open=9,
        bytes_in=ok * 10,
        bytes_out=ok,
        busiest_ns=int(at_s * 0.75e9),
    )
    return Progress(changes.pop("stage", "window"), 0, made.model_copy(update=changes))


def ended(**changes: Any) -> Progress:
    return Progress("ended", 0, None, record=good_record(**changes))


def after(tally: Tally, *received: Progress) -> Tally:
    for progress in received:
        tally = tally.receive(progress)
    return tally


def value(tally: Tally, metric: Metric, **labels: str) -> Any:
    """The value of the one sample with these labels; None if there is none."""
    found = [
        sample.value
        for family in make_families([tally])
        for sample in family.samples
        if family.metric is metric and labels.items() <= dict(sample.labels).items()
    ]
    assert len(found) < 2, (metric, labels, found)
    return found[0] if found else None


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (names.ISSUED, "trueload_requests_issued"),
        (names.RECEIVED, "trueload_received_bytes"),
        (names.LATENCY, "trueload_latency_seconds"),
        (names.SATURATION, "trueload_generator_saturation_ratio"),
        (names.THROUGHPUT, "trueload_throughput_per_second"),
        (names.VERDICT, "trueload_verdict"),
        (names.INFO, "trueload"),
    ],
)
def test_a_name_of_prometheus_follows_from_that_of_opentelemetry(metric: Metric, name: str) -> None:
    assert metric.prometheus_name == name


def test_no_two_metrics_have_one_name_and_none_is_the_beginning_of_another() -> None:
    dotted = [metric.name for metric in METRICS]
    assert len({metric.prometheus_name for metric in METRICS}) == len(METRICS) == len(set(dotted))
    for name in dotted:
        assert not [other for other in dotted if other.startswith(f"{name}.")], name


@pytest.mark.parametrize(
    ("low", "high", "bound_s"),
    [
        (0, 0, 1e-5),
        (9_999, 10_000, 1e-5),
        (9_999, 10_001, 1.5e-5),
        (999_000, 1_000_000, 1e-3),
        (60_000_000_000, 60_000_000_000, 60.0),
        (60_000_000_000, 60_000_000_001, None),
    ],
)
def test_a_time_counts_under_the_first_bound_that_all_of_its_bucket_keeps_to(
    low: int, high: int, bound_s: float | None
) -> None:
    times = make_times(Buckets((range(low, low + 1), range(high, high + 1), (3,))))
    first = next((at for at, count in zip(BOUNDS_S, times.cumulative, strict=False) if count), None)
    assert first == bound_s
    assert (times.count, times.sum_s) == (3, 3 * (low + high) / 2 / 1e9)


def test_bounds_rise_by_no_more_than_two_thirds_up_to_ten_seconds() -> None:
    below_ten_s = [bound for bound in BOUNDS_S if bound <= 10]
    for low, high in itertools.pairwise(below_ten_s):
        assert 1 < high / low < 1.7, (low, high)


def test_a_trial_that_goes_on_tells_its_totals_and_what_is_so_now() -> None:
    tally = after(
        begun(OPEN),
        Progress("connect", 0, None),
        tick(1.0, 100),
        tick(2.0, 300, issued=310, scheduled=330, failed={"reset": 4}, service={1527: 5}),
    )
    for metric, labels, expected in (
        (names.OK, {"phase": "window"}, 300),
        (names.ISSUED, {}, 310),
        (names.SCHEDULED, {}, 330),
        (names.FAILED, {"class": "reset"}, 4),
        (names.STATUSES, {"code": "200"}, 300),
        (names.RECEIVED, {}, 3_000),
        (names.SENT, {}, 300),
        (names.REQUESTS_OPEN, {}, 6),
        (names.REQUESTS_WAITING, {}, 20),
        (names.CONNECTIONS_OPEN, {}, 9),
        (names.CONNECTIONS_REQUESTED, {}, 64),
        (names.SATURATION, {}, 0.75),
        (names.PHASE, {"phase": "window"}, 1),
        (names.PHASE, {"phase": "connect"}, 0),
        (names.INFO, {"url": "http://h/", "version": "1"}, 1),
        (names.UNSENT, {}, None),
        (names.VERDICT, {"verdict": "valid"}, None),
    ):
        assert value(tally, metric, **labels) == expected, (metric.name, labels)
    assert value(tally, names.LATENCY).count == 20
    assert value(tally, names.SERVICE).count == 5


def test_a_closed_loop_has_no_service_time_and_nothing_that_waits() -> None:
    tally = after(begun(), tick(1.0, 100, scheduled=200))
    assert value(tally, names.SERVICE) is None
    assert value(tally, names.REQUESTS_WAITING) is None


def test_saturation_is_between_two_ticks_of_one_phase() -> None:
    first = tick(5.0, 100, id="warm-up")
    assert value(after(begun(), first), names.SATURATION) is None
    assert value(after(begun(), first, tick(1.0, 1)), names.SATURATION) is None
    assert value(after(begun(), tick(1.0, 1), tick(1.0, 1)), names.SATURATION) is None
    same = after(begun(), tick(1.0, 1), tick(2.0, 1), tick(2.0, 1))
    assert value(same, names.SATURATION) == 0.75
    busier = tick(2.0, 1, busiest_ns=10**12)
    assert value(after(begun(), tick(1.0, 1), busier), names.SATURATION) == 1


def test_of_several_hosts_each_says_how_busy_it_is() -> None:
    one, other = tick(1.0, 1), tick(2.0, 1)
    assert one.tick is not None
    assert other.tick is not None
    idle = other.tick.model_copy(update={"busiest_ns": one.tick.busiest_ns})
    later = [HostTick("near", other.tick), HostTick("far", idle)]
    received = [
        replace(one, hosts=partial(tuple, [HostTick("near", one.tick), HostTick("far", one.tick)])),
        replace(other, hosts=partial(tuple, later)),
        replace(other, hosts=partial(tuple, later)),
    ]
    tally = after(begun(), *received)
    assert value(tally, names.SATURATION, host="near") == 0.75
    assert value(tally, names.SATURATION, host="far") == 0
    host = good_record().hosts[0]
    busy = host.model_copy(
        update={"place": "far", "generator": host.generator.model_copy(update={"saturation": 0.9})}
    )
    closed = after(tally, ended(hosts=(host, busy)))
    assert value(closed, names.SATURATION, host="far") == 0.9
    assert value(closed, names.SATURATION, host="local") == 0.5


def test_warm_up_and_window_are_told_apart() -> None:
    tally = after(begun(), tick(1.0, 70, id="warm-up", stage="warm-up"), tick(1.0, 30))
    assert value(tally, names.OK, phase="warm-up") == 70
    assert value(tally, names.OK, phase="window") == 30
    assert value(tally, names.LATENCY, phase="warm-up").count == 10


def test_at_its_end_a_trial_has_what_its_record_says() -> None:
    tally = after(begun(), tick(1.0, 9_000), ended(counts=counts(unsent=3, scheduled=10_003)))
    for metric, labels, expected in (
        (names.OK, {}, 10_000),
        (names.UNSENT, {}, 3),
        (names.RECEIVED, {}, 1_300_000),
        (names.SENT, {}, 400_000),
        (names.THROUGHPUT, {}, 10_000),
        (names.PERCENTILE, {"quantile": "0.99"}, 0.001000447),
        (names.GENERATOR_PERCENTILE, {"part": "send", "quantile": "0.5"}, 4e-6),
        (names.GENERATOR_PERCENTILE, {"part": "receive", "quantile": "0.99"}, 6e-6),
        (names.VERDICT, {"verdict": "valid"}, 1),
        (names.VERDICT, {"verdict": "invalid"}, 0),
        (names.CHECK, {"check": "errors"}, 1),
        (names.CHECK, {"check": "errors", "status": "pass"}, 1),
        (names.SATURATION, {}, 0.5),
        (names.PHASE, {"phase": "ended"}, 1),
        (names.CONNECTIONS_OPEN, {}, None),
        (names.REQUESTS_OPEN, {}, None),
    ):
        assert value(tally, metric, **labels) == expected, (metric.name, labels)
    # 10,000 of 1 ms; the ten of half a second are not in the record.
    assert value(tally, names.LATENCY).count == 10_000


def test_what_came_after_the_last_tick_of_a_warm_up_is_counted_at_the_end() -> None:
    record = good_record()
    warmed = record.warmup.model_copy(update={"counts": counts(ok=80, issued=80)})
    tally = after(begun(), tick(1.0, 70, id="warm-up"), tick(1.0, 1), ended(warmup=warmed))
    assert value(tally, names.OK, phase="warm-up") == 80


def test_windows_of_one_session_are_added_up() -> None:
    tally = after(
        begun(),
        tick(1.0, 40, id="step 1"),
        ended(counts=counts(ok=50), histograms=latencies((NS_500, 50))),
        Progress("connect", 0, None),
        tick(2.0, 5, id="step 2, joining", latency={}),
        tick(3.0, 7, id="step 2"),
    )
    assert value(tally, names.OK) == 50 + 5 + 7
    assert value(tally, names.LATENCY).count == 50 + 10
    assert value(tally, names.VERDICT, verdict="valid") is None, "another window goes on"
    closed = after(tally, ended(counts=counts(ok=8), histograms=latencies((NS_500, 8))))
    assert value(closed, names.OK) == 50 + 5 + 8
    assert value(closed, names.LATENCY).count == 50 + 10


def test_a_window_too_short_for_a_tick_has_its_record() -> None:
    tally = after(begun(), ended(), Progress("connect", 0, None), ended())
    assert value(tally, names.OK) == 20_000
    assert value(tally, names.LATENCY).count == 20_000


def latencies(*values_and_counts: tuple[int, int]) -> Histograms:
    encoded = histogram(*values_and_counts)
    return good_record().histograms.model_copy(update={"latency": encoded, "service": encoded})


PROGRESS = [
    Progress("connect", 0, None),
    tick(0.2, 50, id="warm-up", stage="warm-up", failed={"reset": 3}),
    tick(0.1, 40),
    tick(0.2, 39, failed={"unsolicited": 1}),  # an answer that turned out not to be one
    tick(0.3, 80, issued=90, failed={"framing": 2}),  # and a failure that was reclassified
    ended(counts=counts(ok=79, issued=85), histograms=latencies((NS_500, 25), (10**9, 2))),
    tick(0.1, 10, id="step 2"),
    ended(),
]


def test_no_counter_ever_goes_back_and_buckets_stay_cumulative() -> None:
    tally = begun()
    before: dict[Any, float | Times] = {}
    for number, progress in enumerate(PROGRESS):
        tally = tally.receive(progress)
        now = {
            (family.metric.name, sample.labels): sample.value
            for family in make_families([tally])
            for sample in family.samples
            if family.metric.kind in ("counter", "histogram")
        }
        assert before.keys() <= now.keys(), number
        for key, was in before.items():
            for old, new in zip(flat(was), flat(now[key]), strict=True):
                assert new >= old, (number, key)
        for found in now.values():
            assert not isinstance(found, Times) or list(found.cumulative) == sorted(
                found.cumulative
            )
        before = now


def flat(found: float | Times) -> Sequence[float]:
    return (*found.cumulative, found.sum_s) if isinstance(found, Times) else (found,)


def test_what_is_over_without_a_record_keeps_its_counters_alone() -> None:
    tally = after(begun(), tick(1.0, 100)).over()
    kinds = {family.metric.kind for family in make_families([tally])}
    assert kinds == {"counter", "histogram", "info"}
    assert value(tally, names.OK) == 100


HOSTILE = 'a"b\\c\nd\r\x1b[31m\u202e\udcff</script>' + "x" * 5_000


def test_hostile_text_in_labels_is_one_short_line_and_comes_back_as_one_label() -> None:
    spec = TrialSpec(url=HOSTILE, addresses=(), traffic=Traffic())
    tally = after(begun(spec, subject=HOSTILE), tick(1.0, 1, failed={HOSTILE: 1}), ended())
    for sample in (each for family in make_families([tally]) for each in family.samples):
        for _, text in sample.labels:
            assert len(text) <= LABEL_LENGTH_MAX + 1
            assert text.isprintable(), text
    for text in (as_text(tally), as_openmetrics(tally)):
        families = text_string_to_metric_families(text)
        samples = [sample for family in families for sample in family.samples]
        subjects = {sample.labels["subject"] for sample in samples}
        assert len(subjects) == 1
        assert 'a"b\\c d' in subjects.pop()


def test_both_text_formats_are_read_by_their_own_parser() -> None:
    tally = after(begun(OPEN), *PROGRESS[:-1])
    plain = {family.name: family for family in text_string_to_metric_families(as_text(tally))}
    found = strict.text_string_to_metric_families(as_openmetrics(tally))  # type: ignore[no-untyped-call]
    open_ = {family.name: family for family in found}
    assert plain["trueload_latency_seconds"].type == "histogram"
    assert plain["trueload_requests_ok"].type == "counter"
    assert open_["trueload"].type == "info"
    assert open_["trueload_latency_seconds"].unit == "seconds"
    assert len(open_) == len(plain) == len(make_families([tally]))


def test_nothing_measured_yet_is_an_empty_text() -> None:
    registry = CollectorRegistry()
    registry.register(Collector(lambda: ()))
    assert generate_latest(registry) == b""


def as_text(tally: Tally) -> str:
    return generate_latest(registry_of(tally)).decode()


def as_openmetrics(tally: Tally) -> str:
    written = openmetrics.generate_latest(registry_of(tally))  # type: ignore[no-untyped-call]
    return str(written.decode())


def registry_of(tally: Tally) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(Collector(lambda: (tally,)))
    return registry


def test_the_collectors_words_say_the_same_as_the_families() -> None:
    families = make_families([after(begun(OPEN), *PROGRESS[:-1])])
    sent = encode_metrics(make_data(families, Resource({}), 9))
    metrics = sent.resource_metrics[0].scope_metrics[0].metrics
    assert [metric.name for metric in metrics] == [family.metric.name for family in families]
    for metric, family in zip(metrics, families, strict=True):
        assert (metric.unit, metric.description) == (family.metric.unit, family.metric.about)
        data = getattr(metric, metric.WhichOneof("data"))
        assert metric.WhichOneof("data") == SHAPES[family.metric.kind]
        assert [point_of(point) for point in data.data_points] == [
            (dict(sample.labels), expected_of(sample.value)) for sample in family.samples
        ]
        if family.metric.kind in ("counter", "histogram"):
            assert data.aggregation_temporality == 2, "cumulative"
            for point in data.data_points:
                assert (point.start_time_unix_nano, point.time_unix_nano) == (5, 9)
        if family.metric.kind == "counter":
            assert data.is_monotonic


SHAPES = {"counter": "sum", "gauge": "gauge", "info": "gauge", "histogram": "histogram"}


def point_of(point: Any) -> tuple[dict[str, str], Any]:
    labels = {each.key: each.value.string_value for each in point.attributes}
    if hasattr(point, "bucket_counts"):
        assert tuple(point.explicit_bounds) == BOUNDS_S
        assert not point.HasField("min")
        assert sum(point.bucket_counts) == point.count
        return labels, (list(point.bucket_counts), point.sum)
    return labels, getattr(point, point.WhichOneof("value"))


def expected_of(found: float | Times) -> Any:
    if not isinstance(found, Times):
        return found
    steps = zip((0, *found.cumulative), found.cumulative, strict=False)
    return [high - low for low, high in steps], found.sum_s


def test_families_come_in_the_order_of_the_table() -> None:
    found: list[Family] = make_families([after(begun(OPEN), *PROGRESS)])
    order = [METRICS.index(family.metric) for family in found]
    assert order == sorted(order)
