//! Where an answer is written bit by bit: to an HTTP/1 connection, or to a stream of HTTP/2.

use std::io::Write as _;

use trueload_wire::http2::server::Server as Machine;

use super::response::{Answer, Responses};

/// The way to the client of one answer.
pub(super) enum Channel<'a> {
    /// The connection itself; the body is sent in chunks, or as it is.
    Http1 {
        chunked: bool,
    },
    Stream {
        machine: &'a mut Machine<Answer>,
        stream: u32,
    },
}

impl Channel<'_> {
    /// Appends the head of an answer.
    pub(super) fn head(&mut self, responses: &Responses, answer: Answer, out: &mut Vec<u8>) {
        match self {
            Channel::Http1 { .. } => responses.write(out, Answer { head_only: true, ..answer }),
            Channel::Stream { machine, stream } => {
                machine.answer_head(*stream, &responses.of_stream(answer).0, out);
            }
        }
    }

    /// Whether the part before waits for a window; the next would only wait behind it.
    pub(super) fn is_full(&self) -> bool {
        match self {
            Channel::Http1 { .. } => false,
            Channel::Stream { machine, stream } => machine.is_waiting_to_send(*stream),
        }
    }

    /// Appends a part of the body, and its end if it `ends`. Returns whether the client still wants
    /// it.
    pub(super) fn body(&mut self, content: &[u8], ends: bool, out: &mut Vec<u8>) -> bool {
        match self {
            Channel::Stream { machine, stream } => {
                return machine.answer_body(*stream, content, ends, out);
            }
            Channel::Http1 { chunked: false } => out.extend_from_slice(content),
            Channel::Http1 { chunked: true } => {
                // Writing to a vector cannot fail.
                let _ = write!(out, "{:x}\r\n", content.len());
                out.extend_from_slice(content);
                out.extend_from_slice(if ends { b"\r\n0\r\n\r\n" } else { b"\r\n" });
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_have_their_length_in_hexadecimal() {
        for (chunked, expected) in [
            (true, "12\r\ndata: 0123456789\n\n\r\n3\r\n{}\n\r\n0\r\n\r\n"),
            (false, "data: 0123456789\n\n{}\n"),
        ] {
            let (mut channel, mut out) = (Channel::Http1 { chunked }, Vec::new());
            assert!(channel.body(b"data: 0123456789\n\n", false, &mut out));
            assert!(channel.body(b"{}\n", true, &mut out));
            assert_eq!(out, expected.as_bytes());
        }
    }
}
