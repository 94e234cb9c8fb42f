"""Small scripts for any POSIX shell, which run on a host before the program.

How: each script is one fixed line, handed to ``sh -c`` on the host by the user's login shell there.
What differs from call to call is passed as quoted arguments. So nothing that a user wrote is ever
part of a script. Programs are kept in the login user's cache folder. Their names end with their
SHA-256, and a program gets its name only once it is complete.
"""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable, Sequence

from trueload.deadline import seconds_left

MARK = "trueload-host"
"""What our first line begins with; a shell may have printed other lines before it."""
NOISE_LINES_MAX = 200
START_S = 10.0  # until a program that was started tells its process id
SIGNALLED = 128  # what a shell adds to the number of the signal that ended a program

_CACHE = 'LC_ALL=C; export LC_ALL; c="${TRUELOAD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/trueload}";'
_FOLDER = f'{_CACHE} d="$c/programs";'
UNUSED_DAYS = 30  # unused files older than this are removed when a new one is kept
_IS_THERE = '{ [ -x "$d/$1" ] && [ "$(sha256sum <"$d/$1" | cut -c 1-64)" = "${1##*-}" ]; }'

# Arguments: the kept name, and the loader or nothing. Prints what the host is, then runs until its
# input ends: it is the connection that the other commands share.
PROBE = (
    f"{_FOLDER} have=no; loader=yes;"
    f' {_IS_THERE} && have=yes && touch "$d/$1";'
    ' [ -z "$2" ] || [ -e "$2" ] || loader=no;'
    f' printf "\\n{MARK} %s %s %s %s\\n" "$(uname -s)" "$(uname -m)" "$loader" "$have";'
    " exec cat >/dev/null"
)
# Argument: the kept name; the program comes on stdin. Exit codes below. `$$` would not be unique:
# containers that share a folder count their processes alike.
KEEP = (
    f'{_FOLDER} {_IS_THERE} && exit 0; umask 077; mkdir -p "$d" || exit 71;'
    ' t="$(mktemp "$d/.$1.XXXXXX")" || exit 71;'
    f' find "$d" -maxdepth 1 -type f -mtime +{UNUSED_DAYS} -exec rm -f {{}} + 2>/dev/null;'
    ' trap "rm -f \\"\\$t\\"" EXIT HUP INT TERM; cat >"$t" || exit 72;'
    f' [ "$(sha256sum <"$t" | cut -c 1-64)" = "${{1##*-}}" ] || exit 73;'
    ' chmod 700 "$t" && mv -f "$t" "$d/$1" || exit 74;'
    ' [ -x "$d/$1" ] || { echo "noexec: $d" >&2; exit 75; }'
)
KEEP_DAMAGED = 73
# Arguments of the next three: a key, and a unique name for this copy. A tar stream on stdin is
# unpacked into a folder. The folder gets the key as its name only after the sender has said that
# the stream was whole, because a truncated tar looks like a shorter one. Prints the folder's path
# if it was kept before.
_KEPT = f'{_CACHE} b="$c/builds/there/$1"; t="$b.$2";'
COPY_FOLDER = (
    f'{_KEPT} touch -c "$b"; [ -e "$b" ] || {{ umask 077;'
    f' find "$c/builds/there" -mindepth 1 -maxdepth 1 -mtime +{UNUSED_DAYS}'
    " -exec rm -rf {} + 2>/dev/null;"
    ' trap "rm -rf \\"\\$t\\"" EXIT HUP INT TERM; mkdir -p "$t" || exit 71;'
    ' tar -xf - -C "$t" || exit 72; cat >/dev/null; touch "$t"; trap - EXIT; b=; };'
    f' printf "{MARK} %s\\n" "$b"'
)
KEEP_FOLDER = (
    f'{_KEPT} trap "rm -rf \\"\\$t\\"" EXIT HUP INT TERM;'
    f' mv -T "$t" "$b" 2>/dev/null || [ -e "$b" ] || exit 74; printf "{MARK} %s\\n" "$b"'
)
DROP_FOLDER = f'{_KEPT} rm -rf "$t"'
# Arguments: the kept name, and those of the program. Prints the process id that the program will
# have, then runs it. The shell around it exits with its code, since ssh alone reports no signal.
# The second one also tells that the program has ended, on stderr.
_RUN = (
    f'{_FOLDER} f="$d/$1"; shift;'
    f' sh -c "printf \\"\\n{MARK} %s\\n\\" \\$\\$; exec \\"\\$0\\" \\"\\$@\\"" "$f" "$@";'
    " c=$?;"
)
ENDED = f"{MARK}-ended"
RUN = f"{_RUN} exit $c"
RUN_AND_TELL = f"{_RUN} echo {ENDED} >&2; exit $c"
# Arguments: the kept name, and a process id. Kills the process if it still runs that program.
KILL = f'{_FOLDER} [ "/proc/$2/exe" -ef "$d/$1" ] && kill -9 "$2"'

# Argument: the kept name. Removes that program.
DROP = f'{_FOLDER} rm -f "$d/$1"'


def command(script: str, *arguments: str) -> str:
    """The command line for ssh to run, whatever login shell the user has there."""
    return shlex.join(["exec", "sh", "-c", script, "sh", *arguments])


def marked(output: str) -> str | None:
    """The rest of our line in the output of a script that has ended; None if there is none."""
    found = re.search(rf"^{MARK} (.*)$", output, re.MULTILINE)
    return None if found is None else found[1]


def plain(lines: Sequence[str]) -> str:
    """Lines of a shell's output as one line, at most 200 characters."""
    return " ".join(" ".join(lines).split())[:200]


def receive_mark(
    read_line: Callable[[float], bytes | None], within_s: float, noise: list[str]
) -> str | None:
    """Return the rest of our first line behind its mark; None if it does not come. Lines that a
    shell prints before it are added to ``noise``. Raises what ``read_line`` raises."""
    deadline_s = time.monotonic() + within_s
    while len(noise) < NOISE_LINES_MAX:
        line = read_line(seconds_left(deadline_s))
        if line is None:
            break
        text = line.decode(errors="replace")
        mark, _, rest = text.partition(" ")
        if mark == MARK:
            return rest
        noise.append(text)
    return None
