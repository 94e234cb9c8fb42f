"""The network under the tests of places leaves nothing behind."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hosts.network import Network


def test_nothing_is_left_of_a_network_that_has_gone(tmp_path: Path) -> None:
    with Network(tmp_path, 2) as made:
        pids = [host.pid for host in made.hosts]
        names = [made.bridge, *(host.link_name for host in made.hosts)]
        made.hosts[0].start("sleep", "1000")
    links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True).stdout
    assert not [name for name in names if name in links]
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
