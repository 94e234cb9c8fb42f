//! Converts the TLS settings of a plan to the setup of sessions. Only this module uses
//! certificates, keys and the wall clock together.

use std::sync::{Arc, LazyLock};

use rcgen::{CertificateParams, DnType, KeyPair};
use trueload_wire::tls::{
    CertificateDer, Identity, SetupError, TimeProvider, UnixTime, certificates, client, server,
};

use crate::blobs::Blobs;
use crate::failure::Failure;
use crate::protocol::{ServeTlsPlan, TlsPlan, TrustPlan};

/// The time that certificates are checked against.
#[derive(Debug)]
struct WallClock;

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::now())
    }
}

fn refused(field: &str, error: &SetupError) -> Failure {
    Failure::Plan(format!("{field}: {error}"))
}

pub(crate) fn named(tls: &TlsPlan) -> impl Iterator<Item = &String> {
    let given = match &tls.trust {
        TrustPlan::Given { sha256 } => Some(sha256),
        TrustPlan::System | TrustPlan::Anybody => None,
    };
    let own = [&tls.certificate_sha256, &tls.key_sha256, &tls.tunnel_sha256];
    given.into_iter().chain(own.into_iter().flatten())
}

/// The options for the connections of each thread: read once, because the system has many issuers.
pub(crate) fn client_options(tls: &TlsPlan, blobs: &Blobs) -> Result<client::Options, Failure> {
    let trust = match &tls.trust {
        TrustPlan::Anybody => client::Trust::Anybody,
        TrustPlan::System => client::Trust::Given(system_issuers()),
        TrustPlan::Given { sha256 } => {
            let pem = blobs.get(Some(sha256)).map_or(&[][..], Vec::as_slice);
            let given = certificates(pem).map_err(|error| refused("tls.trust", &error))?;
            client::Trust::Given(given)
        }
    };
    Ok(client::Options {
        server_name: tls.server_name.clone(),
        alpn: tls.alpn.clone(),
        alpn_required: tls.alpn_required,
        trust,
        identity: client_identity(tls, blobs)?,
        resumption: tls.resumption,
        tunnel: blobs.get(tls.tunnel_sha256.as_ref()).map(|request| Arc::from(request.as_slice())),
    })
}

fn client_identity(tls: &TlsPlan, blobs: &Blobs) -> Result<Option<Identity>, Failure> {
    match (&tls.certificate_sha256, &tls.key_sha256) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => identity("tls", certificate, key, blobs).map(Some),
        _ => Err(Failure::Plan("tls: a certificate and its key go together".into())),
    }
}

fn identity(
    field: &str,
    certificate: &String,
    key: &String,
    blobs: &Blobs,
) -> Result<Identity, Failure> {
    let pem = |name| blobs.get(Some(name)).map_or(&[][..], Vec::as_slice);
    Identity::from_pem(pem(certificate), pem(key)).map_err(|error| {
        let part = match error {
            SetupError::NoCertificate | SetupError::BadCertificate => "certificate_sha256",
            _ => "key_sha256",
        };
        refused(&format!("{field}.{part}"), &error)
    })
}

/// The issuers that this machine trusts, without those that cannot be read. Read once, because
/// several origins ask for them.
fn system_issuers() -> Vec<CertificateDer<'static>> {
    static ISSUERS: LazyLock<Vec<CertificateDer<'static>>> =
        LazyLock::new(|| rustls_native_certs::load_native_certs().certs);
    ISSUERS.clone()
}

/// The setup of one thread: its connections share tickets.
pub(crate) fn client_setup(options: &client::Options) -> Result<client::Setup, Failure> {
    client::Setup::new(options, Arc::new(WallClock)).map_err(|error| {
        let field = if error == SetupError::BadName { "tls.server_name" } else { "tls.key_sha256" };
        refused(field, &error)
    })
}

/// The blobs that a server's TLS plan names.
pub(crate) fn served(tls: &ServeTlsPlan) -> impl Iterator<Item = &String> {
    let names = match tls {
        ServeTlsPlan::SelfSigned { .. } => [None, None],
        ServeTlsPlan::Given { certificate_sha256, key_sha256 } => {
            [Some(certificate_sha256), Some(key_sha256)]
        }
    };
    names.into_iter().flatten()
}

/// The setup for the connections of a server, and the certificate if it was made here.
pub(crate) fn server_setup(
    tls: &ServeTlsPlan,
    blobs: &Blobs,
    alpn: &[&str],
) -> Result<(server::Setup, Option<String>), Failure> {
    let (identity, made) = match tls {
        ServeTlsPlan::Given { certificate_sha256, key_sha256 } => {
            (identity("tls", certificate_sha256, key_sha256, blobs)?, None)
        }
        ServeTlsPlan::SelfSigned { names } => {
            let (identity, pem) = self_signed(names)?;
            (identity, Some(pem))
        }
    };
    let setup = server::Setup::new(identity, alpn, Arc::new(WallClock))
        .map_err(|error| refused("tls.key_sha256", &error))?;
    Ok((setup, made))
}

fn self_signed(names: &[String]) -> Result<(Identity, String), Failure> {
    let failed = |error: rcgen::Error| Failure::Plan(format!("tls.names: {error}"));
    let mut params = CertificateParams::new(names.to_vec()).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "trueload reference server");
    let key = KeyPair::generate().map_err(failed)?;
    let pem = params.self_signed(&key).map_err(failed)?.pem();
    let identity = Identity::from_pem(pem.as_bytes(), key.serialize_pem().as_bytes());
    Ok((identity.map_err(|error| refused("tls", &error))?, pem))
}
