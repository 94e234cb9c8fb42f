"""Defaults of options in a real command: used, shown, recorded, and without their secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from counting import Counting
from harness import Trueload

pytestmark = pytest.mark.engine


def test_a_file_and_a_variable_set_what_is_not_typed(trueload: Trueload, tmp_path: Path) -> None:
    config = tmp_path / "own.toml"
    config.write_text(
        '[http]\nconnections = 2\nduration = "1h"\nheader = ["X-Api-Key: hunter2hunter2"]\n'
        'fail-on = ["errors>99%"]\n'
    )
    env = {"TRUELOAD_CONFIG": str(config), "TRUELOAD_HTTP_REQUESTS": "6"}
    with Counting() as server:
        done = trueload.run("http", server.url, "--json", "-", env=env)
    assert done.code in (0, 4), done  # 4 on a machine with much else to do
    plan = json.loads(done.out)["plan"]
    assert (plan["generate"]["connections"], plan["window"]["stop"]["count"]) == (2, 6)
    assert "defaults: --requests=6 (from TRUELOAD_HTTP_REQUESTS), --connections=2" in done.err
    assert "hunter2" not in done.out + done.err

    shown = trueload.run("runs", "show", "last").out
    assert "--requests=6 --connections=2" in shown
    assert "--fail-on=errors>99%" in shown.replace("'", "")
    assert "hunter2" not in shown


def test_a_mistake_in_the_file_ends_with_2_and_nothing_is_sent(
    trueload: Trueload, tmp_path: Path
) -> None:
    config = tmp_path / "own.toml"
    config.write_text("[http]\nconections = 2\n")
    with Counting() as server:
        done = trueload.run("http", server.url, env={"TRUELOAD_CONFIG": str(config)})
        assert server.asked == []
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        f"error: {config}: 'conections' is not an option: trueload http has no --conections\n"
        "hint: did you mean --connections?\n"
    )
