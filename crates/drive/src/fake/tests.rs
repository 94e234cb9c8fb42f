//! Tests of the real driver code in simulated worlds: each connection receives what its peer's
//! script sends, whatever the kernel chooses, and the same over both drivers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use rustix::io::Errno;

use super::*;
use crate::{Address, Conn, ConnectError, Net, PeerClose, Token, Transport};

/// Seeds of each test, unless `TRUELOAD_SEEDS` gives another number.
const SEEDS: u64 = 250;
/// The port of the first connection's peer.
const FIRST_PORT: u16 = 1000;

/// The way a connection ends once the exchanges are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// The peer ends its side, or resets, after a part of the last answer.
    PeerEnds,
    PeerResets,
    /// The same, in the middle of the last question.
    PeerEndsEarly,
    PeerResetsEarly,
    /// The program closes, or resets, when it has all answers.
    Close,
    Reset,
    /// The program ends its side with the last question, and is notified of the peer's end.
    EndSending,
    /// The program finishes when its last question is sent, and does not receive the answer.
    Finish,
    /// The program asks nothing, and ends its side while the connection is being set up.
    EndAtOnce,
}

/// The plan of one connection, drawn from the seed: the peer's script and the program's side of it.
#[derive(Clone, Debug)]
struct Plan {
    answer: Answer,
    /// Bytes of each question and of its answer.
    exchanges: Vec<(usize, usize)>,
    ending: Ending,
    /// The first question is asked before the connection is established.
    asks_early: bool,
}

/// The outcome of a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Outcome {
    connected: bool,
    refused: Option<ConnectError>,
    received: usize,
    ended: Option<PeerClose>,
    left: bool,
}

impl Plan {
    fn draw(seed: u64, key: usize) -> Self {
        use Ending::*;
        let mut rng = Rng::new(seed.wrapping_mul(1_000_003).wrapping_add(key as u64));
        let failures = [Errno::CONNREFUSED, Errno::TIMEDOUT, Errno::HOSTUNREACH];
        let answer = match rng.one_in(8) {
            true => Answer::Fail(failures[rng.below(failures.len())]),
            false => Answer::Accept,
        };
        let most = [10, 500, 6_000][rng.below(3)];
        let mut exchanges: Vec<(usize, usize)> =
            (0..rng.up_to(6)).map(|_| (rng.up_to(most), rng.up_to(most))).collect();
        let endings = [
            PeerEnds,
            PeerResets,
            PeerEndsEarly,
            PeerResetsEarly,
            Close,
            Reset,
            EndSending,
            Finish,
            EndAtOnce,
        ];
        let ending = endings[rng.below(endings.len())];
        if ending == EndAtOnce {
            exchanges = vec![(0, rng.up_to(most))];
        }
        Plan { answer, exchanges, ending, asks_early: rng.one_in(3) || ending == EndAtOnce }
    }

    fn peer(&self) -> Peer {
        let mut steps = Vec::new();
        let (last, before) = self.exchanges.split_last().expect("one at least");
        for (question, answer) in before {
            steps.extend([Step::Receive(*question), Step::Send(*answer)]);
        }
        let (question, answer) = *last;
        match self.ending {
            Ending::PeerEnds => {
                steps.extend([Step::Receive(question), Step::Send(answer / 2), Step::Fin]);
            }
            Ending::PeerResets => {
                steps.extend([Step::Receive(question), Step::Send(answer / 2), Step::Reset]);
            }
            Ending::PeerEndsEarly => steps.extend([Step::Receive(question.div_ceil(2)), Step::Fin]),
            Ending::PeerResetsEarly => {
                steps.extend([Step::Receive(question.div_ceil(2)), Step::Reset]);
            }
            Ending::Close | Ending::Reset => {
                steps.extend([Step::Receive(question), Step::Send(answer)]);
            }
            Ending::EndAtOnce => steps.extend([Step::ReceiveEnd, Step::Send(answer), Step::Fin]),
            Ending::EndSending => {
                let receives = [Step::Receive(question), Step::ReceiveEnd];
                steps.extend(receives.into_iter().chain([Step::Send(answer), Step::Fin]));
            }
            Ending::Finish => steps.push(Step::Receive(question)),
        }
        Peer { answer: self.answer, steps }
    }

    /// The outcome that the program is to see.
    fn expected(&self) -> Outcome {
        let connected = self.answer == Answer::Accept;
        let refused = match self.answer {
            Answer::Accept => None,
            Answer::Fail(errno) => Some(crate::socket::connect_error(errno)),
        };
        if refused.is_some() {
            return Outcome { connected, refused, ..Outcome::default() };
        }
        let (last, before) = self.exchanges.split_last().expect("one at least");
        let before: usize = before.iter().map(|(_, answer)| answer).sum();
        let (of_last, ended, left) = match self.ending {
            Ending::PeerEnds => (last.1 / 2, Some(PeerClose::Fin), false),
            Ending::PeerResets => (last.1 / 2, Some(PeerClose::Reset), false),
            Ending::PeerEndsEarly => (0, Some(PeerClose::Fin), false),
            Ending::PeerResetsEarly => (0, Some(PeerClose::Reset), false),
            Ending::Close | Ending::Reset => (last.1, None, true),
            Ending::EndSending | Ending::EndAtOnce => (last.1, Some(PeerClose::Fin), false),
            Ending::Finish => (0, None, true),
        };
        Outcome { connected, refused, received: before + of_last, ended, left }
    }
}

