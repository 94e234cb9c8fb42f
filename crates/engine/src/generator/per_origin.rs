//! Several origins on one thread: one generator for each, side by side over one driver.
//!
//! Each has its own connections, requests and accounting, and its share of every phase, as each
//! thread has. Their reports are summed up like those of threads. This module only routes: the key
//! of a socket tells which origin it belongs to. A run with one origin does not use it.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use trueload_drive::{
    Coalescing, ConnectError, Datagrams, HandOver, Net, PeerClose, Program, Remote, ThreadUse,
    Token,
};
use trueload_load::{Load, Origins, Stage, Stop};

use super::{Command, Footprint, Generator, Measured, PhaseShare, Protocol};

/// The generators of one thread, one for each origin.
#[derive(Debug)]
pub struct PerOrigin<P: Protocol> {
    parts: Vec<(Sender<Command>, Generator<P>)>,
    origins: Arc<Origins>,
    inbox: Receiver<Command>,
    wishes: Wishes,
}

/// The coalescing that each origin's generator asks for.
#[derive(Debug)]
struct Wishes {
    of_each: Vec<Coalescing>,
    /// A wish has changed since the last agreement was passed to the driver.
    changed: bool,
}

impl Wishes {
    fn set(&mut self, origin: u32, wish: Coalescing) {
        let before = std::mem::replace(&mut self.of_each[origin as usize], wish);
        self.changed |= before != wish;
    }

    /// The agreed coalescing: none waits longer than it would alone, and the first with enough
    /// events ends the wait.
    fn agreed(&self) -> Coalescing {
        let least = |part: fn(&Coalescing) -> u32| self.of_each.iter().map(part).min().unwrap_or(0);
        Coalescing { events: least(|wish| wish.events), within_us: least(|wish| wish.within_us) }
    }
}

impl<P: Protocol> PerOrigin<P> {
    /// Takes generators in the order of the origins, each with the channel that carries its
    /// commands.
    pub fn new(
        parts: Vec<(Sender<Command>, Generator<P>)>,
        origins: Arc<Origins>,
        inbox: Receiver<Command>,
    ) -> Self {
        let of_each = vec![Coalescing::default(); parts.len()];
        PerOrigin { parts, origins, inbox, wishes: Wishes { of_each, changed: false } }
    }

    /// Returns the generator that owns the socket of this key, its own key for it, and its view of
    /// the driver.
    fn part<'a>(
        &'a mut self,
        net: &'a mut impl Net,
        key: u32,
    ) -> (&'a mut Generator<P>, u32, OfOrigin<'a>) {
        let of = self.parts.len() as u32;
        let (origin, key) = (key % of, key / of);
        let wishes = &mut self.wishes;
        (&mut self.parts[origin as usize].1, key, OfOrigin { net, origin, of, wishes })
    }

    /// Calls `look` with every generator and its view of the driver.
    fn each(
        &mut self,
        net: &mut impl Net,
        mut look: impl FnMut(&mut Generator<P>, &mut OfOrigin<'_>),
    ) {
        let of = self.parts.len() as u32;
        for (origin, (_, part)) in (0..).zip(&mut self.parts) {
            look(part, &mut OfOrigin { net, origin, of, wishes: &mut self.wishes });
        }
    }
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
        self.each(net, |part, net| part.handle_wake(net));
    }

    fn handle_accepted(&mut self, net: &mut impl Net, token: Token) -> u32 {
        net.close(token);
        u32::MAX
    }

    fn handle_connected(&mut self, net: &mut impl Net, key: u32, token: Token) {
        let (part, key, mut net) = self.part(net, key);
        part.handle_connected(&mut net, key, token);
    }

    fn handle_connect_error(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        why: ConnectError,
    ) {
        let (part, key, mut net) = self.part(net, key);
        part.handle_connect_error(&mut net, key, token, why);
    }

    #[inline]
    fn handle_input(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        bytes: &[u8],
        ending: bool,
    ) {
        let (part, key, mut net) = self.part(net, key);
        part.handle_input(&mut net, key, token, bytes, ending);
    }

    fn handle_drained(&mut self, net: &mut impl Net, key: u32, token: Token) {
        let (part, key, mut net) = self.part(net, key);
        part.handle_drained(&mut net, key, token);
    }

    fn handle_datagrams(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        datagrams: Datagrams<'_>,
    ) {
        let (part, key, mut net) = self.part(net, key);
        part.handle_datagrams(&mut net, key, token, datagrams);
    }

    fn handle_end(&mut self, net: &mut impl Net, key: u32, token: Token, ended: PeerClose) {
        let (part, key, mut net) = self.part(net, key);
        part.handle_end(&mut net, key, token, ended);
    }

    fn handle_time(&mut self, net: &mut impl Net) {
        self.each(net, |part, net| {
            if part.wake_at_ns().is_some_and(|at_ns| at_ns <= net.now_ns()) {
                part.handle_time(net);
            }
        });
    }

    #[inline]
    fn handle_batch_end(&mut self, net: &mut impl Net) {
        self.each(net, |part, net| part.handle_batch_end(net));
        if std::mem::take(&mut self.wishes.changed) {
            net.coalesce(self.wishes.agreed());
        }
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
    }
}

