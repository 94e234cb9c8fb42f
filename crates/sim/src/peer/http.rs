//! An HTTP/1.1 server. It finds where requests end, and writes answers in several forms.

use super::site::Part;
use super::{Asked, Reply, Request, Speech, Talking};
use crate::scenario::{BODY, Style};

#[derive(Debug)]
pub(crate) struct Http {
    /// Requests are HEAD, so answers have no body.
    head: bool,
    /// The site of a conversation.
    talking: Option<Talking>,
    /// The received part of the next request, and the offset at which it began.
    kept: Vec<u8>,
    start: u64,
    whole: u64,
    answers: u64,
}

impl Http {
    pub(crate) fn new(head: bool, talking: Option<Talking>) -> Self {
        Http { head, talking, kept: Vec::new(), start: 0, whole: 0, answers: 0 }
    }

    /// Tells the site that a whole answer was sent.
    pub(crate) fn note_whole(&self, reply: &Reply) {
        if let Some(talking) = &self.talking {
            talking.site.note_whole(reply.parts);
        }
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
            let bytes: Vec<u8> = self.kept.drain(..len).collect();
            let reply = self.talking.as_ref().and_then(|talking| talking.take(&asked(&bytes)));
            requests.push(Request { reply, ..Request::at(self.start) });
            self.start += len as u64;
            self.whole += 1;
        }
    }

    fn answer(&mut self, request: &Request, style: Style, last: bool, out: &mut Vec<u8>) {
        self.answers += 1;
        if let Some(reply) = &request.reply {
            return parts(reply, style, last).iter().for_each(|part| out.extend(&part.bytes));
        }
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

/// Reads a complete request.
fn asked(bytes: &[u8]) -> Asked {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut words = head.lines().next().unwrap_or("").split(' ');
    let mut word = || words.next().unwrap_or("").to_owned();
    let (method, path) = (word(), word());
    let field = |name: &str| {
        let named = head.lines().filter_map(|line| line.split_once(": "));
        let mut values = named.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned());
        values.next().unwrap_or_default()
    };
    Asked { method, path, host: field("Host"), cookies: field("Cookie"), body: body.len() }
}

/// The form of an answer in HTTP/1.1: its head, and the pieces of its body.
pub(super) fn parts(reply: &Reply, style: Style, last: bool) -> Vec<Part> {
    let interim = if style == Style::Interim { "HTTP/1.1 103 Early Hints\r\n\r\n" } else { "" };
    let minor = if style == Style::LaterVersion { 2 } else { 1 };
    let mut head = format!("{interim}HTTP/1.{minor} {} Some Words\r\n", reply.status);
    let mut add = |name: &str, value: &str| head.push_str(&format!("{name}: {value}\r\n"));
    if last {
        add("Connection", "close");
    }
    reply.fields.iter().for_each(|(name, value)| add(name, value));
    let length = reply.len().to_string();
    let chunked = match style {
        Style::UntilEnd => reply.chunks,
        _ if reply.parts.is_some() || reply.chunks || style == Style::Chunked => true,
        Style::Folded => {
            add("X-Note", "one\r\n\tand the same");
            add("Content-Length", &length);
            false
        }
        Style::Repeated => {
            add("Content-Length", &length);
            add("Content-Length", &format!("{length}, {length}"));
            false
        }
        _ => {
            add("Content-Length", &length);
            false
        }
    };
    if chunked {
        add("Transfer-Encoding", "chunked");
    }
    head.push_str("\r\n");
    let mut parts = vec![Part { gap_ns: 0, bytes: head.into_bytes() }];
    if reply.head {
        return parts;
    }
    for part in &reply.body {
        let bytes = if chunked { chunk(&part.bytes) } else { part.bytes.clone() };
        if part.gap_ns > 0 {
            parts.push(Part { gap_ns: part.gap_ns, bytes });
        } else if let Some(before) = parts.last_mut() {
            before.bytes.extend(bytes);
        }
    }
    if chunked && let Some(before) = parts.last_mut() {
        // What stands in a trailer is no value of a header (RFC 9110 section 6.5.1).
        let trailer = if style == Style::Chunked { "X-Value: late\r\n" } else { "" };
        before.bytes.extend(format!("0\r\n{trailer}\r\n").bytes());
    }
    parts
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}
