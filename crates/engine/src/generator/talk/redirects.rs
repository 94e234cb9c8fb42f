//! What was seen of redirects on one thread: how many were followed, and why others were not.

use std::collections::BTreeMap;

use trueload_meter::{Class, Redirects};
use trueload_wire::exchange::Ending;
use trueload_wire::message::{Location, Rules, Unfollowed};

use crate::generator::messages::DoneReport;

/// Longest quote of a Location.
const QUOTED_BYTES: usize = 200;

/// The account of one thread.
#[derive(Debug)]
pub(super) struct Account {
    /// Most redirects of one request.
    most: u8,
    /// What was seen, by phase.
    seen: BTreeMap<u16, Seen>,
    /// The first reason why a redirect was not followed.
    reason: Option<String>,
}

#[derive(Debug, Default)]
struct Seen {
    redirects: Redirects,
    /// The number of redirects of each target.
    targets: Vec<u64>,
}

/// Why a redirect is not followed.
#[derive(Clone, Copy, Debug)]
pub(super) enum Why {
    TooMany,
    Unfollowed(Unfollowed),
}

impl Account {
    pub(super) fn new(most: u8) -> Self {
        Account { most, seen: BTreeMap::new(), reason: None }
    }

    /// Whether a request behind so many redirects follows one more.
    pub(super) fn allows(&self, count: u8) -> Result<(), Why> {
        if count < self.most { Ok(()) } else { Err(Why::TooMany) }
    }

    /// Notes a redirect that is followed, of a request to this target; it took this long.
    pub(super) fn note_followed(&mut self, phase: u16, target: usize, status: u16, took_ns: u64) {
        let seen = self.seen.entry(phase).or_default();
        seen.redirects.record_followed(status, took_ns);
        if seen.targets.len() <= target {
            seen.targets.resize(target + 1, 0);
        }
        seen.targets[target] += 1;
    }

    /// Notes requests that ended well behind so many redirects.
    pub(super) fn note_ok(&mut self, phase: u16, redirects: u8, count: usize) {
        self.seen.entry(phase).or_default().redirects.record_ok(redirects, count as u64);
    }

    /// Keeps the reason why a redirect is not followed, for the user.
    #[cold]
    pub(super) fn note_reason(&mut self, why: Why, location: &Location) {
        let visible = |text: &&[u8]| {
            !text.is_empty() && text.len() <= QUOTED_BYTES && text.iter().all(u8::is_ascii_graphic)
        };
        let leads = location.value().ok().filter(visible);
        // The URL comes last: the front takes secrets out of it.
        let leads = leads.map(|text| format!("a redirect to {}", String::from_utf8_lossy(text)));
        let leads = leads.unwrap_or_else(|| "a redirect".to_owned());
        let most = self.most;
        self.reason.get_or_insert_with(|| match why {
            Why::TooMany if most == 1 => format!("behind 1 redirect: {leads}"),
            Why::TooMany => format!("behind {most} redirects: {leads}"),
            Why::Unfollowed(Unfollowed::Missing) => format!("{leads} without Location"),
            Why::Unfollowed(Unfollowed::Malformed) => format!("to no usable URL: {leads}"),
            Why::Unfollowed(Unfollowed::Elsewhere) => format!("to another server: {leads}"),
        });
    }

    /// Adds what was seen in a phase to its report.
    pub(super) fn complete(&mut self, report: &mut DoneReport) {
        let sum = report.meter.redirects.get_or_insert_default();
        if let Some(seen) = self.seen.remove(&(report.phase as u16)) {
            sum.merge(&seen.redirects);
            let targets = report.meter.targets.iter_mut().zip(&seen.targets);
            targets.for_each(|(target, count)| target.redirects += count);
        }
        if let Some(reason) = &self.reason {
            report.reasons.push((Class::Redirect, reason.clone()));
        }
    }
}

/// Whether a request is sent again if one of its hops ends like this.
pub(super) fn goes_again(ending: Ending, was_sent_again: bool) -> bool {
    match ending {
        Ending::StaleBehind => true,
        Ending::Stale | Ending::StaleGoaway | Ending::StaleRefused => !was_sent_again,
        _ => false,
    }
}

/// The ending of a hop behind a redirect. Its connection has just answered: it was not given up for
/// being idle.
pub(super) fn behind_redirect(ending: Ending) -> Ending {
    match ending {
        Ending::StaleReset | Ending::UnusedReset => Ending::Reset,
        Ending::StaleTimeout => Ending::Status,
        Ending::UnusedEnd => Ending::Empty,
        other => other,
    }
}

/// The rules for a request that has become a GET without a body.
pub(super) fn of_get(rules: &Rules) -> Rules {
    Rules { head_request: false, idempotent: true, ..rules.clone() }
}
