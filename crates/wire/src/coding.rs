//! The content of a compressed answer (RFC 9110 §8.4): gzip, deflate and br, as its
//! bytes come.
//!
//! How it works: what a read brings is decoded with that read, because the parts of a stream are
//! timed.
//!
//! Must not know: what the content is needed for, and why an answer was compressed.

use std::io::{self, ErrorKind, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::brotli::Brotli;

/// The field that says how content is coded.
pub(crate) const CONTENT_ENCODING: &[u8] = b"content-encoding";
/// The low half of the first byte of a header as in RFC 1950. Without that header, no encoder begins
/// with it.
const ZLIB_METHOD: u8 = 8;

/// The coding of an answer's content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coding {
    /// The content is as it came.
    #[default]
    Identity,
    /// RFC 1952.
    Gzip,
    /// RFC 1950; some servers leave out its header (RFC 9110 §8.4.1.2).
    Deflate,
    /// RFC 7932.
    Brotli,
    /// Another one, or several.
    Other,
}

impl Coding {
    /// Adds the codings that a Content-Encoding lists.
    pub(crate) fn add(&mut self, value: &[u8]) {
        for name in value.split(|byte| *byte == b',') {
            let coding = match name.trim_ascii().to_ascii_lowercase().as_slice() {
                b"" | b"identity" => continue,
                b"gzip" | b"x-gzip" => Coding::Gzip,
                b"deflate" => Coding::Deflate,
                b"br" => Coding::Brotli,
                _ => Coding::Other,
            };
            *self = if *self == Coding::Identity { coding } else { Coding::Other };
        }
    }
}

/// What decodes one coding.
#[derive(Debug)]
enum Inner {
    /// Nothing has come.
    Awaited(Coding),
    Gzip(MultiGzDecoder<Vec<u8>>),
    Zlib(ZlibDecoder<Vec<u8>>),
    Deflate(DeflateDecoder<Vec<u8>>),
    Brotli(Brotli),
}

impl Inner {
    fn begin(&mut self, first: u8) -> io::Result<()> {
        let Inner::Awaited(coding) = self else { return Ok(()) };
        let out = Vec::new();
        *self = match coding {
            Coding::Gzip => Inner::Gzip(MultiGzDecoder::new(out)),
            Coding::Deflate if first & 0x0f == ZLIB_METHOD => Inner::Zlib(ZlibDecoder::new(out)),
            Coding::Deflate => Inner::Deflate(DeflateDecoder::new(out)),
            Coding::Brotli => Inner::Brotli(Brotli::new()),
            Coding::Identity | Coding::Other => return Err(ErrorKind::Unsupported.into()),
        };
        Ok(())
    }

    /// Writes bytes, passes on what is decoded, and returns how many were taken.
    fn write(
        &mut self,
        bytes: &[u8],
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> io::Result<usize> {
        fn run<W: Write>(
            writer: &mut W,
            bytes: &[u8],
            decoded: fn(&mut W) -> &mut Vec<u8>,
        ) -> io::Result<(usize, Vec<u8>)> {
            let taken = writer.write(bytes)?;
            if taken == bytes.len() {
                writer.flush()?;
            }
            Ok((taken, std::mem::take(decoded(writer))))
        }
        let (taken, content) = match self {
            Inner::Awaited(_) => return Ok(0),
            Inner::Gzip(writer) => run(writer, bytes, MultiGzDecoder::get_mut)?,
            Inner::Zlib(writer) => run(writer, bytes, ZlibDecoder::get_mut)?,
            Inner::Deflate(writer) => run(writer, bytes, DeflateDecoder::get_mut)?,
            Inner::Brotli(brotli) => return brotli.write(bytes, take).map(|()| bytes.len()),
        };
        take(&content)?;
        Ok(taken)
    }
}

/// Decodes the content of one answer as it comes.
#[derive(Debug)]
pub(crate) struct Decoder {
    inner: Inner,
    /// The bytes of content that may still come.
    left: usize,
    failed: bool,
}

impl Decoder {
    /// Decodes up to `most` bytes of content.
    pub(crate) fn new(coding: Coding, most: usize) -> Self {
        Decoder { inner: Inner::Awaited(coding), left: most, failed: false }
    }

    /// Decodes the next bytes, and passes on the content that they bring, unless something before
    /// could not be decoded.
    pub(crate) fn decode(mut self, bytes: &[u8], take: &mut dyn FnMut(&[u8])) -> Self {
        self.failed = self.failed || self.pass(bytes, take).is_err();
        self
    }

