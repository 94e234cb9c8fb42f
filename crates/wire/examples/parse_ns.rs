//! Prints what the parsers cost per message: `cargo run --release -p trueload-wire --example parse_ns`.

use std::hint::black_box;
use std::time::Instant;
use trueload_wire::message::Limits;

use trueload_wire::http1::request::RequestParser;
use trueload_wire::http1::response::{HeadMemory, ResponseParser};

const ROUNDS: u32 = 2_000_000;

const RESPONSES: [(&str, &[u8]); 5] = [
    ("smallest", b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\nHello, World!"),
    (
        "nginx",
        b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
          Content-Type: text/plain\r\nContent-Length: 13\r\nConnection: keep-alive\r\n\r\nHello, World!",
    ),
    (
        "fasthttp",
        b"HTTP/1.1 200 OK\r\nServer: fasthttp\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
          Content-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!",
    ),
    (
        "node",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\
          Date: Thu, 01 Jan 1970 00:00:00 GMT\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\n\r\n\
          Hello, World!",
    ),
    (
        "chunked",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\
          Transfer-Encoding: chunked\r\n\r\nd\r\nHello, World!\r\n0\r\n\r\n",
    ),
];

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: trueload\r\n\r\n";

fn main() {
    let limits = Limits::default();
    println!("a parser takes {} bytes", size_of::<ResponseParser>());
    for (name, bytes) in RESPONSES {
        let mut parser = ResponseParser::default();
        print_ns(name, bytes, || {
            let mut seen = 0;
            let fed = parser.feed(black_box(bytes), false, &limits, &mut |body| seen += body.len());
            assert!(black_box(fed).is_ok() && seen == 13);
        });
    }
    let mut memory = HeadMemory::default();
    for (name, bytes) in RESPONSES {
        let mut parser = ResponseParser::default();
        let name = format!("{name} again");
        print_ns(&name, bytes, || {
            let mut seen = 0;
            let mut body = |slice: &[u8]| seen += slice.len();
            let bytes = black_box(bytes);
            let fed = parser.feed_remembering(bytes, false, &limits, Some(&mut memory), &mut body);
            assert!(black_box(fed).is_ok() && seen == 13);
        });
    }
    let mut parser = RequestParser::default();
    print_ns("request", REQUEST, || {
        assert!(black_box(parser.feed(black_box(REQUEST), &limits)).is_ok());
    });
}

fn print_ns(name: &str, bytes: &[u8], mut round: impl FnMut()) {
    let start = Instant::now();
    (0..ROUNDS).for_each(|_| round());
    let each = start.elapsed().as_nanos() as f64 / f64::from(ROUNDS);
    println!("{name:>14}: {each:6.1} ns for {} bytes", bytes.len());
}
