//! The queues of io_uring in a world: submitted operations are decoded as the kernel does it.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::rc::Rc;

use io_uring::{cqueue, squeue};
use rustix::io::Errno;

use super::World;
use super::world::SocketId;
use crate::uring::{Kernel, Queue};

// The kernel's interface (include/uapi/linux/io_uring.h).
const NOP: u8 = 0;
const POLL_ADD: u8 = 6;
const ASYNC_CANCEL: u8 = 14;
const CONNECT: u8 = 16;
const SEND: u8 = 26;
const RECV: u8 = 27;
const SHUTDOWN: u8 = 34;
const FIXED_FILE: u8 = 1;
const SKIP_SUCCESS: u8 = 1 << 6;
const F_BUFFER: u32 = 1;
const F_MORE: u32 = 2;
const F_BUF_MORE: u32 = 1 << 4;
const BUFFER_SHIFT: u32 = 16;
const INCREMENTAL: u16 = 2;
/// The error of a wait that cannot end because completions were lost (`EBADR`).
const COMPLETIONS_LOST: i32 = 53;

/// A kernel that is simulated in a world.
#[derive(Clone, Debug)]
pub(super) struct Played {
    world: Rc<RefCell<World>>,
}

impl Played {
    pub(super) fn new(world: &Rc<RefCell<World>>) -> Self {
        Played { world: Rc::clone(world) }
    }
}

impl Kernel for Played {
    type Queue = Queues;

    fn queue(&self) -> io::Result<Queues> {
        let mut world = self.world.borrow_mut();
        let completions_most = if world.loses { 8 } else { 64 };
        let (submissions, completions) = (world.rng.up_to(64), world.rng.up_to(completions_most));
        Ok(Queues {
            world: Rc::clone(&self.world),
            most: (submissions, completions),
            submissions: VecDeque::new(),
            completions: VecDeque::new(),
            overflow: VecDeque::new(),
            in_flight: Vec::new(),
            registered: RefCell::default(),
            rung: false,
        })
    }

    fn end_sending(&self, fd: &OwnedFd) {
        let socket = SocketId::of(fd).expect("who owns a descriptor has not closed it");
        self.world.borrow_mut().end_sending(socket);
    }
}

/// An operation as it is stored in the submission queue.
#[derive(Clone, Copy)]
struct Operation {
    code: u8,
    flags: u8,
    fd: i32,
    address: u64,
    len: u32,
    user_data: u64,
    group: u16,
    /// The socket it is about, if any: known once the kernel takes the operation.
    socket: Option<SocketId>,
}

impl Operation {
    fn read(entry: &squeue::Entry) -> Self {
        const _: () = assert!(size_of::<squeue::Entry>() == 64);
        // SAFETY: an entry is 64 bytes of integers (`struct io_uring_sqe`), all of which are
        // written.
        #[allow(unsafe_code)]
        let bytes: [u8; 64] = unsafe { std::mem::transmute_copy(entry) };
        let four = |at: usize| u32::from_ne_bytes([0, 1, 2, 3].map(|by| bytes[at + by]));
        let eight =
            |at: usize| u64::from_ne_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|by| bytes[at + by]));
        Operation {
            code: bytes[0],
            flags: bytes[1],
            fd: four(4) as i32,
            address: eight(16),
            len: four(24),
            user_data: eight(32),
            group: u16::from_ne_bytes([bytes[40], bytes[41]]),
            socket: None,
        }
    }
}

/// A completion as it is stored in the completion queue.
#[derive(Clone, Copy)]
#[repr(C)]
struct Completion {
    user_data: u64,
    result: i32,
    flags: u32,
}

impl Completion {
    fn entry(self) -> cqueue::Entry {
        // SAFETY: an entry is these three integers in this order (`struct io_uring_cqe`).
        #[allow(unsafe_code)]
        unsafe {
            std::mem::transmute::<Completion, cqueue::Entry>(self)
        }
    }
}

/// A group of buffers: the entries between its head and the tail that the driver has published.
#[derive(Clone, Copy)]
struct Group {
    address: u64,
    places: u16,
    incremental: bool,
    head: u16,
    /// Bytes filled in the first buffer.
    filled: usize,
}

/// A buffer that is being filled.
struct Buffer {
    address: u64,
    len: usize,
    id: u16,
}

