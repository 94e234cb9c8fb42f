//! The class that a request fails with, by how it ended.

use trueload_meter::Class;
use trueload_wire::exchange::Ending;

/// The failure class of an ending; none if it is no failure. A stale request that was already sent
/// again has failed.
pub(super) fn class_of_ending(ending: Ending) -> Option<Class> {
    Some(match ending {
        Ending::Ok | Ending::StaleBehind | Ending::Redirected => return None,
        Ending::Stale | Ending::UnusedEnd | Ending::Empty => Class::Empty,
        Ending::Status | Ending::StaleTimeout => Class::Status,
        Ending::Mismatch => Class::Mismatch,
        Ending::Extract => Class::Extract,
        Ending::Encoded => Class::Encoded,
        Ending::Redirect => Class::Redirect,
        Ending::Framing => Class::Framing,
        Ending::Limit => Class::Limit,
        Ending::Truncated => Class::Truncated,
        Ending::Reset | Ending::StaleReset | Ending::UnusedReset => Class::Reset,
        Ending::ClosedPipelined => Class::ClosedPipelined,
        Ending::TimeoutFirstByte => Class::TimeoutFirstByte,
        Ending::TimeoutTotal => Class::TimeoutTotal,
        Ending::TimeoutStall => Class::TimeoutStall,
        Ending::WsHandshake => Class::WsHandshake,
        Ending::WsProtocol => Class::WsProtocol,
        Ending::WsPayload => Class::WsPayload,
        Ending::WsClosed => Class::WsClosed,
        Ending::Lost => Class::Lost,
        Ending::Refused => Class::ConnectRefused,
        Ending::H2Stream | Ending::StaleRefused => Class::H2Stream,
        Ending::H2Goaway | Ending::StaleGoaway => Class::H2Goaway,
        Ending::H2Protocol => Class::H2Protocol,
        Ending::H2FrameSize => Class::H2FrameSize,
        Ending::H2Flow => Class::H2Flow,
    })
}
