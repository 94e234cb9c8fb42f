//! Records that no good server would seal: a server whose keys are taken after its handshake, and used by hand.

use std::io::Write as _;
use std::sync::Arc;

use rustls::crypto::cipher::{MessageEncrypter, OutboundChunks, OutboundPlainMessage};
use rustls::crypto::ring::default_provider;
use rustls::{
    ConnectionTrafficSecrets, ContentType, ProtocolVersion, ServerConfig, ServerConnection,
    SupportedCipherSuite, SupportedProtocolVersion, version,
};
use trueload_wire::tls::client::Client;
use trueload_wire::tls::{Buffers, Failure, Kind, State, certificates};

use super::YEARS;
use super::pair::{client, now, options, self_signed, trusting};

/// A client, and what seals records for it.
struct ByHand {
    client: Client,
    buffers: Buffers,
    encrypter: Box<dyn MessageEncrypter>,
    sequence: u64,
}

impl ByHand {
    fn new(version: &'static SupportedProtocolVersion) -> Self {
        let pems = self_signed(&["localhost"], YEARS, false);
        let mut client = client(&options(trusting(&pems.certificate))).connect().unwrap();
        let mut buffers = Buffers::default();
        client.start(&mut buffers).unwrap();
        let chain = certificates(pems.certificate.as_bytes()).unwrap();
        let key = rustls::pki_types::pem::PemObject::from_pem_slice(pems.key.as_bytes()).unwrap();
        let provider = Arc::new(default_provider());
        let mut config = ServerConfig::builder_with_details(provider, now())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .unwrap();
        config.enable_secret_extraction = true;
        let mut server = ServerConnection::new(Arc::new(config)).unwrap();
        while server.is_handshaking() || !buffers.sealed.is_empty() {
            let sent = std::mem::take(&mut buffers.sealed);
            server.read_tls(&mut sent.as_slice()).unwrap();
            server.process_new_packets().unwrap();
            let mut answer = Vec::new();
            while server.wants_write() {
                server.write_tls(&mut answer.by_ref()).unwrap();
            }
            client.handle_input(&answer, &mut buffers).unwrap();
        }
        assert_eq!(client.state(), State::Open);
        let suite = server.negotiated_cipher_suite().unwrap();
        let (sequence, secrets) = server.dangerous_extract_secrets().unwrap().tx;
        ByHand { client, buffers, encrypter: encrypter(suite, secrets), sequence }
    }

    fn receive(&mut self, typ: ContentType, payload: &[u8]) -> Result<State, Failure> {
        let version = ProtocolVersion::TLSv1_2;
        let payload = OutboundChunks::Single(payload);
        let message = OutboundPlainMessage { typ, version, payload };
        let record = self.encrypter.encrypt(message, self.sequence).unwrap().encode();
        self.sequence += 1;
        self.client.handle_input(&record, &mut self.buffers)
    }
}

fn encrypter(
    suite: SupportedCipherSuite,
    secrets: ConnectionTrafficSecrets,
) -> Box<dyn MessageEncrypter> {
    let ConnectionTrafficSecrets::Aes256Gcm { key, iv } = secrets else {
        panic!("the first suite of all is AES-256");
    };
    match suite {
        SupportedCipherSuite::Tls13(suite) => suite.aead_alg.encrypter(key, iv),
        SupportedCipherSuite::Tls12(suite) => {
            suite.aead_alg.encrypter(key, &iv.as_ref()[..4], &iv.as_ref()[4..])
        }
    }
}

const HELLO_REQUEST: &[u8] = &[0, 0, 0, 0];
const KEY_UPDATE_REQUESTED: &[u8] = &[24, 0, 0, 1, 1];
const VERSIONS: [&SupportedProtocolVersion; 2] = [&version::TLS12, &version::TLS13];

#[test]
fn both_versions_carry_data() {
    for version in VERSIONS {
        let mut hand = ByHand::new(version);
        assert_eq!(hand.receive(ContentType::ApplicationData, b"pong"), Ok(State::Open));
        assert_eq!(hand.buffers.plain, b"pong");
    }
}

#[test]
fn a_renegotiation_is_declined_and_one_asked_for_again_and_again_is_a_breach() {
    let mut hand = ByHand::new(&version::TLS12);
    assert_eq!(hand.receive(ContentType::Handshake, HELLO_REQUEST), Ok(State::Open));
    assert!(!hand.buffers.sealed.is_empty(), "a warning");
    assert_eq!(hand.receive(ContentType::ApplicationData, b"pong"), Ok(State::Open));
    let failed = (0..100).find_map(|_| hand.receive(ContentType::Handshake, HELLO_REQUEST).err());
    assert_eq!(failed.map(|failure| failure.kind), Some(Kind::Protocol));
    let mut hand = ByHand::new(&version::TLS13);
    let failed = hand.receive(ContentType::Handshake, HELLO_REQUEST).unwrap_err();
    assert_eq!(failed.kind, Kind::Protocol);
}

#[test]
fn a_fatal_alert_on_an_open_connection_is_told_by_its_name() {
    for version in VERSIONS {
        let mut hand = ByHand::new(version);
        let failure = hand.receive(ContentType::Alert, &[2, 80]).unwrap_err();
        assert_eq!(failure.kind, Kind::Alert);
        assert!(failure.why.contains("'internal error' (80)"), "{failure}");
    }
}

#[test]
fn records_that_make_no_sense_are_a_breach() {
    let rows: [(&str, ContentType, &[u8]); 5] = [
        ("an unknown type", ContentType::Unknown(99), b"x"),
        ("an alert of one byte", ContentType::Alert, &[2]),
        ("an alert of three bytes", ContentType::Alert, &[2, 80, 0]),
        ("a client's hello", ContentType::Handshake, &[1, 0, 0, 0]),
        ("a change of keys that is none", ContentType::ChangeCipherSpec, &[7]),
    ];
    for version in VERSIONS {
        for (name, typ, payload) in rows {
            let mut hand = ByHand::new(version);
            let failure = hand.receive(typ, payload).unwrap_err();
            assert_eq!(failure.kind, Kind::Protocol, "{name}: {failure}");
            assert_eq!(hand.buffers.plain, b"", "{name}");
        }
    }
}

#[test]
fn keys_may_change_but_not_all_the_time_and_answers_do_not_pile_up() {
    let mut hand = ByHand::new(&version::TLS13);
    let mut failed = None;
    // Every one is sealed with the first keys, so that the second cannot be read.
    for _ in 0..100 {
        failed = hand.receive(ContentType::Handshake, KEY_UPDATE_REQUESTED).err();
        if failed.is_some() {
            break;
        }
    }
    assert_eq!(failed.map(|failure| failure.kind), Some(Kind::Protocol));
    assert!(hand.buffers.sealed.len() < 1000, "{} bytes of answers", hand.buffers.sealed.len());
}

#[test]
fn empty_records_are_nothing() {
    for version in VERSIONS {
        let mut hand = ByHand::new(version);
        for _ in 0..10 {
            assert_eq!(hand.receive(ContentType::ApplicationData, b""), Ok(State::Open));
        }
        assert_eq!(hand.receive(ContentType::ApplicationData, b"pong"), Ok(State::Open));
        assert_eq!(hand.buffers.plain, b"pong");
    }
}
