"""Places as a user names them: ``local``, ``ssh:USER@HOST``, ``k8s:NAMESPACE``, ``ray``, ``exec:``.

How: a text becomes a value, or is refused with one line and one hint; a set of places is checked as
a whole. Pure: nothing is looked up, connected to or started. No accepted text can act as an option
of ssh or kubectl, or be split by a shell; the words of a command are passed on as they are.
"""

from __future__ import annotations

import ipaddress
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from trueload.errors import UserError
from trueload.units import NS_PER_S, counted

PLACES_HINT = (
    "places are local, ssh:HOST, ssh:USER@HOST, k8s:NAMESPACE, ray, ray://HOST:PORT and"
    " exec:'COMMAND …'"
)
HOST_CHARS_MAX = 253  # the longest name in DNS

# Host and user names as ssh takes them, without anything that a shell or ssh would interpret.
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*", re.ASCII)
_DESTINATION = re.compile(rf"({_USER.pattern}@)?{_HOST.pattern}", re.ASCII)
# Names of Kubernetes: RFC 1123 labels; names of sets, which may have dots; values of labels.
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_SUBDOMAIN = re.compile(rf"(?=.{{1,253}}$){_LABEL.pattern}(\.{_LABEL.pattern})*", re.ASCII)
_KEY = r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_VALUE = r"([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?"
_SELECTOR = re.compile(rf"{_KEY}(={{1,2}}|!=){_VALUE}(,{_KEY}(={{1,2}}|!=){_VALUE})*", re.ASCII)
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,511}", re.ASCII)
_RAY = re.compile(r"ray://([A-Za-z0-9_][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5})", re.ASCII)


@dataclass(frozen=True)
class ThisMachine:
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
class K8sPods:
    """Pods in a namespace of a Kubernetes cluster: those of a StatefulSet, or those that a label
    selector selects. With neither, Pods are made."""

    namespace: str
    statefulset: str | None = None
    selector: str | None = None

    @property
    def name(self) -> str:
        of_set = "" if self.statefulset is None else f"/statefulset/{self.statefulset}"
        return f"k8s:{self.namespace}{of_set}{f'?{self.selector}' if self.selector else ''}"

    @property
    def are_made(self) -> bool:
        """Whether the Pods are made for the run."""
        return self.statefulset is None and self.selector is None


@dataclass(frozen=True)
class NewPods:
    """How to make Pods: their ``image``; for an engine of how many ``threads``; for how long, if
    that is ``planned``; and how long to wait until they run."""

    image: str = "busybox"
    threads: int = 1
    planned_ns: int | None = None
    wait_ns: int = 120 * NS_PER_S  # to be scheduled, and to pull the image


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


Named = ThisMachine | SshHost | RayCluster | K8sPods | CommandHost
Cluster = RayCluster | K8sPods
"""A place that may be several hosts."""


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
class Placement:
    """Where a command's engines and its server run. ``hosts`` is the number of hosts of a cluster,
    None if it was not given. ``server`` is where to start a server, ``lab_server`` where a lab has
    its own. ``server_pid`` is a process here that counts as the server. ``keep`` the engine's
    copies on the hosts, for later runs. ``hosts_wait_ns`` is how long to wait for missing hosts.
    ``hosts_least`` is how many hosts are enough to begin with, while the others may join later;
    None if it takes all. ``new_pods`` is how Pods are made, if they are. ``wait_ns`` is how long to
    wait for others that measure on the same machines."""

    generators: tuple[GeneratorHost, ...] = (GeneratorHost(place=ThisMachine()),)
    hosts: int | None = None
    server: ServerHost | None = None
    lab_server: ServerHost | None = None
    server_pid: int | None = None
    keep: bool = True
    hosts_wait_ns: int | None = None
    hosts_least: int | None = None
    new_pods: NewPods = NewPods()
    wait_ns: int = 600 * NS_PER_S

    @property
    def is_named(self) -> bool:
        """Whether any place was named."""
        plain = replace(self, keep=True, hosts_wait_ns=None, new_pods=NewPods())
        return replace(plain, wait_ns=HERE.wait_ns) != HERE

    @property
    def host_count(self) -> int:
        """The number of hosts that the load comes from, as far as ``is_counted``."""
        of_cluster = (isinstance(each.place, Cluster) for each in self.generators)
        return sum((self.hosts or 1) if is_cluster else 1 for is_cluster in of_cluster)

    @property
    def is_counted(self) -> bool:
        """Whether the number of hosts is known: not that of Pods that are there, unless given."""
        pods = [each.place for each in self.generators if isinstance(each.place, K8sPods)]
        return self.hosts is not None or all(each.are_made for each in pods)

    @property
    def makes_pods(self) -> bool:
        """Whether Pods are made for the run."""
        pods = [each.place for each in self.generators if isinstance(each.place, K8sPods)]
        return any(each.are_made for each in pods)

    @property
    def weights(self) -> tuple[tuple[str, int], ...]:
        """The name and weight of each place; empty if all weigh the same."""
        found = tuple((each.place.name, each.weight) for each in self.generators)
        return found if len({weight for _, weight in found}) > 1 else ()

    @property
    def all_here(self) -> bool:
        """Whether all load comes from this machine."""
        return all(isinstance(each.place, ThisMachine) for each in self.generators)


