"""Places as a user names them: what they mean, and which are refused, as tables."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trueload.commands.place_options import choose_places, read_placement
from trueload.commands.suite_places import address_of
from trueload.errors import UserError
from trueload.places.lab import read_lab
from trueload.places.names import (
    CommandHost,
    GeneratorHost,
    K8sPods,
    Named,
    Placement,
    RayCluster,
    ServerHost,
    SshHost,
    ThisMachine,
    parse_place,
)
from trueload.places.open import open_places


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("local", ThisMachine()),
        ("ssh:load1", SshHost("load1")),
        ("ssh:me@load1", SshHost("me@load1")),
        ("ssh:me@10.0.0.1", SshHost("me@10.0.0.1")),
        ("ssh:me@fe80::1", SshHost("me@fe80::1")),
        ("ssh:first.last+x@lab-2.example.org", SshHost("first.last+x@lab-2.example.org")),
        ("ray", RayCluster(None)),
        ("ray://head:10001", RayCluster("ray://head:10001")),
        ("ray://[::1]:10001", RayCluster("ray://[::1]:10001")),
        ("exec:docker exec -i load1", CommandHost(("docker", "exec", "-i", "load1"))),
        ("exec:kubectl exec -i p --", CommandHost(("kubectl", "exec", "-i", "p", "--"))),
        ("exec: env 'A=a b'  \"x$y\"", CommandHost(("env", "A=a b", "x$y"))),
        ("k8s:load", K8sPods("load")),
        ("k8s:load/statefulset/generators", K8sPods("load", statefulset="generators")),
        ("k8s:load?app=generator", K8sPods("load", selector="app=generator")),
        ("k8s:load?a.b/c=d,e!=f", K8sPods("load", selector="a.b/c=d,e!=f")),
    ],
)
def test_a_place_is_what_is_written(text: str, place: Named) -> None:
    assert parse_place(text) == place
    assert parse_place(place.name) == place, "it is shown as it may be written"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "not a place"),
        ("Local", "not a place"),
        ("load1", "not a place"),
        ("me@load1", "not a place"),
        ("pod:x", "not a place"),
        ("ssh", "not a place"),
        ("ssh:", "not a host"),
        ("ssh:me@", "not a host"),
        ("ssh:@h", "not a user's name"),
        ("ssh:-oProxyCommand=id", "begins with '-'"),
        ("ssh:me@-oProxyCommand=id", "begins with '-'"),
        ("ssh:-l@h", "begins with '-'"),
        ("ssh://me@h:22", "a port goes into your ssh config"),
        ("ssh:h;id", "not a host"),
        ("ssh:$(id)", "not a host"),
        ("ssh:`id`@h", "not a user's name"),
        ("ssh:h|id", "not a host"),
        ("ssh:h id", "not a host"),
        ("ssh:h\nid", "not a host"),
        ("ssh:h\n", "not a host"),
        ("ssh:a@b@h", "not a user's name"),
        ("ssh:%h", "not a host"),
        ("ssh:h:22", "not a host"),
        ("ssh:a:22", "not a host"),
        ("ssh:fe80::1%eth0", "not a host"),
        ("ssh:" + "a" * 254, "not a host"),
        ("ray:", "not the address of a Ray cluster"),
        ("ray://", "not the address of a Ray cluster"),
        ("ray://head", "not the address of a Ray cluster"),
        ("ray://head:0", "not the address of a Ray cluster"),
        ("ray://head:65536", "not the address of a Ray cluster"),
        ("ray://-x:1", "not the address of a Ray cluster"),
        ("ray://a b:1", "not the address of a Ray cluster"),
        ("exec", "not a place"),
        ("exec:", "names no command"),
        ("load1", "a host of your ssh config is ssh:load1; places are local"),
        ("me@load1", "a host of your ssh config is ssh:me@load1"),
        ("docker:load1", "is not a place: places are local"),
        ("load1,load2", "name one with each --place"),
        ("exec: ", "names no command"),
        ("exec:''", "names no command"),
        ("exec:sh -c 'x", "cannot be split into words: No closing quotation"),
        ("exec:a\nb", "a character that cannot be printed"),
        ("k8s:", "is not a namespace's name"),
        ("k8s:-n", "is not a namespace's name"),
        ("k8s:Load", "use lower-case letters, digits and -"),
        ("k8s:load\n", "is not a namespace's name"),
        ("k8s:load/deployment/x", "write k8s:NAMESPACE/statefulset/NAME"),
        ("k8s:load/statefulset/--all", "names no set"),
        ("k8s:load/statefulset/x?a=b", "names no set"),
        ("k8s:load?", "selects no labels"),
        ("k8s:load?app", "write k8s:NAMESPACE\\?NAME=VALUE"),
        ("k8s:load?--all", "selects no labels"),
        ("k8s:load?a=b --all", "selects no labels"),
    ],
)
def test_what_is_no_place_is_refused_with_what_is_wrong(text: str, word: str) -> None:
    with pytest.raises(ValueError, match=word):
        parse_place(text)


def test_the_number_of_pods_that_are_there_is_not_known_before() -> None:
    found = choose_places(generators("k8s:load?app=x"))
    assert not found.is_counted
    assert choose_places(generators("k8s:load?app=x"), hosts=3).is_counted
    made = choose_places(generators("k8s:load"), hosts=3)
    assert (made.is_counted, made.host_count, made.makes_pods) == (True, 3, True)
    assert choose_places(generators("k8s:load")).host_count == 1
    assert not choose_places(generators("k8s:load/statefulset/x", "k8s:load?a=b")).makes_pods


@given(
    words=st.lists(
        st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"))), min_size=1
    )
)
def test_the_words_of_a_command_come_back_as_they_were(words: list[str]) -> None:
    text = f"exec:{shlex.join(words)}"
    if words[0] and text.isprintable():
        assert parse_place(text) == CommandHost(tuple(words))


def generators(*texts: str) -> list[Named]:
    return [parse_place(text) for text in texts]


def test_places_that_are_named_are_taken_in_their_order_and_none_is_here() -> None:
    chosen = choose_places(generators("ssh:b", "local", "ssh:a"))
    assert [each.place.name for each in chosen.generators] == ["ssh:b", "local", "ssh:a"]
    assert choose_places().generators == (GeneratorHost(place=ThisMachine()),)
    assert choose_places().all_here
    assert not chosen.all_here
    assert choose_places(generators("ray"), hosts=3).hosts == 3
    server = choose_places(server=SshHost("big")).server
    assert server == ServerHost(place=SshHost("big"))


@pytest.mark.parametrize(
    ("places", "hosts", "word"),
    [
        (("ssh:a", "ssh:a"), None, "ssh:a is given twice"),
        (("local", "ssh:a", "local"), None, "local is given twice"),
        (("ray", "ray://head:10001"), None, "named twice"),
        (("k8s:a", "k8s:b"), 3, "--hosts 3 does not say of which place: k8s:a or k8s:b"),
        (("k8s:a?b=c", "k8s:a?b=c"), None, "given twice"),
        (("ssh:a",), 3, "--hosts is for a cluster, Ray or Kubernetes"),
        ((), 3, "--hosts is for a cluster, Ray or Kubernetes"),
    ],
)
def test_places_that_contradict_each_other_are_refused(
    places: tuple[str, ...], hosts: int | None, word: str
) -> None:
    with pytest.raises(UserError, match=word) as caught:
        choose_places(generators(*places), hosts=hosts)
    assert caught.value.exit_code == 2
    assert caught.value.hint


LAB = """
[[generators]]
place = "ssh:me@load1"
cpus = "0-2"
local_addresses = ["10.0.0.11", "10.0.0.12"]

