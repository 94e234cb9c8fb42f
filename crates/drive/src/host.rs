//! The resources that the host grants to threads, and their use: CPUs, time, memory, descriptors.

use std::fs;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use rustix::time::{ClockId, clock_gettime};

/// Pins the calling thread to one CPU. It fails if the CPU does not exist or is not granted to this
/// process.
pub fn pin_to_cpu(cpu: u32) -> std::io::Result<()> {
    let mut set = CpuSet::new();
    if cpu as usize >= CpuSet::MAX_CPU {
        return Err(std::io::ErrorKind::InvalidInput.into());
    }
    set.set(cpu as usize);
    Ok(sched_setaffinity(None, &set)?)
}

/// Lets the calling thread wake when its timer expires, not up to 50 us later
/// (`PR_SET_TIMERSLACK`).
pub fn wake_precisely() {
    // If this fails, wake-ups are only less precise.
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
}

/// The slice that a thread in short slices requests: the shortest that the kernel accepts.
const SHORT_SLICE_NS: u64 = 100_000;

/// Lets the calling thread run in short slices of CPU time, or in the kernel's default ones.
///
/// A thread that wakes during another's slice waits for its end, up to 4 ms on a kernel of 250
/// ticks a second, however little it has to do. With a shorter slice of its own it does not wait
/// (Linux 6.12; no privilege is needed). It gets no more CPU time for it.
pub(crate) fn run_in_short_slices(short: bool) {
    let Some(mut attributes) = scheduling() else { return };
    let ours = short || attributes.sched_runtime == SHORT_SLICE_NS;
    // A thread with another policy, such as a real-time one, needs none of this and keeps it.
    if !ours || attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return;
    }
    attributes.sched_runtime = if short { SHORT_SLICE_NS } else { 0 };
    // SAFETY: the kernel only reads the attributes, as many bytes as their own `size` states, which
    // `sched_getattr` has set. If it refuses, wake-ups are as late as before.
    #[allow(unsafe_code)]
    unsafe {
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
    }
}

/// The scheduling attributes of the calling thread; none if the kernel does not report them.
fn scheduling() -> Option<libc::sched_attr> {
    let size = size_of::<libc::sched_attr>();
    // SAFETY: `sched_attr` is made of integers, so zeroes are a value of it; the kernel writes at
    // most `size` bytes.
    #[allow(unsafe_code)]
    unsafe {
        let mut attributes: libc::sched_attr = std::mem::zeroed();
        let outcome = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0);
        (outcome == 0).then_some(attributes)
    }
}

/// Raises the soft limit of open files to the hard limit; returns the limit that holds now.
pub fn raise_open_files() -> u64 {
    let (soft, hard) = open_files_limits();
    if soft != hard {
        let limit = |files: u64| Some(files).filter(|files| *files != u64::MAX);
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit(hard), maximum: limit(hard) });
    }
    open_files_limit()
}

/// The limit of open files of this process; `u64::MAX` if there is none.
pub(crate) fn open_files_limit() -> u64 {
    open_files_limits().0
}

/// The soft and the hard limit of open files. They are read from the kernel's file, because a
/// sandbox may forbid the system call.
fn open_files_limits() -> (u64, u64) {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    parse_open_files(&limits).unwrap_or((u64::MAX, u64::MAX))
}

/// The two numbers in the kernel's table of limits (proc(5)).
fn parse_open_files(limits: &str) -> Option<(u64, u64)> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let mut fields = line.split_whitespace();
    let mut number = || match fields.next()? {
        "unlimited" => Some(u64::MAX),
        digits => digits.parse().ok(),
    };
    Some((number()?, number()?))
}

/// Descriptors that this process has open.
pub fn open_files() -> u64 {
    // The descriptor that lists them is listed, too.
    fs::read_dir("/proc/self/fd").map_or(0, |files| files.count().saturating_sub(1) as u64)
}

/// The number of local ports for connections from one address to one peer; none if the kernel does
/// not say.
pub fn local_ports() -> Option<u32> {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}"));
    let range = read("ip_local_port_range").ok()?;
    let reserved = read("ip_local_reserved_ports").unwrap_or_default();
    ports_left(&range, &reserved)
}

/// The number of ports in a range such as `first last`, without reserved ones such as
/// `1000,2000-2010`.
fn ports_left(range: &str, reserved: &str) -> Option<u32> {
    let mut ends = range.split_whitespace().map_while(|end| end.parse::<u32>().ok());
    let (first, last) = (ends.next()?, ends.next()?);
    let ports = (last + 1).checked_sub(first)?;
    let taken = reserved.trim().split(',').filter_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (from.parse::<u32>().ok()?.max(first), to.parse::<u32>().ok()?.min(last));
        (to + 1).checked_sub(from)
    });
    Some(ports.saturating_sub(taken.sum()))
}

/// Resident memory of this process now, in bytes, without pages mapped from files (mostly its own
/// program).
pub fn own_rss_bytes() -> u64 {
    status_bytes("RssAnon:")
}

