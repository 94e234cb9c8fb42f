//! The key of an opening handshake and its answer (RFC 6455 §4.1, §4.2.2), and field names that
//! both ends use.
//!
//! Must not know: heads.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

pub(super) const KEY: &str = "Sec-WebSocket-Key";
pub(super) const ACCEPT: &str = "Sec-WebSocket-Accept";
pub(super) const VERSION: &str = "Sec-WebSocket-Version";
pub(super) const PROTOCOL: &str = "Sec-WebSocket-Protocol";
pub(super) const EXTENSIONS: &str = "Sec-WebSocket-Extensions";

/// The constant of RFC 6455 §1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// 16 bytes in base64.
pub(super) type Key = [u8; 24];
/// A SHA-1 hash in base64.
pub(super) type Accept = [u8; 28];

/// Makes a key from 16 random bytes.
pub(super) fn key(random: [u8; 16]) -> Key {
    let mut key = [0; 24];
    // 16 bytes in base64, with padding, fill the buffer exactly.
    let _ = STANDARD.encode_slice(random, &mut key);
    key
}

/// Whether the text is 16 bytes in base64.
pub(super) fn is_key(text: &[u8]) -> bool {
    STANDARD.decode(text).is_ok_and(|random| random.len() == 16)
}

/// The server's answer to a key.
pub(super) fn accept(key: &[u8]) -> Accept {
    let hash = Sha1::new().chain_update(key).chain_update(GUID).finalize();
    let mut accept = [0; 28];
    let _ = STANDARD.encode_slice(hash, &mut accept);
    accept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_and_its_answer_are_those_of_the_rfc() {
        // RFC 6455 §1.3 and §4.1.
        assert_eq!(&accept(b"dGhlIHNhbXBsZSBub25jZQ=="), b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(&key(*b"the sample nonce"), b"dGhlIHNhbXBsZSBub25jZQ==");
        let numbers = std::array::from_fn(|at| at as u8 + 1);
        assert_eq!(&key(numbers), b"AQIDBAUGBwgJCgsMDQ4PEA==");
    }

    #[test]
    fn a_key_is_16_bytes_in_base64() {
        for (text, is) in [
            ("dGhlIHNhbXBsZSBub25jZQ==", true),
            ("dGhlIHNhbXBsZSBub25jZQ", false),
            ("dGhlIHNhbXBsZSBub25j", false),
            ("dGhlIHNhbXBsZSBub25jZSE=", false),
            ("dGhlIHNhbXBsZSBub25jZ?==", false),
            ("", false),
        ] {
            assert_eq!(is_key(text.as_bytes()), is, "{text:?}");
        }
    }
}
