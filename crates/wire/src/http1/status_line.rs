//! The status line of a response, byte by byte.

use super::fields::{expect_lf, not_text};
use super::limits::ParseError::{self, Framing, Limit};
use super::limits::Scan;
use super::text::text_end;

pub(super) const BAD_VERSION: ParseError =
    Framing("the status line does not begin with HTTP/1., a digit and a space");
const BAD_STATUS: ParseError = Framing("the status code is not a number from 100 to 999");
// RFC 9112 §4: the space is sent even if the reason is absent.
const NO_SPACE: ParseError = Framing("no space after the three digits of the status code");

/// After `HTTP/1.` come the minor version, a space, three digits, a space, the reason and CRLF. The
/// minor version is one digit; a digit above 1 is read as 1.
const PREFIX: &[u8] = b"HTTP/1.";
const MINOR_AT: u8 = PREFIX.len() as u8;
const STATUS_AT: u8 = MINOR_AT + 2;
const SPACE_AT: u8 = STATUS_AT + 3;
const REASON_AT: u8 = SPACE_AT + 1;
const LF_AT: u8 = REASON_AT + 1;

/// The automaton over a status line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StatusLine {
    /// The number of bytes taken; the reason does not count.
    at: u8,
    pub(super) http10: bool,
    pub(super) status: u16,
    /// Whether the request asked for an upgrade.
    upgrade: bool,
}

impl StatusLine {
    /// The status line of the answer to a request for an upgrade.
    pub(super) fn after_upgrade() -> Self {
        StatusLine { upgrade: true, ..StatusLine::default() }
    }

    pub(super) fn scan(&mut self, bytes: &[u8], informational: bool) -> Scan {
        let mut at = self.plain_start(bytes);
        while at < bytes.len() {
            if self.at == REASON_AT {
                at = text_end(bytes, at);
                let Some(&end) = bytes.get(at) else { return Ok(None) };
                if end != b'\r' {
                    return Err(not_text(end));
                }
                self.at = LF_AT;
            } else if self.at == LF_AT {
                expect_lf(bytes[at])?;
                return Ok(Some(at + 1));
            } else {
                self.byte(bytes[at], informational)?;
                self.at += 1;
            }
            at += 1;
        }
        Ok(None)
    }

    /// Whether the bytes taken may begin a status line with this status, which has three digits.
    pub(super) fn may_have(&self, status: u16) -> bool {
        let missing = SPACE_AT.saturating_sub(self.at.max(STATUS_AT));
        self.status == status / 10u16.pow(u32::from(missing))
    }

    /// Takes everything before the reason of a final response at once, if it is all available.
    fn plain_start(&mut self, bytes: &[u8]) -> usize {
        let start = bytes.first_chunk::<13>().filter(|_| self.at == 0);
        let rest = start.and_then(|start| start.strip_prefix(PREFIX));
        let Some([minor @ (b'0' | b'1'), b' ', digits @ .., b' ']) = rest else { return 0 };
        let [b'2'..=b'9', b'0'..=b'9', b'0'..=b'9'] = digits else { return 0 };
        self.http10 = *minor == b'0';
        self.status = digits.iter().fold(0, |all, digit| all * 10 + u16::from(digit - b'0'));
        self.at = REASON_AT;
        usize::from(REASON_AT)
    }

    fn byte(&mut self, byte: u8, informational: bool) -> Result<(), ParseError> {
        match self.at {
            at if at < MINOR_AT => expect(byte == PREFIX[usize::from(at)], BAD_VERSION),
            MINOR_AT => {
                self.http10 = byte == b'0';
                expect(byte.is_ascii_digit(), BAD_VERSION)
            }
            at if at < STATUS_AT => expect(byte == b' ', BAD_VERSION),
            at if at < SPACE_AT => {
                let digits = if at == STATUS_AT { b'1'..=b'9' } else { b'0'..=b'9' };
                expect(digits.contains(&byte), BAD_STATUS)?;
                self.status = self.status * 10 + u16::from(byte - b'0');
                Ok(())
            }
            _ => {
                expect(byte == b' ', NO_SPACE)?;
                // RFC 9110 §15.2.2: sent only to a request that asked to upgrade.
                expect(
                    self.status != 101 || self.upgrade,
                    Framing("101 without a request to upgrade"),
                )?;
                expect(self.status >= 200 || informational, Limit("too many 1xx responses"))
            }
        }
    }
}

fn expect(is: bool, otherwise: ParseError) -> Result<(), ParseError> {
    if is { Ok(()) } else { Err(otherwise) }
}
