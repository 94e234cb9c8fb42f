//! Which kernel carries the drivers: this machine's, unless a test plays another one (`crate::fake`).

/// The kernel of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;
