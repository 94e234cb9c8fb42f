"""Runs a peer and one command in a network namespace with few local ports.

Started as `unshare --net python in_namespace.py PORTS TAKEN COMMAND…`: there are PORTS local ports,
of which TAKEN are in use by others. `{url}` in the command stands for the peer's address. Its
changes to kernel settings end with the namespace. The output and exit code are the command's.
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
    """Run the command; return its exit code."""
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
