//! SETTINGS (RFC 9113 §6.5): the limits that a peer announces.

use super::frame::{ErrorCode, FRAME_BYTES_LEAST, FRAME_BYTES_MOST, Header, Kind};
use super::hpack;
use super::violation::Violation;
use super::window::{WINDOW_FIRST, WINDOW_MOST};

/// The parameters of SETTINGS.
pub mod parameter {
    /// The size of the decoder's table in bytes.
    pub const HEADER_TABLE_SIZE: u16 = 1;
    /// Whether the server may push: 0 or 1.
    pub const ENABLE_PUSH: u16 = 2;
    /// The number of streams that the peer may have open at once.
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    /// The window of every new stream.
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    /// The maximum size of a frame's payload in bytes.
    pub const MAX_FRAME_SIZE: u16 = 5;
    /// The maximum size of a header list in bytes, with 32 added for each field; advisory.
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// The settings that one side has announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The size of its decoder's table in bytes.
    pub table_bytes: u32,
    /// Whether the other side may push.
    pub push: bool,
    /// The number of streams that the other side may have open at once; none if not announced.
    pub streams: Option<u32>,
    /// The window of every stream that the other side sends on.
    pub window: u32,
    /// The maximum size of a frame's payload in bytes.
    pub frame_bytes: u32,
    /// The maximum size of a header list in bytes, with 32 added for each field.
    pub list_bytes: Option<u32>,
}

impl Default for Settings {
    /// The values in force until SETTINGS arrive.
    fn default() -> Self {
        Settings {
            table_bytes: hpack::TABLE_BYTES,
            push: true,
            streams: None,
            window: WINDOW_FIRST,
            frame_bytes: FRAME_BYTES_LEAST,
            list_bytes: None,
        }
    }
}

impl Settings {
    /// Applies one parameter. Unknown parameters are ignored. A value that is not allowed ends the
    /// connection.
    pub fn apply(&mut self, parameter: u16, value: u32) -> Result<(), Violation> {
        match parameter {
            parameter::HEADER_TABLE_SIZE => self.table_bytes = value,
            parameter::ENABLE_PUSH if value > 1 => {
                return Err(Violation::protocol("ENABLE_PUSH is neither 0 nor 1"));
            }
            parameter::ENABLE_PUSH => self.push = value == 1,
            parameter::MAX_CONCURRENT_STREAMS => self.streams = Some(value),
            parameter::INITIAL_WINDOW_SIZE if value > WINDOW_MOST => {
                let why = "INITIAL_WINDOW_SIZE is above 2^31 - 1";
                return Err(Violation::of_connection(ErrorCode::FlowControlError, why));
            }
            parameter::INITIAL_WINDOW_SIZE => self.window = value,
            parameter::MAX_FRAME_SIZE => {
                if !(FRAME_BYTES_LEAST..=FRAME_BYTES_MOST).contains(&value) {
                    return Err(Violation::protocol("MAX_FRAME_SIZE is not 2^14 to 2^24 - 1"));
                }
                self.frame_bytes = value;
            }
            parameter::MAX_HEADER_LIST_SIZE => self.list_bytes = Some(value),
            _ => {}
        }
        Ok(())
    }

    /// Applies the payload of a SETTINGS frame, in order.
    pub fn apply_all(&mut self, payload: &[u8]) -> Result<(), Violation> {
        parameters(payload).try_for_each(|(parameter, value)| self.apply(parameter, value))
    }
}

/// The parameters in the payload of a SETTINGS frame, in order.
pub fn parameters(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> + '_ {
    payload.chunks_exact(6).map(|six| {
        let parameter = u16::from_be_bytes([six[0], six[1]]);
        (parameter, u32::from_be_bytes([six[2], six[3], six[4], six[5]]))
    })
}

/// Appends a SETTINGS frame with these parameters.
pub fn write(out: &mut Vec<u8>, parameters: &[(u16, u32)]) {
    let len = 6 * parameters.len() as u32;
    Header { len, kind: Kind::SETTINGS, flags: 0, stream: 0 }.write(out);
    for (parameter, value) in parameters {
        out.extend_from_slice(&parameter.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::frame::HEADER_BYTES;

    #[test]
    fn what_is_written_is_taken_over_and_unknown_parameters_are_ignored() {
        let mut out = Vec::new();
        let parameters = [(1, 0), (2, 0), (3, 9), (4, 5), (5, 16_384), (6, 7), (99, 1), (4, 6)];
        write(&mut out, &parameters);
        let mut settings = Settings::default();
        assert_eq!(settings.apply_all(&out[HEADER_BYTES..]), Ok(()));
        let expected = Settings {
            table_bytes: 0,
            push: false,
            streams: Some(9),
            window: 6,
            frame_bytes: 16_384,
            list_bytes: Some(7),
        };
        assert_eq!(settings, expected, "the last of two counts");
    }

    #[test]
    fn values_at_the_edge_are_taken_and_those_beyond_are_refused() {
        for (parameter, value, refused) in [
            (2, 1, None),
            (2, 2, Some(ErrorCode::ProtocolError)),
            (4, WINDOW_MOST, None),
            (4, WINDOW_MOST + 1, Some(ErrorCode::FlowControlError)),
            (5, 16_384, None),
            (5, 16_383, Some(ErrorCode::ProtocolError)),
            (5, FRAME_BYTES_MOST, None),
            (5, FRAME_BYTES_MOST + 1, Some(ErrorCode::ProtocolError)),
            (1, u32::MAX, None),
            (3, u32::MAX, None),
            (6, u32::MAX, None),
        ] {
            let applied = Settings::default().apply(parameter, value);
            assert_eq!(
                applied.err().map(|violation| violation.code),
                refused,
                "{parameter} {value}"
            );
        }
    }
}