impl Group {
    /// The first buffer, or the rest of it; none if all are in use.
    fn first(&self) -> Option<Buffer> {
        // SAFETY: the code that registered the group keeps its places mapped. The fake runs on the
        // same thread, so nobody writes meanwhile. The tail is stored in the reserved field of the
        // first place.
        #[allow(unsafe_code)]
        let (tail, address, len, id) = unsafe {
            let tail = ((self.address + 14) as *const u16).read();
            let place = self.address + 16 * u64::from(self.head & (self.places - 1));
            let address = (place as *const u64).read();
            let len = ((place + 8) as *const u32).read();
            (tail, address, len, ((place + 12) as *const u16).read())
        };
        let free = tail != self.head;
        let (address, len) =
            (address + self.filled as u64, len as usize - self.filled * usize::from(free));
        free.then_some(Buffer { address, len, id })
    }

    /// Notes that `count` bytes of the first buffer were filled; true if more of it can be.
    fn fill(&mut self, buffer: &Buffer, count: usize) -> bool {
        if self.incremental && count < buffer.len {
            self.filled += count;
            return true;
        }
        self.head = self.head.wrapping_add(1);
        self.filled = 0;
        false
    }
}

#[derive(Default)]
struct Registered {
    files: BTreeMap<u32, SocketId>,
    groups: BTreeMap<u16, Group>,
}

/// Both queues, and the operations in flight.
pub(super) struct Queues {
    world: Rc<RefCell<World>>,
    /// Capacity of the queues: submissions, completions.
    most: (usize, usize),
    submissions: VecDeque<Operation>,
    /// Completions, each with whether it is news from a peer.
    completions: VecDeque<(bool, Completion)>,
    /// Completions that found no room in the queue.
    overflow: VecDeque<(bool, Completion)>,
    in_flight: Vec<Operation>,
    registered: RefCell<Registered>,
    /// The waker has rung, which it does once, at the start.
    rung: bool,
}

impl fmt::Debug for Queues {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flying: Vec<_> = self.in_flight.iter().map(|op| (op.code, op.user_data)).collect();
        out.debug_struct("Queues").field("in_flight", &flying).finish_non_exhaustive()
    }
}

impl Queues {
    /// Takes the submitted operations. The memory of a connect's address is read now, that of a
    /// send when the send completes.
    fn take_submissions(&mut self) -> usize {
        self.refuse_closed();
        let count = self.submissions.len();
        while let Some(mut operation) = self.submissions.pop_front() {
            operation.socket = self.socket(&operation);
            if operation.code == CONNECT {
                // SAFETY: it points to an IPv4 address (`struct sockaddr_in`), whose port is its
                // second field.
                #[allow(unsafe_code)]
                let port = unsafe { ((operation.address + 2) as *const [u8; 2]).read() };
                let socket = operation.socket.expect("an open socket is connected");
                self.world.borrow_mut().connect(socket, u16::from_be_bytes(port));
            }
            if operation.code == ASYNC_CANCEL {
                self.cancel(&operation);
            } else {
                self.in_flight.push(operation);
            }
        }
        count
    }

    /// Checks that descriptors stay open while an operation on them is in flight: the next one to
    /// be opened would get the same number.
    fn refuse_closed(&self) {
        let plain = self.in_flight.iter().filter(|op| op.flags & FIXED_FILE == 0);
        for operation in plain.filter(|op| op.socket.is_some()) {
            let code = operation.code;
            let closed = self.socket(operation) != operation.socket;
            assert!(!closed, "closed with operation {code} in flight");
        }
    }

    fn socket(&self, operation: &Operation) -> Option<SocketId> {
        if !matches!(operation.code, CONNECT | SEND | RECV | SHUTDOWN) {
            return None;
        }
        if operation.flags & FIXED_FILE != 0 {
            return self.registered.borrow().files.get(&(operation.fd as u32)).copied();
        }
        socket(operation.fd)
    }

    /// Completes an operation. The kernel keeps completions that find no room in the queue, as long
    /// as it has memory for them.
    fn complete(&mut self, operation: &Operation, result: i32, flags: u32) {
        let full = self.completions.len() >= self.most.1;
        let mut world = self.world.borrow_mut();
        if full && world.loses && world.rng.one_in(4) {
            world.lost += 1;
            return;
        }
        drop(world);
        let is_event = matches!(operation.code, CONNECT | RECV | POLL_ADD);
        let completion = Completion { user_data: operation.user_data, result, flags };
        self.overflow.push_back((is_event, completion));
        self.flush();
    }

    /// Moves waiting completions into the queue, as far as there is room.
    fn flush(&mut self) {
        while self.completions.len() < self.most.1
            && let Some(completion) = self.overflow.pop_front()
        {
            self.completions.push_back(completion);
        }
    }

    /// Lets one thing happen, in the network or to an operation; false if nothing can.
    fn go_on(&mut self) -> bool {
        let network_first = self.world.borrow_mut().rng.one_in(2);
        if network_first && self.world.borrow_mut().go_on().is_some() {
            return true;
        }
        let count = self.in_flight.len();
        let first = self.world.borrow_mut().rng.below(count.max(1));
        let done = (first..first + count).any(|at| self.try_operation(at % count));
        done || self.world.borrow_mut().go_on().is_some()
    }

