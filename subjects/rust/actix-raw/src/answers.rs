//! What is answered: heads composed at compile time, with the Date of actix-http's clock between.

use actix_http::error::ParseError;
use actix_http::{Method, Request, ServiceConfig};
use bytes::BytesMut;

const WAIT_MS_MAX: u64 = 60_000;

/// A response without what differs from request to request: the Date and Connection lines.
pub struct Answer {
    head: &'static str,
    body: &'static str,
}

/// The pad brings it to 192 bytes, see subjects/README.md.
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

/// To `/wait/MS`, when the time is over.
pub const WAITED: Answer = Answer {
    head: "HTTP/1.1 200 OK\r\nServer: actix-raw\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n",
    body: "ok",
};

/// No such path.
pub const NOT_FOUND: Answer = bare("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n");
/// Only GET is known.
pub const BAD_METHOD: Answer =
    bare("HTTP/1.1 405 Method Not Allowed\r\nAllow: GET\r\nContent-Length: 0\r\n");
/// Not HTTP, or not a time to wait.
pub const BAD_REQUEST: Answer = bare("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n");
/// More than actix-http takes.
pub const HEAD_TOO_LARGE: Answer =
    bare("HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\n");

const fn bare(head: &'static str) -> Answer {
    Answer { head, body: "" }
}

/// How the connection goes on after an answer.
#[derive(Clone, Copy, PartialEq)]
pub enum Persistence {
    Stay,
    /// HTTP/1.0 wants to be told that we stay.
    StaySaid,
    Close,
}

impl Answer {
    /// Appends it to `output`.
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

/// The answer to a request; `/wait/MS` comes with its milliseconds.
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

/// Why a request cannot be answered.
pub fn refusal(error: &ParseError) -> Answer {
    match error {
        ParseError::TooLarge => HEAD_TOO_LARGE,
        _ => BAD_REQUEST,
    }
}
