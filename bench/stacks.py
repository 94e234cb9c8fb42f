"""Where a CPU sample was taken, in words: from the stacks that `perf script` prints. Pure.

A sample in the kernel belongs to the first row of KERNEL that matches any function on its stack. A
sample in a program belongs to the crate whose source its innermost line comes from.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

DELIVERY = "kernel: delivery to the other end and waking it (loopback, TCP input)"
SENDING = "kernel: TCP send"
RECEIVING = "kernel: TCP receive"
WAITING = "kernel: waiting for events (epoll, scheduler)"
RING = "kernel: io_uring around the above"
SOCKET = "kernel: socket calls around TCP"
ENTRY = "kernel: entering and leaving system calls"
INTERRUPTS = "kernel: interrupts, page faults"
OTHER = "kernel: other system calls"
TCP = (DELIVERY, SENDING, RECEIVING)

# What a function on the stack means. Delivery comes first, because it happens within `send` and
# wakes pollers.
KERNEL: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), what)
    for pattern, what in (
        (r"(net_rx_action|process_backlog|__netif_receive_skb)", DELIVERY),
        (r"tcp_(sendmsg|push|write_xmit|tsq_|release_cb)", SENDING),
        (r"tcp_(recvmsg|cleanup_rbuf|read_sock)", RECEIVING),
        (r"(do_epoll_|ep_|__x64_sys_epoll|(__)?schedule$|finish_task_switch)", WAITING),
        (
            r"(__sys_send|__sys_recv|sock_(send|recv|read_iter|write_iter)|inet6?_(send|recv))",
            SOCKET,
        ),
        (r"(__do_sys_io_uring|io_(submit|run|handle|issue|send|recv|uring))", RING),
    )
)
ENTRY_LEAF = re.compile(
    r"^(entry_SYSCALL|do_syscall_64|x64_sys_call|syscall_(enter|exit|return)|__x64_sys_|fpregs_)"
)
INTERRUPT = re.compile(r"^(asm_(sysvec|exc)|common_interrupt|page_fault|ret_from_)")
IN_KERNEL = "[kernel.kallsyms]"

_CRATE = re.compile(r"/crates/(\w+)/src/|/registry/src/[^/]+/(.+?)-\d[^/]*/")


@dataclass(frozen=True)
class Frame:
    """One level of a stack: the address within its object, the symbol, the object."""

    address: int
    symbol: str
    object: str


Stack = tuple[Frame, ...]
"""Innermost first."""


def read_stacks(text: str) -> Iterator[Stack]:
    """Parse the output of `perf script -F ip,sym,dso`: a paragraph per sample."""
    for paragraph in re.split(r"\n\s*\n", text):
        frames = [_frame(line) for line in paragraph.splitlines() if line.strip()]
        if frames:
            yield tuple(frames)


def _frame(line: str) -> Frame:
    address, _, rest = line.strip().partition(" ")
    symbol, _, named = rest.rpartition(" (")
    return Frame(int(address, 16), symbol, named.removesuffix(")"))


CrateOf = Callable[[Frame], str]


def place_of(stack: Stack, crate_of: CrateOf) -> str:
    """Name the place of a sample; `crate_of` names frames outside the kernel."""
    if not _is_kernel(stack[0]):
        return crate_of(stack[0])
    symbols = [frame.symbol for frame in stack if _is_kernel(frame)]
    interrupted = next((at for at, name in enumerate(symbols) if INTERRUPT.match(name)), None)
    inner = symbols if interrupted is None else symbols[:interrupted]
    if ENTRY_LEAF.match(symbols[0]):
        return ENTRY
    for pattern, what in KERNEL:
        if any(pattern.match(symbol) for symbol in inner):
            return what
    return OTHER if interrupted is None else INTERRUPTS


def _is_kernel(frame: Frame) -> bool:
    return frame.object.startswith(("[kernel", "[guest.kernel"))


def crate_of_files(files: Sequence[str]) -> str | None:
    """Return the crate of a source line, given its file and those of its inlined callers.

    Lines of the standard library count for the crate that they were inlined into.
    """
    for file in files:
        found = _CRATE.search(file)
        if found:
            return f"trueload-{found[1]}" if found[1] else found[2]
    return "std" if any("/rustc/" in file for file in files) else None


def read_lines(text: str) -> dict[int, list[str]]:
    """Parse the output of `addr2line -a -f -i`: source files by address, the innermost first."""
    lines: dict[int, list[str]] = {}
    files: list[str] = []
    for line in text.splitlines():
        if re.fullmatch(r"0x[0-9a-f]+", line):
            files = lines.setdefault(int(line, 16), [])
        elif re.search(r":(\d+|\?)( \(discriminator \d+\))?$", line):
            files.append(line.rpartition(":")[0])
    return lines


def shares(stacks: Sequence[Stack], crate_of: CrateOf) -> dict[str, float]:
    """The share of each place in all samples, the largest first."""
    counted = Counter(place_of(stack, crate_of) for stack in stacks)
    return {place: count / len(stacks) for place, count in counted.most_common()}


def folded(parts: Mapping[str, float], least: float) -> dict[str, float]:
    """Merge the places whose share is below `least` into one entry."""
    kept = {place: part for place, part in parts.items() if part >= least}
    rest = sum(parts.values()) - sum(kept.values())
    return {**kept, "everything smaller": rest} if rest > 0 else kept
