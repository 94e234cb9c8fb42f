"""`--detach` and `trueload attach`: a run in the background, followed, stopped and killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from harness import Server, Trueload
from trueload.record.schema import Record
from trueload.store.detached import DetachedFiles, all_detached
from trueload.store.runs import Store
from waiting import wait_until


def detach(trueload: Trueload, *words: str | Path) -> tuple[str, DetachedFiles]:
    """Start a run, and return its id and its files."""
    done = trueload.run(*words, "--detach")
    run_id = done.out.strip()
    assert done.code == 0, done
    assert f"trueload attach {run_id} --stop" in done.err
    return run_id, DetachedFiles(trueload.store, run_id)


def saved_record(trueload: Trueload, run_id: str) -> Record:
    with Store.open(trueload.store) as store:
        record = store.only_record(store.find_run(run_id))
    assert record is not None
    return record


def test_attach_ends_like_the_run_that_was_detached(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    written = tmp_path / "result.json"
    words = ("http", server.url, "-n", "200", "-c", "2", "--fail-on", "p50>0ns")
    run_id, files = detach(trueload, *words, "--format", "json", "--json", written)
    attached = trueload.run("attach", run_id)
    found = attached.measured(code=1)
    assert found["counts"]["ok"] == 200
    assert found["id"] == saved_record(trueload, run_id).id
    assert written.read_text() == attached.out
    assert "threshold crossed: p50 is" in attached.err
    again = trueload.run("attach", "last")
    assert (again.code, again.out) == (attached.code, attached.out), "at once, as it has ended"
    assert trueload.run("runs", "show", run_id).out.startswith(f"run          {run_id}\n")
    assert trueload.run("runs", "delete", run_id).code == 0
    assert not files.folder.exists()


def test_stop_ends_a_detached_run_and_saves_what_it_measured(
    trueload: Trueload, server: Server
) -> None:
    run_id, files = detach(trueload, "http", server.url, "-c", "2", "-d", "60s", "--warmup", "0")
    process = files.process()
    assert process is not None
    assert os.getsid(process) == process, "it belongs to no terminal"
    stopped = trueload.run("attach", run_id, "--stop")
    assert stopped.code == 130
    assert f"saved        {run_id}" in stopped.out
    assert "\x1b" not in stopped.out
    assert saved_record(trueload, run_id).partial
    again = trueload.run("attach", run_id, "--stop")
    assert (again.code, again.out) == (stopped.code, stopped.out), "it has ended already"


def test_a_killed_run_has_no_result_and_attach_says_so(trueload: Trueload, server: Server) -> None:
    run_id, files = detach(trueload, "http", server.url, "-c", "2", "-d", "60s")
    process = files.process()
    assert process is not None
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: files.process() is None, "the process is gone")
    attached = trueload.run("attach", run_id)
    assert attached.code == 130
    assert f"run          {run_id}" in attached.out
    assert f"error: run {run_id} ended without a result" in attached.err
    assert trueload.run("attach", run_id, "--stop").code == 130


def test_a_mistake_ends_the_command_and_leaves_no_run(
    trueload: Trueload, server: Server, tmp_path: Path
) -> None:
    missing = tmp_path / "missing" / "result.json"
    for words, says in (
        (("http", server.url, "--json", "-"), "error: --json - has no stdout"),
        (("http", server.url, "--json", missing), "cannot be written"),  # found in the child
        (("http", server.url, "-c", "0"), "'0' is not"),
        (("suite", "run", "http-servers", "--dry-run"), "error: --dry-run runs nothing"),
    ):
        done = trueload.run(*words, "--detach")
        assert (done.code, done.out) == (2, ""), done
        assert says in done.err
    assert trueload.run("attach", "last").err.startswith("error: no run was started with --detach")
    assert not all_detached(trueload.store).exists()
