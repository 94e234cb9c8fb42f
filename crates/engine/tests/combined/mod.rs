//! Redirects and sessions together with the version of HTTP, with streamed answers, and with several
//! requests in flight, played by hand. What holds for each alone has tests of its own.

mod follow;
mod peer;
mod play;
mod sessions;
mod splits;

use std::sync::Arc;

use trueload_engine::generator::{Alike, DoneReport, Hops, Sending};
use trueload_wire::http2::request::Template;
use trueload_wire::message::{self, Request, Rules, Texts};
use trueload_wire::parts::{Kind, Rule};

use play::{MS, Speaks};

const STALL_NS: u64 = 100 * MS;

/// Parts are lines, and a stream stalls.
fn lines() -> Option<Rule> {
    Some(Rule { kind: Kind::Jsonl, end: None, stall_ns: Some(STALL_NS) })
}

/// Follows up to 3 redirects of `GET /a`, in the form of each version.
fn hops(speaks: Speaks, rule: Option<Rule>) -> Hops {
    let secure = speaks == Speaks::Either;
    let burst: Arc<[u8]> = Arc::from(&b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n"[..]);
    let headers = [("Host".to_owned(), "h".to_owned())];
    let texts = Texts { method: "GET", path: "/a", headers: &headers, body: None };
    let http2 = Some(Template::of(
        if secure { "https" } else { "http" },
        &message::Template::new(&texts, None),
    ));
    let headers = vec![(b"Host".to_vec(), b"h".to_vec())];
    let (method, target, body) = (b"GET".to_vec(), b"/a".to_vec(), Vec::new());
    let whole = Some(Arc::new(Request { method, target, headers, body }));
    let rules = Rules { idempotent: true, ..Rules::default() };
    let sending = Sending::Alike(Alike { len: burst.len(), burst, http2, whole, rules });
    Hops::new(3, secure, sending, rule)
}

type Counts<T> = Vec<(T, u64)>;

/// The numbers of requests by their redirects, and of redirects by their status.
fn redirects(done: &DoneReport) -> (Counts<u8>, Counts<u16>) {
    let seen = done.meter.redirects.as_deref().expect("redirects are followed");
    (seen.hops.clone().into_iter().collect(), seen.statuses.clone().into_iter().collect())
}

/// Parts, and whole streams.
fn streams(done: &DoneReport) -> (u64, u64) {
    let seen = done.meter.streams.as_deref().expect("answers are streams");
    (seen.parts, seen.whole)
}

/// Sessions that began, ended well, and failed.
fn sessions(done: &DoneReport) -> (u64, u64, u64) {
    let seen = done.meter.sessions.as_ref().expect("sessions");
    (seen.begun, seen.ok, seen.failed)
}