    /// Continues an operation; false if it cannot go on.
    fn try_operation(&mut self, at: usize) -> bool {
        let operation = self.in_flight[at];
        let result = match (operation.code, operation.socket) {
            (NOP, _) => Some(0),
            (POLL_ADD, _) => return self.ring_bell(&operation),
            (SHUTDOWN, Some(socket)) => {
                self.world.borrow_mut().end_sending(socket);
                Some(0)
            }
            (RECV, Some(socket)) => return self.try_receive(at, socket),
            (CONNECT, Some(socket)) => {
                self.world.borrow().connected(socket).map(|outcome| match outcome {
                    Ok(()) => 0,
                    Err(errno) => -errno.raw_os_error(),
                })
            }
            (SEND, Some(socket)) => self.try_send(&operation, socket),
            (SHUTDOWN | RECV | CONNECT | SEND, None) => Some(-Errno::BADF.raw_os_error()),
            (code, _) => panic!("the fake does not know operation {code}"),
        };
        let Some(result) = result else { return false };
        self.in_flight.remove(at);
        self.complete(&operation, result, 0);
        true
    }

    fn ring_bell(&mut self, operation: &Operation) -> bool {
        let rings = !std::mem::replace(&mut self.rung, true);
        if rings {
            self.complete(operation, 1, F_MORE);
        }
        rings
    }

    fn try_send(&mut self, operation: &Operation, socket: SocketId) -> Option<i32> {
        let mut world = self.world.borrow_mut();
        if !world.is_writable(socket) {
            return None;
        }
        // SAFETY: a send's memory stays until its completion (see `Queue::push`).
        #[allow(unsafe_code)]
        let bytes = unsafe {
            std::slice::from_raw_parts(operation.address as *const u8, operation.len as usize)
        };
        match world.send(socket, bytes) {
            Ok(count) => Some(count as i32),
            Err(Errno::AGAIN) => None,
            Err(errno) => Some(-errno.raw_os_error()),
        }
    }

    fn try_receive(&mut self, at: usize, socket: SocketId) -> bool {
        let operation = self.in_flight[at];
        if !self.world.borrow().is_readable(socket) {
            return false;
        }
        let (result, flags) = self.receive(&operation, socket);
        if flags & F_MORE == 0 {
            self.in_flight.remove(at);
        }
        self.complete(&operation, result, flags);
        true
    }

    /// Receives into the first buffer. By chance there is none, or the kernel ends the receive with
    /// these bytes.
    fn receive(&mut self, operation: &Operation, socket: SocketId) -> (i32, u32) {
        let mut world = self.world.borrow_mut();
        let mut registered = self.registered.borrow_mut();
        let group = registered.groups.get_mut(&operation.group).expect("the group is registered");
        let buffer = group.first().filter(|_| !world.rng.one_in(12));
        let Some(buffer) = buffer else { return (-Errno::NOBUFS.raw_os_error(), 0) };
        let most = if world.rng.one_in(3) { world.rng.up_to(buffer.len) } else { buffer.len };
        // One that names a length receives once, and no more than that.
        let once = operation.len > 0;
        let most = if once { most.min(operation.len as usize) } else { most };
        // SAFETY: the buffer was provided, and belongs to the kernel until a completion gives it
        // back. The slice leaves out what lies before `filled`.
        #[allow(unsafe_code)]
        let bytes = unsafe { std::slice::from_raw_parts_mut(buffer.address as *mut u8, most) };
        match world.receive(socket, bytes) {
            Ok(0) => (0, 0),
            Ok(count) => {
                let rest = if group.fill(&buffer, count) { F_BUF_MORE } else { 0 };
                let more = if once || world.rng.one_in(8) { 0 } else { F_MORE };
                let id = u32::from(buffer.id) << BUFFER_SHIFT;
                (count as i32, F_BUFFER | rest | more | id)
            }
            Err(errno) => (-errno.raw_os_error(), 0),
        }
    }

    /// Cancels an operation, if it is still in flight. The kernel cancels while it takes the
    /// submission, so a cancel never meets an operation that was submitted later. But it may come
    /// too late, for an operation whose completion is not yet taken over.
    fn cancel(&mut self, cancel: &Operation) {
        let steps = self.world.borrow_mut().rng.below(6);
        for _ in 0..steps {
            self.go_on();
        }
        let target = self.in_flight.iter().position(|op| op.user_data == cancel.address);
        let Some(target) = target else {
            return self.complete(cancel, -Errno::NOENT.raw_os_error(), 0);
        };
        let target = self.in_flight.remove(target);
        self.complete(&target, -Errno::CANCELED.raw_os_error(), 0);
        if cancel.flags & SKIP_SUCCESS == 0 {
            self.complete(cancel, 0, 0);
        }
    }

