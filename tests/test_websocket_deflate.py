"""``trueload ws --deflate`` against a real server, that of ``ws`` for Node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from harness import Trueload
from test_websocket_examples import modules, serving

pytestmark = [pytest.mark.engine, pytest.mark.needs("node")]
__all__ = ["modules"]

CHAT = """
[[step]]
name   = "long"
send   = '{"text": "{counter} is a number, is a number, is a number, is a number, is a number"}'
expect = 'json:/text={counter} is a number, is a number, is a number, is a number, is a number'
repeat = 3

[[step]]
name   = "short"
send   = "hello"
expect = "text:hello"
"""


def measured(trueload: Trueload, at: str, *words: str) -> dict[str, Any]:
    """The record of some messages with compression on offer; each must have come back."""
    found = trueload.run("ws", f"ws://{at}", "--deflate", "-c", "4", *words, "--json", "-").json()
    assert found["counts"]["failed"] == {}
    return dict(found)


def test_echoes_are_compressed_and_counted(trueload: Trueload, modules: Path) -> None:
    text = trueload.folder / "text"
    trueload.folder.mkdir(exist_ok=True)
    text.write_text("all work and no play " * 100)
    with serving("deflate", modules) as at:
        words = ("--data", str(text), "--warmup", "0s", "--requests", "200")
        found = measured(trueload, f"{at}/on", *words)
    deflate = found["deflate"]
    assert (deflate["agreed"], deflate["declined"]) == (4, 0)
    assert deflate["sent_bytes"] == deflate["received_bytes"] == 200 * 2100
    assert 200 * 20 < deflate["sent_compressed_bytes"] < 200 * 100
    assert 200 * 20 < deflate["received_compressed_bytes"] < 200 * 100


def test_a_conversation_is_compressed_as_far_as_the_server_likes(
    trueload: Trueload, modules: Path
) -> None:
    trueload.folder.mkdir(exist_ok=True)
    file = trueload.folder / "chat.toml"
    file.write_text(CHAT)
    words = ("--scenario", str(file), "--warmup", "0s", "--requests", "20")
    with serving("deflate", modules) as at:
        found = measured(trueload, f"{at}/on", *words)
    deflate = found["deflate"]
    assert found["sessions"]["ok"] == 20
    assert (deflate["agreed"], deflate["declined"]) == (20, 0)
    assert deflate["sent_bytes"] == deflate["received_bytes"]
    # The server leaves short messages as they are.
    assert deflate["sent_compressed_bytes"] < deflate["sent_bytes"] * 0.9
    assert deflate["received_compressed_bytes"] < deflate["received_bytes"] * 0.9


def test_without_an_agreement_that_is_told(trueload: Trueload, modules: Path) -> None:
    with serving("deflate", modules) as at:
        words = ("--requests", "40", "--warmup", "0s")
        found = measured(trueload, f"{at}/off", *words)
        run = trueload.run("ws", f"ws://{at}/off", "--deflate", "-c", "4", *words)
    deflate = found["deflate"]
    assert (deflate.pop("agreed"), deflate.pop("declined")) == (0, 4)
    assert set(deflate.values()) == {0}
    assert "deflate      off on all 4 connections: the server did not agree" in run.out


@pytest.mark.parametrize("is_conversation", [False, True])
def test_a_parameter_that_was_not_offered_is_named(
    trueload: Trueload, modules: Path, is_conversation: bool
) -> None:
    trueload.folder.mkdir(exist_ok=True)
    file = trueload.folder / "chat.toml"
    file.write_text(CHAT)
    words = ("--scenario", str(file)) if is_conversation else ()
    with serving("deflate", modules) as at:
        load = ("-c", "1", "--requests", "1", "--warmup", "0s", "--timeout", "3s", *words)
        run = trueload.run("ws", f"ws://{at}/refused", "--deflate", *load)
    told = " ".join((run.out + run.err).split())
    assert "ws.handshake" in told
    assert "has client_max_window_bits, which was not offered" in told


@pytest.mark.parametrize("words", [("--dialect", "json"), ("--mode", "broadcast")])
def test_only_plain_echoes_and_conversations_are_compressed(
    trueload: Trueload, words: tuple[str, str]
) -> None:
    run = trueload.run("ws", "ws://127.0.0.1:1", "--deflate", *words)
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 2)
    assert "--deflate" in run.err
