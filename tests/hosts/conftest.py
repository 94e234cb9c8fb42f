"""Fixtures: a network of three hosts, and ssh to them. Every test here is marked ``hosts``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import needing
import pytest

from hosts.network import Network
from hosts.sshd import Ssh, start_ssh

HERE = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder; `make test-hosts` selects by that mark."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.hosts)
            item.add_marker(pytest.mark.needs("root", "util-linux", "namespaces", "iproute2"))


@pytest.fixture(scope="session")
def three_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Network]:
    """Three hosts, shared by the tests of one worker process."""
    with Network(tmp_path_factory.mktemp("hosts"), 3) as network:
        yield network


@pytest.fixture
def network(three_hosts: Network) -> Iterator[Network]:
    """Three hosts with their links up, before and after the test."""
    three_hosts.fix()
    yield three_hosts
    three_hosts.fix()


@pytest.fixture(scope="session")
def ssh_to_three_hosts(three_hosts: Network, tmp_path_factory: pytest.TempPathFactory) -> Ssh:
    """sshd running on the three hosts."""
    needing.need("ssh")
    return start_ssh(three_hosts, tmp_path_factory.mktemp("ssh"))


@pytest.fixture
def ssh(network: Network, ssh_to_three_hosts: Ssh) -> Ssh:
    """ssh to three hosts with their links up."""
    return ssh_to_three_hosts


@pytest.fixture
def own_ssh(tmp_path: Path) -> Iterator[Ssh]:
    """ssh to one host that no other test uses: the test may break its keys, folders and config."""
    needing.need("ssh")
    with Network(tmp_path / "hosts", 1) as network:
        yield start_ssh(network, tmp_path / "ssh")
