//! The counts of a phase: requests by outcome, latencies, and the series over time.
//!
//! Everything here is pure: values in, counts out, merged without loss over threads and hosts.
//!
//! Must not know: sockets, protocols, the clock.

mod backlog;
mod cells;
mod class;
mod datagrams;
mod early;
mod flow;
mod idle;
mod kinds;
mod lazy;
mod ledger;
mod meter;
mod openings;
mod packed;
mod redirects;
mod series;
mod session;
mod slots;
mod sparse;
mod spread;
mod streams;
mod target;
mod times;
mod work;

pub use backlog::Backlog;
pub use class::Class;
pub use datagrams::Datagrams;
pub use early::Early;
pub use flow::Flow;
pub use idle::IdleClosed;
pub use kinds::{Kind, Kinds, Others};
pub use ledger::{Delivered, Deliveries, Failed, Finished, Handle, Ledger, Origin, Settled};
pub use meter::{Answered, Meter};
pub use openings::{EncodedOpenings, Openings};
pub use packed::Packed;
pub use redirects::Redirects;
pub use series::{BINS_MOST, Bin, Recorded, Series};
pub use session::SessionMeter;
pub use slots::{LongWaits, SlotSums, SlowSlot};
pub use sparse::{Counted, Recent, Sparse, index};
pub use spread::{Figures, Spread};
pub use streams::{EncodedStreams, Streams};
pub use target::TargetMeter;
pub use times::{EncodedTimes, Times};
pub use work::Work;

/// A sum of times over requests or connections, in ns. 64 bits do not hold two days of it: 213,000
/// requests in flight fill them within one.
pub type SumNs = u128;
