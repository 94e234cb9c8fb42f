//! Bodies, certificates and payloads: sent once by the front, and named by their SHA-256. And the
//! rows of data, or recorded traffic, once they are read.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::data::Rows;
use crate::failure::Failure;
use crate::protocol::Blob;
use crate::recorded::Replay;

/// Longer bytes stay shared by all threads.
const OWN_BYTES_MOST: usize = 64 * 1024;

/// A copy of the bytes for one thread alone.
///
/// Each send counts one more user of its bytes, and one less once the kernel has them. Threads that
/// share the bytes share the count, and its cache line moves between their CPUs twice a request.
/// For more than 64 KiB this cost is nothing beside the kernel's copy, and not worth the memory.
pub(crate) fn own(bytes: &Arc<[u8]>) -> Arc<[u8]> {
    if bytes.len() > OWN_BYTES_MOST { Arc::clone(bytes) } else { Arc::from(&bytes[..]) }
}

/// Bodies, by their SHA-256 in hex, rows, and recorded traffic.
#[derive(Debug, Default)]
pub(crate) struct Blobs {
    bodies: HashMap<String, Vec<u8>>,
    rows: Option<Arc<Rows>>,
    replay: Option<Replay>,
}

impl Blobs {
    /// Takes a body, and checks that its digest is its name.
    pub(crate) fn take(&mut self, blob: &Blob) -> Result<(), Failure> {
        let refused = |what: &str| Failure::Plan(format!("blob: {what}"));
        let bytes = STANDARD.decode(&blob.base64).map_err(|_| refused("base64: not base64"))?;
        let digest: String =
            Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if digest != blob.sha256 {
            return Err(refused("sha256: is not that of the bytes"));
        }
        self.bodies.insert(digest, bytes);
        Ok(())
    }

    /// Whether all of these are here.
    pub(crate) fn hold<'a>(&self, mut names: impl Iterator<Item = &'a String>) -> bool {
        names.all(|name| self.bodies.contains_key(name))
    }

    pub(crate) fn get(&self, name: Option<&String>) -> Option<&Vec<u8>> {
        self.bodies.get(name?)
    }

    /// Takes out the pieces of a longer text, in the order of these names.
    pub(crate) fn take_pieces(&mut self, names: &[String]) -> Vec<Vec<u8>> {
        let mut pieces = Vec::new();
        for (at, name) in names.iter().enumerate() {
            let again = names[at + 1..].contains(name);
            let piece =
                if again { self.bodies.get(name).cloned() } else { self.bodies.remove(name) };
            pieces.extend(piece);
        }
        pieces
    }

    pub(crate) fn keep_rows(&mut self, rows: Rows) {
        self.rows = Some(Arc::new(rows));
    }

    /// The rows of data, once they are read.
    pub(crate) fn rows(&self) -> Option<&Arc<Rows>> {
        self.rows.as_ref()
    }

    /// Keeps recorded traffic.
    pub(crate) fn keep_replay(&mut self, replay: Replay) {
        self.replay = Some(replay);
    }

    /// Recorded traffic, once it is read.
    pub(crate) fn replay(&self) -> Option<&Replay> {
        self.replay.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_taken_in_order_and_one_that_comes_twice_is_sent_once() {
        let bodies = [("a", "one"), ("b", "two")].map(|(name, body)| (name.into(), body.into()));
        let mut blobs = Blobs { bodies: bodies.into(), ..Blobs::default() };
        let names = ["b", "a", "b"].map(str::to_owned);
        assert_eq!(blobs.take_pieces(&names), [b"two", b"one", b"two"]);
        assert!(blobs.bodies.is_empty());
    }

    #[test]
    fn threads_share_no_count_of_what_they_send_but_for_long_bytes() {
        for (len, shared) in [(1, false), (OWN_BYTES_MOST, false), (OWN_BYTES_MOST + 1, true)] {
            let bytes: Arc<[u8]> = Arc::from(vec![7; len]);
            let (one, two) = (own(&bytes), own(&bytes));
            assert_eq!((&one, &two), (&bytes, &bytes));
            assert_eq!(Arc::ptr_eq(&one, &two), shared, "{len} bytes");
        }
    }
}
