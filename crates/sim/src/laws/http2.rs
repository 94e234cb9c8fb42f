//! Laws that need peers which know a connection's requests apart, and how each one ends.

use trueload_wire::account::Account;

use super::{decoded, each_phase, ensure};
use crate::peers::{Spoken, Versions};
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

/// Each connection on which something is asked counts as one of the version that it speaks, in each
/// phase in which that is so.
pub(super) fn a_connection_counts_as_what_it_speaks(played: &mut Played) -> Result<(), String> {
    let fair = played.scenario.is_well_formed();
    for (thread, kernel) in played.kernels.iter().enumerate() {
        let Some(Versions { http1, http2, other }) = kernel.seen.versions else { continue };
        let done = &played.front.done;
        let own = || done.iter().filter(|done| done.kernel(&played.scenario) == thread);
        let phases = own().count() as u64;
        let mut found = Account::default();
        own().filter_map(|reported| reported.done.account).for_each(|one| found.merge(&one));
        // A request that is sent again after the window counts no connection.
        let again: u64 = own().map(|reported| reported.done.meter.stale).sum();
        // Nor does one whose connection is opened for it in the window, and is there behind it, nor
        // a hop.
        let opens = played.scenario.talk.as_ref().is_some_and(|talk| talk.connect_open);
        let again = again + u64::from(opens || played.scenario.hops_move());
        // A peer of HTTP/2 that answers in HTTP/1.1 counts as one of HTTP/1.1.
        let odd = if fair { 0 } else { http2.established + phases * other };
        let right = |count: u64, Spoken { established, used }: Spoken, odd: u64| {
            count <= phases * established + odd && (count >= used || again > 0 || phases == 0)
        };
        ensure(
            right(found.http1 + found.chose_http1, http1, odd)
                && right(found.connections, http2, phases * other),
            || {
                let counts = [found.http1, found.chose_http1, found.connections];
                format!("thread {thread}, {phases} phases: {counts:?}, of {http1:?}, {http2:?}")
            },
        )?;
    }
    Ok(())
}

/// The time for which requests wait or are on a stream is in their latencies, if all have ended
/// well.
pub(super) fn no_wait_is_left_out_of_the_latency(played: &mut Played) -> Result<(), String> {
    let (mut latency_ns, mut in_flight_ns, mut ok) = (0.0, 0, 0);
    let (mut all_ok, mut counted) = (true, false);
    for reported in &played.front.done {
        let meter = &reported.done.meter;
        all_ok &= meter.issued == meter.ok;
        ok += meter.ok;
        if let Some(account) = &reported.done.account {
            counted = true;
            let latency = reported.times().latency.as_deref().map(decoded);
            latency_ns += latency.map_or(0.0, |latency| latency.mean() * latency.len() as f64);
            in_flight_ns += account.open_ns + account.waits_ns.queued;
        }
    }
    if !(all_ok && counted) {
        return Ok(());
    }
    let batch_ns = played.kernels.iter().map(|kernel| kernel.seen.batch_most_ns).max();
    // Histograms keep three digits.
    let most_ns = latency_ns * 1.002 + (ok * batch_ns.unwrap_or(0)) as f64;
    ensure(in_flight_ns as f64 <= most_ns, || {
        format!("requests were in flight for {in_flight_ns} ns, and took {latency_ns} ns")
    })
}

/// Whether requests may have to wait for a stream.
pub(super) fn waits(scenario: &Scenario) -> bool {
    let permits = |manner: &crate::scenario::Manner| manner.http2.permits(scenario.depth);
    matches!(scenario.protocol, Protocol::Http2(_)) && !scenario.peers.iter().all(permits)
}
