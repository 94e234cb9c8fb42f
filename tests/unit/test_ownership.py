"""Whose code may be run: the rule as a table, and its walk over real folders."""

from __future__ import annotations

import grp
import os
import pwd
import stat
from pathlib import Path

import pytest
from trueload.errors import UserError
from trueload.files import catalogue
from trueload.files.ownership import (
    Fault,
    TrustedUsers,
    also_writers_of,
    is_private,
    judge,
    steps,
    trusted_here,
    trusted_uids,
)
from trueload.subjects.selection import parse_selects, select_subjects

ME, STRANGER, MY_GROUP, STAFF = 1000, 1001, 1000, 50
OVERFLOW = 65534
DIR, FILE, LINK = stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK
HERE = TrustedUsers(frozenset({0, ME}), frozenset({MY_GROUP}))
only_root_gives_files_away = pytest.mark.needs("root")


def status(mode: int, uid: int, gid: int) -> os.stat_result:
    return os.stat_result((mode, 0, 0, 1, uid, gid, 0, 0, 0, 0))


@pytest.mark.parametrize(
    ("what", "mode", "uid", "gid", "fault"),
    [
        ("my folder", DIR | 0o755, ME, MY_GROUP, None),
        ("root's folder", DIR | 0o755, 0, 0, None),
        ("a stranger's folder", DIR | 0o755, STRANGER, MY_GROUP, "owner"),
        ("of a user that the namespace does not know", DIR | 0o755, OVERFLOW, OVERFLOW, "owner"),
        ("my file", FILE | 0o644, ME, STAFF, None),
        ("a stranger's file that nobody can write", FILE | 0o444, STRANGER, STAFF, "owner"),
        ("my folder for everybody", DIR | 0o777, ME, MY_GROUP, "everybody"),
        ("root's folder for everybody", DIR | 0o757, 0, 0, "everybody"),
        ("my file for everybody", FILE | 0o646, ME, MY_GROUP, "everybody"),
        ("my folder for my private group (umask 002)", DIR | 0o775, ME, MY_GROUP, None),
        ("the same with the setgid bit", DIR | 0o2775, ME, MY_GROUP, None),
        ("my file for my private group", FILE | 0o664, ME, MY_GROUP, None),
        ("my folder for another group", DIR | 0o775, ME, STAFF, "group"),
        ("root's folder for another group", DIR | 0o2775, 0, STAFF, "group"),
        ("a group that may read alone", DIR | 0o755, ME, STAFF, None),
        ("my link, whose mode says nothing", LINK | 0o777, ME, STAFF, None),
        ("a stranger's link", LINK | 0o777, STRANGER, STAFF, "owner"),
        ("a sticky folder is no place for a catalogue", DIR | 0o1777, 0, 0, "everybody"),
    ],
)
def test_only_what_trusted_users_can_change_is_run(
    what: str, mode: int, uid: int, gid: int, fault: Fault | None
) -> None:
    assert judge(status(mode, uid, gid), HERE) == fault, what


@pytest.mark.parametrize(
    ("what", "mode", "uid", "fault"),
    [
        ("/tmp: nobody can replace what is another's", DIR | 0o1777, 0, None),
        ("my own sticky folder", DIR | 0o1777, ME, None),
        ("a stranger's sticky folder", DIR | 0o1777, STRANGER, "owner"),
        ("not sticky", DIR | 0o777, 0, "everybody"),
        ("sticky, and no folder", FILE | 0o1666, 0, "everybody"),
    ],
)
def test_a_sticky_folder_may_be_on_the_way(
    what: str, mode: int, uid: int, fault: Fault | None
) -> None:
    assert judge(status(mode, uid, 0), HERE, ancestor=True) == fault, what


def test_an_access_list_may_give_more_than_the_private_group() -> None:
    assert judge(status(DIR | 0o775, ME, MY_GROUP), HERE, acl=True) == "list"
    assert judge(status(DIR | 0o755, ME, MY_GROUP), HERE, acl=True) is None


@pytest.mark.parametrize(
    ("what", "uid", "sudo", "uids"),
    [
        ("a user", 1000, None, {0, 1000}),
        ("root", 0, None, {0}),
        ("root by sudo", 0, "1000", {0, 1000}),
        ("root by root's sudo", 0, "0", {0}),
        ("another user by sudo", 1001, "1000", {0, 1001}),
        ("no number", 0, "-1", {0}),
        ("the users that a namespace does not know", OVERFLOW, None, {0}),
        ("one of these called sudo", 0, str(OVERFLOW), {0}),
    ],
)
def test_the_user_root_and_who_called_sudo_are_trusted(
    what: str, uid: int, sudo: str | None, uids: set[int]
) -> None:
    assert trusted_uids(uid, sudo, OVERFLOW) == uids, what