/// The driver as one origin's generator sees it. Keys of its connections encode the origin, and its
/// coalescing wish is combined with those of the others.
///
/// The driver is reached by a call through a table, which costs a few nanoseconds. It keeps the
/// generators of several origins from being compiled once more for each driver.
struct OfOrigin<'a> {
    net: &'a mut dyn Net,
    origin: u32,
    of: u32,
    wishes: &'a mut Wishes,
}

impl Net for OfOrigin<'_> {
    #[inline]
    fn now_ns(&self) -> u64 {
        self.net.now_ns()
    }

    fn read_clock(&mut self) {
        self.net.read_clock();
    }

    fn spun_ns(&self) -> u64 {
        self.net.spun_ns()
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.net.thread_cpu_ns()
    }

    fn thread_use(&self) -> ThreadUse {
        self.net.thread_use()
    }

    fn unix_time(&self) -> Duration {
        self.net.unix_time()
    }

    fn wake_promptly(&mut self, promptly: bool) {
        self.net.wake_promptly(promptly);
    }

    fn stay_awake_until(&mut self, at_ns: u64) {
        self.net.stay_awake_until(at_ns);
    }

    fn can_coalesce(&self) -> bool {
        self.net.can_coalesce()
    }

    fn coalesce(&mut self, coalescing: Coalescing) {
        self.wishes.set(self.origin, coalescing);
    }

    fn connect(
        &mut self,
        key: u32,
        to: Remote<'_>,
        from: Option<IpAddr>,
    ) -> Result<Token, ConnectError> {
        self.net.connect(key * self.of + self.origin, to, from)
    }

    #[inline]
    fn send(&mut self, token: Token, bytes: &[u8]) {
        self.net.send(token, bytes);
    }

    #[inline]
    fn send_shared(&mut self, token: Token, bytes: &Arc<[u8]>, range: Range<usize>) {
        self.net.send_shared(token, bytes, range);
    }

    #[inline]
    fn send_datagrams(&mut self, token: Token, datagrams: Datagrams<'_>) {
        self.net.send_datagrams(token, datagrams);
    }

    fn dropped_datagrams(&self) -> u64 {
        self.net.dropped_datagrams()
    }

    fn overflowed_datagrams(&self) -> u64 {
        self.net.overflowed_datagrams()
    }

    fn hand_over(&mut self) -> HandOver {
        self.net.hand_over()
    }

    fn watch_arrivals(&mut self, token: Token) {
        self.net.watch_arrivals(token);
    }

    #[inline]
    fn arrived_ns(&self) -> Option<u64> {
        self.net.arrived_ns()
    }

    fn unacknowledged_bytes(&mut self, token: Token) -> Option<u64> {
        self.net.unacknowledged_bytes(token)
    }

    fn least_rtt_ns(&mut self, token: Token) -> Option<u64> {
        self.net.least_rtt_ns(token)
    }

    fn end_sending(&mut self, token: Token) {
        self.net.end_sending(token);
    }

    fn unsent_bytes(&self, token: Token) -> usize {
        self.net.unsent_bytes(token)
    }

    #[inline]
    fn queued_bytes(&self, token: Token) -> usize {
        self.net.queued_bytes(token)
    }

    fn close(&mut self, token: Token) {
        self.net.close(token);
    }

    fn reset(&mut self, token: Token) {
        self.net.reset(token);
    }

    fn finish(&mut self, token: Token) {
        self.net.finish(token);
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
        let share = PhaseShare { load, stop, connections: 48, idle: 8, start_ns: 7, from_ns: 0 };
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
        let mut wishes = Wishes { of_each: vec![Coalescing::default(); 2], changed: false };
        let mut reported = Vec::new();
        let received = [(0, wish(8, 20)), (0, wish(8, 20)), (1, wish(3, 40)), (0, wish(0, 0))];
        for (origin, wish) in received {
            wishes.set(origin, wish);
            reported.push((std::mem::take(&mut wishes.changed), wishes.agreed()));
        }
        let nothing = Coalescing::default();
        let expected = [(true, nothing), (false, nothing), (true, wish(3, 20)), (true, nothing)];
        assert_eq!(reported, expected);
    }

    #[test]
    fn a_phase_in_which_nobody_sends_is_one_for_each_origin() {
        let load = Load::Closed { active: [].into() };
        let stop = Stop::Requests(0);
        let share = PhaseShare { load, stop, connections: 8, idle: 8, start_ns: NEVER, from_ns: 0 };
        for (part, held) in parts(&share).iter().zip([6, 2]) {
            assert_eq!((part.connections, part.idle), (held, held));
            assert_eq!(part.stop, Stop::Requests(0));
        }
    }
}
