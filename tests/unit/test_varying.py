"""Answers that change under load, and answers that vary by nature."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from samples import good_record, plan, trial_facts
from trueload.protocol.kinds import Kind, Kinds, OtherKinds
from trueload.protocol.plan import Measurement
from trueload.record.accounts.answers import ANSWERS, AnswerKind, Answers, OtherAnswers, add_kinds
from trueload.record.schema import Claim, Record, Throughput
from trueload.verdict.varying import answers_text, check_varying

HELLO = "4f6d6c64212048e5"
LIKE_IT = "4f6d6c6421204800"
DATE, LATER, LATEST = "3132333435363738", "31323334353637ff", "313233343536ffff"
ODD = "9a8b7c6d5e4f3a2b"
NOTHING = "0" * 16


def kind(size: int, sketch: str, warmup: int, window: int, before: int) -> AnswerKind:
    return AnswerKind(bytes=size, sketch=sketch, warmup=warmup, window=window, before=before)


def other(bits: int, warmup: int, window: int, before: int) -> OtherAnswers:
    return OtherAnswers(bits=bits, warmup=warmup, window=window, before=before)


def answers(*kinds: AnswerKind, **changes: Any) -> Answers:
    return Answers(**{"target": None, "kinds": kinds, **changes})


def record_of(*found: Answers, claim: Claim | None = None, **changes: Any) -> Record:
    record = good_record(answers=found, **changes)
    changed_plan = record.plan.model_copy(update={"claim": claim or Claim()})
    return record.model_copy(update={"plan": changed_plan})


SERVED = kind(13, HELLO, 1_000, 9_000, 0)


@pytest.mark.parametrize(
    ("sentence", "found", "status"),
    [
        ("always the same", answers(SERVED), "pass"),
        ("HEAD, or 204", answers(kind(0, NOTHING, 1_000, 9_000, 0)), "pass"),
        ("empty from the window on", answers(SERVED, kind(0, NOTHING, 0, 9_000, 1_000)), "warn"),
        ("one in a thousand is empty", answers(SERVED, kind(0, NOTHING, 0, 10, 9_000)), "warn"),
        ("a single odd one", answers(SERVED, kind(0, NOTHING, 0, 1, 9_000)), "pass"),
        ("another text of one length", answers(SERVED, kind(13, ODD, 0, 500, 3_000)), "warn"),
        ("a longer text", answers(SERVED, kind(20, ODD, 0, 500, 3_000)), "warn"),
        (
            "three texts of three lengths",
            answers(SERVED, *(kind(size, ODD, 0, 500, 3_000) for size in (9, 10, 11))),
            "warn",
        ),
        (
            "few answers before, all of the window's empty",
            answers(kind(13, HELLO, 40, 0, 0), kind(0, NOTHING, 0, 400, 40)),
            "warn",
        ),
        (
            "without a warm-up, empty after the first thousand",
            answers(kind(13, HELLO, 0, 1_000, 0), kind(0, NOTHING, 0, 338_000, 1_000)),
            "warn",
        ),
        (
            "empty since early in the warm-up",
            answers(kind(13, HELLO, 1_000, 0, 0), kind(0, NOTHING, 99_000, 99_000, 1_000)),
            "warn",
        ),
        (
            "one of twenty is empty since early in the warm-up",
            answers(kind(13, HELLO, 95_000, 95_000, 0), kind(0, NOTHING, 5_000, 5_000, 1_000)),
            "warn",
        ),
        (
            "the first answer on each connection is another",
            answers(kind(20, ODD, 8, 0, 0), kind(13, HELLO, 1_000, 9_000, 8)),
            "pass",
        ),
        (
            "two kinds in turn, from the first on",
            answers(SERVED, kind(500, ODD, 1_000, 9_000, 1)),
            "pass",
        ),
        (
            "one odd answer in fifty, from the first on",
            answers(SERVED, kind(500, ODD, 20, 180, 60)),
            "pass",
        ),
        (
            "a date that goes on once a second",
            answers(
                kind(29, DATE, 900, 0, 0),
                kind(29, LATER, 100, 900, 900),
                kind(29, LATEST, 0, 900, 1_900),
            ),
            "pass",
        ),
        (
            "a clock on a page that went on once, in the window",
            answers(kind(13, HELLO, 1_000, 500, 0), kind(13, LIKE_IT, 0, 500, 1_500)),
            "pass",
        ),
        (
            "a clock of which every byte changes",
            answers(
                kind(8, DATE, 900, 0, 0),
                kind(8, ODD, 100, 900, 900),
                kind(8, HELLO, 0, 900, 1_900),
                kind(8, LIKE_IT, 0, 900, 2_800),
            ),
            "pass",
        ),
        (
            "two other texts of one length in turn",
            answers(SERVED, kind(13, ODD, 0, 5_000, 3_000), kind(13, DATE, 0, 5_000, 3_001)),
            "warn",
        ),
        (
            "a counter, which gets longer",
            answers(
                kind(1, DATE, 1, 0, 0),
                others=(other(1, 2, 0, 8), other(2, 90, 0, 10), other(3, 9_000, 90_000, 1_000)),
            ),
            "pass",
        ),
        (
            "a counter of each connection, which gets longer twice",
            answers(
                *(kind(1, f"3{digit}" + "0" * 14, 64, 0, 64 * digit) for digit in range(8)),
                kind(3, ODD, 0, 64, 38_000),
                others=(
                    other(1, 128, 0, 512),
                    other(2, 36_000, 18_000, 640),
                    other(3, 0, 95_000, 56_000),
                ),
            ),
            "pass",
        ),
        (
            "a counter that gives up",
            answers(
                kind(4, DATE, 1, 0, 0),
                kind(0, NOTHING, 0, 500, 99_000),
                others=(other(3, 9_000, 90_000, 8),),
            ),
            "warn",
        ),
        (
            "random ids that give up, after eight of them",
            answers(kind(36, DATE, 1, 0, 0), others=(other(6, 900, 9, 8), other(0, 0, 900, 1_000))),
            "warn",
        ),
        (
            "random lengths from 1 to 4,000",
            answers(
                kind(700, DATE, 1, 0, 0),
                others=tuple(
                    other(bits, 2**bits, 2 ** (bits + 3), 2 ** (12 - bits)) for bits in range(1, 13)
                ),
            ),
            "pass",
        ),
        (
            "a counter that has given up since early in the warm-up",
            answers(
                kind(3, DATE, 1, 0, 0),
                others=(other(2, 992, 0, 8), other(0, 9_000, 9_000, 1_000)),
            ),
            "warn",
        ),
    ],
)
def test_a_server_that_gives_up_is_told_from_a_page_that_varies(
    sentence: str, found: Answers, status: str
) -> None:
    check = check_varying(record_of(found))
    assert check.status == status, f"{sentence}: {check.why}"


def test_the_kinds_are_told_with_their_counts() -> None:
    found = answers(kind(13, HELLO, 0, 1_000, 0), kind(0, NOTHING, 0, 338_000, 1_000))
    record = record_of(found)
    assert answers_text(record) == "2 kinds of answer: 13 bytes 1,000, 0 bytes 338,000"
    assert check_varying(record).why.startswith(answers_text(record))
    assert answers_text(record_of(answers(SERVED))) == ""


def test_each_request_of_several_is_held_against_its_own_first_answers() -> None:
    one = answers(kind(13, HELLO, 100, 900, 0), target=0)
    two = answers(kind(0, NOTHING, 100, 900, 0), target=1)
    assert check_varying(record_of(one, two)).status == "pass"
    gives_up = answers(*two.kinds, kind(13, HELLO, 0, 900, 1_000), target=1)
    assert check_varying(record_of(one, gives_up)).status == "warn"


def test_with_expect_same_any_second_kind_fails() -> None:
    same = Claim(same=True)
    for found, status in (
        (answers(SERVED), "pass"),
        (answers(SERVED, kind(13, LIKE_IT, 0, 1, 9_000)), "fail"),
        (answers(SERVED, kind(500, ODD, 1_000, 9_000, 1)), "fail"),
    ):
        assert check_varying(record_of(found, claim=same)).status == status


def test_it_says_why_it_cannot_tell() -> None:
    assert check_varying(record_of()).status == "n/a"
    assert "compared with the expected one" in check_varying(record_of()).why


@pytest.mark.parametrize(
    ("verified", "each", "status"),
    [(192, 192.0, "pass"), (192, 52.0, "warn"), (192, 193.5, "pass"), (192, 200.0, "warn")],
)
def test_answers_have_the_size_of_the_one_that_was_verified(
    verified: int, each: float, status: str
) -> None:
    per_s = Throughput(ok_per_s=10_000, bytes_in_per_s=each * 10_000, bytes_out_per_s=4e5)
    record = record_of(claim=Claim(answer_bytes=verified), throughput=per_s)
    check = check_varying(record)
    assert (check.status, "192" in check.why) == (status, True), check.why


def test_answers_of_the_warm_up_that_come_late_are_no_change_of_size() -> None:
    # 10 slots and 100 answers: up to ten of them were requested earlier.
    changed_plan = good_record().plan.model_copy(
        update={"claim": Claim(answer_bytes=192), "generate": plan(connections=10)}
    )
    record = good_record(
        throughput=Throughput(ok_per_s=100, bytes_in_per_s=192 * 109.0, bytes_out_per_s=1)
    )
    counts = record.counts.model_copy(update={"ok": 100})
    assert (
        check_varying(record.model_copy(update={"plan": changed_plan, "counts": counts})).status
        == "pass"
    )


def measured(kinds: Mapping[tuple[int, str], tuple[int, int]]) -> Kinds:
    return Kinds(
        known=tuple(
            Kind(bytes=size, sketch=sketch, count=count, before=before)
            for (size, sketch), (count, before) in kinds.items()
        )
    )


def test_kinds_of_several_hosts_are_added_up_in_the_order_in_which_they_came() -> None:
    one = measured({(13, HELLO): (500, 0), (0, NOTHING): (7, 500)})
    two = measured({(13, HELLO): (400, 0), (0, NOTHING): (8, 400)})
    whole = measured({(13, HELLO): (900, 0), (0, NOTHING): (15, 400)})
    assert add_kinds([one, two]) == whole
    one = Kinds(known=one.known, other=(OtherKinds(bits=4, count=2, before=30),))
    two = Kinds(
        other=(OtherKinds(bits=0, count=1, before=9), OtherKinds(bits=4, count=3, before=8))
    )
    zero, four = add_kinds([one, two]).other
    assert (zero, four) == (two.other[0], OtherKinds(bits=4, count=5, before=8))


def phase(kinds: Kinds) -> Measurement:
    return Measurement.model_construct(targets=None, kinds=kinds)


def made(warmup: Measurement | None, window: Measurement, threads: int) -> tuple[Answers, ...]:
    window = window.model_copy(update={"generator": SimpleNamespace(threads=threads)})
    found: tuple[Answers, ...] = ANSWERS.made(trial_facts(window, warmup=warmup))
    return found


def test_kinds_of_warm_up_and_window_stand_side_by_side_with_how_many_came_before() -> None:
    warmup = measured({(13, HELLO): (1_000, 0), (0, NOTHING): (70, 150)})
    window = measured({(0, NOTHING): (90, 0), (7, ODD): (5, 3)})
    (found,) = made(phase(warmup), phase(window), threads=2)
    assert found == answers(
        kind(13, HELLO, 1_000, 0, 0), kind(0, NOTHING, 70, 90, 300), kind(7, ODD, 0, 5, 1_076)
    )
    (alone,) = made(None, phase(window), threads=2)
    assert alone == answers(kind(0, NOTHING, 0, 90, 0), kind(7, ODD, 0, 5, 6))
    assert made(None, phase(Kinds()), threads=1) == ()
