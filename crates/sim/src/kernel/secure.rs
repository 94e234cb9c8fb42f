//! TLS at the peer's end of a connection. Its bytes are random but their number is not. Keys are
//! Ed25519, whose signatures all have one length, and every run has its own session tickets.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SerialNumber, date_time_ymd};
use trueload_wire::tls::client::{self, Options, Trust};
use trueload_wire::tls::server::{self, Server};
use trueload_wire::tls::{Buffers, Identity, State, TimeProvider, UnixTime, certificates};

/// The wall-clock time at which a run's clock was 0, in ns since 1970: in 2035, so that nobody
/// takes it for today.
pub(crate) const UNIX_NS: u64 = 2_051_222_400_000_000_000;

const NAME: &str = "localhost";

/// The TLS setups of one run.
#[derive(Clone, Debug, Default)]
pub struct Setups {
    /// The setup of the generators; none without TLS.
    pub client: Option<client::Setup>,
    /// The setup that the kernels use on behalf of the peers; none where the peers speak TLS
    /// themselves.
    pub server: Option<server::Setup>,
}

impl Setups {
    /// Creates the setups of a server and of a client that trusts its certificate. The client
    /// offers `alpn`, and asks a proxy for a tunnel by this request, if there is one.
    #[must_use]
    pub fn both(alpn: &[&str], tunnel: Option<&[u8]>) -> Self {
        let (certificate, key) = pems();
        let options = Options {
            server_name: NAME.to_owned(),
            alpn: alpn.iter().map(|name| (*name).to_owned()).collect(),
            alpn_required: false,
            trust: Trust::Given(certificates(certificate.as_bytes()).expect("it was just made")),
            identity: None,
            tunnel: tunnel.map(Arc::from),
            resumption: true,
        };
        let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes());
        let server = server::Setup::new(identity.expect("a key and its certificate"), &[], time());
        let client = client::Setup::new(&options, time());
        Setups {
            client: Some(client.expect("the trusted one is a certificate")),
            server: Some(server.expect("the key is the certificate's")),
        }
    }
}

/// Returns a certificate and its key, in PEM. They are made once, because that takes longer than a
/// run.
fn pems() -> &'static (String, String) {
    static PEMS: OnceLock<(String, String)> = OnceLock::new();
    PEMS.get_or_init(|| {
        let mut params = CertificateParams::new([NAME.to_owned()]).expect("a name");
        // A random serial number would have a random length.
        params.serial_number = Some(SerialNumber::from(1));
        (params.not_before, params.not_after) =
            (date_time_ymd(2000, 1, 1), date_time_ymd(2100, 1, 1));
        let key = KeyPair::generate_for(&PKCS_ED25519).expect("random bytes");
        let certificate = params.self_signed(&key).expect("it signs itself");
        (certificate.pem(), key.serialize_pem())
    })
}

/// A clock that is paused, for checking the validity of certificates.
#[derive(Debug)]
struct Present;

impl TimeProvider for Present {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_nanos(UNIX_NS)))
    }
}

fn time() -> Arc<dyn TimeProvider> {
    Arc::new(Present)
}

/// The peer's end of one connection.
#[derive(Debug)]
pub(super) struct Secured {
    session: Server,
    buffers: Buffers,
}

impl Secured {
    /// Accepts a connection. The peer chooses among `alpn`, if it knows any.
    pub(super) fn new(setup: &server::Setup, alpn: &[&str]) -> Self {
        let session = setup.choosing(alpn).accept().expect("random bytes");
        Secured { session, buffers: Buffers::default() }
    }

    /// Feeds bytes from the wire into the session. Returns the decrypted bytes and the bytes to
    /// reply with.
    pub(super) fn take_in(&mut self, bytes: &[u8]) -> (Vec<u8>, Vec<u8>) {
        self.buffers.clear();
        // A protocol error is answered with an alert, which is in `sealed`.
        let _ = self.session.handle_input(bytes, &mut self.buffers);
        (std::mem::take(&mut self.buffers.plain), std::mem::take(&mut self.buffers.sealed))
    }

    /// Encrypts bytes for the wire. Before the handshake is over it returns them unchanged, as a
    /// peer that does not speak TLS would send them.
    pub(super) fn seal(&mut self, plain: Vec<u8>) -> Vec<u8> {
        if self.session.state() == State::Handshaking {
            return plain;
        }
        let mut sealed = Vec::new();
        self.session.seal(&plain, &mut sealed);
        sealed
    }

    /// Returns the bytes with which TLS announces the end of this side.
    pub(super) fn close(&mut self) -> Vec<u8> {
        let mut sealed = Vec::new();
        self.session.close(&mut sealed);
        sealed
    }
}
