//! The peer's end of TLS, and the set-ups that the rows of the table name.

use std::sync::OnceLock;

use trueload_wire::tls::{Buffers, State, client, server};

use super::pair::{self, Issuer, Pems, options, self_signed, trusting};

const YEARS: (i32, i32) = (2025, 2035);

/// Keys are made once: that takes longer than all the rest.
struct World {
    trusted: Issuer,
    good: Pems,
    other_name: Pems,
    expired: Pems,
    not_yet: Pems,
    self_signed: Pems,
    other_issuer: Pems,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let trusted = Issuer::new("trusted");
        World {
            good: trusted.issue(&["localhost"], YEARS),
            other_name: trusted.issue(&["example.org"], YEARS),
            expired: trusted.issue(&["localhost"], (2020, 2025)),
            not_yet: trusted.issue(&["localhost"], (2030, 2035)),
            self_signed: self_signed(&["localhost"], YEARS, false),
            other_issuer: Issuer::new("other").issue(&["localhost"], YEARS),
            trusted,
        }
    })
}

/// What a peer of this name is set up with; none for one that does not speak TLS.
pub fn server(name: &str) -> Option<server::Setup> {
    let world = world();
    let pems = match name {
        "good" | "asked for h2" => &world.good,
        "other name" => &world.other_name,
        "expired" => &world.expired,
        "not yet valid" => &world.not_yet,
        "self-signed" => &world.self_signed,
        "other issuer" => &world.other_issuer,
        "demands a certificate" => {
            return Some(pair::demanding(&world.good, &world.trusted.pem()));
        }
        "none" => return None,
        _ => panic!("no set-up of TLS: `{name}`"),
    };
    Some(pair::server(pems))
}

/// What the generator is set up with against such a peer.
pub fn client(name: &str) -> client::Setup {
    let mut options = options(trusting(&world().trusted.pem()));
    if name == "asked for h2" {
        options.alpn = vec!["h2".to_owned()];
        options.alpn_required = true;
    }
    pair::client(&options)
}

/// The peer's end of one connection.
#[derive(Debug)]
pub struct Secured {
    session: server::Server,
    buffers: Buffers,
}

impl Secured {
    pub fn new(setup: &server::Setup) -> Self {
        Secured { session: setup.accept().unwrap(), buffers: Buffers::default() }
    }

    pub fn is_open(&self) -> bool {
        self.session.state() != State::Handshaking
    }

    /// What was in these bytes, and what is to be sent in reply.
    pub fn take_in(&mut self, bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        self.buffers.clear();
        // A client that breaks the protocol learns it from the alert.
        let _ = self.session.handle_input(bytes, &mut self.buffers);
        (std::mem::take(&mut self.buffers.plain), std::mem::take(&mut self.buffers.sealed))
    }

    pub fn seal(&mut self, plain: &[u8]) -> Vec<u8> {
        let mut sealed = Vec::new();
        self.session.seal(plain, &mut sealed);
        sealed
    }

    pub fn close_notify(&mut self) -> Vec<u8> {
        let mut sealed = Vec::new();
        self.session.close(&mut sealed);
        sealed
    }

    /// A fatal alert, as a server sends it that was sent junk.
    pub fn alert(&mut self) -> Vec<u8> {
        self.take_in(b"\x17\x03\x03\x00\x20________________________________").1
    }
}
