//! The server's end, of the reference server and of peers in tests.

use std::sync::Arc;

use rustls::crypto::ring::{Ticketer, default_provider};
use rustls::server::{NoServerSessionStorage, UnbufferedServerConnection};
use rustls::time_provider::TimeProvider;
use rustls::{DEFAULT_VERSIONS, ServerConfig};

use super::failure::Failure;
use super::pem::{Identity, SetupError};
use super::session::{Session, Stage};

/// The server's end of one connection.
pub type Server = Session<UnbufferedServerConnection>;

/// All connections of a server are set up with one of these.
#[derive(Clone, Debug)]
pub struct Setup {
    config: Arc<ServerConfig>,
}

impl Setup {
    /// A server that shows `identity` and chooses among `alpn`. Sessions can be resumed by tickets, which need no
    /// memory here.
    ///
    /// # Errors
    /// When the identity's key is not its certificate's.
    pub fn new(
        identity: Identity,
        alpn: &[&str],
        time: Arc<dyn TimeProvider>,
    ) -> Result<Self, SetupError> {
        let Identity { chain, key } = identity;
        let other = |error: rustls::Error| SetupError::Other(error.to_string());
        let mut config = ServerConfig::builder_with_details(Arc::new(default_provider()), time)
            .with_protocol_versions(DEFAULT_VERSIONS)
            .map_err(other)?
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(|_| SetupError::OtherKey)?;
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        config.ticketer = Ticketer::new().map_err(other)?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Setup::from(config))
    }

    /// One more connection.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn accept(&self) -> Result<Server, Failure> {
        let connection = UnbufferedServerConnection::new(Arc::clone(&self.config))?;
        Ok(Session::new(connection, Stage::Handshaking, false))
    }
}

impl From<ServerConfig> for Setup {
    fn from(config: ServerConfig) -> Self {
        Setup { config: Arc::new(config) }
    }
}