HERE = Placement()


def parse_image(text: str) -> str:
    """Check the reference of an image. Raises ``ValueError``."""
    if not _IMAGE.fullmatch(text):
        raise ValueError(f"{text!r} is not an image: write REGISTRY/NAME:TAG, or NAME")
    return text


def parse_place(text: str) -> Named:
    """Parse one place. Raises ``ValueError`` with one line that says what is wrong with it."""
    if text == "local":
        return ThisMachine()
    if text == "ray":
        return RayCluster()
    if text.startswith("ray:"):
        return RayCluster(_ray_address(text))
    if text.startswith("ssh:"):
        return SshHost(_destination(text.removeprefix("ssh:")))
    if text.startswith("k8s:"):
        return _pods(text.removeprefix("k8s:"))
    if text.startswith("exec:"):
        return CommandHost(_words(text.removeprefix("exec:")))
    if "," in text:
        raise ValueError(f"{text!r} is not a place: name one with each --place, as ssh:HOST")
    host = f"a host of your ssh config is ssh:{text}; " if _DESTINATION.fullmatch(text) else ""
    raise ValueError(f"{text!r} is not a place: {host}{PLACES_HINT}")


def _pods(text: str) -> K8sPods:
    """Parse what follows ``k8s:``. Raises ``ValueError``."""
    rest, has_selector, selector = text.partition("?")
    namespace, has_set, of_set = rest.partition("/")
    if not _LABEL.fullmatch(namespace):
        raise ValueError(
            f"{namespace!r} is not a namespace's name: use lower-case letters, digits and -;"
            " write k8s:NAMESPACE"
        )
    if has_selector and not _SELECTOR.fullmatch(selector):
        raise ValueError(f"{selector!r} selects no labels: write k8s:NAMESPACE?NAME=VALUE")
    if not has_set:
        return K8sPods(namespace, selector=selector or None)
    kind, _, name = of_set.partition("/")
    if has_selector or kind != "statefulset" or not _SUBDOMAIN.fullmatch(name):
        raise ValueError(f"'k8s:{text}' names no set: write k8s:NAMESPACE/statefulset/NAME")
    return K8sPods(namespace, statefulset=name)


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
        raise ValueError(f"{user!r} is not a user's name: use letters, digits and . _ + -")
    if len(host) > HOST_CHARS_MAX or not (_HOST.fullmatch(host) or _is_ipv6(host)):
        raise ValueError(
            f"{host!r} is not a host as in your ssh config: use letters, digits and . _ -"
        )
    return text


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return "%" not in text


def check_server(place: Named) -> None:
    """Refuse a place on which no server is started. Raises ``UserError``."""
    hint = "name a host by ssh: ssh:USER@HOST"
    if isinstance(place, RayCluster):
        raise UserError("a server is not started on a Ray cluster", hint)
    if isinstance(place, K8sPods):
        raise UserError("a server is not started in Pods", hint)


def check_range(generators: Sequence[GeneratorHost], hosts: HostRange) -> None:
    """Refuse a range that does not fit the named hosts. Raises ``UserError``."""
    given = f"--hosts {hosts.least}..{hosts.most}"
    if any(isinstance(each.place, Cluster) for each in generators):
        if len(generators) > 1:
            raise UserError(
                f"{given} is either for a cluster or for hosts that are named",
                "leave the cluster out, or the other places",
            )
        return
    if len(generators) != hosts.most:
        named = f"--place names {counted(len(generators), 'host')}"
        raise UserError(
            f"{given} means up to {hosts.most} hosts, and {named}",
            "name each of them: --place ssh:HOST --place ssh:HOST",
        )


def check_generators(generators: Sequence[GeneratorHost], hosts: int | None) -> None:
    """Refuse a place given twice, a second Ray cluster, and a number of ``hosts`` that does not say
    of which cluster. Raises ``UserError``."""
    clusters = [each.place for each in generators if isinstance(each.place, Cluster)]
    if len([each for each in clusters if isinstance(each, RayCluster)]) > 1:
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
            "--hosts is for a cluster, Ray or Kubernetes, and no --place names one",
            "add --place ray, or name each host: --place ssh:HOST --place ssh:HOST",
        )
    if hosts is not None and len(clusters) > 1:
        raise UserError(
            f"--hosts {hosts} does not say of which place: {clusters[0].name} or"
            f" {clusters[1].name}",
            "name one of them, or leave --hosts out",
        )
