"""A lab: the hosts that a user has, in one file, often ``places.toml``.

How: there is one strict model. An unknown key is refused with the file, the key and the known keys.
The file's text is interpreted only here.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, model_validator

from trueload.errors import UserError
from trueload.files.invalid import Mistake, first_mistake
from trueload.files.toml import UnreadableError, read_toml
from trueload.places.names import (
    GeneratorHost,
    Placement,
    RayCluster,
    ServerHost,
    check_generators,
    check_server,
    parse_place,
)
from trueload.protocol.model import Model, checked_by
from trueload.units import parse_cpu_list

_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", re.ASCII)
WEIGHT_MAX = 100
LAB_BYTES_MAX = 512 * 1024  # for 4,096 hosts, each with CPUs and addresses
HINT = "correct the file; docs/hosts.md has one to copy"
NO_TREE_HINT = "leave it out: all hosts report to trueload directly now"


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        raise ValueError(f"'{text}' is not an IP address") from None


def _group(text: str) -> None:
    if not _GROUP.fullmatch(text):
        raise ValueError(f"{text!r} is not a group's name: use letters, digits and . _ -")


def _weight(value: object) -> object:
    if type(value) is not int or not 1 <= value <= WEIGHT_MAX:
        raise ValueError(f"{value!r} is not a weight: use a whole number from 1 to {WEIGHT_MAX}")
    return value


Weight = Annotated[int, BeforeValidator(_weight)]
GroupText = Annotated[str, checked_by(_group)]
PlaceText = Annotated[str, checked_by(parse_place)]
CpusText = Annotated[str, checked_by(parse_cpu_list)]
AddressText = Annotated[str, AfterValidator(_address)]


class Generator(Model):
    """A host that load comes from: its place, the CPUs that its engine may use, and the addresses
    that it connects from. For a cluster also the ``labels`` that its hosts must have. Hosts of a
    ``group`` are compared with each other. A host has its share of the load by ``weight``."""

    place: PlaceText
    cpus: CpusText | None = None
    local_addresses: tuple[AddressText, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)
    group: GroupText | None = None
    weight: Weight = 1

    @model_validator(mode="after")
    def _labels_of_a_cluster(self) -> Generator:
        if self.labels and not isinstance(parse_place(self.place), RayCluster):
            raise ValueError("labels are of a Ray cluster")
        return self


class Server(Model):
    """The host for subjects and reference servers; the load reaches it at ``address``."""

    place: PlaceText
    cpus: CpusText | None = None
    address: AddressText | None = None


class Lab(Model):
    """The file as written."""

    generators: tuple[Generator, ...] = Field(min_length=1)
    hosts: Annotated[int, Field(gt=0)] | None = None
    server: Server | None = None


def read_lab(path: Path) -> Placement:
    """Read a lab's file. Raises ``UserError`` that names the file and the place in it."""
    lab = _load(path)
    generators = tuple(
        GeneratorHost(
            place=parse_place(each.place),
            cpus=None if each.cpus is None else parse_cpu_list(each.cpus),
            local_addresses=each.local_addresses,
            labels=tuple(each.labels.items()),
            group=each.group,
            weight=each.weight,
        )
        for each in lab.generators
    )
    try:
        check_generators(generators, lab.hosts)
    except UserError as error:
        raise UserError(f"{path}: {error.message}", error.hint) from None
    server = _server(path, lab.server)
    return Placement(generators=generators, hosts=lab.hosts, lab_server=server)


def _server(path: Path, server: Server | None) -> ServerHost | None:
    if server is None:
        return None
    place = parse_place(server.place)
    try:
        check_server(place)
    except UserError as error:
        raise UserError(f"{path}: server.place: {error.message}", error.hint) from None
    cpus = None if server.cpus is None else parse_cpu_list(server.cpus)
    return ServerHost(place=place, cpus=cpus, address=server.address)


def _load(path: Path) -> Lab:
    try:
        return Lab.model_validate(read_toml(path, LAB_BYTES_MAX))
    except UnreadableError as error:
        raise UserError(f"{path} {error}", HINT) from None
    except ValidationError as error:
        mistake = first_mistake(error)
        hint = NO_TREE_HINT if mistake.is_unknown and mistake.place == "tree" else HINT
        raise UserError(f"{path}: {_sentence(mistake)}", hint) from None


_MODELS: dict[str, type[Model]] = {"generators": Generator, "server": Server}


def _sentence(mistake: Mistake) -> str:
    if mistake.is_unknown:
        model = Lab if len(mistake.keys) == 1 else _MODELS[str(mistake.keys[0])]
        return f"{mistake.place!r} is not a key; keys are {', '.join(model.model_fields)}"
    return mistake.sentence()
