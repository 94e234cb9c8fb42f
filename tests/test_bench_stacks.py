"""Where a CPU sample belongs, from the text that perf and addr2line print."""

from __future__ import annotations

from typing import Any

import pytest

KERNEL = "([kernel.kallsyms])"


def script(*symbols: str) -> str:
    """A kernel sample as `perf script` prints it, the innermost function first."""
    lines = [f"\tffffffff81e3513{at} {symbol} {KERNEL}" for at, symbol in enumerate(symbols)]
    return "\n".join(lines) + "\n\n\n"


@pytest.mark.parametrize(
    ("symbols", "place"),
    [
        (("tcp_sendmsg_locked", "tcp_sendmsg", "__sys_sendto"), "SENDING"),
        (("skb_copy", "tcp_recvmsg_locked", "tcp_recvmsg", "__sys_recvfrom"), "RECEIVING"),
        # All within our send: it fills the server's socket and wakes the server.
        (
            (
                "ep_poll_callback",
                "sock_def_readable",
                "net_rx_action",
                "tcp_sendmsg",
                "__sys_sendto",
            ),
            "DELIVERY",
        ),
        (("tcp_poll", "ep_item_poll", "do_epoll_wait", "do_syscall_64"), "WAITING"),
        (("finish_task_switch.isra.0", "__schedule", "io_cqring_wait"), "WAITING"),
        (("fput", "__sys_sendto", "do_syscall_64"), "SOCKET"),
        (("io_submit_sqes", "__do_sys_io_uring_enter", "do_syscall_64"), "RING"),
        (("tcp_sendmsg", "io_send", "io_submit_sqes", "__do_sys_io_uring_enter"), "SENDING"),
        (("do_syscall_64", "entry_SYSCALL_64_after_hwframe"), "ENTRY"),
        (("clear_page", "exc_page_fault", "asm_exc_page_fault"), "INTERRUPTS"),
        # An interrupt's time is not attributed to what it interrupts.
        (("tick_nohz", "asm_sysvec_apic_timer_interrupt", "tcp_sendmsg"), "INTERRUPTS"),
        (("process_backlog", "asm_sysvec_apic_timer_interrupt", "tcp_sendmsg"), "DELIVERY"),
        (("vfs_write", "ksys_write", "do_syscall_64"), "OTHER"),
    ],
)
def test_a_sample_in_the_kernel_belongs_to_what_the_kernel_was_doing(
    bench: Any, symbols: tuple[str, ...], place: str
) -> None:
    stacks = bench["stacks"]
    (stack,) = stacks.read_stacks(script(*symbols))
    assert stacks.place_of(stack, lambda frame: "ours") == getattr(stacks, place)


def test_samples_outside_the_kernel_belong_to_their_crate_and_all_shares_make_one(
    bench: Any,
) -> None:
    stacks = bench["stacks"]
    ours = "\t d9315 trueload_engine::Gen<impl (A, B)>::run (/x/trueload-engine)\n"
    ours += "\t 3199 [unknown] ([unknown])\n\n\n"
    text = script("tcp_sendmsg") + ours * 2 + script("tcp_sendmsg") * 2
    read = list(stacks.read_stacks(text))
    assert read[1][0] == stacks.Frame(
        0xD9315, "trueload_engine::Gen<impl (A, B)>::run", "/x/trueload-engine"
    )
    found = stacks.shares(read, lambda frame: f"crate of {frame.object}")
    assert found == {stacks.SENDING: 0.6, "crate of /x/trueload-engine": 0.4}
    assert stacks.folded(found, 0.5) == {stacks.SENDING: 0.6, "everything smaller": 0.4}


@pytest.mark.parametrize(
    ("files", "crate"),
    [
        (["/x/crates/wire/src/http1/scan.rs", "/x/crates/drive/src/epoll.rs"], "trueload-wire"),
        (["/rustc/5980/library/core/src/slice/mod.rs", "/x/crates/wire/src/a.rs"], "trueload-wire"),
        (["/c/registry/src/index.crates.io-19/rustix-1.1.6/src/io.rs"], "rustix"),
        (["/c/registry/src/index.crates.io-19/num-traits-0.2.19/src/lib.rs"], "num-traits"),
        (["/rustc/5980/library/alloc/src/vec.rs"], "std"),
        (["??"], None),
        ([], None),
    ],
)
def test_inlined_lines_belong_to_the_innermost_crate_that_is_not_the_standard_library(
    bench: Any, files: list[str], crate: str | None
) -> None:
    assert bench["stacks"].crate_of_files(files) == crate


def test_lines_are_read_by_address_the_innermost_first(bench: Any) -> None:
    text = (
        "0x00000000000d060d\nrun\n/x/rustix/arch.rs:112\nread\n/x/epoll.rs:98 (discriminator 3)\n"
        "0x00000000000da315\n??\n??:?\n"
    )
    assert bench["stacks"].read_lines(text) == {
        0xD060D: ["/x/rustix/arch.rs", "/x/epoll.rs"],
        0xDA315: ["??"],
    }


def test_system_calls_are_counted_the_same_by_perf_and_by_strace(bench: Any) -> None:
    perf = (
        "# started on Fri\n\n40;;raw_syscalls:sys_enter;104699432;100.00;;\n"
        "10;;syscalls:sys_enter_sendto;104699432;100.00;;\n"
        "<not counted>;;syscalls:sys_enter_read;0;0.00;;\n"
    )
    strace = (
        "% time     seconds  usecs/call     calls    errors syscall\n"
        "------ ----------- ----------- --------- --------- ----------------\n"
        " 60.00    0.000600          60        10           sendto\n"
        " 40.00    0.000400          13        30        20 read\n"
        "------ ----------- ----------- --------- --------- ----------------\n"
        "100.00    0.001000          25        40        20 total\n"
    )
    assert bench["breakdown"].read_perf_stat(perf) == {"all": 40, "sendto": 10}
    assert bench["breakdown"].read_strace(strace) == {"all": 40, "sendto": 10, "read": 30}


def test_an_offset_in_the_file_becomes_the_address_in_memory(bench: Any) -> None:
    segments = [(0x2E660, 0x2F660, 0xB8F20)]
    assert bench["breakdown"].to_memory(0xCF60D, segments) == 0xD060D
    assert bench["breakdown"].to_memory(0x100, segments) == 0x100
