"""When requests pass the loopback device, by the kernel's clock, independently of the engine.

A packet socket with a filter in the kernel receives only requests to one port. Each packet carries
the time at which the sender's `send` put it there (SO_TIMESTAMPNS), so it does not matter when it
is read. All are read after the run: reading meanwhile would take CPU time from the sender. Needs
root (CAP_NET_RAW).
"""

from __future__ import annotations

import ctypes
import socket
import struct

NS_PER_S = 1_000_000_000
SO_TIMESTAMPNS = 35
SO_ATTACH_FILTER = 26
SO_RCVBUFFORCE = 33
ETH_P_IP = 0x0800
# The kernel doubles this and takes 1 to 2 KiB per packet: enough for 300,000.
BUFFER_BYTES = 256 * 1024 * 1024
# Longer than any segment without data: 20 bytes of IP header, up to 60 of TCP.
BARE_MOST_BYTES = 80


def _filter(port: int) -> bytes:
    """A classic BPF program over an IP packet: accepts TCP segments with data to this port."""
    steps = [
        (0x30, 0, 0, 9),  # ldb protocol
        (0x15, 0, 6, socket.IPPROTO_TCP),
        (0x28, 0, 0, 2),  # ldh total length
        (0x25, 0, 4, BARE_MOST_BYTES),
        (0xB1, 0, 0, 0),  # ldx 4 * (header length)
        (0x48, 0, 0, 2),  # ldh destination port
        (0x15, 0, 1, port),
        (0x06, 0, 0, 64),  # keep 64 bytes
        (0x06, 0, 0, 0),  # drop
    ]
    return b"".join(struct.pack("HBBI", *step) for step in steps)


class Sniffer:
    """Captures the requests to a port from its creation until `stop`."""

    def __init__(self, port: int) -> None:
        program = _filter(port)
        buffer = ctypes.create_string_buffer(program)
        fprog = struct.pack("HP", len(program) // 8, ctypes.addressof(buffer))
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, fprog)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._socket.bind(("lo", ETH_P_IP))
        self._socket.setblocking(False)

    def stop(self) -> list[int]:
        """Stop; return the times of all captured requests, in ns, in order."""
        times_ns: list[int] = []
        with self._socket:
            while True:
                try:
                    _, ancillary, _, _ = self._socket.recvmsg(64, 64)
                except BlockingIOError:
                    return sorted(times_ns)
                seconds, ns = struct.unpack("qq", ancillary[0][2][:16])
                times_ns.append(seconds * NS_PER_S + ns)
