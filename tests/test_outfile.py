"""Where a flag names a file for a result, and that is a named pipe."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from harness import Finished, Server, Trueload
from trueload.cli import outfile

FEW = ("-c", "1", "--requests", "10")


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_whoever_reads_a_named_pipe_gets_the_whole_result(
    trueload: Trueload, server: Server, pipe: Path
) -> None:
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        try:
            ended = trueload.run("http", server.url, *FEW, "--json", pipe)
            out, _ = reader.communicate(timeout=60)
        finally:
            reader.kill()
    assert Finished(ended.code, out, ended.err).measured()["counts"]["ok"] == 10
    assert trueload.run("runs", "list").out.count(server.url) == 1


def test_what_the_shell_substitutes_for_a_command_is_written_to(
    trueload: Trueload, server: Server
) -> None:
    reader, writer = os.pipe()
    with os.fdopen(reader) as read:
        named = f"/proc/{os.getpid()}/fd/{writer}"
        ended = trueload.run("http", server.url, *FEW, "--no-save", "--json", named)
        os.close(writer)
        assert Finished(ended.code, read.read(), ended.err).measured()["counts"]["ok"] == 10


def test_a_pipe_that_nobody_reads_is_waited_for_and_then_told(
    pipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outfile, "READER_S", 0.2)
    outfile.check_writable(pipe)
    with pytest.raises(OSError, match="nobody reads this pipe"):
        outfile.open_for_writing(pipe)


def test_the_next_line_of_a_file_ends_as_it_is_told_to(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("before")
    with outfile.open_for_writing(path, newline="") as file:
        file.write("a\r\n")
    assert path.read_bytes() == b"a\r\n"
