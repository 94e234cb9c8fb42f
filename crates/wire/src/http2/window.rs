//! Flow-control windows (RFC 9113 §5.2 and §6.9).

use super::frame::ErrorCode;

/// The initial size of every window.
pub const WINDOW_FIRST: u32 = 65_535;
/// The maximum size of a window.
pub const WINDOW_MOST: u32 = (1 << 31) - 1;

/// The amount that we may send to a peer. SETTINGS can make it negative (RFC 9113 §6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendWindow(i64);

/// The error for a window beyond 2^31 - 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl Overflow {
    /// The error code that is sent to the peer.
    pub const CODE: ErrorCode = ErrorCode::FlowControlError;
}

impl SendWindow {
    /// A window of `bytes`.
    pub fn new(bytes: u32) -> Self {
        SendWindow(i64::from(bytes))
    }

    /// The number of bytes that may be sent.
    #[inline]
    pub fn room(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Takes up the window for `bytes` sent, which must not exceed the room.
    #[inline]
    pub fn spend(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.room());
        self.0 -= bytes as i64;
    }

    /// Changes the window: the peer granted more room, or SETTINGS changed it.
    #[inline]
    pub fn change(&mut self, by: i64) -> Result<(), Overflow> {
        let changed = self.0 + by;
        if changed > i64::from(WINDOW_MOST) {
            return Err(Overflow);
        }
        self.0 = changed;
        Ok(())
    }
}

/// The amount that a peer may send to us. It is granted more when half of the window is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveWindow {
    size: u32,
    /// The amount that the peer may still send.
    left: u32,
    /// The bytes consumed since the last grant.
    taken: u32,
    /// The last grant, once it was sent. The peer may not know of it yet.
    granted: u32,
}

impl ReceiveWindow {
    /// A window of a size that the peer knows.
    pub fn new(size: u32) -> Self {
        ReceiveWindow { size, left: size, taken: 0, granted: 0 }
    }

    /// Notes that the peer has sent `bytes`.
    #[inline]
    pub fn receive(&mut self, bytes: u32) -> Result<(), Overflow> {
        self.left = self.left.checked_sub(bytes).ok_or(Overflow)?;
        Ok(())
    }

    /// Notes that `bytes` were consumed and are no longer in memory. Returns the grant to send to
    /// the peer, if it is time for one. It counts from [`ReceiveWindow::grant`] on.
    #[inline]
    #[must_use]
    pub fn release(&mut self, bytes: u32) -> Option<u32> {
        self.taken += bytes;
        if self.taken <= self.size / 2 {
            return None;
        }
        self.granted = 0;
        Some(std::mem::take(&mut self.taken))
    }

    /// Notes that a grant was sent. What had come before cannot have used it.
    pub fn grant(&mut self, by: u32) {
        self.left += by;
        self.granted = by;
    }

    /// Whether the peer has used all that it had before our last grant. It may then have waited for
    /// the grant.
    #[inline]
    pub fn is_used_up(&self) -> bool {
        self.left == self.granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_to_send_into_may_be_negative_and_has_an_upper_bound() {
        let mut window = SendWindow::new(WINDOW_FIRST);
        window.spend(65_000);
        assert_eq!(window.room(), 535);
        assert_eq!((window.change(-65_535), window.room()), (Ok(()), 0), "SETTINGS say 0");
        assert_eq!((window.change(65_000), window.room()), (Ok(()), 0), "it was -65,000");
        assert_eq!((window.change(10), window.room()), (Ok(()), 10));
        assert_eq!(window.change(i64::from(WINDOW_MOST) - 10), Ok(()));
        assert_eq!((window.change(1), window.room()), (Err(Overflow), WINDOW_MOST as usize));
    }

    #[test]
    fn a_peer_is_told_of_more_room_when_half_of_it_is_used() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!(window.receive(50), Ok(()));
        assert_eq!(window.release(50), None, "half is left");
        assert_eq!(window.receive(51), Err(Overflow), "it was not told of more");
        assert_eq!(window.receive(50), Ok(()));
        assert_eq!(window.release(1), Some(51));
        assert_eq!((window.is_used_up(), window.receive(1)), (true, Err(Overflow)), "not sent");
        window.grant(51);
        assert!(window.is_used_up());
        assert_eq!(window.receive(51), Ok(()));
        assert!(!window.is_used_up());
        assert_eq!(window.receive(1), Err(Overflow));
        assert_eq!(window.receive(0), Ok(()));
        let mut none = ReceiveWindow::new(0);
        assert_eq!((none.receive(0), none.receive(1)), (Ok(()), Err(Overflow)));
    }
}
