"""Where ``subjects new`` puts a subject: in the user's folders, never in an installed package."""

from __future__ import annotations

from pathlib import Path

import pytest
from trueload.files import catalogue


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, beside an installed package that has a catalogue."""
    package = tmp_path / "site-packages" / "trueload"
    _add_subject(package / "catalogue")
    monkeypatch.setattr(catalogue, "_PACKAGE", package)
    monkeypatch.delenv("TRUELOAD_HOME", raising=False)
    work = tmp_path / "work" / "below"
    work.mkdir(parents=True)
    monkeypatch.chdir(work)
    return work


def _add_subject(root: Path) -> Path:
    folder = root / "subjects" / "c" / "one"
    folder.mkdir(parents=True)
    (folder / "subject.toml").write_text("")
    return root / "subjects"


def _home() -> Path:
    return catalogue.subjects_home(lambda line: pytest.fail(line))


def test_outside_a_catalogue_it_is_the_current_folder(here: Path) -> None:
    assert _home() == here / "subjects"


def test_a_catalogue_here_above_or_named_comes_first(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = _add_subject(tmp_path / "named")
    monkeypatch.setenv("TRUELOAD_HOME", str(named.parent))
    assert _home() == named
    above = _add_subject(here.parent)
    assert _home() == above
    own = _add_subject(here)
    assert _home() == own


def test_within_trueloads_own_catalogue_it_is_that_one(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = here.parent.parent / "checkout"
    package = checkout / "python" / "trueload"
    package.mkdir(parents=True)
    monkeypatch.setattr(catalogue, "_PACKAGE", package)
    own = _add_subject(checkout)
    assert _home() == here / "subjects"
    monkeypatch.chdir(checkout / "python")
    assert _home() == own
