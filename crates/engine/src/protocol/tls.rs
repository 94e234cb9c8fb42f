//! The protocol's TLS settings in plans. Certificates and keys are
//! blobs, named by their SHA-256. A key is in no plan and in no line from the engine.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// TLS, from the client's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsPlan {
    /// The server's name or IP address: what is asked for (SNI, names only), and what its certificate must be for.
    pub server_name: String,
    /// Application protocols to offer, the best first.
    pub alpn: Vec<String>,
    /// The server must choose one of them.
    #[serde(default)]
    pub alpn_required: bool,
    /// Whose certificates are accepted.
    pub trust: TrustPlan,
    /// The SHA-256 in hex of a client certificate with its chain, in PEM (see `blob`), or null for none.
    #[serde(default)]
    pub certificate_sha256: Option<String>,
    /// The SHA-256 in hex of its private key, in PEM.
    #[serde(default)]
    pub key_sha256: Option<String>,
    /// Sessions are resumed; tickets are shared by the connections of a thread.
    pub resumption: bool,
    /// The SHA-256 in hex of the request that has a proxy open a tunnel to the server (CONNECT, see `blob`). The
    /// addresses are then the proxy's. Null without a proxy.
    #[serde(default)]
    pub tunnel_sha256: Option<String>,
}

/// Whose certificates are accepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum TrustPlan {
    /// Those of the issuers that the machine of the engine trusts.
    System,
    /// Those of given issuers, and given certificates themselves.
    Given {
        /// The SHA-256 in hex of the certificates, in PEM (see `blob`).
        sha256: String,
    },
    /// Anybody's: verification is off.
    Anybody,
}

/// TLS, from the server's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ServeTlsPlan {
    /// With a certificate made at the start and signed by itself; `ready` holds it.
    SelfSigned {
        /// DNS names and IP addresses that it is for.
        names: Vec<String>,
    },
    /// With a given one, both in PEM (see `blob`).
    Given {
        /// The SHA-256 in hex of the certificate with its chain.
        certificate_sha256: String,
        /// The SHA-256 in hex of the private key.
        key_sha256: String,
    },
}
