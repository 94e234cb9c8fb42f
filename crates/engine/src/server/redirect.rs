//! Redirects of the reference server: `/redirect/N` leads to `/` in N steps, `/redirect/N/STATUS`
//! with another status than 302.

use trueload_wire::message::is_redirect;

use super::stream::number;

/// The longest chain.
const STEPS_MOST: u64 = 100;

/// The rest of a chain of redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chain {
    /// The redirects that are left, with this one.
    left: u8,
    pub(super) status: u16,
}

impl Chain {
    /// Reads `N` or `N/STATUS`.
    pub(super) fn read(path: &str) -> Option<Self> {
        let (steps, status) = path.split_once('/').unwrap_or((path, "302"));
        let left = number(steps, STEPS_MOST).filter(|left| *left > 0)? as u8;
        let status = number(status, 999)? as u16;
        is_redirect(status).then_some(Chain { left, status })
    }

    /// Where it leads.
    pub(super) fn location(self) -> String {
        match (self.left - 1, self.status) {
            (0, _) => "/".to_owned(),
            (left, 302) => format!("/redirect/{left}"),
            (left, status) => format!("/redirect/{left}/{status}"),
        }
    }

    /// Its status with the reason.
    pub(super) fn status_line(self) -> &'static str {
        match self.status {
            301 => "301 Moved Permanently",
            303 => "303 See Other",
            307 => "307 Temporary Redirect",
            308 => "308 Permanent Redirect",
            _ => "302 Found",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_leads_home_step_by_step() {
        for (path, left, status, location) in [
            ("1", 1, 302, "/"),
            ("3", 3, 302, "/redirect/2"),
            ("100/307", 100, 307, "/redirect/99/307"),
            ("1/301", 1, 301, "/"),
        ] {
            let chain = Chain::read(path).expect("a chain");
            assert_eq!((chain, &*chain.location()), (Chain { left, status }, location), "{path}");
            assert!(chain.status_line().starts_with(&status.to_string()), "{path}");
        }
        for path in ["", "0", "101", "+1", "1/", "1/200", "1/304", "1/+302", "1/302/", "a", "999"] {
            assert_eq!(Chain::read(path), None, "{path}");
        }
    }
}
