//! Laws that need peers which know a connection's requests apart, and how each one ends.

use super::{each_phase, ensure};
use crate::play::Played;
use crate::scenario::{Protocol, Scenario};

/// The failure classes charged to a request for bytes that nobody asked for.
pub(super) const VIOLATIONS: [&str; 4] = ["h2.protocol", "h2.frame_size", "h2.flow", "h2.goaway"];

/// The generator keeps to the protocol as the peers see it. It opens no more streams than
/// permitted, and sends no more bytes than the windows have room for.
pub(super) fn what_is_sent_is_as_the_protocol_has_it(played: &mut Played) -> Result<(), String> {
    let mistake = played.kernels.iter().find_map(|kernel| kernel.seen.mistake.clone());
    mistake.map_or(Ok(()), Err)
}

/// No more answers count than the peers sent whole.
pub(super) fn an_answer_that_counts_was_sent_whole(played: &mut Played) -> Result<(), String> {
    let whole: Option<u64> = played.kernels.iter().map(|kernel| kernel.seen.whole).sum();
    let Some(whole) = whole else { return Ok(()) };
    let mut answered = 0;
    each_phase(played, |_, meter| {
        answered += meter.statuses().map(|(_, count)| count).sum::<u64>();
        ensure(answered <= whole, || format!("{answered} answers count, of {whole}"))
    })
}

/// A stale request is sent again at most once.
pub(super) fn a_request_is_asked_again_once_at_most(played: &mut Played) -> Result<(), String> {
    let most = played.kernels.iter().map(|kernel| kernel.seen.repeats_most).max();
    let most = most.unwrap_or(0);
    ensure(most <= 2, || format!("a request came {most} times"))
}

/// Whether requests may have to wait for a stream.
pub(super) fn waits(scenario: &Scenario) -> bool {
    let permits = |manner: &crate::scenario::Manner| manner.http2.permits(scenario.depth);
    matches!(scenario.protocol, Protocol::Http2(_)) && !scenario.peers.iter().all(permits)
}
