//! Messages that came before a step awaited one.
//!
//! Must not know: what they mean, and who awaits them.

use std::collections::VecDeque;

use super::Kind;

/// Most bytes of memory that the messages of one connection take.
const BYTES_MOST: usize = 256 << 10;
/// What a message takes besides its payload. Without it, empty ones would be kept without end.
const ENTRY_BYTES: usize = size_of::<(Kind, Box<[u8]>)>();

/// The messages of one connection, oldest first. Few connections have any.
#[derive(Debug, Default)]
pub(super) struct Early(Option<Box<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    messages: VecDeque<(Kind, Box<[u8]>)>,
    bytes: usize,
}

impl Early {
    /// Keeps a message, if there is room for it.
    pub(super) fn keep(&mut self, kind: Kind, message: &[u8]) -> bool {
        let kept = self.0.get_or_insert_default();
        let bytes = kept.bytes + message.len() + ENTRY_BYTES;
        let has_room = bytes <= BYTES_MOST;
        if has_room {
            kept.bytes = bytes;
            kept.messages.push_back((kind, message.into()));
        }
        has_room
    }

    /// Takes the oldest message.
    pub(super) fn next(&mut self) -> Option<(Kind, Box<[u8]>)> {
        let kept = self.0.as_mut()?;
        let Some((kind, message)) = kept.messages.pop_front() else {
            self.0 = None;
            return None;
        };
        kept.bytes -= message.len() + ENTRY_BYTES;
        Some((kind, message))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.as_ref().is_none_or(|kept| kept.messages.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back_in_order_and_take_bounded_memory() {
        for message in [&b""[..], b"hello", &[7; 1000]] {
            let mut early = Early::default();
            let kept = (0..BYTES_MOST).take_while(|_| early.keep(Kind::Text, message)).count();
            assert_eq!(kept, BYTES_MOST / (message.len() + ENTRY_BYTES), "{} bytes", message.len());
            assert_eq!(early.next(), Some((Kind::Text, message.into())));
            assert!(early.keep(Kind::Text, message), "there is room again");
            while early.next().is_some() {}
            assert!(early.is_empty() && early.0.is_none());
        }
    }
}