/// The program's side of one connection.
struct Caller {
    plan: Plan,
    token: Option<Token>,
    asked: usize,
    /// The part of its questions that is still to be sent.
    unsent: Range<usize>,
    outcome: Outcome,
}

impl Caller {
    fn is_over(&self) -> bool {
        let Outcome { connected, refused, ended, left, .. } = &self.outcome;
        ended.is_some() || refused.is_some() || (*left && *connected)
    }
}

/// Runs many plans, some at once, until each has come to its end.
struct Crowd {
    callers: Vec<Caller>,
    /// The bytes that every connection sends, from the start.
    bytes: Arc<[u8]>,
    rng: Rng,
    /// Connections begun so far, and how many run at once: the others take their places later.
    begun: usize,
    at_once: usize,
    /// Hands its sends over at the end of each batch, as the generator does.
    hands_over: bool,
    /// Sends no more than the kernel takes, and the rest when notified that the kernel has taken
    /// it.
    waits_for_room: bool,
}

impl Crowd {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(!seed);
        let plans = (0..rng.up_to(16)).map(|key| Plan::draw(seed, key));
        let callers = plans.map(|plan| Caller {
            plan,
            token: None,
            asked: 0,
            unsent: 0..0,
            outcome: Outcome::default(),
        });
        let callers: Vec<Caller> = callers.collect();
        let bytes = (0..6 * 6_000).map(pattern).collect();
        let at_once = rng.up_to(8);
        let (hands_over, waits_for_room) = (rng.one_in(2), rng.one_in(2));
        Crowd { callers, bytes, rng, begun: 0, at_once, hands_over, waits_for_room }
    }

    /// Begins further connections in the places of those that are over.
    fn begin(&mut self, net: &mut impl Net) {
        let over = self.callers.iter().filter(|caller| caller.is_over()).count();
        let most = (over + self.at_once).min(self.callers.len());
        for key in self.begun..most {
            let port = FIRST_PORT + key as u16;
            let to = Address::Ip(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
            let token = net.connect(key as u32, to.over(Transport::Stream));
            self.callers[key].token = Some(token.expect("an attempt"));
            if self.callers[key].plan.asks_early {
                self.ask(net, key);
            }
        }
        self.begun = self.begun.max(most);
    }

    fn ask(&mut self, net: &mut impl Net, key: usize) {
        let caller = &mut self.callers[key];
        let question = caller.plan.exchanges[caller.asked].0;
        caller.asked += 1;
        caller.unsent.end += question;
        self.go_on_asking(net, key);
    }

    /// Sends the unsent bytes in a few pieces, copied or shared. Finishes, or ends its side, after
    /// the last question if that is planned.
    fn go_on_asking(&mut self, net: &mut impl Net, key: usize) {
        let caller = &mut self.callers[key];
        let token = caller.token.expect("it has begun");
        while !caller.unsent.is_empty() {
            if self.waits_for_room && net.queued_bytes(token) > 0 {
                return;
            }
            let piece = self.rng.up_to(caller.unsent.len());
            let range = caller.unsent.start..caller.unsent.start + piece;
            caller.unsent.start = range.end;
            send(net, &mut self.rng, token, &self.bytes, range);
        }
        let last = caller.asked == caller.plan.exchanges.len();
        match caller.plan.ending {
            Ending::EndSending | Ending::EndAtOnce if last => net.end_sending(token),
            Ending::Finish if last => {
                net.finish(token);
                caller.outcome.left = true;
            }
            _ => {}
        }
    }

    /// The program's side of a live connection.
    fn caller(&mut self, conn: Conn) -> &mut Caller {
        let caller = &mut self.callers[conn.key as usize];
        assert_eq!(caller.token, Some(conn.token), "{conn:?}");
        assert_eq!(caller.outcome.ended, None, "{conn:?} has ended");
        assert_eq!(caller.outcome.refused, None, "{conn:?} was refused");
        caller
    }

    fn outcomes(&self) -> BTreeMap<usize, Outcome> {
        let outcomes = self.callers.iter().map(|caller| caller.outcome.clone());
        outcomes.enumerate().collect()
    }
}

fn send(net: &mut impl Net, rng: &mut Rng, token: Token, bytes: &Arc<[u8]>, range: Range<usize>) {
    if rng.one_in(2) {
        net.send(token, &bytes[range]);
    } else {
        net.send_shared(token, bytes, range);
    }
    if rng.one_in(4) {
        net.hand_over();
    }
}

impl Program for Crowd {
    fn handle_wake(&mut self, net: &mut impl Net) {
        self.begin(net);
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        let caller = self.caller(conn);
        assert!(!caller.outcome.connected, "{conn:?} is there already");
        caller.outcome.connected = true;
        if caller.asked == 0 {
            self.ask(net, conn.key as usize);
        }
    }