def user(name: str, uid: int, gid: int) -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, gid, "", "/", "/bin/sh"))


@pytest.mark.parametrize(
    ("what", "name", "members", "others", "private"),
    [
        ("Debian's way", "ann", [], [], True),
        ("its user is named as its member", "ann", ["ann"], [], True),
        ("it has another member", "ann", ["bob"], [], False),
        ("it is another user's first group, too", "ann", [], [user("bob", 1001, 1000)], False),
        ("a group of many, as other systems have it", "users", [], [], False),
    ],
)
def test_a_private_group_has_its_user_alone(
    what: str, name: str, members: list[str], others: list[pwd.struct_passwd], private: bool
) -> None:
    ann = user("ann", 1000, 1000)
    group = grp.struct_group((name, "x", 1000, members))
    assert is_private(group, ann, [ann, *others]) == private, what
    assert not is_private(group, user("ann", 1000, 100), [ann]), "it is not her first group"


def test_the_way_to_a_path_is_the_kernels(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "in").mkdir(parents=True)
    (tmp_path / "link").symlink_to("other")
    (tmp_path / "other").symlink_to(tmp_path / "real")
    (real / "up").symlink_to("../real/in")
    found = list(steps(tmp_path / "link" / "up"))
    names = ["link", "other", "real", "real/up", "real", "real/in"]
    assert [path for path in found if path in [tmp_path / name for name in names]] == [
        tmp_path / name for name in names
    ]
    assert found[0] == Path("/")
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OSError, match="symbolic links"):
        list(steps(tmp_path / "circle"))


MANIFEST = """
role = "server"
about = "it serves"
contracts = ["http-plaintext"]
run = ["./subject"]
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue in the parent of the current folder, while none is named."""
    made = tmp_path / "home"
    for name in ("one", "two"):
        (made / "subjects" / "c" / name).mkdir(parents=True)
        (made / "subjects" / "c" / name / "subject.toml").write_text(MANIFEST)
        (made / "subjects" / "c" / name / "subject").write_text("")
    for kind in ("suites", "contracts"):
        (made / kind).mkdir()
        (made / kind / "x.toml").write_text("")
    (made / "at" / "work").mkdir(parents=True)
    monkeypatch.chdir(made / "at" / "work")
    monkeypatch.delenv("TRUELOAD_HOME", raising=False)
    monkeypatch.delenv("SUDO_UID", raising=False)
    return made


def found(kind: catalogue.Kind) -> tuple[Path, list[str]]:
    notes: list[str] = []
    return catalogue.find_folder(kind, notes.append), notes


