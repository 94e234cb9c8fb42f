//! The windows of a connection, ours and the peer's, and the streams that wait for one (RFC 9113
//! §5.2, §6.9).

use std::collections::VecDeque;

use crate::http2::frame::write_window_update;
use crate::http2::hpack;
use crate::http2::violation::Violation;
use crate::http2::window::{Overflow, ReceiveWindow, SendWindow, WINDOW_FIRST};

/// The amount that the peer may send before we enlarge its window again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// The window of each stream in bytes, up to 2^31 - 1.
    pub stream: u32,
    /// The window of the whole connection in bytes, 65,535 to 2^31 - 1.
    pub connection: u32,
}

impl Windows {
    /// The initial windows of RFC 9113.
    pub const RFC: Windows = Windows { stream: WINDOW_FIRST, connection: WINDOW_FIRST };
}

/// The parameters that we announce to the peer before it answers anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The windows for the peer.
    pub windows: Windows,
    /// The size of the table that the peer's header blocks may use, up to
    /// [`hpack::TABLE_BYTES_MOST`].
    pub table_bytes: u32,
}

impl From<Windows> for Terms {
    fn from(windows: Windows) -> Self {
        Terms { windows, table_bytes: hpack::TABLE_BYTES }
    }
}

/// The windows of one connection.
#[derive(Debug)]
pub(super) struct Flow {
    /// The amount that the peer may send on the connection.
    receive: ReceiveWindow,
    /// The amount that the peer may send on each stream.
    pub(super) of_stream: u32,
    /// The amount that we may send.
    pub(super) send: SendWindow,
    /// The streams that have a body to send and a window for it, in turn.
    pub(super) ready: VecDeque<u32>,
    /// The number of streams that have a body to send.
    pub(super) uploading: u32,
    /// The number of streams on which the peer has used up its window.
    pub(super) held_streams: u32,
    /// Whether the peer has used up the window of the connection.
    pub(super) held: bool,
    /// The streams that were granted more, or 0 for the connection, and the bytes, until the peer
    /// may know of it.
    pub(super) grants: Vec<(u32, u32)>,
}

impl Flow {
    pub(super) fn new(windows: Windows) -> Self {
        Flow {
            receive: ReceiveWindow::new(windows.connection),
            of_stream: windows.stream,
            send: SendWindow::new(WINDOW_FIRST),
            ready: VecDeque::new(),
            uploading: 0,
            held_streams: 0,
            held: false,
            grants: Vec::new(),
        }
    }

    /// Whether no stream can be waiting for a window.
    #[inline]
    pub(super) fn is_free(&self) -> bool {
        self.uploading == 0 && self.held_streams == 0 && !self.held
    }

    /// Removes a stream that has no body left to send, or no window for it.
    #[cold]
    pub(super) fn not_ready(&mut self, nth: u32) {
        self.ready.retain(|ready| *ready != nth);
    }

    /// Notes that the peer sent `bytes`. They are read at once, so the peer is soon granted more.
    #[inline]
    pub(super) fn receive(&mut self, bytes: u32, output: &mut Vec<u8>) -> Result<(), Violation> {
        self.receive.receive(bytes).map_err(beyond_window)?;
        if let Some(by) = self.receive.release(bytes) {
            self.grant(0, by, output);
        }
        self.held = self.receive.is_used_up();
        Ok(())
    }

    /// Grants more to a stream, or to the connection (0).
    pub(super) fn grant(&mut self, stream: u32, by: u32, output: &mut Vec<u8>) {
        write_window_update(output, stream, by);
        self.grants.push((stream, by));
    }

    /// Notes that the connection's grant was sent.
    pub(super) fn note_granted(&mut self, by: u32) {
        self.receive.grant(by);
    }
}

pub(super) fn beyond_window(_: Overflow) -> Violation {
    Violation::of_connection(Overflow::CODE, "DATA beyond the window")
}

pub(super) fn too_large(_: Overflow) -> Violation {
    Violation::of_connection(Overflow::CODE, "a window beyond 2^31 - 1")
}
