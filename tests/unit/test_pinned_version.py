"""The version of a subject's library: from each package manager's file, and of each subject that
names one."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import ROOT
from trueload.subjects.manifest import Subject
from trueload.subjects.pinned_version import READERS, pinned_version
from trueload.subjects.selection import select_subjects

POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
<artifactId>subject</artifactId><version>1</version>
<properties><netty.version>4.2.1</netty.version></properties>
<dependencies><dependency><artifactId>netty</artifactId><version>{}</version></dependency></dependencies>
</project>"""
FILES = [
    ("Cargo.lock", '[[package]]\nname = "mio"\nversion = "1.2.4"\n', "mio", "1.2.4"),
    ("dub.selections.json", '{"fileVersion": 1, "versions": {"hunt": "1.7"}}', "hunt", "1.7"),
    ("go.mod", "module m\n\nrequire github.com/a/b v1.5.3\n", "github.com/a/b", "1.5.3"),
    ("go.mod", "require (\n\tx.org/net v0.55.0 // indirect\n)\n", "x.org/net", "0.55.0"),
    ("package-lock.json", '{"packages": {"node_modules/ws": {"version": "8.2.3"}}}', "ws", "8.2.3"),
    ("pom.xml", POM.format("4.2.0"), "netty", "4.2.0"),
    ("pom.xml", POM.format("${netty.version}"), "netty", "4.2.1"),
    ("requirements.txt", "h11==0.16.0 \\\n  --hash=x\nuvicorn==0.30\n", "h11", "0.16.0"),
    ("mix.exs", 'deps: [{:finch, "0.18.0"}]', "finch", "0.18.0"),
    ("mix.exs", 'deps: [{:mint, "~> 1.6", only: :prod}]', "mint", "1.6"),
    ("rebar.config", '{deps, [{hackney, "1.20.1"}]}.', "hackney", "1.20.1"),
    ("rebar.config", '{deps, [{b, {git, "https://x/b.git", {ref, "b65c"}}}]}.', "b", "b65c"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "library", "version"), FILES)
def test_each_package_managers_file_is_read(
    tmp_path: Path, name: str, text: str, library: str, version: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert pinned_version(tmp_path, library) == version
    assert pinned_version(tmp_path, f"{library}-of-another-name") is None


@pytest.mark.parametrize("name", sorted(READERS))
def test_a_file_that_cannot_be_read_pins_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("\0 {", encoding="utf-8")
    assert pinned_version(tmp_path, "a") is None
    assert pinned_version(tmp_path / "gone", "a") is None


CATALOGUE = [
    each for each in select_subjects(ROOT / "subjects", ()) if each.manifest.library is not None
]


def test_many_subjects_name_their_library() -> None:
    assert len(CATALOGUE) > 30


@pytest.mark.parametrize("subject", CATALOGUE, ids=lambda each: each.name)
def test_the_library_of_a_subject_is_pinned(subject: Subject) -> None:
    assert subject.manifest.library is not None
    version = pinned_version(subject.folder, subject.manifest.library)
    assert version, subject.name
    assert version[0].isalnum()
