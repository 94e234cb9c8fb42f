//! Messages as permessage-deflate has them (RFC 7692 §7.2): each compressed by itself, without the
//! four bytes that end a flush.
//!
//! How it works: no message refers to one before it, so a thread has one [`Deflater`] and one
//! `Inflater` for all its connections. What is inflated is counted while it grows, because a few
//! bytes may stand for very many.
//!
//! Must not know: frames, and what a connection has agreed to.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::frame::{Error, TOO_LONG};

/// The end of a flush, which a sender takes off; and an empty final block, without which a message
/// that was cut would look whole.
const ENDS: &[u8] = &[0, 0, 0xff, 0xff, 1, 0, 0, 0xff, 0xff];
/// The bytes that a sender takes off.
const FLUSHED_BYTES: usize = 4;
/// A final block ends a stream within a message, and sets all back: at most so many per message.
const STREAMS_MOST: u32 = 1000;
/// The memory that is reserved at first for a message that is inflated.
const RESERVED_BYTES: usize = 4096;
/// A larger buffer is released after use.
const BUFFER_BYTES: usize = 256 * 1024;
const BROKEN: Error = Error::Payload("a compressed message cannot be decompressed");

/// The payloads of messages in bytes, before compression and after.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// As they are without compression.
    pub plain: u64,
    /// As they were sent.
    pub on_wire: u64,
}

impl Sizes {
    fn add(&mut self, plain: usize, on_wire: usize) {
        self.plain += plain as u64;
        self.on_wire += on_wire as u64;
    }
}

/// What compression came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deflated {
    /// Connections that agreed to it, since the start.
    pub agreed: u64,
    /// Connections opened without it, since the start.
    pub declined: u64,
    /// Messages sent on connections that agreed.
    pub sent: Sizes,
    /// Messages received on connections that agreed, compressed or not.
    pub received: Sizes,
}

/// Compresses the messages of all connections of a thread, and keeps their account.
#[derive(Debug)]
pub struct Deflater {
    compress: Compress,
    buffer: Vec<u8>,
    account: Deflated,
}

impl Default for Deflater {
    fn default() -> Self {
        let compress = Compress::new(Compression::default(), false);
        Deflater { compress, buffer: Vec::new(), account: Deflated::default() }
    }
}

impl Deflater {
    /// Returns a message in its compressed form, and counts it.
    pub fn deflate(&mut self, message: &[u8]) -> &[u8] {
        let len = self.flush(message);
        self.account.sent.add(message.len(), len);
        &self.buffer[..len]
    }

    /// Compresses a message into the buffer. Returns its length without the end of its flush.
    fn flush(&mut self, message: &[u8]) -> usize {
        let Deflater { compress, buffer, .. } = self;
        compress.reset();
        let (mut taken, mut made) = (0, 0);
        loop {
            // What cannot be compressed grows a little.
            let room = message.len() + message.len() / 8 + 64;
            buffer.resize(buffer.len().max(made + room), 0);
            let rest = message.get(taken..).unwrap_or_default();
            let status = compress.compress(rest, &mut buffer[made..], FlushCompress::Sync);
            (taken, made) = (compress.total_in() as usize, compress.total_out() as usize);
            if (made < buffer.len() && taken == message.len()) || status.is_err() {
                return made.saturating_sub(FLUSHED_BYTES);
            }
        }
    }

    /// Counts a connection that was opened.
    pub(super) fn note_opened(&mut self, agreed: bool) {
        let count = if agreed { &mut self.account.agreed } else { &mut self.account.declined };
        *count += 1;
    }

    /// Returns the account with what was received, and begins another one for messages.
    pub(super) fn take_account(&mut self, received: Sizes) -> Deflated {
        let Deflated { agreed, declined, sent, .. } = self.account;
        self.account.sent = Sizes::default();
        Deflated { agreed, declined, sent, received }
    }
}

/// Decompresses the messages of all connections of a thread, and counts them.
#[derive(Debug)]
pub(super) struct Inflater {
    decompress: Decompress,
    /// A payload with its ends.
    input: Vec<u8>,
    /// What the last message says, in the first `len` bytes.
    content: Vec<u8>,
    len: usize,
    pub(super) received: Sizes,
}

