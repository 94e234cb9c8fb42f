//! The client's end: the setup of connections to one server.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, DEFAULT_VERSIONS};

use super::failure::Failure;
use super::pem::{Identity, SetupError};
use super::session::{Session, State};
use super::tickets::Tickets;
use super::trust::Verifier;

/// The client's end of one connection.
pub type Client = Session<UnbufferedClientConnection>;

/// Selects the certificates that are accepted.
#[derive(Clone, Debug)]
pub enum Trust {
    /// The certificates of these issuers, and these certificates themselves.
    Given(Vec<CertificateDer<'static>>),
    /// Any certificate: verification is off.
    Anybody,
}

/// The options for the connections to one server.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server's name or IP address. A name is sent as SNI, and the certificate must match.
    pub server_name: String,
    /// The application protocols to offer, in order of preference.
    pub alpn: Vec<String>,
    /// Whether the server must choose one of them. Otherwise it may choose none.
    pub alpn_required: bool,
    /// The certificates that are accepted.
    pub trust: Trust,
    /// A certificate to show when the server asks for one.
    pub identity: Option<Identity>,
    /// Whether sessions are resumed if the server allows it.
    pub resumption: bool,
    /// The request that has a proxy open a tunnel to the server first; none without a proxy.
    pub tunnel: Option<Arc<[u8]>>,
}

/// The setup shared by all connections to one server, including their tickets.
#[derive(Clone, Debug)]
pub struct Setup {
    config: Arc<ClientConfig>,
    server_name: ServerName<'static>,
    alpn_required: bool,
    tunnel: Option<Arc<[u8]>>,
}

impl Setup {
    /// Checks the options. `time` is the wall clock that certificates are checked against.
    pub fn new(options: &Options, time: Arc<dyn TimeProvider>) -> Result<Self, SetupError> {
        let server_name = ServerName::try_from(options.server_name.as_str())
            .map_err(|_| SetupError::BadName)?
            .to_owned();
        let provider = Arc::new(default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match &options.trust {
            Trust::Given(given) => Arc::new(Verifier::of(given.clone(), &provider)),
            Trust::Anybody => Arc::new(Verifier::of_anybody(&provider)),
        };
        let builder = ClientConfig::builder_with_details(provider, time)
            .with_protocol_versions(DEFAULT_VERSIONS)
            .map_err(|error| SetupError::Other(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match options.identity.clone() {
            Some(Identity { chain, key }) => {
                builder.with_client_auth_cert(chain, key).map_err(|_| SetupError::OtherKey)?
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = options.alpn.iter().map(|name| name.clone().into()).collect();
        config.resumption = match options.resumption {
            true => Resumption::store(Arc::new(Tickets::default())),
            false => Resumption::disabled(),
        };
        let (alpn_required, tunnel) = (options.alpn_required, options.tunnel.clone());
        Ok(Setup { config: Arc::new(config), server_name, alpn_required, tunnel })
    }

    /// The request that has a proxy open a tunnel, if there is one.
    pub fn tunnel(&self) -> Option<&Arc<[u8]>> {
        self.tunnel.as_ref()
    }

    /// Creates a connection. [`Session::start`] returns its first bytes. It fails if the system
    /// provides no random bytes.
    pub fn connect(&self) -> Result<Client, Failure> {
        let (config, name) = (Arc::clone(&self.config), self.server_name.clone());
        let connection = UnbufferedClientConnection::new(config, name)?;
        Ok(Session::new(connection, State::Handshaking, self.alpn_required))
    }
}