    /// By chance the kernel takes nothing for now.
    fn refuses(&mut self) -> bool {
        self.world.borrow_mut().rng.one_in(20)
    }
}

impl Queue for Queues {
    fn enable(&self) -> io::Result<()> {
        Ok(())
    }

    fn waits_for_several(&self) -> bool {
        true
    }

    fn lets_go(&self) -> bool {
        true
    }

    fn register_files_sparse(&self, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn register_file(&self, place: u32, fd: RawFd) -> io::Result<()> {
        let mut registered = self.registered.borrow_mut();
        match socket(fd) {
            Some(socket) => registered.files.insert(place, socket),
            None => registered.files.remove(&place),
        };
        Ok(())
    }

    fn register_eventfd(&self, _: RawFd) -> io::Result<()> {
        Ok(())
    }

    #[allow(unsafe_code)]
    unsafe fn register_buf_ring(
        &self,
        address: u64,
        places: u16,
        group: u16,
        flags: u16,
    ) -> io::Result<()> {
        let incremental = flags & INCREMENTAL != 0;
        if incremental && self.world.borrow_mut().rng.one_in(2) {
            // Kernels before Linux 6.12 do not support this.
            return Err(Errno::INVAL.into());
        }
        let made = Group { address, places, incremental, head: 0, filled: 0 };
        self.registered.borrow_mut().groups.insert(group, made);
        Ok(())
    }

    fn unregister_buf_ring(&self, group: u16) {
        self.registered.borrow_mut().groups.remove(&group);
    }

    #[allow(unsafe_code)]
    unsafe fn push(&mut self, entry: &squeue::Entry) -> bool {
        let room = self.submissions.len() < self.most.0;
        if room {
            self.submissions.push_back(Operation::read(entry));
        }
        room
    }

    fn queued(&mut self) -> usize {
        self.submissions.len()
    }

    fn submit(&mut self) -> io::Result<usize> {
        if self.refuses() {
            return Err(Errno::AGAIN.into());
        }
        Ok(self.take_submissions())
    }

    fn poll(&mut self) -> io::Result<usize> {
        if self.refuses() {
            return Err(Errno::BUSY.into());
        }
        let taken = self.take_submissions();
        let steps = self.world.borrow_mut().rng.below(8);
        for _ in 0..steps {
            self.go_on();
        }
        self.flush();
        Ok(taken)
    }

    fn wait(&mut self, least: usize, within_us: u32, timeout_ns: Option<u64>) -> io::Result<usize> {
        let taken = self.take_submissions();
        self.flush();
        while self.completions.len() < least.min(self.most.1) {
            let held_up = within_us > 0 && self.world.borrow_mut().rng.one_in(30);
            if !self.completions.is_empty() && held_up {
                break;
            }
            let is_reported_late = self.completions.iter().any(|(is_event, _)| *is_event);
            self.world.borrow_mut().held_up += u32::from(is_reported_late);
            if !self.go_on() {
                let enough = within_us > 0 && !self.completions.is_empty();
                if self.world.borrow().lost > 0 && !enough {
                    return Err(io::Error::from_raw_os_error(COMPLETIONS_LOST));
                }
                return if enough || timeout_ns.is_some() { Ok(taken) } else { Err(hangs(self)) };
            }
        }
        Ok(taken)
    }

    fn completed(&mut self) -> usize {
        self.completions.len()
    }

    fn drain(&mut self, batch: &mut Vec<cqueue::Entry>, most: usize) {
        let count = self.completions.len().min(most);
        batch.extend(self.completions.drain(..count).map(|(_, completion)| completion.entry()));
    }

    fn lost(&mut self) -> u32 {
        self.world.borrow().lost
    }
}

/// The socket of a descriptor; none if it is closed, or no descriptor (-1).
fn socket(fd: RawFd) -> Option<SocketId> {
    // SAFETY: the borrowed descriptor is only asked which socket it is, if any.
    #[allow(unsafe_code)]
    let fd = (fd >= 0).then(|| unsafe { BorrowedFd::borrow_raw(fd) });
    fd.and_then(SocketId::of)
}

/// The error of a driver that waits although nothing can happen any more.
fn hangs(queues: &Queues) -> io::Error {
    let world = queues.world.borrow();
    io::Error::other(format!("nothing can happen any more: {queues:?}, {world:?}"))
}
