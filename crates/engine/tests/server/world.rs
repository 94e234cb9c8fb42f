//! A server with one connection, and the clock in hand.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use trueload_drive::{Conn, Program, Token};
use trueload_engine::outlet::Outlet;
use trueload_engine::protocol::{FaultsPlan, Http2Plan, Interval, Served};
use trueload_engine::server::{Command, ConnectionLimits, Faults, Report, Server, Watch};

use crate::common::{Wire, run_to};

pub(super) const MS: u64 = 1_000_000;
/// The Date of RFC 9110 §5.6.7: Sun, 06 Nov 1994 08:49:37 GMT.
pub(super) const NOVEMBER_1994_S: u64 = 784_111_777;
pub(super) const TOKEN: Token = Token { index: 0, generation: 0 };

/// A server with one connection, and the clock in hand.
pub(super) struct World {
    pub(super) server: Server,
    pub(super) wire: Wire,
    pub(super) conn: Conn,
    commands: Sender<Command>,
    reports: Receiver<Report>,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(|server| server)
    }

    /// With a server that keeps a record.
    pub(super) fn recording() -> Self {
        Self::with(|server| server.with_record(0))
    }

    /// With a record, and with these faults.
    pub(super) fn failing(plan: FaultsPlan) -> Self {
        Self::with(|server| server.with_record(0).with_faults(Faults::new(plan, 0)))
    }

    /// With HTTP/2 beside HTTP/1, a record, and perhaps with faults.
    pub(super) fn of_http2(max_streams: u32, faults: Option<FaultsPlan>) -> Self {
        Self::with(|server| {
            let server = server.with_record(0).with_http2(Http2Plan { max_streams }, faults);
            match faults {
                Some(plan) => server.with_faults(Faults::new(plan, 0)),
                None => server,
            }
        })
    }

    /// With these limits of connections, and with HTTP/2.
    pub(super) fn limited(limits: ConnectionLimits) -> Self {
        let http2 = Http2Plan { max_streams: 100 };
        Self::of(limits, |server| server.with_record(0).with_http2(http2, None))
    }

    fn with(habits: impl Fn(Server) -> Server) -> Self {
        Self::of(ConnectionLimits::default(), habits)
    }

    fn of(limits: ConnectionLimits, habits: impl Fn(Server) -> Server) -> Self {
        let (commands, inbox) = channel();
        let (sink, reports) = channel();
        let watch = Watch::new(0, inbox, Outlet::to(sink, |report| report)).with_limits(limits);
        let mut server = habits(Server::new(None, watch));
        let epoch = Duration::from_secs(NOVEMBER_1994_S);
        let mut wire = Wire { epoch, ..Wire::default() };
        let key = server.handle_accepted(&mut wire, TOKEN);
        let conn = Conn { key, token: TOKEN };
        World { server, wire, conn, commands, reports }
    }

    /// Another connection.
    pub(super) fn accept(&mut self, index: u32) -> Conn {
        let token = Token { index, generation: 0 };
        Conn { key: self.server.handle_accepted(&mut self.wire, token), token }
    }

    pub(super) fn receive(&mut self, text: &[u8]) {
        self.server.handle_input(&mut self.wire, self.conn, text, false);
    }

    /// Lets time pass up to `until_ns`, waking the server whenever it asks for it.
    pub(super) fn pass(&mut self, until_ns: u64) {
        run_to(&mut self.server, &mut self.wire, until_ns);
    }

    pub(super) fn sent(&self) -> String {
        String::from_utf8_lossy(&self.wire.bytes()).into_owned()
    }

    pub(super) fn is_closed(&self) -> bool {
        !self.wire.closed.is_empty()
    }

    /// What was sent, but for the clock.
    pub(super) fn sent_undated(&self) -> Vec<String> {
        let sent = self.sent();
        sent.lines().filter(|line| !line.starts_with("Date: ")).map(str::to_owned).collect()
    }

    pub(super) fn statuses(&self) -> Vec<String> {
        let sent = self.sent();
        let heads = sent.match_indices("HTTP/1.1 ").map(|(at, _)| sent[at + 9..at + 12].to_owned());
        heads.collect()
    }

    /// What was seen since the mark before.
    pub(super) fn mark(&mut self) -> Interval {
        self.commands.send(Command::Mark).expect("the server listens");
        self.server.handle_wake(&mut self.wire);
        match self.reports.try_iter().last() {
            Some(Report::Marked { interval, .. }) => interval.report("m".into()),
            other => panic!("no interval: {other:?}"),
        }
    }

    pub(super) fn seen(mut self) -> Served {
        self.commands.send(Command::Stop).expect("the server listens");
        self.server.handle_wake(&mut self.wire);
        assert!(self.server.is_done());
        match self.reports.try_iter().last() {
            Some(Report::Counts { seen, ended: true, .. }) => seen,
            other => panic!("no last report: {other:?}"),
        }
    }
}
