//! The fixed settings of a generator: where and how to connect, and which part of all slots is its
//! own.

use std::net::IpAddr;

use trueload_drive::Address;
use trueload_load::{Places, dealt, dealt_slot};
use trueload_wire::tls;

/// The settings of a generator. While it runs, only its part of the slots may change.
#[derive(Clone, Debug)]
pub struct Config {
    /// Addresses to connect to, in the order to try.
    pub addresses: Vec<Address>,
    /// Addresses to connect from, used in turn.
    pub local_addresses: Vec<IpAddr>,
    /// Requests in flight per connection.
    pub depth: usize,
    /// Number of free places from which on a connection is filled again.
    pub refill: usize,
    /// Each request has its own connection.
    pub close: bool,
    /// Each of these connections is opened when its request is due.
    pub connect_open: bool,
    /// The TLS setup for all connections of this thread; none without TLS.
    pub tls: Option<tls::client::Setup>,
    /// From the actual send to the last byte, in ns.
    pub timeout_ns: u64,
    /// From the attempt to the established connection, in ns.
    pub connect_timeout_ns: u64,
    /// Time between two attempts of this thread while connections are set up, in ns.
    pub connect_interval_ns: u64,
    /// Under an open loop: shortest time between two wake-ups for sends, in ns.
    pub send_quantum_ns: u64,
    /// Under a closed loop: longest time that answers wait for each other, in ns; 0 for not at all.
    pub coalesce_ns: u64,
    /// Seed that draws the connections whose answers' arrivals are watched.
    pub seed: u64,
    /// This thread's number.
    pub thread: u32,
    /// The number of threads.
    pub threads: u32,
    /// The number of this generator's origin.
    pub origin: u32,
    /// The number of origins, whose generators share the thread's driver.
    pub origins: u32,
    /// Our places among all turns, if requests go to several origins.
    pub places: Option<Places>,
    /// This thread's turns among those of all `threads`, if it has more than one of each cycle.
    pub turns: Option<Places>,
}

impl Config {
    /// Requests in flight per connection as they are sent: one, if each has its own connection.
    #[inline]
    pub(super) fn depth_used(&self) -> usize {
        if self.close { 1 } else { self.depth }
    }

    /// Whether the kernel tells when bytes arrived: not over Unix sockets.
    pub(super) fn has_arrivals(&self) -> bool {
        self.addresses.iter().all(|address| matches!(address, Address::Ip(_)))
    }

    /// The key of a slot's socket, which tells the origin, too.
    pub(super) fn socket_key(&self, key: u32) -> u32 {
        key * self.origins + self.origin
    }

    /// The time at which an attempt to connect is given up.
    pub(super) fn deadline_ns(&self, attempted_ns: u64) -> u64 {
        attempted_ns.saturating_add(self.connect_timeout_ns)
    }

    /// The number of this thread's slots, out of `total` over all threads.
    pub(super) fn own_slots(&self, total: u32) -> u32 {
        match &self.turns {
            None => dealt(total, self.threads, self.thread),
            Some(turns) => turns.among(total.into()) as u32,
        }
    }

    /// The number of a slot over all threads.
    #[inline]
    pub(super) fn global(&self, key: u32) -> u32 {
        match &self.turns {
            None => dealt_slot(key, self.threads, self.thread),
            Some(turns) => turns.place(key.into()) as u32,
        }
    }

    /// The local address of a slot's connection: the addresses take turns over all threads. None
    /// lets the kernel choose.
    pub(super) fn local_address(&self, key: u32) -> Option<IpAddr> {
        let turn = (self.global(key) as usize).checked_rem(self.local_addresses.len())?;
        Some(self.local_addresses[turn])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_thread(thread: u32, threads: u32, local_addresses: Vec<IpAddr>) -> Config {
        Config {
            addresses: Vec::new(),
            local_addresses,
            depth: 4,
            refill: 2,
            close: false,
            connect_open: false,
            tls: None,
            timeout_ns: 5,
            connect_timeout_ns: 7,
            connect_interval_ns: 1,
            send_quantum_ns: 0,
            coalesce_ns: 0,
            seed: 0,
            thread,
            threads,
            origin: 0,
            origins: 1,
            places: None,
            turns: None,
        }
    }

    #[test]
    fn local_addresses_take_turns_over_all_threads() {
        let addresses: Vec<IpAddr> = (1..=3).map(|last| [127, 0, 0, last].into()).collect();
        let mut used = Vec::new();
        for key in 0..3 {
            for thread in 0..2 {
                used.push(of_thread(thread, 2, addresses.clone()).local_address(key));
            }
        }
        let turns: Vec<_> = addresses.iter().copied().cycle().take(6).map(Some).collect();
        assert_eq!(used, turns);
        assert_eq!(of_thread(0, 1, Vec::new()).local_address(5), None);
    }

    #[test]
    fn a_connection_of_its_own_takes_one_request() {
        let config = of_thread(0, 1, Vec::new());
        assert_eq!(config.depth_used(), 4);
        assert_eq!(Config { close: true, ..config }.depth_used(), 1);
    }

    #[test]
    fn arrivals_are_known_over_ip_alone() {
        let over = |address: &str| {
            let addresses = vec![address.parse().expect("an address")];
            Config { addresses, ..of_thread(0, 1, Vec::new()) }
        };
        assert!(over("127.0.0.1:80").has_arrivals());
        assert!(!over("unix:/tmp/socket").has_arrivals());
    }

    #[test]
    fn an_attempt_is_given_up_after_its_time_and_never_without_end() {
        let config = of_thread(0, 1, Vec::new());
        assert_eq!((config.deadline_ns(3), config.deadline_ns(u64::MAX)), (10, u64::MAX));
    }
}