    fn pass(&mut self, mut bytes: &[u8], take: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        let mut take_counted = |content: &[u8]| {
            self.left = self.left.checked_sub(content.len()).ok_or(ErrorKind::FileTooLarge)?;
            take(content);
            Ok(())
        };
        while let Some(&first) = bytes.first() {
            self.inner.begin(first)?;
            let taken = self.inner.write(bytes, &mut take_counted)?;
            if taken == 0 {
                break;
            }
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    /// Ends the content; returns whether all of it was decoded.
    pub(crate) fn finish(mut self) -> bool {
        !self.failed
            && match &mut self.inner {
                Inner::Gzip(writer) => writer.try_finish().is_ok(),
                Inner::Brotli(brotli) => brotli.has_ended(),
                // Nothing is taken behind its end.
                inner => matches!(inner.write(b"?", &mut |_| Ok(())), Ok(0)),
            }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;

    const TEXT: &[u8] = b"{\"token\":\"abc\"}";
    /// As the encoder of RFC 7932's authors writes it: it is too short to become shorter.
    const TEXT_BR: &[u8] = b"\x0b\x07\x80{\"token\":\"abc\"}\x03";
    const WORDS: &[u8] =
        b"The time of the world, the number of people and the government of the United States. ";
    /// Four times these words: of the dictionary, and copied.
    const WORDS_BR: &[u8] =
        b"\x1bS\x01x$\x00`\x03\x0e\x1cS\xed\x84u\xd8\x80c\tt\xc5\xc1\x86\xb7\xdd\
        \x16\xf4\xfd\x92\xcc\xc5\x1c:\xf9\xe7\x18";
    /// So many spaces.
    const SPACES_100_BR: &[u8] = b"\x1bc\x00\xf8%@\x02\xb1@\xa0\x03";
    const SPACES_101_BR: &[u8] = b"\x1bd\x00\xf8%@\x02\xb1@\xc0\x03";
    const SPACES_10_MIB_BR: &[u8] =
        b"\xcb\xff\xff?\xf8%@\xe2\xb1@ \xf7\xfe/\xff\xff?\xf0K\x00\xc4a\
        \x11\x80\xee\xfd\x07";

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

    /// The content of a body that comes in these parts; none if it cannot be decoded.
    fn decoded(codings: &[&str], parts: &[&[u8]], most: usize) -> Option<Vec<u8>> {
        let (mut coding, mut content) = (Coding::default(), Vec::new());
        codings.iter().for_each(|value| coding.add(value.as_bytes()));
        let mut decoder = Decoder::new(coding, most);
        for part in parts {
            decoder = decoder.decode(part, &mut |slice| content.extend_from_slice(slice));
            assert!(content.len() <= most);
        }
        decoder.finish().then_some(content)
    }

    #[test]
    fn each_coding_is_decoded_or_said_to_be_unreadable() {
        let (plain, whole) = (TEXT.to_vec(), Some(TEXT));
        let trailed = |body: Vec<u8>| [body, b"and more".to_vec()].concat();
        let damaged = |mut body: Vec<u8>| {
            let at = body.len() - 6;
            body[at] ^= 1;
            body
        };
        for (codings, body, found) in [
            (&["gzip"][..], gzip(TEXT), whole),
            (&["GZip"], gzip(TEXT), whole),
            (&["x-gzip"], [gzip(&TEXT[..4]), gzip(&TEXT[4..])].concat(), whole),
            (&["deflate"], zlib(TEXT), whole),
            (&["deflate"], trailed(zlib(TEXT)), whole),
            (&["deflate"], deflate(TEXT), whole),
            (&[" gzip ,"], gzip(TEXT), whole),
            (&["identity", "gzip"], gzip(TEXT), whole),
            (&["gzip"], gzip(b""), Some(&b""[..])),
            (&["gzip"], Vec::new(), Some(&b""[..])),
            (&["br"], Vec::new(), Some(&b""[..])),
            (&["deflate, gzip"], gzip(&zlib(TEXT)), None),
            (&["gzip", "gzip"], gzip(&gzip(TEXT)), None),
            (&["gzip"], plain.clone(), None),
            (&["gzip"], gzip(TEXT)[..5].to_vec(), None),
            (&["gzip"], gzip(TEXT)[..20].to_vec(), None),
            (&["gzip"], damaged(gzip(TEXT)), None),
            (&["gzip"], trailed(gzip(TEXT)), None),
            (&["deflate"], zlib(TEXT)[..12].to_vec(), None),
            (&["deflate"], deflate(TEXT)[..12].to_vec(), None),
            (&["br"], TEXT_BR.to_vec(), whole),
            (&["BR , identity"], TEXT_BR.to_vec(), whole),
            (&["br"], b"\x3b".to_vec(), Some(&b""[..])),
            (&["br"], TEXT_BR[..2].to_vec(), None),
            (&["br"], TEXT_BR[..TEXT_BR.len() - 1].to_vec(), None),
            (&["br"], trailed(TEXT_BR.to_vec()), None),
            (&["br"], WORDS_BR[..30].to_vec(), None),
            (&["br"], damaged(WORDS_BR.to_vec()), None),
            (&["br"], b"\x11\x1e\x03".to_vec(), None),
            (&["br"], plain.clone(), None),
            (&["br"], gzip(TEXT), None),
            (&["gzip"], TEXT_BR.to_vec(), None),
            (&["br, gzip"], gzip(TEXT_BR), None),
            (&["zstd"], plain.clone(), None),
            (&["zstd, identity"], plain.clone(), None),
            (&["gzip"], gzip(&[b' '; 100]), Some(&[b' '; 100])),
            (&["gzip"], gzip(&[b' '; 101]), None),
            (&["deflate"], zlib(&[b' '; 101]), None),
            (&["gzip"], gzip(&vec![b' '; 10 << 20]), None),
            (&["br"], SPACES_100_BR.to_vec(), Some(&[b' '; 100])),
            (&["br"], SPACES_101_BR.to_vec(), None),
            (&["br"], SPACES_10_MIB_BR.to_vec(), None),
        ] {
            for cut in (0..=body.len()).take(70) {
                let (one, two) = body.split_at(cut);
                let decoded = decoded(codings, &[one, two], 100);
                assert_eq!(decoded.as_deref(), found, "{codings:?}, cut at {cut}");
            }
            let bytes: Vec<&[u8]> = body.chunks(1).take(200).collect();
            let decoded = decoded(codings, &bytes, 100);
            assert!(body.len() > 200 || decoded.as_deref() == found, "{codings:?}, byte by byte");
        }
    }

    #[test]
    fn brotli_has_words_and_copies() {
        let words = WORDS.repeat(4);
        assert_eq!(decoded(&["br"], &[WORDS_BR], words.len()), Some(words.clone()));
        assert_eq!(decoded(&["br"], &[WORDS_BR], words.len() - 1), None);
        let bytes: Vec<&[u8]> = WORDS_BR.chunks(1).collect();
        assert_eq!(decoded(&["br"], &bytes, words.len()), Some(words));
        let spaces = decoded(&["br"], &[SPACES_10_MIB_BR], 10 << 20);
        assert_eq!(spaces.map(|spaces| spaces.len()), Some(10 << 20));
    }

    #[test]
    fn what_has_come_is_decoded_at_once() {
        let long = vec![b'x'; 100_000];
        for (coding, flushed) in [("gzip", true), ("deflate", true), ("gzip", false)] {
            let (mut known, mut all) = (Coding::default(), Vec::new());
            known.add(coding.as_bytes());
            let mut decoder = Decoder::new(known, 1 << 20);
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
            for (nth, part) in [TEXT, &long, TEXT].into_iter().enumerate() {
                let encoder: &mut dyn Write = if coding == "gzip" { &mut gzip } else { &mut zlib };
                encoder.write_all(part).expect("memory");
                if flushed {
                    encoder.flush().expect("memory");
                }
                let bytes = [std::mem::take(gzip.get_mut()), std::mem::take(zlib.get_mut())];
                let bytes = bytes.concat();
                decoder = decoder.decode(&bytes, &mut |slice| all.extend_from_slice(slice));
                let come = [TEXT.len(), TEXT.len() + long.len(), 2 * TEXT.len() + long.len()][nth];
                assert!(!flushed || all.len() == come, "{coding}: {} of {come}", all.len());
            }
        }
    }

    proptest! {
        #[test]
        fn any_body_is_decoded_alike_in_any_split(
            body in prop::collection::vec(any::<u8>(), 0..64),
            content in prop::collection::vec(0..4u8, 0..400),
            coding in "gzip|deflate|br",
            damage in any::<Option<(prop::sample::Index, u8)>>(),
            cut in any::<prop::sample::Index>(),
            is_random in any::<bool>(),
        ) {
            let mut body = match (is_random, coding.as_str()) {
                (true, _) => body,
                (_, "br") => WORDS_BR.to_vec(),
                _ => gzip(&content),
            };
            if let Some((at, by)) = damage.filter(|_| !body.is_empty()) {
                let at = at.index(body.len());
                body[at] ^= by;
            }
            let (one, two) = body.split_at(cut.index(body.len() + 1));
            let whole = decoded(&[&coding], &[&body], 400);
            prop_assert_eq!(decoded(&[&coding], &[one, two], 400), whole);
        }
    }
}
