//! The answers: their heads are composed at compile time. The Date header comes from actix-http's
//! clock and is inserted when an answer is written.

use actix_http::error::ParseError;
use actix_http::{Method, Request, ServiceConfig};
use bytes::BytesMut;

const WAIT_MS_MAX: u64 = 60_000;

/// A response without the lines that vary, Date and Connection.
pub struct Answer {
    head: &'static str,
    body: &'static str,
}

/// X-Pad brings the response to 192 bytes, see subjects/README.md.
pub const PLAIN: Answer = Answer {
    head: "HTTP/1.1 200 OK\r\nServer: actix-raw\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\
           X-Pad: .................................................\r\n",
    body: "Hello, World!",
};

/// 84 bytes of JSON.
pub const PERF: Answer = Answer {
    head: "HTTP/1.1 200 OK\r\nServer: actix-raw\r\nContent-Type: application/json\r\n\
           Content-Length: 84\r\n",
    body: r#"{"path":"/perf","status":"ok","message":"Hello, World!","numbers":[1,2,3,5,8,13,21]}"#,
};

/// The answer to `/wait/MS`, sent when the time is over.
pub const WAITED: Answer = Answer {
    head: "HTTP/1.1 200 OK\r\nServer: actix-raw\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n",
    body: "ok",
};

/// The path is unknown.
pub const NOT_FOUND: Answer = bare("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n");
/// The method is not GET.
pub const BAD_METHOD: Answer =
    bare("HTTP/1.1 405 Method Not Allowed\r\nAllow: GET\r\nContent-Length: 0\r\n");
/// The request is not HTTP, or the time to wait is invalid.
pub const BAD_REQUEST: Answer = bare("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n");
/// The head is longer than actix-http accepts.
pub const HEAD_TOO_LARGE: Answer =
    bare("HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n");

const fn bare(head: &'static str) -> Answer {
    Answer { head, body: "" }
}

/// Whether the connection is kept after an answer.
#[derive(Clone, Copy, PartialEq)]
pub enum Persistence {
    Stay,
    /// With HTTP/1.0, keep-alive must be stated.
    StaySaid,
    Close,
}

impl Answer {
    /// Appends the answer to `output`.
    pub fn write(&self, persistence: Persistence, config: &ServiceConfig, output: &mut BytesMut) {
        output.extend_from_slice(self.head.as_bytes());
        config.write_date_header(output, true);
        output.extend_from_slice(match persistence {
            Persistence::Stay => b"\r\n",
            Persistence::StaySaid => b"Connection: keep-alive\r\n\r\n",
            Persistence::Close => b"Connection: close\r\n\r\n",
        });
        output.extend_from_slice(self.body.as_bytes());
    }
}

/// Returns the answer to a request, and for `/wait/MS` its milliseconds.
pub fn route(request: &Request) -> (Answer, Option<u64>) {
    let path = request.path();
    if request.method() != Method::GET {
        return (BAD_METHOD, None);
    }
    match path {
        "/" => (PLAIN, None),
        "/perf" => (PERF, None),
        _ => match path.strip_prefix("/wait/").map(str::parse::<u64>) {
            Some(Ok(ms)) if ms <= WAIT_MS_MAX => (WAITED, Some(ms)),
            Some(_) => (BAD_REQUEST, None),
            None => (NOT_FOUND, None),
        },
    }
}

/// Returns the answer to a request that cannot be parsed.
pub fn refusal(error: &ParseError) -> Answer {
    match error {
        ParseError::TooLarge => HEAD_TOO_LARGE,
        _ => BAD_REQUEST,
    }
}
