//! The client's end: what a connection to one server is set up with.

use std::sync::Arc;

use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, UnbufferedClientConnection};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::time_provider::TimeProvider;
use rustls::{ClientConfig, DEFAULT_VERSIONS};

use super::failure::Failure;
use super::pem::{Identity, SetupError};
use super::session::{Session, Stage};
use super::tickets::Tickets;
use super::trust::{Anybody, Given};

/// The client's end of one connection.
pub type Client = Session<UnbufferedClientConnection>;

/// Whose certificates are accepted.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Those of these issuers, and these themselves.
    Given(Vec<CertificateDer<'static>>),
    /// Anybody's: verification is off.
    Anybody,
}

/// What is to be set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// The server's name or IP address: what is asked for (SNI, names only), and what its certificate must be for.
    pub server_name: String,
    /// Application protocols to offer, the best first.
    pub alpn: Vec<String>,
    /// The server must choose one of them; else it may leave the choice out.
    pub alpn_required: bool,
    /// Whose certificates are accepted.
    pub trust: Trust,
    /// A certificate to show when the server asks for one.
    pub identity: Option<Identity>,
    /// Sessions are resumed where the server allows it.
    pub resumption: bool,
}

/// All connections to one server are set up with one of these, and share its tickets.
#[derive(Clone, Debug)]
pub struct Setup {
    config: Arc<ClientConfig>,
    server_name: ServerName<'static>,
    alpn_required: bool,
}

impl Setup {
    /// Checks the options. `time` is the wall clock that certificates are held against.
    ///
    /// # Errors
    /// When the name is none, or the identity's key is not its certificate's.
    pub fn new(options: &Options, time: Arc<dyn TimeProvider>) -> Result<Self, SetupError> {
        let server_name = ServerName::try_from(options.server_name.as_str())
            .map_err(|_| SetupError::BadName)?
            .to_owned();
        let provider = Arc::new(default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match &options.trust {
            Trust::Given(given) => Arc::new(Given::new(given.clone(), &provider)),
            Trust::Anybody => Arc::new(Anybody::new(&provider)),
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
        let alpn_required = options.alpn_required;
        Ok(Setup { config: Arc::new(config), server_name, alpn_required })
    }

    /// One more connection. Its first words come out of [`Session::start`].
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn connect(&self) -> Result<Client, Failure> {
        let (config, name) = (Arc::clone(&self.config), self.server_name.clone());
        let connection = UnbufferedClientConnection::new(config, name)?;
        Ok(Session::new(connection, Stage::Handshaking, self.alpn_required))
    }
}
