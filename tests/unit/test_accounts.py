"""Each account of a result fits its message, the record, and how it is shown."""

from __future__ import annotations

from samples import good_record
from trueload.protocol.plan import Measurement
from trueload.record.accounts import ACCOUNTS, MESSAGES
from trueload.record.figures import PREFIXES
from trueload.record.schema import Record
from trueload.report.accounts import ACCOUNTS as SHOWN
from trueload.report.accounts import following
from trueload.report.result import trial_texts
from trueload.report.sheets import HOSTS, TRIALS


def test_every_account_has_a_field_in_the_record_and_its_message_one_in_a_measurement() -> None:
    assert set(ACCOUNTS) <= set(Record.model_fields)
    assert set(MESSAGES) <= set(Measurement.model_fields)


def test_an_account_with_a_table_for_suites_is_kept_by_their_rows() -> None:
    titled = {each.name for each in SHOWN if each.title}
    assert titled <= {name for name, each in ACCOUNTS.items() if each.in_suites}


def test_the_lines_of_every_account_follow_a_line_of_the_result() -> None:
    labels = [label for label, _ in trial_texts(good_record())]
    reached = [each.name for label in labels for each in following(label)]
    assert sorted(reached) == sorted(each.name for each in SHOWN)


def test_no_two_columns_or_prefixes_have_the_same_name() -> None:
    for columns in (TRIALS, HOSTS):
        names = [each.name for each in columns]
        assert len(names) == len(set(names))
    prefixes = list(PREFIXES)
    assert not [p for p in prefixes for q in prefixes if p != q and p.startswith(q)]
