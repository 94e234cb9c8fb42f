"""Asks the kernel for its sockets by netlink (man 7 sock_diag), which is quicker than /proc.

Reading /proc/net/tcp walks through the table of all connections, which takes milliseconds however
few there are.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from collections.abc import Iterator

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

NETLINK_SOCK_DIAG = 4  # linux/netlink.h; Python has no name for it
SOCK_DIAG_BY_FAMILY, DUMP = 20, 0x301  # linux/sock_diag.h; linux/netlink.h, REQUEST | DUMP
NLMSG_ERROR, NLMSG_DONE = 2, 3  # linux/netlink.h
ANSWER_BYTES_MAX = 1 << 16  # more than the kernel puts into one datagram of a dump
HEAD_BYTES = 16  # struct nlmsghdr
LISTENING = 1 << 10  # 1 << TCP_LISTEN, include/net/tcp_states.h


def dump(asked: bytes) -> Iterator[bytes]:
    """Yield the messages that answer a request, without their heads. Raises ``OSError`` if the
    kernel does not answer it."""
    head = struct.pack("=IHHII", HEAD_BYTES + len(asked), SOCK_DIAG_BY_FAMILY, DUMP, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as kernel:
        kernel.sendto(head + asked, (0, 0))
        while True:
            answer, at = kernel.recv(ANSWER_BYTES_MAX), 0
            while at < len(answer):
                length, kind = struct.unpack_from("=IH", answer, at)
                message = answer[at + HEAD_BYTES : at + length]
                if kind == NLMSG_DONE:
                    return
                if kind == NLMSG_ERROR:
                    (number,) = struct.unpack_from("=i", message)
                    raise OSError(-number, os.strerror(-number))
                yield message
                at += (length + 3) & ~3


def tcp_listeners() -> Iterator[tuple[Address, int, int]]:
    """Yield (address, port, inode) of every listening TCP socket. Raises ``OSError``."""
    for family, length in ((socket.AF_INET, 4), (socket.AF_INET6, 16)):
        # struct inet_diag_req_v2, without a filter by address
        for found in dump(struct.pack("=BBxxI48x", family, socket.IPPROTO_TCP, LISTENING)):
            # struct inet_diag_msg: the port is at 4, the address at 8, the inode at 68
            (port,) = struct.unpack_from("!H", found, 4)
            (inode,) = struct.unpack_from("=I", found, 68)
            yield ipaddress.ip_address(found[8 : 8 + length]), port, inode
