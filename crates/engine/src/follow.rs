//! Checks a plan whose redirects are followed.

use crate::failure::{Failure, refused};
use crate::protocol::GeneratePlan;
use crate::request;
use trueload_wire::message::is_redirect;

/// Most redirects of one request.
const FOLLOW_MOST: u8 = 100;

/// Refuses redirects that cannot be followed, naming the field.
pub(crate) fn check(plan: &GeneratePlan) -> Result<(), Failure> {
    let Some(most) = plan.follow else { return Ok(()) };
    if most == 0 || most > FOLLOW_MOST {
        return refused(format_args!("follow: must be 1 to {FOLLOW_MOST}"));
    }
    if plan.exchange.is_some() {
        return refused("follow: excludes exchange");
    }
    if plan.connect_open {
        return refused("follow: excludes connect_open");
    }
    for (field, request, expect) in request::all(plan) {
        if !request.path.starts_with('/') {
            return refused(format_args!(
                "{field}.path: must begin with / where redirects are followed"
            ));
        }
        if expect.statuses.iter().flatten().any(|status| is_redirect(*status)) {
            return refused(format_args!("{field}: expects a redirect, and they are followed"));
        }
    }
    Ok(())
}
