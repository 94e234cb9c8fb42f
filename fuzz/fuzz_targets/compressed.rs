//! Any bytes as the content of a compressed answer: read for its parts and compared, it ends the
//! same way however it was cut, over HTTP/1 and over HTTP/2. The first bytes choose the codings, what
//! is needed of it, and where it is cut; the second says whether the rest is compressed first.

#![no_main]

use std::io::Write;

use brotli::CompressorWriter;
use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use libfuzzer_sys::fuzz_target;
use trueload_wire::exchange::{Ending, Exchange};
use trueload_wire::http1::client::Client;
use trueload_wire::http2;
use trueload_wire::http2::frame::{write_block, write_data};
use trueload_wire::http2::hpack::literal::field;
use trueload_wire::message::{self, Rules};
use trueload_wire::parts::{Kind, Rule, Streaming};

const CODINGS: [&str; 4] = ["gzip", "deflate", "identity", "br"];
const EXPECTED: &[u8] = b"{}\n{}\n";

struct Book {
    rules: Rules,
    rule: Option<Rule>,
}

impl<T> message::Book<T> for Book {
    fn rules_of(&self, _: &T) -> &Rules {
        &self.rules
    }

    fn streaming(&self) -> Option<Streaming<'_>> {
        self.rule.as_ref().map(|rule| Streaming { rule, at_ns: 0 })
    }
}

fn compressed(bytes: &[u8], way: u8) -> Vec<u8> {
    let level = Compression::default();
    let (mut gzip, mut zlib) = (GzEncoder::new(vec![], level), ZlibEncoder::new(vec![], level));
    let mut deflate = DeflateEncoder::new(vec![], level);
    let mut br = CompressorWriter::new(vec![], 4096, 5, 22);
    let done = match way {
        0 => gzip.write_all(bytes).and_then(|()| gzip.finish()),
        1 => zlib.write_all(bytes).and_then(|()| zlib.finish()),
        2 => deflate.write_all(bytes).and_then(|()| deflate.finish()),
        3 => br.write_all(bytes).map(|()| br.into_inner()),
        _ => Ok(bytes.to_vec()),
    };
    done.expect("memory")
}

fn over_http1(book: &Book, coding: &str, parts: &[&[u8]]) -> Vec<Ending> {
    let (mut client, mut endings) = (Client::default(), Vec::new());
    client.ask(1);
    let len = parts.concat().len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {len}\r\n\r\n");
    for part in [head.as_bytes()].iter().chain(parts).filter(|part| !part.is_empty()) {
        client.handle_input(1, part, book, &mut Vec::new(), &mut |one| {
            endings.push(one.ending);
        });
    }
    endings
}

fn over_http2(book: &Book, coding: &str, parts: &[&[u8]]) -> Vec<Ending> {
    let (mut client, mut sent, mut endings) = (http2::client::Client::default(), vec![], vec![]);
    client.open(http2::client::Windows { stream: 1 << 20, connection: 1 << 20 }, &mut sent);
    let mut wire = vec![0, 0, 0, 4, 0, 0, 0, 0, 0];
    let mut block = Vec::new();
    for (name, value) in [(":status", "200"), ("content-encoding", coding)] {
        field(&mut block, name.as_bytes(), value.as_bytes(), false);
    }
    client.handle_input(1, &wire, book, &mut sent, &mut |_| {});
    client.ask(1);
    client.write(book, usize::MAX, &mut sent);
    wire.clear();
    write_block(&mut wire, 1, &block, false, 16_384);
    parts.iter().for_each(|part| write_data(&mut wire, 1, part, false));
    write_data(&mut wire, 1, b"", true);
    client.handle_input(1, &wire, book, &mut sent, &mut |one| endings.push(one.ending));
    endings
}

fuzz_target!(|data: &[u8]| {
    let Some((&[choice, way, cut], bytes)) = data.split_first_chunk::<3>() else { return };
    let coding = CODINGS[usize::from(choice & 3)];
    let bytes = compressed(bytes, way % 5);
    let (one, two) = bytes.split_at(bytes.len() * usize::from(cut) / 255);
    let body = (choice & 4 > 0).then(|| EXPECTED.to_vec());
    let rules = Rules { body, ..Rules::default() };
    let kind = if choice & 16 > 0 { Kind::Sse } else { Kind::Jsonl };
    let rule = (choice & 8 > 0).then_some(Rule { kind, end: None, stall_ns: None });
    let book = Book { rules, rule };
    let whole = over_http1(&book, coding, &[&bytes]);
    assert_eq!(whole.len(), 1);
    assert_eq!(over_http1(&book, coding, &[one, two]), whole, "cut at {}", one.len());
    assert_eq!(over_http2(&book, coding, &[&bytes]), whole, "HTTP/2");
    assert_eq!(over_http2(&book, coding, &[one, two]), whole, "HTTP/2, in frames");
});
