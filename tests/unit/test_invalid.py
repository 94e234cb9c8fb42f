"""Messages about mistakes in the user's files."""

from __future__ import annotations

from pathlib import Path

import pytest
from trueload.errors import UserError
from trueload.subjects.contracts import load_contract
from trueload.suites.definition import Axes, Suite, load_suite

ROOT = Path(__file__).resolve().parents[2]
WHOLE = 'about = "a"\ncontract = "c"\nduration = "1s"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'contract = "c"\nduration = "1s"',
            "about is missing: one line that says what is compared",
        ),
        (
            'about = "a"\nduration = "1s"',
            "contract is missing: what all subjects answer: the name of a file in contracts/",
        ),
        # A misspelt key explains why another is missing.
        ('abuot = "a"\ncontract = "c"\nduration = "1s"', "'abuot' is not a key; keys are about, "),
        (WHOLE + "[[loads]]\nconections = [1]", "'loads[0].conections' is not a key; keys are con"),
        (
            WHOLE + '[[loads]]\nconnections = ["x"]',
            "loads[0].connections[0] must be a whole number, not 'x'",
        ),
        (
            WHOLE + "[[loads]]\nconnections = 64",
            "loads[0].connections must be a list, like [1, 2], not 64",
        ),
        (
            WHOLE + "[[loads]]\nconnections = [0]",
            "loads[0].connections[0] must be more than 0, not 0",
        ),
        (WHOLE + "repeat = 1.5", "repeat must be a whole number, not 1.5"),
        (WHOLE + 'close = "maybe"', "close must be true or false, not 'maybe'"),
        (WHOLE + 'variants = "some"', "variants must be 'all' or 'default', not 'some'"),
        (WHOLE + "files = -1", "files must be 0 or more, not -1"),
        (WHOLE + "notes = 3", "notes must be a list, like [1, 2], not 3"),
        (WHOLE + "about2 = 3", "'about2' is not a key"),
        (WHOLE + "http2 = 3", "http2 must be a table, not 3"),
        (WHOLE + "[clients]\nrounds = 2", "clients.wait is missing: how long the server takes"),
        (WHOLE.replace('"a"', "3"), 'about must be text, like "this", not 3'),
        ('about = "a"\ncontract = "c"', "give either duration, requests or stages"),
        (WHOLE + '[[loads]]\npath = ["a b"]', "loads[0].path[0] must be of the form "),
    ],
)
def test_a_mistake_in_a_suite_is_told_in_words(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "suite.toml"
    path.write_text(text)
    with pytest.raises(UserError) as raised:
        load_suite(path)
    assert raised.value.message.startswith(f"{path}: {message}")
    for word in ("Input should", "Field required", "Value error", "pydantic"):
        assert word not in raised.value.message


def test_a_mistake_in_a_contract_is_told_in_words(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('about = "a"\nrole = "server"\n[load]\npath = "/"\nbody = "x"\n')
    with pytest.raises(UserError, match=r"mine\.toml: 'load\.body' is not a key"):
        load_contract(tmp_path, "mine")
    path.write_text('about = "a"\nrole = "server"\nexchanges = []\n[load]\npath = "/"\n')
    with pytest.raises(UserError, match=r"mine\.toml: exchanges must be longer: it is too short"):
        load_contract(tmp_path, "mine")


def test_the_page_explains_every_key() -> None:
    page = (ROOT / "docs/your-own-suite.md").read_text()
    keys = {*Suite.model_fields, *Axes.model_fields} - {"window", "engine"}
    assert not [key for key in sorted(keys) if f"`{key}`" not in page]
