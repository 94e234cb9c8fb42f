//! Certificates and keys from PEM, and the errors in them.

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The reason why an end of TLS cannot be set up. Never quotes a key.
#[allow(missing_docs)] // The texts say what each is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    #[error("holds no certificate in PEM form")]
    NoCertificate,
    #[error("holds a certificate that cannot be read")]
    BadCertificate,
    #[error("holds no private key in PEM form")]
    NoKey,
    #[error("holds an encrypted private key; decrypt it first")]
    EncryptedKey,
    #[error("holds a private key that is not the certificate's, or of an unknown kind")]
    OtherKey,
    #[error("is neither a DNS name nor an IP address")]
    BadName,
    #[error("{0}")]
    Other(String),
}

/// A certificate, those of its issuers, and its private key.
pub struct Identity {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) key: PrivateKeyDer<'static>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key is left out.
        f.debug_struct("Identity").field("certificates", &self.chain.len()).finish()
    }
}

impl Clone for Identity {
    fn clone(&self) -> Self {
        Identity { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

impl Identity {
    /// Reads both from PEM texts, which may contain other items.
    pub fn from_pem(certificate_pem: &[u8], key_pem: &[u8]) -> Result<Self, SetupError> {
        Ok(Identity { chain: certificates(certificate_pem)?, key: key(key_pem)? })
    }
}

/// Returns all certificates of a PEM text, at least one.
pub fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, SetupError> {
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(SetupError::NoCertificate),
        Ok(found) => Ok(found),
        Err(_) => Err(SetupError::BadCertificate),
    }
}

fn key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, SetupError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|_| {
        let text = String::from_utf8_lossy(pem);
        let encrypted = text.contains("BEGIN ENCRYPTED") || text.contains("Proc-Type: 4,ENCRYPTED");
        if encrypted { SetupError::EncryptedKey } else { SetupError::NoKey }
    })
}
