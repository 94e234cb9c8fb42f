"""Whose code may be run: files and folders, judged by who can change them.

How: a path is followed as the kernel follows it, link by link, and everything on the way is judged
by its owner and its mode. The judgement is a pure function of what ``lstat`` returns.
"""

from __future__ import annotations

import errno
import functools
import grp
import os
import pwd
import shlex
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Fault = Literal["owner", "everybody", "group", "list"]

LINKS_MAX = 40  # as the kernel's own
_OVERFLOW = Path("/proc/sys/kernel/overflowuid")
_ACL = "system.posix_acl_access"


@dataclass(frozen=True)
class TrustedUsers:
    """Users that may own what is run, and groups that may write to it."""

    uids: frozenset[int]
    gids: frozenset[int] = frozenset()


def judge(
    status: os.stat_result, trusted: TrustedUsers, *, ancestor: bool = False, acl: bool = False
) -> Fault | None:
    """What is wrong with one file, folder or link; None if only trusted users can change it.

    ``ancestor``: it is only a folder on the way. ``acl``: it has an access list.
    """
    mode = status.st_mode
    if status.st_uid not in trusted.uids:
        return "owner"
    if stat.S_ISLNK(mode):
        return None  # a link's own mode means nothing
    # In a sticky folder such as /tmp nobody can replace files of others, so what is ours in it is
    # as safe as anywhere. What is not ours in it fails by its own owner.
    if ancestor and stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
        return None
    if mode & stat.S_IWOTH:
        return "everybody"
    if mode & stat.S_IWGRP:
        if status.st_gid not in trusted.gids:
            return "group"
        if acl:  # the group's bits are then the mask of the whole list
            return "list"
    return None


def trusted_uids(uid: int, sudo_uid: str | None, overflow_uid: int) -> frozenset[int]:
    """The users whose files a process of ``uid`` may run: itself, root and, for root, the user who
    called sudo. The overflow uid is left out. It stands for every user that a user namespace does
    not know, so it identifies nobody."""
    uids = {0, uid}
    if uid == 0 and sudo_uid is not None and sudo_uid.isdecimal():
        uids.add(int(sudo_uid))
    return frozenset(uids - {overflow_uid})


def is_private(
    group: grp.struct_group, user: pwd.struct_passwd, users: Sequence[pwd.struct_passwd]
) -> bool:
    """Whether a group is the private one of a user, as Debian makes one for each: it has the user's
    name and no other member. The name counts because a directory service may not list all its
    users."""
    return (
        group.gr_gid == user.pw_gid
        and group.gr_name == user.pw_name
        and set(group.gr_mem) <= {user.pw_name}
        and all(one.pw_uid == user.pw_uid for one in users if one.pw_gid == group.gr_gid)
    )


def trusted_here() -> TrustedUsers:
    """The users and groups that this process trusts."""
    try:
        overflow_uid = int(_OVERFLOW.read_text())
    except (OSError, ValueError):
        overflow_uid = 65534
    uids = trusted_uids(os.geteuid(), os.environ.get("SUDO_UID"), overflow_uid)
    return TrustedUsers(uids, _private_groups(uids))


@functools.cache
def _private_groups(uids: frozenset[int]) -> frozenset[int]:
    found = set()
    users = pwd.getpwall()
    for uid in uids:
        try:
            user = pwd.getpwuid(uid)
            group = grp.getgrgid(user.pw_gid)
        except KeyError:
            continue
        if is_private(group, user, users):
            found.add(group.gr_gid)
    return frozenset(found)


def also_writers_of(trusted: TrustedUsers, folder: Path) -> TrustedUsers | None:
    """The trusted users, and those who can change that folder; None if everybody can."""
    status = folder.stat()
    if status.st_mode & stat.S_IWOTH:
        return None
    gids = {status.st_gid} if status.st_mode & stat.S_IWGRP else set()
    return TrustedUsers(trusted.uids | {status.st_uid}, trusted.gids | gids)


def steps(path: Path) -> Iterator[Path]:
    """Yield each folder and link that the kernel passes on its way to an absolute path, from the
    root on, and finally what is there. Raises ``OSError`` for a circle of links."""
    at, links = Path("/"), 0
    yield at
    left = list(reversed(path.parts[1:]))
    while left:
        part = left.pop()
        if part == "..":
            at = at.parent
            continue
        step = at / part
        yield step
        if not step.is_symlink():
            at = step
            continue
        links += 1
        if links > LINKS_MAX:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
        linked = Path(os.readlink(step))
        if linked.is_absolute():
            at = Path("/")
        left += reversed([part for part in linked.parts if part != "/"])


def below(folder: Path, left_out: Collection[str]) -> Iterator[Path]:
    """Yield a folder and everything in it, without following links or entering what is left out."""
    yield folder
    for at, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in left_out]
        yield from (Path(at, name) for name in (*folders, *files))


def why_not(path: Path, trusted: TrustedUsers, *, ancestor: bool = False) -> str | None:
    """What is wrong with one path, in words and with the remedy; None if nothing is. Raises
    ``OSError`` if it cannot be inspected."""
    status = path.lstat()
    fault = judge(status, trusted, ancestor=ancestor, acl=_has_list(path, status))
    named, recursive = shlex.quote(str(path)), "" if ancestor else "-R "
    match fault:
        case None:
            return None
        case "owner":
            return f"{path} belongs to {_user(status.st_uid)}"
        case "group":
            group = _group(status.st_gid)
            return f"{path} can be written by {group} (`chmod {recursive}g-w {named}` ends that)"
        case "everybody":
            cure = f"`chmod {recursive}go-w {named}` ends that"
            return f"{path} can be written by everybody ({cure})"
        case "list":
            cure = f"`setfacl {recursive}-b {named}` ends that"
            return f"{path} can be written by those in its access list ({cure})"


def first_fault(way: Iterable[Path], path: Path, trusted: TrustedUsers) -> str | None:
    """What is wrong with the first of the paths on the way to ``path`` that is at fault, in words;
    None if nothing is."""
    try:
        faults = (why_not(step, trusted, ancestor=step != path) for step in way)
        return next(filter(None, faults), None)
    except OSError as error:
        return f"it cannot be checked: {error.strerror}"


def _has_list(path: Path, status: os.stat_result) -> bool:
    if not status.st_mode & stat.S_IWGRP:
        return False
    try:
        os.getxattr(path, _ACL, follow_symlinks=False)
    except OSError:  # it has none, or its file system does not support any
        return False
    return True


def _user(uid: int) -> str:
    try:
        return f"the user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"an unknown user ({uid})"


def _group(gid: int) -> str:
    try:
        return f"the group {grp.getgrgid(gid).gr_name}"
    except KeyError:
        return f"an unknown group ({gid})"
