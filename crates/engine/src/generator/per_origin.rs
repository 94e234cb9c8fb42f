//! Several origins on one thread: one generator for each, side by side over one driver.
//!
//! Each has its own connections, requests and accounting, and its share of every phase, as each
//! thread has. Their reports are summed up like those of threads. This module only routes: the key
//! of a socket tells which origin it belongs to. A run with one origin does not use it.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use trueload_drive::{Coalescing, Conn, ConnectError, Datagrams, Net, PeerClose, Program};
use trueload_load::{Load, Origins, Stage, Stop};

use super::{Command, Footprint, Generator, Measured, PhaseShare, Protocol};

/// The generators of one thread, one for each origin.
#[derive(Debug)]
pub struct PerOrigin<P: Protocol> {
    parts: Vec<(Sender<Command>, Generator<P>)>,
    origins: Arc<Origins>,
    inbox: Receiver<Command>,
}

impl<P: Protocol> PerOrigin<P> {
    /// Takes generators in the order of the origins, each with the channel that carries its
    /// commands.
    pub fn new(
        parts: Vec<(Sender<Command>, Generator<P>)>,
        origins: Arc<Origins>,
        inbox: Receiver<Command>,
    ) -> Self {
        PerOrigin { parts, origins, inbox }
    }

    /// Returns the generator that owns this connection, and the connection under its own key.
    fn part(&mut self, Conn { key, token }: Conn) -> (&mut Generator<P>, Conn) {
        let of = self.parts.len() as u32;
        (&mut self.parts[(key % of) as usize].1, Conn { key: key / of, token })
    }

    fn each(&mut self) -> impl Iterator<Item = &mut Generator<P>> {
        self.parts.iter_mut().map(|(_, part)| part)
    }
}

/// The coalescing that the generators agree on: none waits longer than it would alone, and the
/// first with enough events ends the wait.
fn agreed(wishes: impl Iterator<Item = Coalescing>) -> Coalescing {
    let both = |one: Coalescing, other: Coalescing| Coalescing {
        events: one.events.min(other.events),
        within_us: one.within_us.min(other.within_us),
    };
    wishes.reduce(both).unwrap_or_default()
}

impl<P: Protocol> Measured for PerOrigin<P> {
    fn footprint(&self) -> Footprint {
        let parts = self.parts.iter().map(|(_, part)| part.footprint());
        parts.fold(Footprint::default(), Footprint::max)
    }
}

impl<P: Protocol> Program for PerOrigin<P> {
    fn handle_wake(&mut self, net: &mut impl Net) {
        while let Ok(command) = self.inbox.try_recv() {
            for (origin, (inbox, _)) in (0..).zip(&self.parts) {
                // A generator that has ended no longer listens.
                let _ = inbox.send(of_origin(&self.origins, &command, origin));
            }
        }
        self.each().for_each(|part| part.handle_wake(net));
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        let (part, conn) = self.part(conn);
        part.handle_connected(net, conn);
    }

    fn handle_connect_error(&mut self, net: &mut impl Net, conn: Conn, why: ConnectError) {
        let (part, conn) = self.part(conn);
        part.handle_connect_error(net, conn, why);
    }

    #[inline]
    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], ending: bool) {
        let (part, conn) = self.part(conn);
        part.handle_input(net, conn, bytes, ending);
    }

    fn handle_drained(&mut self, net: &mut impl Net, conn: Conn) {
        let (part, conn) = self.part(conn);
        part.handle_drained(net, conn);
    }

    fn handle_datagrams(&mut self, net: &mut impl Net, conn: Conn, datagrams: Datagrams<'_>) {
        let (part, conn) = self.part(conn);
        part.handle_datagrams(net, conn, datagrams);
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, ended: PeerClose) {
        let (part, conn) = self.part(conn);
        part.handle_end(net, conn, ended);
    }

    fn handle_time(&mut self, net: &mut impl Net) {
        for part in self.each() {
            if part.wake_at_ns().is_some_and(|at_ns| at_ns <= net.now_ns()) {
                part.handle_time(net);
            }
        }
    }

    #[inline]
    fn handle_batch_end(&mut self, net: &mut impl Net) {
        self.each().for_each(|part| part.handle_batch_end(net));
        net.coalesce(agreed(self.each().map(|part| part.coalescing)));
    }

    fn wake_at_ns(&self) -> Option<u64> {
        self.parts.iter().filter_map(|(_, part)| part.wake_at_ns()).min()
    }

    fn is_done(&self) -> bool {
        self.parts.iter().all(|(_, part)| part.is_done())
    }
}

