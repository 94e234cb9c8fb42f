//! Checks a plan whose redirects are followed.

use crate::failure::{Failure, refuse_if, refused};
use crate::protocol::GeneratePlan;
use crate::request;
use trueload_wire::message::is_redirect;

/// Most redirects of one request.
const FOLLOW_MOST: u8 = 100;

/// Refuses redirects that cannot be followed, naming the field.
pub(crate) fn check(plan: &GeneratePlan) -> Result<(), Failure> {
    let Some(most) = plan.follow else { return Ok(()) };
    refuse_if!(most == 0 || most > FOLLOW_MOST, "follow: must be 1 to {FOLLOW_MOST}");
    refuse_if!(plan.exchange.is_some(), "follow: excludes exchange");
    refuse_if!(plan.connect_open, "follow: excludes connect_open");
    for (field, request, expect) in request::all(plan) {
        refuse_if!(
            !request.path.starts_with('/'),
            "{field}.path: must begin with / where redirects are followed"
        );
        if expect.statuses.iter().flatten().any(|status| is_redirect(*status)) {
            return refused(format_args!("{field}: expects a redirect, and they are followed"));
        }
    }
    Ok(())
}
