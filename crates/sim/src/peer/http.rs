//! An HTTP/1.1 server. It finds where requests end, and writes answers in several forms.

use super::{Request, Speech};
use crate::scenario::{BODY, Style};

#[derive(Debug)]
pub(crate) struct Http {
    /// Requests are HEAD, so answers have no body.
    head: bool,
    /// The received part of the next request, and the offset at which it began.
    kept: Vec<u8>,
    start: u64,
    whole: u64,
    answers: u64,
}

impl Http {
    pub(crate) fn new(head: bool) -> Self {
        Http { head, kept: Vec::new(), start: 0, whole: 0, answers: 0 }
    }

    /// Length of the first request in `kept`; none while it is incomplete.
    fn first_len(&self) -> Option<usize> {
        let head = self.kept.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        let text = String::from_utf8_lossy(&self.kept[..head]);
        let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let body = length.and_then(|length| length.parse().ok()).unwrap_or(0usize);
        (self.kept.len() >= head + body).then_some(head + body)
    }
}

impl Speech for Http {
    fn receive(&mut self, bytes: &[u8], requests: &mut Vec<Request>, _: &mut Vec<u8>) {
        self.kept.extend_from_slice(bytes);
        while let Some(len) = self.first_len() {
            self.kept.drain(..len);
            requests.push(Request { start: self.start, payload: Vec::new(), to_all: None });
            self.start += len as u64;
            self.whole += 1;
        }
    }

    fn answer(&mut self, _: &Request, style: Style, last: bool, out: &mut Vec<u8>) {
        self.answers += 1;
        let large = match style {
            Style::Large(bytes) => "y".repeat(bytes),
            _ => BODY.to_owned(),
        };
        let length = format!("Content-Length: {}\r\n", large.len());
        let (interim, fields, body) = match style {
            Style::Dated => {
                let second = self.answers % 60;
                ("", format!("Date: Mon, 01 Jan 2035 00:00:{second:02} GMT\r\n{length}"), BODY)
            }
            Style::Chunked => (
                "",
                "Transfer-Encoding: chunked\r\n".to_owned(),
                "2\r\nhe\r\n3;last=1\r\nllo\r\n0\r\nX-Sum: 1\r\n\r\n",
            ),
            Style::Interim => ("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", length, BODY),
            Style::UntilEnd => ("", String::new(), BODY),
            Style::Folded => ("", format!("X-Note: one\r\n\tand the same\r\n{length}"), BODY),
            Style::Repeated => {
                let fields = "Content-Length: 5\r\nContent-Length: 5, 5\r\n";
                ("", fields.to_owned(), BODY)
            }
            Style::Length | Style::Large(_) | Style::LaterVersion | Style::Status(_) => {
                ("", length, large.as_str())
            }
        };
        let close = if last { "Connection: close\r\n" } else { "" };
        let body = if self.head { "" } else { body };
        let minor = if style == Style::LaterVersion { 2 } else { 1 };
        let status = if let Style::Status(status) = style { status } else { 200 };
        let answer = format!("{interim}HTTP/1.{minor} {status} OK\r\n{close}{fields}\r\n{body}");
        out.extend_from_slice(answer.as_bytes());
    }

    fn begun(&self) -> u64 {
        self.whole + u64::from(!self.kept.is_empty())
    }
}
