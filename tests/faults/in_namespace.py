"""Runs a peer and one command in a network namespace of its own with few local ports.

Started as `unshare --net python in_namespace.py PORTS TAKEN COMMAND…`: of so many local ports, so
many are somebody else's. `{url}` in the command stands for the peer's address. What it changes of
the kernel's settings ends with the namespace. The command's output and exit code are its own.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from faults.cases import Step
from faults.peer import Peer

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
FIRST_PORT = 40_000


def main() -> int:
    """The exit code of the command."""
    ports, taken = int(sys.argv[1]), int(sys.argv[2])
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    the_range = Path("/proc/sys/net/ipv4/ip_local_port_range")
    the_range.write_text(f"{FIRST_PORT} {FIRST_PORT + ports - 1}")
    others = [socket.create_server(("", FIRST_PORT + number)) for number in range(taken)]
    script = (Step("read"), Step("send", data=OK), Step("again"))
    with Peer((script,), port=8080) as peer:
        command = [word.replace("{url}", peer.url) for word in sys.argv[3:]]
        code = subprocess.run(command, check=False).returncode
    for other in others:
        other.close()
    return code


if __name__ == "__main__":
    sys.exit(main())
