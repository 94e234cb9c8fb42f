//! A client and a server of TLS, driven step by step without a socket, and the certificates that they need.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType,
    date_time_ymd,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::UnixTime;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use trueload_wire::tls::client::{self, Client, Trust};
use trueload_wire::tls::server::{self, Server};
use trueload_wire::tls::{Buffers, Failure, Identity, State, TimeProvider, certificates};

/// 2026-01-01, the present of every test.
pub const NOW_S: u64 = 1_767_225_600;

#[derive(Debug)]
pub struct At(pub u64);

impl TimeProvider for At {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(self.0)))
    }
}

pub fn now() -> Arc<dyn TimeProvider> {
    Arc::new(At(NOW_S))
}

/// A certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub struct Pems {
    pub certificate: String,
    pub key: String,
}

impl Pems {
    pub fn identity(&self) -> Identity {
        Identity::from_pem(self.certificate.as_bytes(), self.key.as_bytes()).unwrap()
    }
}

fn params(names: &[&str], years: (i32, i32)) -> CertificateParams {
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.not_before = date_time_ymd(years.0, 1, 1);
    params.not_after = date_time_ymd(years.1, 1, 1);
    params
}

/// A certificate signed by itself; with `as_issuer` as `openssl req -x509` makes it.
pub fn self_signed(names: &[&str], years: (i32, i32), as_issuer: bool) -> Pems {
    let mut params = params(names, years);
    if as_issuer {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let key = KeyPair::generate().unwrap();
    let certificate = params.self_signed(&key).unwrap();
    Pems { certificate: certificate.pem(), key: key.serialize_pem() }
}

/// An issuer of certificates.
pub struct Issuer(CertifiedIssuer<'static, KeyPair>);

impl Issuer {
    pub fn new(name: &str) -> Self {
        let mut params = params(&[], (2020, 2040));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        Issuer(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn issue(&self, names: &[&str], years: (i32, i32)) -> Pems {
        let mut params = params(names, years);
        params.subject_alt_names.push(SanType::URI("urn:a".try_into().unwrap()));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Pems { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

pub fn trusting(pem: &str) -> Trust {
    Trust::Given(certificates(pem.as_bytes()).unwrap())
}

pub fn options(trust: Trust) -> client::Options {
    client::Options {
        server_name: "localhost".to_owned(),
        alpn: vec!["http/1.1".to_owned()],
        alpn_required: false,
        trust,
        identity: None,
        tunnel: None,
        resumption: true,
    }
}

pub fn client(options: &client::Options) -> client::Setup {
    client::Setup::new(options, now()).unwrap()
}

/// A server that knows no version but TLS 1.2.
pub fn old_server(pems: &Pems) -> server::Setup {
    let chain = certificates(pems.certificate.as_bytes()).unwrap();
    let key = rustls::pki_types::pem::PemObject::from_pem_slice(pems.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_details(Arc::new(default_provider()), now())
        .with_protocol_versions(&[&rustls::version::TLS12])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    server::Setup::from(config)
}

pub fn server(pems: &Pems) -> server::Setup {
    server::Setup::new(pems.identity(), &["http/1.1"], now()).unwrap()
}

/// A server that lets in only clients with a certificate of `issuer`.
pub fn demanding(pems: &Pems, issuer_pem: &str) -> server::Setup {
    let mut roots = RootCertStore::empty();
    for root in certificates(issuer_pem.as_bytes()).unwrap() {
        roots.add(root).unwrap();
    }
    let provider = Arc::new(default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .unwrap();
    let chain = certificates(pems.certificate.as_bytes()).unwrap();
    let key = rustls::pki_types::pem::PemObject::from_pem_slice(pems.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_details(provider, now())
        .with_protocol_versions(rustls::DEFAULT_VERSIONS)
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .unwrap();
    server::Setup::from(config)
}

/// Both ends, and what each has received.
pub struct Pair {
    pub client: Client,
    pub server: Server,
    pub buffers: Buffers,
    pub to_client: Vec<u8>,
    pub to_server: Vec<u8>,
    pub client_received: Vec<u8>,
    pub server_received: Vec<u8>,
    pub failed: Option<Failure>,
}

impl Pair {
    pub fn new(client: &client::Setup, server: &server::Setup) -> Self {
        let mut pair = Pair {
            client: client.connect().unwrap(),
            server: server.accept().unwrap(),
            buffers: Buffers::default(),
            to_client: Vec::new(),
            to_server: Vec::new(),
            client_received: Vec::new(),
            server_received: Vec::new(),
            failed: None,
        };
        pair.client.start(&mut pair.buffers).unwrap();
        pair.to_server = std::mem::take(&mut pair.buffers.sealed);
        pair
    }

    /// Both ends, after their handshake.
    pub fn open(client: &client::Setup, server: &server::Setup) -> Self {
        let mut pair = Pair::new(client, server);
        pair.settle();
        assert_eq!(pair.failed, None);
        assert_eq!((pair.client.state(), pair.server.state()), (State::Open, State::Open));
        pair
    }

    /// The client receives these bytes; what it sends goes to the server's side.
    pub fn client_receives(&mut self, bytes: &[u8]) {
        if self.failed.is_some() {
            return;
        }
        self.buffers.clear();
        if let Err(failure) = self.client.handle_input(bytes, &mut self.buffers) {
            self.failed = Some(failure);
        }
        self.client_received.extend_from_slice(&self.buffers.plain);
        self.to_server.extend_from_slice(&self.buffers.sealed);
    }

    /// The server receives everything that was sent to it; its alerts report its own failures.
    pub fn server_receives_all(&mut self) {
        self.buffers.clear();
        let bytes = std::mem::take(&mut self.to_server);
        let _ = self.server.handle_input(&bytes, &mut self.buffers);
        self.server_received.extend_from_slice(&self.buffers.plain);
        self.to_client.extend_from_slice(&self.buffers.sealed);
    }

    /// Carries bytes to and fro until nothing more is sent; the client receives them cut by `cut`.
    pub fn settle_cut(&mut self, mut cut: impl FnMut(usize) -> usize) {
        while !(self.to_server.is_empty() && self.to_client.is_empty()) {
            self.server_receives_all();
            let bytes = std::mem::take(&mut self.to_client);
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let (piece, behind) = rest.split_at(cut(rest.len()).clamp(1, rest.len()));
                self.client_receives(piece);
                rest = behind;
            }
        }
    }

    pub fn settle(&mut self) {
        self.settle_cut(|all| all);
    }

    pub fn server_sends(&mut self, plain: &[u8]) {
        self.server.seal(plain, &mut self.to_client);
    }

    pub fn client_sends(&mut self, plain: &[u8]) {
        self.client.seal(plain, &mut self.to_server);
    }
}
