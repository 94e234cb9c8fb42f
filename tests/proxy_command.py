"""A command that passes on what another one reads and writes, as ``kubectl exec -i`` does.

``python proxy_command.py COMMAND …``. It ends when its input ends and the other has ended, and at
once, with an error, after a line ``give up``. Must not know trueload.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from typing import IO

READ_BYTES = 2**16


def pass_on(source: IO[bytes], target: IO[bytes]) -> None:
    """Copy to the end."""
    while chunk := source.read(READ_BYTES):
        target.write(chunk)
        target.flush()


def main() -> int:
    """Run the other command, and return its exit code."""
    pipe = subprocess.PIPE
    with subprocess.Popen(sys.argv[1:], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        assert other.stderr is not None
        ends = ((other.stdout, sys.stdout.buffer), (other.stderr, sys.stderr.buffer))
        readers = [threading.Thread(target=pass_on, args=each, daemon=True) for each in ends]
        for reader in readers:
            reader.start()
        for line in sys.stdin.buffer:
            if line == b"give up\n":
                os.write(2, b"no way\n")
                os._exit(1)
            with contextlib.suppress(BrokenPipeError):  # the other may need no more of it
                other.stdin.write(line)
        other.stdin.close()
        for reader in readers:
            reader.join()
    return other.returncode


if __name__ == "__main__":
    sys.exit(main())
