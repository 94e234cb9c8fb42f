//! Converts a plan whose redirects are followed to what the generators need, and checks it.

use std::sync::Arc;

use trueload_load::Places;
use trueload_wire::redirect::is_redirect;

use crate::blobs::Blobs;
use crate::failure::Failure;
use crate::generator::{First, Follow, FollowHttp1, FollowHttp2};
use crate::protocol::{GeneratePlan, WindowsPlan};
use crate::request::{self, Sending};

/// Most redirects of one request.
const FOLLOW_MOST: u8 = 100;

/// Refuses redirects that cannot be followed, naming the field.
pub(crate) fn check(plan: &GeneratePlan) -> Result<(), Failure> {
    let Some(most) = plan.follow else { return Ok(()) };
    let refused = |what: String| Err(Failure::Plan(what));
    if most == 0 || most > FOLLOW_MOST {
        return refused(format!("follow: must be 1 to {FOLLOW_MOST}"));
    }
    if plan.exchange.is_some() || plan.stream.is_some() {
        return refused("follow: excludes exchange and stream".to_owned());
    }
    if plan.connect_open {
        return refused("follow: excludes connect_open".to_owned());
    }
    match plan.http2 {
        None if plan.pipeline > 1 => {
            return refused("follow: excludes pipeline over HTTP/1.1".to_owned());
        }
        Some(terms) if terms.http1_pipeline.is_some() || terms.upgrade => {
            return refused("follow: excludes http2.http1_pipeline and http2.upgrade".to_owned());
        }
        _ => {}
    }
    for (field, request, expect) in request::all(plan) {
        if !request.path.starts_with('/') {
            return refused(format!(
                "{field}.path: must begin with / where redirects are followed"
            ));
        }
        if expect.statuses.iter().flatten().any(|status| is_redirect(*status)) {
            return refused(format!("{field}: expects a redirect, and they are followed"));
        }
    }
    Ok(())
}

fn follow(plan: &GeneratePlan, sending: &Sending) -> impl Fn() -> Follow + use<> {
    let (most, secure, alone) = (plan.follow.unwrap_or(0), plan.tls.is_some(), plan.close);
    let first = match (&sending.requests, &sending.burst) {
        (Some(requests), _) => First::Several(Arc::clone(requests)),
        (None, (burst, times)) => {
            let one = &burst[..burst.len() / (*times).max(1)];
            First::Alike(Arc::from(one), sending.rules.clone())
        }
    };
    move || Follow::new(most, secure, alone, first.clone())
}

/// What makes the HTTP/1.1 of each thread.
pub(crate) fn http1(
    plan: &GeneratePlan,
    blobs: &Blobs,
    places: Option<Places>,
) -> Result<impl Fn() -> FollowHttp1 + use<>, Failure> {
    let make = follow(plan, &request::sending(plan, blobs, places)?);
    Ok(move || FollowHttp1::new(make()))
}

/// What makes the HTTP/2 of each thread.
pub(crate) fn http2(
    plan: &GeneratePlan,
    terms: WindowsPlan,
    blobs: &Blobs,
    places: Option<Places>,
) -> Result<impl Fn() -> FollowHttp2 + use<>, Failure> {
    let (sending, sent) = request::sent_over_both(plan, blobs, places)?;
    let make = follow(plan, &sending);
    Ok(move || FollowHttp2::new(make(), sent.clone(), terms))
}
