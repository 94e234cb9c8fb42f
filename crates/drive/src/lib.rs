//! Sockets, timers and the clock.
//!
//! A [`Program`] is notified of what happened, and requests what comes next through a [`Net`]. A
//! driver is the loop between these two and the kernel. Programs own no socket, so the same program
//! runs over epoll, over another driver, and in virtual time. Must not know: HTTP, loads, meters,
//! JSON.

#![deny(clippy::undocumented_unsafe_blocks)]

mod address;
mod arrivals;
mod clock;
mod datagram;
mod datagram_socket;
mod distance;
mod driver;
mod epoll;
#[cfg(any(test, feature = "fake"))]
pub mod fake;
mod glance;
mod host;
mod kernel;
mod listener;
mod net;
mod outbox;
mod pace;
mod self_connect;
mod settings;
mod socket;
mod speed;
mod spin;
mod uring;

pub use address::{Address, Remote, Transport};
pub use clock::Clock;
pub use datagram::{Datagrams, Path};
pub use distance::distance_ns;
pub use driver::Driver;
pub use epoll::Epoll;
pub use host::{
    ThreadUse, keep_little_code, local_ports, map_large_allocations, open_files, own_rss_bytes,
    peak_rss_bytes, pin_to_cpu, raise_open_files, thread_cpu_ns, thread_id, thread_use,
    thread_wanted_ns, wake_precisely,
};
pub use listener::Listener;
pub use net::{Coalescing, Conn, ConnectError, HandOver, Net, PeerClose, Program, Token};
pub use outbox::Outbox;
pub use pace::Rates;
pub use settings::{Choice, Settings};
pub use socket::Waker;
pub use speed::{Looks, SpeedWatch};
pub use uring::Uring;
