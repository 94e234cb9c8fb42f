"""Runs a peer and one command in a network namespace of its own with few local ports.

Started as `unshare --net python in_namespace.py COMMAND…`, where `{url}` in the command stands for
the peer's address: what it changes of the kernel's settings ends with the namespace. The command's
output and exit code are its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from faults.cases import Step
from faults.peer import Peer

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
FEW_PORTS = "40000 40003"


def main() -> int:
    """The exit code of the command."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text(FEW_PORTS)
    script = (Step("read"), Step("send", data=OK), Step("again"))
    with Peer((script,), port=8080) as peer:
        command = [word.replace("{url}", peer.url) for word in sys.argv[1:]]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
