"""Connects its input and output with a Unix socket: ``piped.py NAME``, the name in hexadecimal.

It is the process of a stand-in that is played elsewhere.
"""

from __future__ import annotations

import os
import socket
import sys
import threading


def main() -> None:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(bytes.fromhex(sys.argv[1]))

    def hand_on() -> None:
        while chunk := os.read(0, 65_536):
            connection.sendall(chunk)
        connection.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=hand_on, daemon=True).start()
    while chunk := connection.recv(65_536):
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()


main()
