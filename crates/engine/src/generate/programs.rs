//! Makes the programs of a plan's threads: a generator for each, or one for each of its origins.
//!
//! The engine runs them on threads, and a simulation over a kernel of its own. Must not know: which
//! of the two it is.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use trueload_drive::Program;
use trueload_load::{Places, random};
use trueload_wire::tls::client;

use crate::blobs::Blobs;
use crate::failure::Failure;
use crate::generator::{
    Broadcast, Broadcasting, Command, Config, Generator, Measured, PerOrigin, Protocol, Served,
    TcpEcho, UdpEcho, WsEcho,
};
use crate::origins::Division;
use crate::outlet::Outlet;
use crate::protocol::{Blob, ExchangePlan, GeneratePlan};
use crate::role::Event;
use crate::{exchange, loading, plan, secrets};

/// What runs the programs of a plan.
pub trait Threads {
    /// The configuration that a generator is to have, where the plan asks for this one.
    fn config(&self, config: Config) -> Config {
        config
    }

    /// Takes the program of a thread, and the channel that carries its commands.
    fn take<P: Program + Measured + Send + 'static>(
        &mut self,
        thread: u32,
        inbox: Sender<Command>,
        program: P,
    ) -> Result<(), Failure>;
}

/// What the programs of a plan are made from; its bodies and data must have come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Programs<'a> {
    pub(super) plan: &'a GeneratePlan,
    /// The division of the plan among its origins, if it has several.
    pub(super) division: Option<&'a Division>,
    pub(super) blobs: &'a Blobs,
    /// The TLS options; none without TLS, and for several origins.
    pub(super) tls: Option<&'a client::Options>,
    /// The time since 1970 at zero of the engine's clock.
    pub(super) unix_time: Duration,
    /// Where the programs report to.
    pub(super) sink: &'a Sender<Event>,
}

/// Makes the programs of a plan that nobody else has checked or completed, and hands them to
/// `threads`. `unix_time` is the time since 1970 at zero of their clock.
pub fn make(
    plan: &GeneratePlan,
    bodies: &[Blob],
    unix_time: Duration,
    sink: &Sender<Event>,
    threads: &mut impl Threads,
) -> Result<(), Failure> {
    plan::check(plan)?;
    let mut blobs = Blobs::default();
    bodies.iter().try_for_each(|body| blobs.take(body))?;
    loading::read_now(plan, &mut blobs)?;
    let tls = plan.tls.as_ref().map(|tls| secrets::client_options(tls, &blobs)).transpose()?;
    let division = Division::of(plan)?;
    let (division, blobs, tls) = (division.as_ref(), &blobs, tls.as_ref());
    Programs { plan, division, blobs, tls, unix_time, sink }.hand_to(threads)
}

impl Programs<'_> {
    /// Makes all programs and hands them over.
    pub(super) fn hand_to(&self, threads: &mut impl Threads) -> Result<(), Failure> {
        let Programs { plan, blobs, .. } = *self;
        let (seed, own) = (plan.seed, Cell::new(0));
        // A random stream for each thread.
        let next = || {
            let thread = plan.part.thread(own.replace(own.get() + 1));
            random(seed, u64::from(thread), 0)
        };
        match plan.exchange.clone() {
            None => self.http(threads),
            Some(ExchangePlan::TcpEcho { payload_sha256, size, half_close }) => {
                let messages = exchange::messages(&payload_sha256, size, blobs)?;
                self.each(threads, || TcpEcho::new(exchange::own(&messages), half_close))
            }
            Some(ExchangePlan::UdpEcho { payload_sha256, size }) => {
                let messages = exchange::datagrams(&payload_sha256, size, blobs)?;
                self.each(threads, || UdpEcho::new(messages.clone(), next()))
            }
            Some(ExchangePlan::WsBroadcast { opening, dialect, padding }) => {
                let opening = exchange::opening(plan, &opening)?;
                let (timeout_ns, part) = (plan.timeout_ns, &plan.part);
                let own = random(seed, u64::from(part.index), 0);
                let make = || {
                    Broadcast::new(opening.clone(), dialect, padding, timeout_ns, own)
                        .of_part(part.index, part.of, seed)
                };
                self.each_in(threads, make, Broadcasting::new)
            }
            Some(ExchangePlan::WsEcho { opening, payload_sha256, size, text, dialect }) => {
                let opening = exchange::opening(plan, &opening)?;
                let messages = exchange::messages(&payload_sha256, size, blobs)?;
                let words = exchange::words(messages, text, dialect);
                // Keys and masks are random.
                self.each(threads, || WsEcho::new(opening.clone(), words.clone(), next()))
            }
        }
    }

    /// Makes a generator for each thread, with a protocol of its own.
    pub(super) fn each<P: Protocol + Send + 'static>(
        &self,
        threads: &mut impl Threads,
        protocol: impl Fn() -> P,
    ) -> Result<(), Failure>
    where
        P::Client: Send,
    {
        self.each_in(threads, protocol, |generator| generator)
    }

    /// Does the same, with a program around each generator.
    fn each_in<P: Protocol, R: Program + Measured + Send + 'static>(
        &self,
        threads: &mut impl Threads,
        protocol: impl Fn() -> P,
        program: impl Fn(Generator<P>) -> R,
    ) -> Result<(), Failure> {
        let served = Arc::new(Served::default());
        for thread in 0..self.plan.threads {
            let config = threads.config(plan::config(self.plan, self.tls, thread)?);
            let (inbox, commands) = mpsc::channel();
            let served = Arc::clone(&served);
            let outlet = self.outlet(thread);
            let generator = Generator::new(Arc::new(config), protocol(), served, commands, outlet);
            threads.take(thread, inbox, program(generator))?;
        }
        Ok(())
    }

    /// Makes a program for each thread that has a generator for each origin.
    pub(super) fn each_of_origins<P: Protocol + Send + 'static, M: Fn() -> P>(
        &self,
        threads: &mut impl Threads,
        division: &Division,
        version: impl Fn(&GeneratePlan, &Blobs, Option<Places>) -> Result<M, Failure>,
    ) -> Result<(), Failure>
    where
        P::Client: Send,
    {
        let Programs { plan, blobs, .. } = *self;
        let served = Arc::new(Served::default());
        let own = (0..).take(plan.origins.len()).map(|origin| {
            let plan = division.plan(plan, origin);
            let options = plan.tls.as_ref().map(|tls| secrets::client_options(tls, blobs));
            let places = division.order.places(origin).clone();
            let make = version(&plan, blobs, Some(places))?;
            Ok((plan, options.transpose()?, make))
        });
        let own: Vec<_> = own.collect::<Result<_, Failure>>()?;
        let order = Arc::clone(&division.order);
        for thread in 0..plan.threads {
            let mut parts = Vec::new();
            for (origin, (plan, options, make)) in (0..).zip(&own) {
                let config = plan::config(plan, options.as_ref(), thread)?;
                let config = Arc::new(threads.config(division.config(config, origin)));
                let (inbox, commands) = mpsc::channel();
                let outlet = self.outlet(thread * order.count() + origin);
                let served = Arc::clone(&served);
                parts.push((inbox, Generator::new(config, make(), served, commands, outlet)));
            }
            let (inbox, commands) = mpsc::channel();
            threads.take(thread, inbox, PerOrigin::new(parts, Arc::clone(&order), commands))?;
        }
        Ok(())
    }

    /// The destination of the reports of a thread, or of its part.
    fn outlet(&self, reporter: u32) -> Outlet<crate::generator::Report> {
        Outlet::to(self.sink.clone(), move |report| Event::Generator(reporter, report))
    }
}
