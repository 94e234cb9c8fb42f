"""Which addresses a server on this machine may listen on."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import needing
import pytest
from trueload.machine import locality
from trueload.machine.locality import MACHINES_OWN, may_be_here, sees_all_processes

from tools.needs import unshare


@pytest.mark.parametrize(
    ("address", "served"),
    [("127.0.0.1:80", True), ("[::1]:80", True), ("unix:/run/x", True), ("nonsense", False)],
)
def test_who_may_serve_on_this_machine(address: str, served: bool) -> None:
    assert may_be_here(address) is served


def test_an_address_of_this_machines_own_is_here() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no route")
        own = probe.getsockname()[0]
    assert may_be_here(f"{own}:80")


def test_in_a_process_namespace_of_its_own_nobody_sees_all() -> None:
    unshared = unshare("--pid", "--fork", "--mount-proc")
    if unshared is None:
        needing.skip("namespaces")
    asked = "from trueload.machine.locality import sees_all_processes as all; print(all())"
    inside = [*unshared, sys.executable, "-c", asked]
    found = subprocess.run(inside, capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


@pytest.mark.parametrize(
    ("user", "namespace", "sees_all"),
    [(0, MACHINES_OWN, True), (0, "pid:[4026532283]", False), (1000, MACHINES_OWN, False)],
)
def test_only_root_outside_of_containers_sees_all(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, user: int, namespace: str, sees_all: bool
) -> None:
    (tmp_path / "self" / "ns").mkdir(parents=True)
    (tmp_path / "self" / "ns" / "pid").symlink_to(namespace)
    monkeypatch.setattr(locality, "PROC", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert sees_all_processes() is sees_all
