//! The content of a compressed answer (RFC 9110 §8.4), which values are taken from.
//!
//! Must not know: what is taken, and why an answer was compressed.

use std::io::Read;

use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

pub(super) const CONTENT_ENCODING: &str = "content-encoding";
/// Most codings, one over the other.
const CODINGS_MOST: usize = 2;

/// Why a body was not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undecoded {
    /// It has a coding that is not known here, or is not what its coding says.
    Unreadable,
    /// It is longer than allowed.
    TooLong,
}

/// Decodes a body in place, up to `most` bytes; `codings` is the value of Content-Encoding.
pub(super) fn decode(body: &mut Vec<u8>, codings: &[u8], most: usize) -> Result<(), Undecoded> {
    let codings = codings.split(|byte| *byte == b',').map(|coding| coding.trim_ascii());
    let codings: Vec<_> = codings.filter(|coding| !coding.is_empty()).collect();
    if codings.len() > CODINGS_MOST {
        return Err(Undecoded::Unreadable);
    }
    // The last one was applied last.
    for coding in codings.iter().rev() {
        let is = |name: &str| coding.eq_ignore_ascii_case(name.as_bytes());
        if is("gzip") || is("x-gzip") {
            *body = read(MultiGzDecoder::new(&body[..]), most)?;
        } else if is("deflate") {
            *body = match read(ZlibDecoder::new(&body[..]), most) {
                // Some servers leave out the header that belongs to it (RFC 9110 §8.4.1.2).
                Err(Undecoded::Unreadable) => read(DeflateDecoder::new(&body[..]), most)?,
                whole => whole?,
            };
        } else if !is("identity") {
            return Err(Undecoded::Unreadable);
        }
    }
    Ok(())
}

fn read(decoder: impl Read, most: usize) -> Result<Vec<u8>, Undecoded> {
    let mut out = Vec::new();
    decoder.take(most as u64 + 1).read_to_end(&mut out).map_err(|_| Undecoded::Unreadable)?;
    if out.len() > most { Err(Undecoded::TooLong) } else { Ok(out) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::Undecoded::{TooLong, Unreadable};
    use super::*;

    const TEXT: &[u8] = b"{\"token\":\"abc\"}";

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    fn deflate(text: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).expect("memory");
        encoder.finish().expect("memory")
    }

    #[test]
    fn each_coding_is_decoded_or_said_to_be_unreadable() {
        let plain = TEXT.to_vec();
        for (coding, body, found) in [
            ("", plain.clone(), Ok(TEXT)),
            ("identity", plain.clone(), Ok(TEXT)),
            ("gzip", gzip(TEXT), Ok(TEXT)),
            ("GZip", gzip(TEXT), Ok(TEXT)),
            ("x-gzip", [gzip(&TEXT[..4]), gzip(&TEXT[4..])].concat(), Ok(TEXT)),
            ("deflate", zlib(TEXT), Ok(TEXT)),
            ("deflate", deflate(TEXT), Ok(TEXT)),
            ("deflate, gzip", gzip(&zlib(TEXT)), Ok(TEXT)),
            (" gzip ,", gzip(TEXT), Ok(TEXT)),
            ("gzip, deflate", gzip(&zlib(TEXT)), Err(Unreadable)),
            ("gzip, gzip, gzip", gzip(&gzip(&gzip(TEXT))), Err(Unreadable)),
            ("gzip", plain.clone(), Err(Unreadable)),
            ("gzip", gzip(TEXT)[..20].to_vec(), Err(Unreadable)),
            ("br", plain.clone(), Err(Unreadable)),
            ("zstd", plain.clone(), Err(Unreadable)),
            ("gzip", gzip(&[b' '; 101]), Err(TooLong)),
            ("deflate", zlib(&[b' '; 101]), Err(TooLong)),
            ("gzip", gzip(&vec![b' '; 10 << 20]), Err(TooLong)),
        ] {
            let mut decoded = body;
            let result = decode(&mut decoded, coding.as_bytes(), 100);
            assert_eq!(result.map(|()| decoded.as_slice()), found, "{coding}");
        }
    }

    proptest! {
        #[test]
        fn any_body_is_decoded_without_panic(
            body in prop::collection::vec(any::<u8>(), 0..64),
            coding in "(gzip|deflate)(, (gzip|deflate|br))?",
        ) {
            let mut body = body;
            let _ = decode(&mut body, coding.as_bytes(), 100);
            prop_assert!(body.len() <= 100);
        }
    }
}
