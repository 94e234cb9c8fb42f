//! The server's end of a connection: reads requests and writes answers in either version of HTTP.

use std::sync::Arc;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use trueload_wire::http2::frame::{
    ErrorCode, HEADER_BYTES, Header, Kind, PREFACE, write_block, write_data, write_goaway,
};
use trueload_wire::http2::hpack::{Decoder, literal};
use trueload_wire::http2::settings;
use trueload_wire::tls::client::{self, Options, Trust};
use trueload_wire::tls::server::{Server, Setup};
use trueload_wire::tls::{Buffers, Identity, State, TimeProvider, UnixTime};

/// TLS of the server.
pub struct Tls(Setup);

#[derive(Debug)]
struct Standing;

impl TimeProvider for Standing {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(1_700_000_000)))
    }
}

impl Tls {
    pub fn new() -> Self {
        let params = CertificateParams::new(["h".to_owned()]).expect("a name");
        let key = KeyPair::generate().expect("random bytes");
        let pem = params.self_signed(&key).expect("it signs itself").pem();
        let identity = Identity::from_pem(pem.as_bytes(), key.serialize_pem().as_bytes());
        let setup = Setup::new(identity.expect("a key"), &[], Arc::new(Standing));
        Tls(setup.expect("the key is the certificate's"))
    }

    /// The setup of a client that leaves the version to the server.
    pub fn client(&self) -> client::Setup {
        let options = Options {
            server_name: "h".to_owned(),
            alpn: ["h2", "http/1.1"].map(str::to_owned).to_vec(),
            alpn_required: false,
            trust: Trust::Anybody,
            identity: None,
            tunnel: None,
            resumption: false,
        };
        client::Setup::new(&options, Arc::new(Standing)).expect("a name")
    }
}

/// An answer in no version's form.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    fields: Vec<(&'static str, String)>,
    /// Chunks, or the content of DATA frames.
    parts: Vec<String>,
    /// The body comes to its end.
    is_whole: bool,
    /// The connection takes no more requests.
    closes: bool,
}

impl Answer {
    /// A good answer with these parts.
    pub fn ok(parts: &[&str]) -> Self {
        let parts = parts.iter().map(|part| (*part).to_owned()).collect();
        Answer { status: 200, fields: Vec::new(), parts, is_whole: true, closes: false }
    }

    /// A redirect to there, whose body has two parts.
    pub fn redirect(to: &str) -> Self {
        Answer { status: 302, ..Answer::ok(&["moved\n", "there\n"]) }.with("location", to)
    }

    pub fn status(self, status: u16) -> Self {
        Answer { status, ..self }
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.fields.push((name, value.to_owned()));
        self
    }

    /// The same without the end of the body.
    pub fn begun(self) -> Self {
        Answer { is_whole: false, ..self }
    }

    /// The same on a connection that takes no more requests.
    pub fn closing(self) -> Self {
        Answer { closes: true, ..self }
    }

    fn over_http1(&self) -> Vec<u8> {
        let mut text = format!("HTTP/1.1 {} X\r\nTransfer-Encoding: chunked\r\n", self.status);
        self.fields.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
        text += if self.closes { "Connection: close\r\n\r\n" } else { "\r\n" };
        self.parts.iter().for_each(|part| text += &format!("{:x}\r\n{part}\r\n", part.len()));
        text += if self.is_whole { "0\r\n\r\n" } else { "" };
        text.into_bytes()
    }

    fn over_http2(&self, stream: u32) -> Vec<u8> {
        let (mut block, mut out) = (Vec::new(), Vec::new());
        literal::field(&mut block, b":status", self.status.to_string().as_bytes(), false);
        for (name, value) in &self.fields {
            literal::field(&mut block, name.as_bytes(), value.as_bytes(), false);
        }
        if self.closes {
            write_goaway(&mut out, stream, ErrorCode::NoError, "");
        }
        write_block(&mut out, stream, &block, false, 16_384);
        self.parts.iter().for_each(|part| write_data(&mut out, stream, part.as_bytes(), false));
        if self.is_whole {
            write_data(&mut out, stream, b"", true);
        }
        out
    }
}

/// The server's end of one connection.
pub struct Peer {
    pub over_http2: bool,
    tls: Option<Server>,
    /// Plain bytes that have not been read yet.
    heard: Vec<u8>,
}

impl Peer {
    pub fn new(over_http2: bool, tls: Option<&Tls>) -> Self {
        let alpn: &[&str] = if over_http2 { &["h2"] } else { &["http/1.1"] };
        let tls = tls.map(|Tls(setup)| setup.choosing(alpn).accept().expect("random bytes"));
        Peer { over_http2, tls, heard: Vec::new() }
    }

    pub fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.state() == State::Handshaking)
    }

    /// Takes bytes of the client, and returns what TLS has to say.
    pub fn hear(&mut self, bytes: &[u8]) -> Vec<u8> {
        let Some(tls) = &mut self.tls else {
            self.heard.extend_from_slice(bytes);
            return Vec::new();
        };
        let mut buffers = Buffers::default();
        tls.handle_input(bytes, &mut buffers).expect("TLS");
        self.heard.append(&mut buffers.plain);
        buffers.sealed
    }

    pub fn seal(&mut self, plain: Vec<u8>) -> Vec<u8> {
        let Some(tls) = &mut self.tls else { return plain };
        let mut sealed = Vec::new();
        tls.seal(&plain, &mut sealed);
        sealed
    }

    /// What the server says first.
    pub fn settings(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.over_http2 {
            settings::write(&mut out, &[]);
        }
        out
    }

    /// The answer to the request with this number on the connection.
    pub fn written(&self, nth: u32, answer: &Answer) -> Vec<u8> {
        if self.over_http2 { answer.over_http2(2 * nth + 1) } else { answer.over_http1() }
    }

    /// Method and target of each request that has come.
    pub fn requests(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        if self.over_http2 {
            self.read_frames(&mut found);
        } else {
            let text = String::from_utf8(std::mem::take(&mut self.heard)).expect("text");
            let lines = text.lines().filter_map(|line| line.strip_suffix(" HTTP/1.1"));
            found.extend(lines.map(str::to_owned));
        }
        found
    }

    fn read_frames(&mut self, found: &mut Vec<String>) {
        if self.heard.starts_with(PREFACE) {
            self.heard.drain(..PREFACE.len());
        }
        while let Some(header) = self.heard.first_chunk::<HEADER_BYTES>().map(Header::read) {
            let frame = self.heard.drain(..HEADER_BYTES + header.len as usize);
            let block = &frame.as_slice()[HEADER_BYTES..];
            let (mut method, mut path) = (String::new(), String::new());
            if header.kind == Kind::HEADERS {
                let read = |field: trueload_wire::http2::hpack::Field<'_>| {
                    let value = || String::from_utf8_lossy(field.value).into_owned();
                    match field.name {
                        b":method" => method = value(),
                        b":path" => path = value(),
                        _ => {}
                    }
                };
                Decoder::default().decode(block, 65_536, &mut { read }).expect("a block");
                found.push(format!("{method} {path}"));
            }
        }
    }
}