[[generators]]
place = "local"

[server]
place = "ssh:big"
cpus = "0,2"
address = "10.0.0.1"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "places.toml"
    path.write_text(text)
    return path


def test_a_lab_has_its_hosts_their_cpus_and_addresses(tmp_path: Path) -> None:
    where = read_lab(written(tmp_path, LAB))
    assert where.generators == (
        GeneratorHost(
            place=SshHost("me@load1"), cpus=(0, 1, 2), local_addresses=("10.0.0.11", "10.0.0.12")
        ),
        GeneratorHost(place=ThisMachine()),
    )
    big = ServerHost(place=SshHost("big"), cpus=(0, 2), address="10.0.0.1")
    assert (where.server, where.lab_server) == (None, big)
    assert read_lab(written(tmp_path, "\ufeff" + LAB)) == where
    grouped = written(tmp_path, '[[generators]]\nplace = "ssh:a"\ngroup = "eu-1"\n')
    assert read_lab(grouped).generators[0].group == "eu-1"
    lab = written(tmp_path, 'hosts = 3\n[[generators]]\nplace = "ray"\nlabels = {zone = "a"}\n')
    where = read_lab(lab)
    assert (where.hosts, where.generators[0].labels) == (3, (("zone", "a"),))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("generators",)),
        ("generators = []", ("generators",)),
        ("x = 1", ("generators",)),
        ('[[generators]]\nplace = "local"\n\n[[hosts]]\n', ("hosts",)),
        ('[[generators]]\nplace = "nowhere"', ("generators[0].place", "not a place")),
        ('[[generators]]\nplace = "ssh:-x"', ("generators[0].place", "begins with '-'")),
        ('[[generators]]\nplace = "local"\ncpu = "0"', ("'generators[0].cpu'", "place, cpus")),
        ('[[generators]]\nplace = "local"\ncpus = "a"', ("generators[0].cpus", "list of CPUs")),
        ('[[generators]]\nplace = "local"\nlocal_addresses = ["h"]', ("not an IP address",)),
        ('[[generators]]\nplace = "local"\nlabels = {a = "b"}', ("labels are of a Ray cluster",)),
        ('[[generators]]\nplace = "ssh:a"\n[[generators]]\nplace = "ssh:a"', ("given twice",)),
        (
            'hosts = 2\n[[generators]]\nplace = "ssh:a"',
            ("--hosts is for a cluster, Ray or Kubernetes",),
        ),
        ('[[generators]]\nplace = "local"\n[server]\nport = 1', ("'server.port'", "address")),
        ('[[generators]]\nplace = "local"\n[server]\nplace = "ray"', ("server.place", "Ray")),
        (
            '[[generators]]\nplace = "ssh:a"\ngroup = "a b"',
            ("generators[0].group", "not a group's name"),
        ),
        ("[[generators", ("not TOML",)),
        ("a = " + "[" * 2000, ("nested too deeply",)),
    ],
)
def test_a_lab_that_is_wrong_is_refused_by_file_and_key(
    tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UserError) as caught:
        read_lab(path)
    assert caught.value.exit_code == 2
    for word in (str(path), *words):
        assert word in caught.value.message
    assert "\n" not in caught.value.message


