"""Places as a user names them: ``local``, ``ssh:USER@HOST``, ``ray``, ``exec:COMMAND``.

How: a text becomes a value, or is refused with one line and one hint; a set of places is checked as
a whole. Pure: nothing is looked up, connected to or started. No accepted text can act as an option
of ssh or be split by a shell; the words of a command are passed on as they are. Must not know how a
place is opened.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trueload.errors import UserError

PLACES_HINT = "places are local, ssh:HOST, ssh:USER@HOST, ray, ray://HOST:PORT and exec:'COMMAND …'"
NO_SERVER_ON_RAY = "a server is not started on a Ray cluster"
SERVER_HINT = "name a host by ssh: ssh:USER@HOST"
HOST_CHARS_MAX = 253  # the longest name in DNS

# Host and user names as ssh takes them, without anything that a shell or ssh would interpret.
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*", re.ASCII)
_RAY = re.compile(r"ray://([A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})", re.ASCII)


@dataclass(frozen=True)
class Here:
    """This machine."""

    @property
    def name(self) -> str:
        return "local"


@dataclass(frozen=True)
class SshHost:
    """A host as named in the user's ssh config, with the user if one was given."""

    destination: str

    @property
    def name(self) -> str:
        return f"ssh:{self.destination}"


@dataclass(frozen=True)
class RayCluster:
    """A Ray cluster: the one at an address, or the one that Ray finds from here (None)."""

    address: str | None = None

    @property
    def name(self) -> str:
        return self.address or "ray"


@dataclass(frozen=True)
class CommandHost:
    """Where a command runs what is appended to it: ``docker exec -i NAME`` and the like."""

    argv: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"exec:{shlex.join(self.argv)}"


@dataclass(frozen=True)
class HostRange:
    """So many hosts: ``least`` to begin with, up to ``most`` in the end."""

    least: int
    most: int


Named = Here | SshHost | RayCluster | CommandHost


@dataclass(frozen=True, kw_only=True)
class GeneratorHost:
    """A host that load comes from, or hosts of a cluster that have the ``labels``. ``cpus`` and
    ``local_addresses`` come from a lab; None and empty leave both to the command's options.
    ``group`` and ``weight`` come from a lab, too: hosts are compared with those of their group, and
    share the load by weight."""

    place: Named
    cpus: tuple[int, ...] | None = None
    local_addresses: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    group: str | None = None
    weight: int = 1


@dataclass(frozen=True, kw_only=True)
class ServerHost:
    """A host that servers are started on. ``cpus`` None means all that it has. ``address`` is where
    the load reaches it; None means what its name resolves to."""

    place: Named
    cpus: tuple[int, ...] | None = None
    address: str | None = None


@dataclass(frozen=True, kw_only=True)
class Where:
    """Where a command's engines and its server run. ``ray_hosts`` is the number of hosts of a
    cluster. ``server`` is where to start a server, ``lab_server`` where a lab has its own.
    ``server_pid`` is a process here that counts as the server. ``keep`` the engine's copies on the
    hosts, for later runs. ``hosts_wait_ns`` is how long to wait for missing hosts.
    ``hosts_least`` is how many hosts are enough to begin with, while the others may join later;
    None if it takes all."""

    generators: tuple[GeneratorHost, ...] = (GeneratorHost(place=Here()),)
    ray_hosts: int = 1
    server: ServerHost | None = None
    lab_server: ServerHost | None = None
    server_pid: int | None = None
    keep: bool = True
    hosts_wait_ns: int | None = None
    hosts_least: int | None = None

    @property
    def is_named(self) -> bool:
        """Whether any place was named."""
        return replace(self, keep=True, hosts_wait_ns=None) != HERE

    @property
    def host_count(self) -> int:
        """The number of hosts that the load comes from."""
        of_cluster = (isinstance(each.place, RayCluster) for each in self.generators)
        return sum(self.ray_hosts if is_cluster else 1 for is_cluster in of_cluster)

    @property
    def weights(self) -> tuple[tuple[str, int], ...]:
        """The name and weight of each place; empty if all weigh the same."""
        found = tuple((each.place.name, each.weight) for each in self.generators)
        return found if len({weight for _, weight in found}) > 1 else ()

    @property
    def all_here(self) -> bool:
        """Whether all load comes from this machine."""
        return all(isinstance(each.place, Here) for each in self.generators)


