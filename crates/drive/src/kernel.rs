//! The kernel beneath the drivers: this machine's, unless a test simulates another (`crate::fake`).

/// The kernel of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Linux;
