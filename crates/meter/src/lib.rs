//! The counts of a phase: requests by outcome, latencies, and the series over time.
//!
//! Everything here is pure: values in, counts out, merged without loss over threads and hosts.
//!
//! Must not know: sockets, protocols, the clock.

mod backlog;
mod cells;
mod class;
mod counts;
mod datagrams;
mod deflate;
mod early;
mod flow;
mod idle;
mod kinds;
mod lazy;
mod ledger;
mod log;
mod merge;
mod messages;
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
mod together;
mod track;
mod work;

pub use backlog::Backlog;
pub use class::Class;
pub use counts::{Counts, is_zero};
pub use datagrams::Datagrams;
pub use deflate::Deflate;
pub use early::Early;
pub use flow::{Flow, FlowReport};
pub use idle::IdleClosed;
pub use kinds::{Kind, Kinds, OtherKinds};
pub use lazy::Lazy;
pub use ledger::{
    Delivered, Deliveries, DeliveryHistograms, Failed, Finished, Handle, Ledger, Origin, Settled,
};
pub use log::{Logged, RequestLog};
pub use merge::Merge;
pub use messages::Messages;
pub use meter::{Answered, Meter};
pub use openings::Openings;
pub use packed::Packed;
pub use redirects::Redirects;
pub use series::{BINS_MOST, Bin, Recorded, Series};
pub use session::SessionMeter;
pub use slots::{LongWaits, SlotSums};
pub use sparse::{Counted, Recent, Sparse, index};
pub use spread::{Figures, Spread};
pub use streams::{StreamHistograms, Streams};
pub use target::TargetMeter;
pub use times::{EncodedTimes, Times};
pub use track::{TARGETS_TRACKED_MOST, TargetTrack};
pub use work::{Work, WorkReport};

/// A sum of times over requests or connections, in ns. 64 bits do not hold two days of it: 213,000
/// requests in flight fill them within one.
pub type SumNs = u128;