def test_a_lab_with_the_removed_key_tree_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = written(tmp_path, 'tree = true\n[[generators]]\nplace = "ssh:a"\n')
    with pytest.raises(UserError) as caught:
        read_lab(path)
    assert caught.value.exit_code == 2
    assert caught.value.message.startswith(f"{path}: 'tree' is not a key;")
    assert caught.value.hint == "leave it out: all hosts report to trueload directly now"


@pytest.mark.parametrize(
    ("hosts", "told"),
    [(256, []), (257, ["warning: 257 hosts: up to 256 have been tested"])],
)
def test_more_hosts_than_have_been_tested_are_warned_of(hosts: int, told: list[str]) -> None:
    lines: list[str] = []
    where = Placement(generators=(GeneratorHost(place=ThisMachine()),) * hosts)
    with open_places(where, Path("engine"), announce=lines.append) as opened:
        assert len(opened) == hosts
    assert lines == told


def test_a_lab_that_is_not_there_or_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_bytes(b"#" * 600_000)
    for name, word in (("none", "cannot be read"), ("binary", "UTF-8"), ("large", "larger")):
        with pytest.raises(UserError, match=word):
            read_lab(tmp_path / name)


def test_a_lab_stands_instead_of_places_and_may_name_the_server(tmp_path: Path) -> None:
    lab = written(tmp_path, LAB)
    assert choose_places(lab=lab) == read_lab(lab)
    with pytest.raises(UserError, match="--lab and --place cannot be used together"):
        read_placement(place=[ThisMachine()], lab=lab)
    with pytest.raises(UserError, match="--lab and --hosts cannot be used"):
        read_placement(hosts=2, lab=lab)
    assert choose_places(lab=lab, server=ThisMachine()).server == ServerHost(place=ThisMachine())
    assert choose_places(lab=lab, server=SshHost("big")).server == read_lab(lab).lab_server
    with pytest.raises(UserError, match="not started on a Ray cluster"):
        choose_places(server=RayCluster())


def test_the_lab_of_the_page_is_one(tmp_path: Path) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "hosts.md").read_text()
    shown = re.search(r"```toml\n(.*?)```", page, re.DOTALL)
    assert shown is not None
    where = read_lab(written(tmp_path, shown[1]))
    assert [each.place.name for each in where.generators] == ["ssh:load1", "ssh:me@load2"]
    assert where.lab_server is not None


@pytest.mark.parametrize(
    ("named", "found", "address"),
    [
        (None, ("10.0.0.7:0", "10.0.0.8:0"), "10.0.0.7"),
        (None, ("[fd00::7]:0", "10.0.0.7:0"), "10.0.0.7"),
        ("10.0.0.9", (), "10.0.0.9"),
    ],
)
def test_subjects_on_a_host_are_loaded_over_ipv4(
    named: str | None, found: tuple[str, ...], address: str
) -> None:
    server = ServerHost(place=SshHost("big"), address=named)
    assert address_of(server, "big", found) == address


@pytest.mark.parametrize(
    ("named", "found", "expected"),
    [
        (None, (), "the address of big is not known, and ssh:big cannot be loaded without it"),
        (None, ("[fd00::7]:0",), "loaded over IPv4, and ssh:big is at fd00::7"),
        ("fd00::9", (), "loaded over IPv4, and ssh:big is at fd00::9"),
    ],
)
def test_a_host_without_an_address_for_subjects_is_refused(
    named: str | None, found: tuple[str, ...], expected: str
) -> None:
    with pytest.raises(UserError) as caught:
        address_of(ServerHost(place=SshHost("big"), address=named), "big", found)
    assert expected in caught.value.message
    assert "places.toml: address, below [server]" in caught.value.hint