@pytest.mark.parametrize("kind", ["suites", "subjects", "contracts"])
@pytest.mark.parametrize("open_one", [".", "{kind}"])
def test_what_everybody_can_write_is_passed_over(
    home: Path, kind: catalogue.Kind, open_one: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found(kind) == (home / kind, [])
    open_folder = home / open_one.format(kind=kind)
    open_folder.chmod(0o777)
    folder, (line,) = found(kind)
    assert folder != home / kind
    assert line.startswith(f"{home / kind} is not used: {open_folder} can be written by everybody")
    assert "chmod" in line
    assert line.endswith(f"; set TRUELOAD_HOME={home} to use it anyway")
    monkeypatch.setenv("TRUELOAD_HOME", str(home))
    assert found(kind) == (home / kind, []), "what the user names is the user's decision"
    monkeypatch.delenv("TRUELOAD_HOME")
    open_folder.chmod(0o1777)
    (folder, notes) = found(kind)
    assert (folder == home / kind) == (open_folder == home), "sticky: on the way alone"
    assert len(notes) == (folder != home / kind)


def test_the_next_folder_above_is_tried(home: Path) -> None:
    lower = home / "at" / "subjects" / "c" / "low"
    lower.mkdir(parents=True)
    (lower / "subject.toml").write_text(MANIFEST)
    assert found("subjects")[0] == home / "at" / "subjects"
    (home / "at" / "subjects").chmod(0o777)
    folder, notes = found("subjects")
    assert folder == home / "subjects"
    assert len(notes) == 1


@only_root_gives_files_away
@pytest.mark.parametrize("kind", ["suites", "subjects", "contracts"])
@pytest.mark.parametrize("given", [".", "{kind}"])
def test_what_belongs_to_a_stranger_is_passed_over(
    home: Path, kind: catalogue.Kind, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / given.format(kind=kind)
    os.chown(path, 12345, 12345)
    folder, (line,) = found(kind)
    assert folder != home / kind
    assert f"{path} belongs to an unknown user (12345)" in line
    monkeypatch.setenv("SUDO_UID", "12345")
    assert found(kind) == (home / kind, []), "it called sudo"


@only_root_gives_files_away
def test_a_link_is_judged_with_what_it_leads_to(home: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    (home / "subjects").rename(theirs)
    (home / "subjects").symlink_to("../theirs")
    assert found("subjects") == (home / "subjects", [])
    os.chown(theirs, 12345, 12345)
    assert f"{theirs} belongs to" in found("subjects")[1][0]
    os.chown(theirs, 0, 0)
    os.chown(home / "subjects", 12345, 12345, follow_symlinks=False)
    assert f"{home / 'subjects'} belongs to" in found("subjects")[1][0]


@only_root_gives_files_away
@pytest.mark.parametrize("kind", ["suites", "contracts"])
def test_a_strangers_file_in_the_folder_counts(home: Path, kind: catalogue.Kind) -> None:
    os.chown(home / kind / "x.toml", 12345, 12345)
    assert f"{home / kind / 'x.toml'} belongs to" in found(kind)[1][0]


@pytest.mark.parametrize("where", ["subject.toml", "src/main.c", "src", "."])
def test_a_subject_that_others_can_write_is_broken_and_the_next_one_is_not(
    home: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "subjects" / "c" / "one"
    (folder / "src").mkdir()
    (folder / "src" / "main.c").write_text("")
    (folder / where).chmod(0o777)
    broken: list[str] = []
    selected = select_subjects(
        home / "subjects", [], lambda entry, why: broken.append(f"{entry.name}: {why}")
    )
    assert [subject.name for subject in selected] == ["c/two"]
    (line,) = broken
    assert line.startswith(f"c/one: {folder / where} can be written by everybody")
    with pytest.raises(UserError, match="everybody") as caught:
        select_subjects(home / "subjects", parse_selects(["c/one"]))
    assert caught.value.hint == f"TRUELOAD_HOME={home} uses all that is there as it is"
    monkeypatch.setenv("TRUELOAD_HOME", str(home))
    assert len(select_subjects(home / "subjects", [])) == 2


@only_root_gives_files_away
def test_a_program_of_a_stranger_makes_its_subject_broken(home: Path) -> None:
    os.chown(home / "subjects" / "c" / "one" / "subject", 12345, 12345)
    with pytest.raises(UserError, match=r"one/subject belongs to an unknown user \(12345\)"):
        select_subjects(home / "subjects", parse_selects(["one"]))
    os.chown(home / "subjects" / "c" / "one" / "subject", 0, 0)
    (home / "subjects" / "c").chmod(0o777)
    with pytest.raises(UserError, match="subjects/c can be written by everybody"):
        select_subjects(home / "subjects", parse_selects(["one"]))


def test_what_a_build_has_left_in_the_folder_is_not_judged(home: Path) -> None:
    made = home / "subjects" / "c" / "one" / "target"
    made.mkdir(mode=0o755)
    (made / "x").write_text("")
    (made / "x").chmod(0o666)
    assert len(select_subjects(home / "subjects", [])) == 2


def test_whoever_can_change_trueload_itself_is_trusted_with_its_catalogue(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = home / "python" / "trueload"
    package.mkdir(parents=True)
    monkeypatch.setattr(catalogue, "_PACKAGE", package)
    home.chmod(0o777)
    assert found("subjects") == (home / "subjects", []), "a checkout wherever it is"
    (home / "subjects").chmod(0o777)
    with pytest.raises(UserError, match="no usable folder subjects/ here"):
        found("subjects")
    package.chmod(0o777)
    assert found("subjects") == (home / "subjects", []), "everybody could change the code itself"


def test_writers_of_the_package_are_added(tmp_path: Path) -> None:
    here = trusted_here()
    own = tmp_path.stat()
    tmp_path.chmod(0o755)
    assert also_writers_of(here, tmp_path) == TrustedUsers(here.uids | {own.st_uid}, here.gids)
    tmp_path.chmod(0o775)
    assert also_writers_of(TrustedUsers(frozenset()), tmp_path) == TrustedUsers(
        frozenset({own.st_uid}), frozenset({own.st_gid})
    )
    tmp_path.chmod(0o777)
    assert also_writers_of(here, tmp_path) is None