    fn handle_connect_error(&mut self, _: &mut impl Net, conn: Conn, why: ConnectError) {
        let outcome = &mut self.caller(conn).outcome;
        (outcome.refused, outcome.left) = (Some(why), false);
    }

    fn handle_input(&mut self, net: &mut impl Net, conn: Conn, bytes: &[u8], _: bool) {
        let caller = self.caller(conn);
        assert!(caller.outcome.connected, "{conn:?} is not there yet");
        for byte in bytes {
            assert_eq!(*byte, pattern(caller.outcome.received), "{conn:?}");
            caller.outcome.received += 1;
        }
        let answered = caller.plan.exchanges[..caller.asked].iter().map(|(_, answer)| answer);
        if caller.outcome.received < answered.sum() {
            return;
        }
        if caller.asked < caller.plan.exchanges.len() {
            self.ask(net, conn.key as usize);
            return;
        }
        match caller.plan.ending {
            Ending::Close => net.close(conn.token),
            Ending::Reset => net.reset(conn.token),
            _ => return,
        }
        caller.outcome.left = true;
    }

    fn handle_drained(&mut self, net: &mut impl Net, conn: Conn) {
        let caller = self.caller(conn);
        let goes_on = !caller.unsent.is_empty();
        assert_eq!(net.queued_bytes(conn.token), 0, "{conn:?}");
        if goes_on {
            self.go_on_asking(net, conn.key as usize);
        }
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, ended: PeerClose) {
        self.caller(conn).outcome.ended = Some(ended);
        net.close(conn.token);
    }

    fn handle_batch_end(&mut self, net: &mut impl Net) {
        self.begin(net);
        if self.hands_over {
            net.hand_over();
        }
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.callers.iter().all(Caller::is_over)
    }
}

fn world(seed: u64) -> Rc<RefCell<World>> {
    let peers = move |port: u16| Plan::draw(seed, usize::from(port - FIRST_PORT)).peer();
    Rc::new(RefCell::new(World::new(seed, peers)))
}

fn seeds() -> Range<u64> {
    let seeds = std::env::var("TRUELOAD_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    0..seeds.unwrap_or(SEEDS)
}

/// Prints the seed if a run panics.
struct Playing(&'static str, u64);

impl Drop for Playing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}, seed {}", self.0, self.1);
        }
    }
}

fn run_over(
    driver: &'static str,
    run: impl Fn(&Rc<RefCell<World>>, &mut Crowd) -> io::Result<()>,
    seed: u64,
) -> Crowd {
    let _playing = Playing(driver, seed);
    let (mut crowd, world) = (Crowd::new(seed), world(seed));
    run(&world, &mut crowd).unwrap_or_else(|error| panic!("{driver}, seed {seed}: {error}"));
    let held_up = world.borrow().held_up;
    assert!(held_up == 0 || !crowd.hands_over, "{driver}, seed {seed}: news waited for a send");
    for caller in &crowd.callers {
        let (plan, outcome) = (&caller.plan, &caller.outcome);
        assert_eq!(*outcome, plan.expected(), "{driver}, seed {seed}: {plan:?}");
    }
    crowd
}

#[test]
fn each_connection_receives_what_its_peer_sends_whatever_the_kernel_chooses_over_both_drivers() {
    for seed in seeds() {
        let over_uring = run_over("io_uring", run_uring, seed).outcomes();
        assert_eq!(over_uring, run_over("epoll", run_epoll, seed).outcomes(), "seed {seed}");
    }
}

#[test]
fn slow_connections_receive_and_send_the_same_over_both_drivers() {
    // Pieces of 16 KiB hold all that a peer sends, and each is followed by a wait.
    let rates = Rates { read_per_s: 1 << 24, write_per_s: 1 << 24 };
    for seed in seeds().step_by(2) {
        run_over("io_uring", |world, crowd| run_slow_uring(world, crowd, rates), seed);
        run_over("epoll", |world, crowd| run_slow_epoll(world, crowd, rates), seed);
    }
}

#[test]
fn a_run_in_which_the_kernel_has_lost_completions_ends_with_an_error_that_says_so() {
    let mut runs_with_losses = 0;
    for seed in seeds() {
        let _playing = Playing("io_uring", seed);
        let (mut crowd, world) = (Crowd::new(seed), world(seed));
        world.borrow_mut().loses = true;
        let outcome = run_uring(&world, &mut crowd);
        let lost = world.borrow().lost;
        if lost == 0 {
            continue;
        }
        runs_with_losses += 1;
        // A completion that is lost when nobody waits for it any more is not missed.
        let reported = outcome.as_ref().is_err_and(|error| error.to_string().contains("lost"));
        let whole = crowd.callers.iter().all(|caller| caller.outcome == caller.plan.expected());
        assert!(reported || (outcome.is_ok() && whole), "seed {seed}: {lost} lost, {outcome:?}");
    }
    assert!(runs_with_losses > seeds().end / 25, "only {runs_with_losses} runs with losses");
}