impl Default for Inflater {
    fn default() -> Self {
        let (input, content, len, received) = Default::default();
        Inflater { decompress: Decompress::new(false), input, content, len, received }
    }
}

impl Inflater {
    /// Returns what a message says, and counts it. It may have at most `most` bytes.
    pub(super) fn read<'a>(
        &'a mut self,
        payload: &'a [u8],
        compressed: bool,
        most: usize,
    ) -> Result<&'a [u8], Error> {
        if compressed {
            self.inflate(payload, most)?;
        }
        let content = if compressed { &self.content[..self.len] } else { payload };
        self.received.add(content.len(), payload.len());
        Ok(content)
    }

    fn inflate(&mut self, payload: &[u8], most: usize) -> Result<(), Error> {
        if self.content.len().max(self.input.capacity()) > BUFFER_BYTES && self.len <= BUFFER_BYTES
        {
            (self.input, self.content) = Default::default();
        }
        self.input.clear();
        self.input.extend_from_slice(payload);
        self.input.extend_from_slice(ENDS);
        let mut taken = 0;
        self.len = 0;
        for _ in 0..=STREAMS_MOST {
            taken += self.stream(taken, most)?;
            if taken == self.input.len() {
                return Ok(());
            }
        }
        Err(Error::Limit("a compressed message has too many final blocks"))
    }

    /// Decompresses the input from this byte on, up to a final block. Returns the number of bytes
    /// taken.
    fn stream(&mut self, from: usize, most: usize) -> Result<usize, Error> {
        let Inflater { decompress, input, content, len, .. } = self;
        loop {
            decompress.reset(false);
            // All at once: in pieces, the library takes what comes before a message for zeros.
            let (rest, room) = (&input[from..], &mut content[*len..]);
            let status = decompress.decompress(rest, room, FlushDecompress::Finish);
            let status = status.map_err(|_| BROKEN)?;
            let made = *len + decompress.total_out() as usize;
            if made > most {
                return Err(TOO_LONG);
            }
            if status == Status::StreamEnd {
                *len = made;
                return Ok(decompress.total_in() as usize);
            }
            if made < content.len() {
                return Err(BROKEN);
            }
            // One byte more than allowed shows that there are too many.
            let more = made.max(RESERVED_BYTES).min(most - made) + 1;
            content.reserve_exact(more);
            content.resize(made + more, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_message_is_one_byte_and_none_has_the_end_of_its_flush() {
        let mut deflater = Deflater::default();
        assert_eq!(deflater.deflate(b""), [0]);
        // What cannot be compressed, in every length up to where a block is full.
        let noise = |len: u32| (0..len).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 24) as u8);
        for len in (1..100).chain([65_535, 65_536, 300_000]) {
            let message: Vec<u8> = noise(len).collect();
            let compressed = deflater.deflate(&message).to_vec();
            assert!(compressed.len() <= message.len() + message.len() / 1000 + 16, "{len}");
            let mut inflater = Inflater::default();
            assert_eq!(inflater.read(&compressed, true, message.len()), Ok(&message[..]), "{len}");
        }
    }

    #[test]
    fn what_a_few_bytes_stand_for_takes_no_more_memory_than_the_cap() {
        let bomb = Deflater::default().deflate(&vec![0; 64 << 20]).to_vec();
        assert!(bomb.len() < 100_000);
        for most in [0, 1, 5000, 1 << 20] {
            let mut inflater = Inflater::default();
            assert_eq!(inflater.read(&bomb, true, most), Err(TOO_LONG), "{most}");
            assert!(
                inflater.content.capacity() <= most + 1,
                "{most}: {}",
                inflater.content.capacity()
            );
        }
        let mut inflater = Inflater::default();
        let (long, short) = (vec![1; BUFFER_BYTES + 1], b"short");
        for message in [&long[..], short, short] {
            let compressed = Deflater::default().deflate(message).to_vec();
            assert_eq!(inflater.read(&compressed, true, 1 << 20), Ok(message));
        }
        assert!(inflater.content.capacity() <= BUFFER_BYTES, "it is released");
    }
}
