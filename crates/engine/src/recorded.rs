//! Recorded traffic in the form that generators take. Must not know how it is read.

use std::sync::Arc;

use trueload_load::Recording;

use crate::generator::Target;

/// Requests that are sent again, and when.
#[derive(Clone, Debug)]
pub struct Replay {
    pub(crate) recording: Arc<Recording>,
    /// The requests that differ.
    pub(crate) targets: Arc<[Target]>,
    /// The length of the longest request.
    pub(crate) longest: usize,
}