/// The command for one origin's generator that corresponds to a command for all.
fn of_origin(origins: &Origins, command: &Command, origin: u32) -> Command {
    match command {
        Command::Connections(total) => Command::Connections(origins.connections(*total, origin)),
        Command::Phase(share) => Command::Phase(share_of(origins, share, origin)),
        // The other commands are the same for all.
        other => other.clone(),
    }
}

fn share_of(origins: &Origins, share: &PhaseShare, origin: u32) -> PhaseShare {
    let connections = origins.connections(share.connections, origin);
    let senders = origins.connections(share.senders(), origin);
    PhaseShare {
        load: match &share.load {
            Load::Closed { active } => {
                let part = f64::from(senders) / f64::from(share.senders().max(1));
                let scaled = |stage: &Stage| Stage {
                    ns: stage.ns,
                    from: stage.from * part,
                    to: stage.to * part,
                };
                Load::Closed { active: active.iter().map(scaled).collect() }
            }
            // Its arrivals are those at its places among all arrivals.
            other => other.clone(),
        },
        stop: match share.stop {
            Stop::Requests(total) => Stop::Requests(origins.places(origin).among(total)),
            after @ Stop::After(_) => after,
        },
        connections,
        idle: connections.saturating_sub(senders),
        start_ns: share.start_ns,
        from_ns: share.from_ns,
        log_rows: share.log_rows,
    }
}

#[cfg(test)]
mod tests {
    use trueload_load::{Arrivals, value_at};

    use super::*;
    use crate::generator::slot::NEVER;

    const S: u64 = 1_000_000_000;

    fn parts(share: &PhaseShare) -> Vec<PhaseShare> {
        let origins = Origins::new(&[(0, 3), (1, 1)]).expect("origins");
        let commands = (0..origins.count())
            .map(|origin| of_origin(&origins, &Command::Phase(share.clone()), origin));
        let shares = commands.map(|command| match command {
            Command::Phase(share) => share,
            other => panic!("{other:?}"),
        });
        shares.collect()
    }

    #[test]
    fn what_is_divided_adds_up_and_what_is_not_is_the_same_for_all() {
        let active = [Stage { ns: S, from: 0.0, to: 40.0 }].into();
        let load = Load::Closed { active };
        let stop = Stop::Requests(1002);
        let share = PhaseShare { idle: 8, ..PhaseShare::new(load, stop, 48, 7) };
        let [first, second] = &parts(&share)[..] else { panic!("two parts") };
        assert_eq!((first.connections, first.idle), (36, 6));
        assert_eq!((second.connections, second.idle), (12, 2));
        let requests = [Stop::Requests(752), Stop::Requests(250)];
        assert_eq!([first.stop, second.stop], requests);
        let half = |share: &PhaseShare| match &share.load {
            Load::Closed { active } => value_at(active, S / 2),
            other => panic!("{other:?}"),
        };
        assert_eq!((half(first), half(second)), (15.0, 5.0));
        assert_eq!((first.start_ns, second.start_ns), (7, 7));

        let stages = [Stage { ns: S, from: 9.0, to: 9.0 }].into();
        let load = Load::Open { stages, arrivals: Arrivals::Constant };
        let share = PhaseShare { load: load.clone(), stop: Stop::After(S), ..share };
        for part in parts(&share) {
            assert_eq!((&part.load, part.stop), (&load, Stop::After(S)));
        }
    }

    #[test]
    fn answers_wait_for_each_other_as_long_as_is_right_for_every_origin() {
        let wish = |events, within_us| Coalescing { events, within_us };
        let cases = [
            ([wish(0, 0), wish(8, 20)], wish(0, 0)),
            ([wish(3, 40), wish(8, 20)], wish(3, 20)),
            ([wish(3, 40), wish(0, 0)], wish(0, 0)),
        ];
        for (wishes, expected) in cases {
            assert_eq!(agreed(wishes.into_iter()), expected, "{wishes:?}");
        }
    }

    #[test]
    fn a_phase_in_which_nobody_sends_is_one_for_each_origin() {
        let load = Load::Closed { active: [].into() };
        let stop = Stop::Requests(0);
        let share = PhaseShare { idle: 8, ..PhaseShare::new(load, stop, 8, NEVER) };
        for (part, held) in parts(&share).iter().zip([6, 2]) {
            assert_eq!((part.connections, part.idle), (held, held));
            assert_eq!(part.stop, Stop::Requests(0));
        }
    }
}