/// Drops the program's code from memory, and has the kernel map only the pages that are touched
/// from now on.
///
/// By default the kernel maps 16 pages around each touched one, and starting runs through half of
/// the program. That would keep 3 MB resident, more than 10,000 connections take. Code in use comes
/// back from the page cache.
pub fn keep_little_code() {
    // SAFETY: every linker for Linux defines both names; only their addresses are used, never their
    // values.
    #[allow(unsafe_code)]
    unsafe extern "C" {
        // The linker's names for the start of the program and the end of its code.
        static __executable_start: u8;
        static etext: u8;
    }
    let (start, end) = (&raw const __executable_start, &raw const etext);
    // The last page may hold something else behind the code.
    let len = end.addr() - start.addr() - end.addr() % rustix::param::page_size();
    // If the kernel cannot or may not do this, only memory is lost.
    let _ = map_by_page(start.addr(), len);
    // SAFETY: between the two addresses lie only code and constants, mapped from the program's file
    // and never written: a page that is dropped is read again from the file, unchanged.
    #[allow(unsafe_code)]
    unsafe {
        libc::madvise(start.cast_mut().cast(), len, libc::MADV_DONTNEED);
    }
}

/// Has memory mapped from a file mapped page by page, as Linux does where it watches for writes
/// (userfaultfd(2), asynchronously: Linux 6.7). Nothing is ever written here, so no write is ever
/// reported.
fn map_by_page(start: usize, len: usize) -> std::io::Result<()> {
    const USER_MODE_ONLY: libc::c_int = 1;
    const API: libc::c_ulong = 0xc018_aa3f; // UFFDIO_API
    const REGISTER: libc::c_ulong = 0xc020_aa00; // UFFDIO_REGISTER
    const VERSION: u64 = 0xaa;
    const WRITES_ASYNC: u64 = 1 << 15; // UFFD_FEATURE_WP_ASYNC
    const WRITES: u64 = 2; // UFFDIO_REGISTER_MODE_WP
    let mut api = [VERSION, WRITES_ASYNC, 0];
    let mut range = [start as u64, len as u64, WRITES, 0];
    // SAFETY: each array has the size of the structure that its request reads and writes (`struct
    // uffdio_api`: 24 bytes, `struct uffdio_register`: 32); the descriptor is new, so that
    // `OwnedFd` is its only owner.
    #[allow(unsafe_code)]
    let (watch, outcomes) = unsafe {
        let flags = libc::O_CLOEXEC | USER_MODE_ONLY;
        let fd = libc::syscall(libc::SYS_userfaultfd, flags) as libc::c_int;
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        let asked = libc::ioctl(fd, API as _, api.as_mut_ptr());
        let registered = libc::ioctl(fd, REGISTER as _, range.as_mut_ptr());
        (OwnedFd::from_raw_fd(fd), asked | registered)
    };
    if outcomes != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // The mode holds for as long as this descriptor is open.
    std::mem::forget(watch);
    Ok(())
}

/// Returns large allocations to the kernel as soon as they are freed, and lets them grow without a
/// copy.
///
/// The C library raises its own threshold with every such block that is freed. Tables that double
/// then leave holes in the heap as large as themselves: a megabyte at 10,000 connections.
pub fn map_large_allocations() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE_BYTES: libc::c_int = 64 * 1024;
        // SAFETY: `mallopt` is not safe beside other threads; the engine calls this before it
        // starts any. It changes only where later allocations are taken from.
        #[allow(unsafe_code)]
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        }
    }
}

/// Peak resident memory of this process, in bytes. It is `VmHWM`, because `ru_maxrss` inherits the
/// launcher's peak.
pub fn peak_rss_bytes() -> u64 {
    status_bytes("VmHWM:")
}

fn status_bytes(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

/// The time that a thread has used since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadUse {
    /// CPU time, in ns.
    pub cpu_ns: u64,
    /// Time on a CPU or waiting for one, in ns (`schedstat`; CPU time alone if the kernel keeps
    /// none).
    pub wanted_ns: u64,
}

impl ThreadUse {
    /// The use since an earlier reading; 0 where that reading is larger. A reading is too small if
    /// its file could not be opened for lack of descriptors.
    pub fn since(self, before: ThreadUse) -> ThreadUse {
        ThreadUse {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            wanted_ns: self.wanted_ns.saturating_sub(before.wanted_ns),
        }
    }
}

/// Reads the use of the calling thread.
pub fn thread_use() -> ThreadUse {
    let cpu_ns = thread_cpu_ns();
    let wanted_ns = wanted_ns("/proc/thread-self/schedstat").unwrap_or(cpu_ns);
    ThreadUse { cpu_ns, wanted_ns }
}

/// The kernel's id of the calling thread.
pub fn thread_id() -> u32 {
    // The kernel's ids are never negative.
    rustix::thread::gettid().as_raw_nonzero().get() as u32
}

