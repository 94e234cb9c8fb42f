"""Tags of runs: given, used to name a run, moved, removed, and deleted with their run."""

from __future__ import annotations

import pytest
from harness import Trueload
from samples import good_record
from trueload.errors import UserError
from trueload.store.rows import Run
from trueload.store.runs import Store


def saved(trueload: Trueload, *commands: str) -> list[Run]:
    with Store.open(trueload.store) as store:
        runs = []
        for command in commands:
            run = store.new_run(kind="http", title="a title", command=command.split())
            store.add_record(run, good_record())
            runs.append(store.end_run(run))
    return runs


def test_a_run_has_a_name_until_another_run_gets_it(trueload: Trueload) -> None:
    first, second = saved(trueload, "trueload http URL -n 1", "trueload http URL -n 2")
    done = trueload.run("runs", "tag", first.id, "base")
    assert (done.code, done.out) == (0, f"base is {first.id}\n")
    assert trueload.run("runs", "show", "base", "--command").out == "trueload http URL -n 1\n"
    assert trueload.run("runs", "compare", "base", "last").code == 0
    listed = trueload.run("runs", "list").out.splitlines()
    assert [line.endswith("  [base] a title") for line in listed[1:]] == [False, True]

    moved = trueload.run("runs", "tag", "last", "base").out
    assert moved == f"base is {second.id}, no longer {first.id}\n"
    assert trueload.run("runs", "show", "base", "--command").out == "trueload http URL -n 2\n"


def test_a_name_goes_with_its_run_or_when_it_is_taken_away(trueload: Trueload) -> None:
    first, second = saved(trueload, "trueload", "trueload")
    for name, run in (("one", first), ("two", second), ("three", second)):
        assert trueload.run("runs", "tag", run.id, name).code == 0
    assert trueload.run("runs", "tag", "--delete", "three").code == 0
    assert trueload.run("runs", "delete", "one").code == 0
    with Store.open(trueload.store) as store:
        assert store.tags() == {"two": second.id}
        with pytest.raises(UserError, match="there is no run 'one'"):
            store.find_run("one")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("last", "2026"), "'2026' cannot be the name of a run"),
        (("last", "last"), "'last' is always the latest run"),
        (("last", "a b"), "'a b' cannot be the name of a run"),
        (("last",), "either a run and a name, or --delete and a name"),
        (("last", "a", "--delete"), "either a run and a name, or --delete and a name"),
        (("missing", "a"), "there is no run 'missing'"),
        (("a", "--delete"), "no run is named 'a'"),
    ],
)
def test_a_mistake_gets_a_line_and_a_hint(
    trueload: Trueload, words: tuple[str, ...], message: str
) -> None:
    saved(trueload, "trueload")
    done = trueload.run("runs", "tag", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {message}")
    assert "\nhint: " in done.err


def test_a_command_is_shown_whole_and_without_its_secrets(trueload: Trueload) -> None:
    saved(trueload, "trueload http URL --user=me:hunter2 --fail-on p99>20ms")
    done = trueload.run("runs", "show", "last", "--command")
    assert done.out == "trueload http URL '--user=<redacted>' --fail-on 'p99>20ms'\n"
    assert done.err.startswith("note: <…> stands for what is not stored")
    with Store.open(trueload.store) as store:
        store.end_run(store.new_run(kind="http", title="by Python"))
    done = trueload.run("runs", "show", "last", "--command")
    assert (done.code, done.out) == (2, "")
    assert "was not started by a command" in done.err
