//! The client's store for resuming sessions: the tickets of one server, shared by the connections
//! of a thread.
//!
//! The cache of rustls keeps eight tickets per server, too few for hundreds of short connections.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// The maximum number of tickets, each for one use. The server decides their size (64 KiB at most)
/// and number.
const TICKETS_MOST: usize = 256;

#[derive(Default)]
struct Kept {
    group: Option<NamedGroup>,
    session: Option<Tls12ClientSessionValue>,
    tickets: VecDeque<Tls13ClientSessionValue>,
}

/// The resumable sessions of one server.
#[derive(Default)]
pub(super) struct Tickets(Mutex<Kept>);

impl Tickets {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Only one thread uses it; the trait requires the lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tickets are secrets.
        f.debug_struct("Tickets").finish_non_exhaustive()
    }
}

impl ClientSessionStore for Tickets {
    fn set_kx_hint(&self, _server: ServerName<'static>, group: NamedGroup) {
        self.kept().group = Some(group);
    }

    fn kx_hint(&self, _server: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept().group
    }

    fn set_tls12_session(&self, _server: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.kept().session = Some(session);
    }

    fn tls12_session(&self, _server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.kept().session.clone()
    }

    fn remove_tls12_session(&self, _server: &ServerName<'static>) {
        self.kept().session = None;
    }

    fn insert_tls13_ticket(&self, _server: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        if kept.tickets.len() == TICKETS_MOST {
            kept.tickets.pop_front();
        }
        kept.tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, _server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        // The server is least likely to have forgotten the newest one.
        self.kept().tickets.pop_back()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_of_the_last_handshake_is_offered_first_in_the_next() {
        let tickets = Tickets::default();
        let server = ServerName::try_from("localhost").expect("a name");
        assert_eq!(tickets.kx_hint(&server), None);
        tickets.set_kx_hint(server.clone(), NamedGroup::secp384r1);
        assert_eq!(tickets.kx_hint(&server), Some(NamedGroup::secp384r1));
        assert_eq!(format!("{tickets:?}"), "Tickets { .. }", "tickets are secrets");
    }
}