/// The time in ns for which a thread of this process was on a CPU or waited for one since it began.
/// None if the kernel does not tell, or the thread has ended.
pub fn thread_wanted_ns(id: u32) -> Option<u64> {
    wanted_ns(&format!("/proc/self/task/{id}/schedstat"))
}

fn wanted_ns(schedstat: &str) -> Option<u64> {
    let text = fs::read_to_string(schedstat).ok()?;
    let mut fields = text.split_whitespace().map_while(|field| field.parse::<u64>().ok());
    let (on_cpu_ns, waited_ns) = (fields.next()?, fields.next()?);
    Some(on_cpu_ns.saturating_add(waited_ns))
}

/// CPU time of the calling thread, in ns.
pub fn thread_cpu_ns() -> u64 {
    let cpu = clock_gettime(ClockId::ThreadCPUTime);
    cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_works_has_used_time_and_memory() {
        let before = thread_use();
        let sum: u64 = (0..3_000_000u64).map(|n| n ^ (n << 3)).fold(0, u64::wrapping_add);
        let after = thread_use();
        assert!(after.cpu_ns > before.cpu_ns, "{sum}");
        assert!(peak_rss_bytes() > 100_000);
    }

    #[test]
    fn what_a_thread_wanted_can_be_read_from_another() {
        let (id, before_ns) = (thread_id(), thread_use().wanted_ns);
        let read = std::thread::spawn(move || thread_wanted_ns(id)).join().expect("it reads");
        // Where the kernel keeps none, the other thread reads nothing.
        assert!(read.is_none_or(|read_ns| read_ns >= before_ns), "{read:?} after {before_ns}");
        assert_eq!(thread_wanted_ns(0), None);
    }

    #[test]
    fn a_reading_that_goes_back_is_no_use_rather_than_centuries_of_it() {
        let of = |cpu_ns, wanted_ns| ThreadUse { cpu_ns, wanted_ns };
        for (now, before, used) in [
            (of(5, 9), of(2, 4), of(3, 5)),
            // The second reading lacks the time that the thread waited.
            (of(5, 5), of(2, 9), of(3, 0)),
            (of(1, 1), of(2, 2), of(0, 0)),
        ] {
            assert_eq!(now.since(before), used, "{now:?} since {before:?}");
        }
    }

    #[test]
    fn code_that_was_let_go_of_comes_back_when_it_is_used() {
        let before = status_bytes("RssFile:");
        keep_little_code();
        let after = status_bytes("RssFile:");
        assert!(0 < after && after < before, "{before} and then {after} bytes of files");
    }

    #[test]
    fn the_ports_left_are_those_of_the_range_that_nobody_has_reserved() {
        let cases = [
            ("32768\t60999\n", "\n", Some(28_232)),
            ("40000 40003", "40001", Some(3)),
            ("40000 40009", "39000-40001,40009-50000,1", Some(7)),
            ("40000 40003", "1-65535", Some(0)),
            ("40000", "", None),
            ("9 5", "", None),
        ];
        for (range, reserved, left) in cases {
            assert_eq!(ports_left(range, reserved), left, "{range:?} without {reserved:?}");
        }
        assert!(local_ports().is_some_and(|ports| ports > 0));
    }

    #[test]
    fn the_limits_of_open_files_are_read_from_the_table_of_the_kernel() {
        let table = "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max processes             95155                95155                processes \n\
                     Max open files            1024                 unlimited            files     \n";
        assert_eq!(parse_open_files(table), Some((1024, u64::MAX)));
        for broken in ["", "Max open files", "Max open files 7", "Max open files some 7"] {
            assert_eq!(parse_open_files(broken), None, "{broken:?}");
        }
        let limits = rustix::process::getrlimit(Resource::Nofile);
        let limits = (limits.current.unwrap_or(u64::MAX), limits.maximum.unwrap_or(u64::MAX));
        assert_eq!(open_files_limits(), limits);
    }

    #[test]
    fn an_open_file_counts() {
        let before = open_files();
        let file = fs::File::open("/proc/self/status").expect("a file");
        // Other tests open files, too; at least this one is among them.
        assert!(open_files() >= 1 && before >= 1, "{file:?}");
        assert!(own_rss_bytes() > 10_000);
    }

    #[test]
    fn a_thread_in_short_slices_has_them_where_the_kernel_knows_them_until_it_gives_them_up() {
        let slice_ns = || scheduling().map(|attributes| attributes.sched_runtime);
        let before_ns = slice_ns();
        run_in_short_slices(true);
        // Before Linux 6.12, and for a thread with a real-time priority, the slice is 0 throughout.
        let known = before_ns.is_some_and(|ns| ns > 0);
        assert_eq!(slice_ns(), if known { Some(SHORT_SLICE_NS) } else { before_ns });
        run_in_short_slices(false);
        assert_eq!(slice_ns(), before_ns);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error() {
        assert!(pin_to_cpu(100_000).is_err());
        assert!(pin_to_cpu(1000).is_err());
    }
}
