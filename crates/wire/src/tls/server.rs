//! The server's end, used by the reference server and by peers in tests.

use std::sync::Arc;

use rustls::crypto::ring::{Ticketer, default_provider};
use rustls::server::{NoServerSessionStorage, UnbufferedServerConnection};
use rustls::time_provider::TimeProvider;
use rustls::{DEFAULT_VERSIONS, ServerConfig};

use super::failure::Failure;
use super::pem::{Identity, SetupError};
use super::session::{Session, State};

/// The server's end of one connection.
pub type Server = Session<UnbufferedServerConnection>;

/// The setup shared by all connections of a server.
#[derive(Clone, Debug)]
pub struct Setup {
    config: Arc<ServerConfig>,
}

impl Setup {
    /// A server that presents `identity` and chooses among `alpn`. Sessions can be resumed by
    /// tickets, which need no memory here.
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

    /// The same server, but it chooses among `alpn`. Tickets of either are good for both.
    pub fn choosing(&self, alpn: &[&str]) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Setup::from(config)
    }

    /// Creates a connection. It fails if the system provides no random bytes.
    pub fn accept(&self) -> Result<Server, Failure> {
        let connection = UnbufferedServerConnection::new(Arc::clone(&self.config))?;
        Ok(Session::new(connection, State::Handshaking, false))
    }
}

impl From<ServerConfig> for Setup {
    fn from(config: ServerConfig) -> Self {
        Setup { config: Arc::new(config) }
    }
}