HERE = Where()


def parse_place(text: str) -> Named:
    """Parse one place. Raises ``ValueError`` with one line that says what is wrong with it."""
    if text == "local":
        return Here()
    if text == "ray":
        return RayCluster()
    if text.startswith("ray:"):
        return RayCluster(_ray_address(text))
    if text.startswith("ssh:"):
        return SshHost(_destination(text.removeprefix("ssh:")))
    if text.startswith("exec:"):
        return CommandHost(_words(text.removeprefix("exec:")))
    raise ValueError(f"{text!r} is not a place: {PLACES_HINT}")


def _words(text: str) -> tuple[str, ...]:
    """Split a command into words, as a shell does without expanding anything. Raises
    ``ValueError``."""
    example = "write exec:'docker exec -i NAME', or another command that runs what follows it"
    if not text.isprintable():
        raise ValueError(f"the command {text!r} has a character that cannot be printed")
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise ValueError(f"the command {text!r} cannot be split into words: {error}") from None
    if not words or not words[0]:
        raise ValueError(f"'exec:{text}' names no command: {example}")
    return words


def _ray_address(text: str) -> str:
    found = _RAY.fullmatch(text)
    if found is None or not 1 <= int(found[2]) <= 65535:
        raise ValueError(f"{text!r} is not the address of a Ray cluster: write ray://HOST:PORT")
    return text


def _destination(text: str) -> str:
    """Check ``[USER@]HOST`` as ssh takes it. Raises ``ValueError``."""
    if text.startswith("//"):
        raise ValueError(
            f"'ssh:{text}' is a URL: write ssh:USER@HOST; a port goes into your ssh config"
        )
    user, at, host = text.rpartition("@")
    for what, part in (("host", host), *([("user", user)] if at else [])):
        if part.startswith("-"):
            raise ValueError(f"the {what} {part!r} begins with '-', which ssh takes for an option")
    if at and not _USER.fullmatch(user):
        raise ValueError(f"{user!r} is not the name of a user: letters, digits and . _ + - are")
    if len(host) > HOST_CHARS_MAX or not (_HOST.fullmatch(host) or _is_ipv6(host)):
        raise ValueError(
            f"{host!r} is not a host as in your ssh config: letters, digits and . _ - are"
        )
    return text


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def check_range(generators: Sequence[GeneratorHost], hosts: HostRange) -> None:
    """Refuse a range that does not fit the named hosts. Raises ``UserError``."""
    given = f"--hosts {hosts.least}..{hosts.most}"
    if any(isinstance(each.place, RayCluster) for each in generators):
        if len(generators) > 1:
            raise UserError(
                f"{given} is either for a Ray cluster or for hosts that are named",
                "leave the cluster out, or the other places",
            )
        return
    if len(generators) != hosts.most:
        named = (
            "--place names 1 host"
            if len(generators) == 1
            else (f"--place names {len(generators)} hosts")
        )
        raise UserError(
            f"{given} means up to {hosts.most} hosts, and {named}",
            "name each of them: --place ssh:HOST --place ssh:HOST",
        )


def check_generators(generators: Sequence[GeneratorHost], hosts: int | None) -> int:
    """Refuse a place given twice and a second cluster; return the number of cluster hosts asked
    for. Raises ``UserError``."""
    clusters = [each.place for each in generators if isinstance(each.place, RayCluster)]
    if len(clusters) > 1:
        raise UserError(
            "a Ray cluster is named twice", "name it once; --hosts N says how many of its hosts"
        )
    seen: set[Named] = set()
    for each in generators:
        if each.place in seen:
            raise UserError(
                f"the place {each.place.name} is given twice",
                "give each place once; --threads N uses more CPUs of a host",
            )
        seen.add(each.place)
    if hosts is not None and not clusters:
        raise UserError(
            "--hosts is for a Ray cluster, and no --place names one",
            "add --place ray, or name each host: --place ssh:HOST --place ssh:HOST",
        )
    return hosts or 1
