"""Manifests: what is accepted, and the one-line message for what is not. Selections, as a table."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from harness import ROOT
from trueload.errors import UserError
from trueload.files.toml import TOML_BYTES_MAX
from trueload.runner.build import content_key
from trueload.subjects.manifest import contents, load_subject, sources
from trueload.subjects.selection import (
    Entry,
    OnBroken,
    entries,
    parse_selects,
    select_subjects,
    unless_named,
)

GOOD = """
role = "server"
about = "it serves"
category = "micro"
contracts = ["http-plaintext"]
build = [["cc", "-o", "subject", "server.c"]]
run = ["./subject", "{host}:{port}", "{cpus}"]
env = { A = "1", B = "2" }

[variants.tuned]
about = "tuned"
run = ["./subject", "--tuned"]
env = { B = "3" }
"""

SHARES = 'shared = ["talk"]'


def subject_folder(tmp_path: Path, text: str | bytes, name: str = "c/thing") -> Path:
    folder = tmp_path / "subjects" / name
    folder.mkdir(parents=True, exist_ok=True)
    raw = text.encode() if isinstance(text, str) else text
    (folder / "subject.toml").write_bytes(raw)
    return folder


def test_a_byte_order_mark_before_a_manifest_is_no_part_of_it(tmp_path: Path) -> None:
    marked = load_subject(subject_folder(tmp_path, b"\xef\xbb\xbf" + GOOD.encode()))
    assert [each.name for each in marked] == ["c/thing", "c/thing:tuned"]


def test_a_variant_states_only_what_differs(tmp_path: Path) -> None:
    default, tuned = load_subject(subject_folder(tmp_path, GOOD))
    assert (default.name, tuned.name) == ("c/thing", "c/thing:tuned")
    assert (default.variant, tuned.variant) == ("", "tuned")
    assert tuned.manifest.run == ("./subject", "--tuned")
    assert tuned.manifest.build == default.manifest.build
    assert tuned.manifest.env == {"A": "1", "B": "3"}
    assert tuned.manifest.category == "micro"


def changed(old: str, new: str) -> str:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


# (what is wrong, the manifest, words of the message besides the file's name)
BAD_MANIFESTS: list[tuple[str, str | bytes, list[str]]] = [
    ("an unknown key", "colour = 1\n" + GOOD, ["'colour' is not a manifest key", "contracts"]),
    (
        "an unknown key of a variant",
        GOOD + "role = 'server'\n",
        ["'variants.tuned.role' is not a manifest key"],
    ),
    (
        "an unknown need",
        "needs = { apt = [] }\n" + GOOD,
        ["'needs.apt' is not a manifest key", "tools, debian"],
    ),
    ("a key missing", changed('role = "server"', ""), ["role: is missing"]),
    ("a key twice", GOOD.replace("about", 'role = "server"\nabout', 1), ["is not TOML", "line 3"]),
    ("a number for a text", changed('about = "it serves"', "about = 7"), ["about:"]),
    ("a text for a number", "ready_s = '10'\n" + GOOD, ["ready_s:"]),
    ("no time at all", "ready_s = 0\n" + GOOD, ["ready_s:"]),
    ("a shell line", changed('["./subject", "{host}:{port}", "{cpus}"]', '"./x"'), ["run:"]),
    ("no program", changed('["./subject", "{host}:{port}", "{cpus}"]', "[]"), ["run: must name"]),
    ("a blank program", changed('"./subject", "{host}:{port}"', '" ", "x"'), ["run: must name"]),
    ("a NUL in the file", GOOD.replace("serves", "ser\0ves").encode(), ["is not TOML", "line 3"]),
    ("a NUL by escape", changed("it serves", "ser\\u0000ves"), ["about: must not hold a NUL"]),
    ("no UTF-8", b"\xff\xfe" + GOOD.encode(), ["is UTF-16, and must be UTF-8"]),
    ("no UTF-8 at all", b"\xff" + GOOD.encode(), ["is not UTF-8: byte 0"]),
    ("no TOML", "role = ", ["is not TOML", "end of document"]),
    ("nesting without end", "a = " + "[" * 20_000, ["nested too deeply"]),
    ("a file of more than 64 KiB", GOOD + "#" * TOML_BYTES_MAX, ["larger than 64 KiB"]),
    ("a parent folder", changed('"./subject", "{host}', '"../up", "{host}'), ["'../up' leaves"]),
    ("a parent folder in an option", changed('"{cpus}"', '"--dir=a/../../b"'), ["leaves"]),
    ("an absolute program", changed('"./subject", "{host}', '"/bin/sh", "{host}'), ["run[0]"]),
    ("an unknown substitution", changed("{cpus}", "{cores}"), ["{cores}", "{cpus}"]),
    ("an unknown role", changed('"server"', '"proxy"'), ["role:"]),
    ("an unknown category", changed('"micro"', '"tiny"'), ["category:"]),
    ("tried, or not", 'tried = "yes"\n' + GOOD, ["tried:"]),
    ("not tried, and no reason", 'tried = "no: "\n' + GOOD, ["tried:"]),
    ("an unknown place to run", 'cores = ["dual"]\n' + GOOD, ["cores[0]:"]),
    ("an option as a package", 'needs = { debian = ["-y"] }\n' + GOOD, ["needs.debian[0]:"]),
    ("an option as a tool", 'needs = { tools = ["--go"] }\n' + GOOD, ["needs.tools[0]:"]),
    ("a dialect where none counts", 'dialect = "json"\n' + GOOD, ["for the contract ws-"]),
    ("a path in a variant", GOOD + 'path = "/cable"\n', ["variants.tuned: path and dialect"]),
    ("a variant that is no table", "variants = 3\n" + GOOD.split("[variants")[0], ["variants"]),
    ("a variant with an odd name", GOOD + '[variants."a/b"]\n', ["variants.a/b"]),
    ("a wrong value in a variant", GOOD + "ready_s = -1\n", ["variants.tuned.ready_s"]),
    ("a number of 5,000 digits", f"ready_s = {'9' * 5000}\n" + GOOD, ["is not TOML"]),
    ("nothing", "", ["role: is missing"]),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "words"), BAD_MANIFESTS, ids=lambda v: str(v)[:30])
def test_a_bad_manifest_gets_one_line_with_the_place(
    tmp_path: Path, what: str, text: str | bytes, words: list[str]
) -> None:
    folder = subject_folder(tmp_path, text)
    with pytest.raises(UserError) as caught:
        load_subject(folder)
    assert "subject.toml: " in caught.value.message, what
    for word in words:
        assert word in caught.value.message, f"{what}: {caught.value.message}"
    assert "\n" not in caught.value.message
    assert caught.value.exit_code == 2


SPOKEN = GOOD.replace("http-plaintext", "ws-shootout").replace(
    "[variants.tuned]", 'path = "/cable"\ndialect = "actioncable"\n\n[variants.tuned]\npath = "/x"'
)


def test_a_subject_of_broadcasts_may_say_how_it_speaks(tmp_path: Path) -> None:
    default, tuned = load_subject(subject_folder(tmp_path, SPOKEN))
    assert (default.manifest.path, default.manifest.dialect) == ("/cable", "actioncable")
    assert (tuned.manifest.path, tuned.manifest.dialect) == ("/x", "actioncable")
    for good, bad, word in [('"/cable"', '"cable"', "path:"), ("actioncable", "sip", "dialect:")]:
        with pytest.raises(UserError, match=word):
            load_subject(subject_folder(tmp_path, SPOKEN.replace(good, bad)))


def test_a_pipe_is_no_manifest_and_is_not_waited_for(tmp_path: Path) -> None:
    folder = subject_folder(tmp_path, GOOD)
    path = folder / "subject.toml"
    path.unlink()
    os.mkfifo(path)

    def write() -> None:
        with contextlib.suppress(BrokenPipeError):
            path.write_text(GOOD)

    writing = threading.Thread(target=write)
    writing.start()
    with pytest.raises(UserError, match="is no file"):
        load_subject(folder)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # lets the writer continue
    writing.join()
    os.close(reader)


def test_a_huge_manifest_is_refused_before_it_is_read(tmp_path: Path) -> None:
    folder = subject_folder(tmp_path, GOOD)
    os.truncate(folder / "subject.toml", 100 * 1024 * 1024)
    with pytest.raises(UserError, match="larger than 64 KiB"):
        load_subject(folder)


def test_links_that_leave_the_folder_are_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "subject.toml").write_text(GOOD)
    folder = subject_folder(tmp_path, GOOD)
    (folder / "server.c").write_text("int main;")
    (folder / "inside.c").symlink_to("server.c")
    assert Path("inside.c") in sources(folder), "a link that stays is a source"
    (folder / "out").symlink_to(outside)
    with pytest.raises(UserError, match="leads out of the subject's folder"):
        sources(folder)
    catalogue = tmp_path / "subjects"
    (catalogue / "c" / "linked").symlink_to(outside)
    with pytest.raises(UserError, match="linked"):
        select_subjects(catalogue, [])
    (catalogue / "c" / "linked").unlink()
    (folder / "subject.toml").unlink()
    (folder / "subject.toml").symlink_to(outside / "subject.toml")
    with pytest.raises(UserError, match="leads out of the subject's folder"):
        load_subject(folder)


def test_a_pipe_among_the_sources_is_refused_not_waited_for(tmp_path: Path) -> None:
    folder = subject_folder(tmp_path, GOOD)
    os.mkfifo(folder / "pipe")
    with pytest.raises(UserError, match="neither a file nor a folder"):
        sources(folder)


def test_what_builds_leave_is_no_source(tmp_path: Path) -> None:
    folder = subject_folder(tmp_path, GOOD)
    for name in ("target/x", "build/x", "node_modules/x", "__pycache__/x", "src/keep.c"):
        (folder / name).parent.mkdir()
        (folder / name).write_text("")
    (folder / "subject").write_text("binary")
    assert sources(folder) == [Path("src/keep.c"), Path("subject.toml")]


def test_shared_files_are_laid_beside_a_subjects_own_and_change_its_build(tmp_path: Path) -> None:
    folder = subject_folder(tmp_path, SHARES + GOOD)
    shared = tmp_path / "subjects" / "shared" / "talk"
    subject, _tuned = load_subject(folder)
    with pytest.raises(UserError, match="there is no folder"):
        contents(subject)
    (shared / "src").mkdir(parents=True)
    (shared / "src" / "talk.c").write_text("int one;")
    assert contents(subject) == {
        Path("src/talk.c"): shared / "src" / "talk.c",
        Path("subject.toml"): folder / "subject.toml",
    }
    before = content_key(subject)
    (shared / "src" / "talk.c").write_text("int two;")
    assert content_key(subject) != before
    (folder / "src").mkdir()
    (folder / "src" / "talk.c").write_text("int mine;")
    with pytest.raises(UserError, match="is there twice"):
        contents(subject)
    (shared / "src" / "talk.c").unlink()
    (shared / "src" / "talk.c").symlink_to("/etc/passwd")
    with pytest.raises(UserError, match="leads out"):
        contents(subject)


@pytest.mark.parametrize("name", ["../c", "talk/src", "", "/etc"])
def test_a_shared_folder_is_a_name(tmp_path: Path, name: str) -> None:
    folder = subject_folder(tmp_path, f'shared = ["{name}"]\n{GOOD}')
    with pytest.raises(UserError, match="shared"):
        load_subject(folder)


def test_shared_files_that_others_can_change_are_not_used(tmp_path: Path) -> None:
    folder = subject_folder(tmp_path, SHARES + GOOD)
    shared = folder.parent.parent / "shared" / "talk"
    shared.mkdir(parents=True)
    [entry] = entries(folder.parent.parent)
    assert entry.load()
    shared.chmod(0o777)
    with pytest.raises(UserError, match="what others can change is not run"):
        entry.load()


def test_no_source_is_in_two_folders() -> None:
    """What package managers want of each folder may be alike; a source belongs to `shared`."""
    of_managers = {".lock", ".toml", ".mod", ".sum", ".json", ".txt"}
    found: dict[bytes, Path] = {}
    for entry in entries(ROOT / "subjects"):
        for relative in sources(entry.folder):
            path = entry.folder / relative
            if path.suffix not in of_managers and path.stat().st_size > 0:
                other = found.setdefault(path.read_bytes(), path)
                assert other == path, "move it to subjects/shared/, and name it in the manifests"


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    for name in ("c/epoll", "c/nginx", "go/fasthttp", "go/net-http", "rust/net-http"):
        subject_folder(tmp_path, GOOD, name)
    return tmp_path / "subjects"


ALL = ["c/epoll", "c/nginx", "go/fasthttp", "go/net-http", "rust/net-http"]
SELECTIONS = [
    ([], ALL),
    (["nginx"], ["c/nginx"]),
    (["go"], ["go/fasthttp", "go/net-http"]),
    (["net-http"], ["go/net-http", "rust/net-http"]),
    (["rust/net-http"], ["rust/net-http"]),
    (["nginx,go/fasthttp"], ["c/nginx", "go/fasthttp"]),
    (["nginx", "fasthttp"], ["c/nginx", "go/fasthttp"]),
    (["!go"], ["c/epoll", "c/nginx", "rust/net-http"]),
    (["c", "!epoll"], ["c/nginx"]),
    (["!net-http,!c"], ["go/fasthttp"]),
]


@pytest.mark.parametrize(("texts", "expected"), SELECTIONS, ids=str)
def test_a_select_means_what_it_says(
    catalogue: Path, texts: list[str], expected: list[str]
) -> None:
    found = select_subjects(catalogue, parse_selects(texts))
    assert [s.name for s in found if not s.variant] == expected
    assert [s.name for s in found if s.variant] == [f"{name}:tuned" for name in expected]


def test_a_select_can_name_a_variant_or_the_default(catalogue: Path) -> None:
    def names(*texts: str) -> list[str]:
        return [s.name for s in select_subjects(catalogue, parse_selects(texts))]

    assert names("nginx:tuned") == ["c/nginx:tuned"]
    assert names("c/nginx:") == names("c/nginx:default") == ["c/nginx"]
    assert names("c", "!nginx:tuned", "!epoll") == ["c/nginx"]


def test_a_half_written_manifest_stops_only_those_who_select_it(catalogue: Path) -> None:
    (catalogue / "c" / "epoll" / "subject.toml").write_text("role = ")
    assert len(select_subjects(catalogue, parse_selects(["nginx"]))) == 2
    with pytest.raises(UserError, match="epoll"):
        select_subjects(catalogue, parse_selects(["c"]))


def closed(catalogue: Path) -> None:
    (catalogue / "c" / "epoll" / "subject.toml").unlink()
    (catalogue / "c" / "epoll" / "subject.toml").symlink_to("subject.toml")


def half_written(catalogue: Path) -> None:
    (catalogue / "c" / "epoll" / "subject.toml").write_text("role = ")


def nowhere(catalogue: Path) -> None:
    (catalogue / "c" / "epoll" / "subject.toml").unlink()
    (catalogue / "c" / "epoll" / "subject.toml").symlink_to("nowhere")


def a_folder(catalogue: Path) -> None:
    (catalogue / "c" / "epoll" / "subject.toml").unlink()
    (catalogue / "c" / "epoll" / "subject.toml").mkdir()


def misnamed(catalogue: Path) -> None:
    (catalogue / "c" / "epoll").rename(catalogue / "c" / "e poll")


def not_even_text(catalogue: Path) -> None:
    (catalogue / "c" / "epoll").rename(catalogue / "c" / os.fsdecode(b"\xff\xfe"))


def linked_away(catalogue: Path) -> None:
    (catalogue / "c" / "epoll").rename(catalogue.parent / "away")
    (catalogue / "c" / "epoll").symlink_to(catalogue.parent / "away")


@pytest.mark.parametrize(
    "harm", [half_written, closed, nowhere, a_folder, misnamed, not_even_text, linked_away]
)
def test_of_a_broken_one_the_selector_hears_and_the_others_go_on(
    catalogue: Path, harm: Callable[[Path], None]
) -> None:
    harm(catalogue)
    for texts, others in ([], ALL[1:]), (["c"], ["c/nginx"]), (["!nginx"], ALL[2:]):
        broken: dict[str, str] = {}
        found = select_subjects(catalogue, parse_selects(texts), noted_in(broken))
        assert [s.name for s in found if not s.variant] == others
        ((name, why),) = broken.items()
        assert name.startswith("c/")
        assert name in why, "the line names the path"
        assert "\n" not in why
    name = name.removeprefix("c/")
    assert select_subjects(catalogue, parse_selects([f"!{name}"]), unless_named([], fail))
    named = parse_selects([name, "nginx"])
    with pytest.raises(UserError) as caught:
        select_subjects(catalogue, named, unless_named(named, fail))
    assert name in caught.value.message


def noted_in(broken: dict[str, str]) -> OnBroken:
    return lambda entry, why: broken.update({entry.name: why.message})


def fail(entry: Entry, why: UserError) -> None:
    raise AssertionError(entry.name)


def test_an_unknown_select_names_those_near_it(catalogue: Path) -> None:
    with pytest.raises(UserError) as caught:
        select_subjects(catalogue, parse_selects(["fasthtp"]))
    assert caught.value.message == "no subject is called 'fasthtp'"
    assert "fasthttp" in caught.value.hint


@pytest.mark.parametrize("text", ["", " ", ",", " , "])
def test_a_select_that_is_empty_does_not_mean_all_subjects(text: str) -> None:
    with pytest.raises(UserError, match="selects no subject"):
        parse_selects([text])
    assert [each.text for each in parse_selects(["rust,,!go/fasthttp,"])] == [
        "rust",
        "!go/fasthttp",
    ]
