"""Fixtures: a Kubernetes cluster on this machine. Every test here is marked ``k8s``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import Trueload, start_server

from k8s.cluster import Cluster, missing
from k8s.front import Front

HERE = Path(__file__).resolve().parent
NODES = 8


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder; `make test-k8s` selects by that mark."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.k8s)


@pytest.fixture(scope="session")
def whole_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Eight nodes, shared by all tests."""
    if why := missing():
        pytest.skip(why)
    with Cluster(tmp_path_factory.mktemp("cluster"), NODES) as cluster:
        yield cluster


@pytest.fixture
def cluster(whole_cluster: Cluster) -> Iterator[Cluster]:
    """The cluster without Pods, and without faults."""
    whole_cluster.fix()
    yield whole_cluster
    whole_cluster.fix()


@pytest.fixture
def front(cluster: Cluster, trueload: Trueload) -> Front:
    """A front with the kubeconfig of the Role, and a server that Pods reach."""
    return Front(trueload, cluster, start_server(trueload, address=cluster.network.address))
