//! The certificates that a client accepts: those of given issuers, or any.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
    client::verify_server_name,
};

/// Accepts certificates of the given issuers, and the given certificates themselves.
///
/// `openssl req -x509` makes a certificate that is marked as an issuer's own. Strict verification
/// does not accept such a certificate from a server. A user who names it as trusted means just that
/// certificate.
#[derive(Debug)]
pub(super) struct Given {
    /// None if no issuer is trusted.
    issuers: Option<Arc<WebPkiServerVerifier>>,
    given: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Given {
    pub(super) fn new(given: Vec<CertificateDer<'static>>, provider: &Arc<CryptoProvider>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(given.iter().cloned());
        let builder =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let algorithms = provider.signature_verification_algorithms;
        Given { issuers: builder.build().ok(), given, algorithms }
    }

    /// Whether this is a given certificate, which needs no issuer. Its validity period has already
    /// been checked when `error` arises.
    fn is_given(&self, certificate: &CertificateDer<'_>, error: &Error) -> bool {
        let Error::InvalidCertificate(CertificateError::Other(other)) = error else {
            return false;
        };
        let as_issuer = matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity));
        as_issuer && self.given.iter().any(|given| given == certificate)
    }
}

impl ServerCertVerifier for Given {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(issuers) = &self.issuers else {
            return Err(CertificateError::UnknownIssuer.into());
        };
        let verified =
            issuers.verify_server_cert(end_entity, intermediates, server_name, ocsp, now);
        match verified {
            Err(error) if self.is_given(end_entity, &error) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Accepts every certificate. The handshake must still be signed with its key, if the certificate
/// can be read at all.
#[derive(Debug)]
pub(super) struct Anybody {
    algorithms: WebPkiSupportedAlgorithms,
}

impl Anybody {
    pub(super) fn new(provider: &CryptoProvider) -> Self {
        Anybody { algorithms: provider.signature_verification_algorithms }
    }
}

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        or_unreadable(certificate, || {
            rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
        })
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        or_unreadable(certificate, || {
            rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
        })
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Verifies a signature if the certificate can be read. Old certificates (X.509 version 1) cannot,
/// so their signatures are accepted.
fn or_unreadable(
    certificate: &CertificateDer<'_>,
    verify: impl FnOnce() -> Result<HandshakeSignatureValid, Error>,
) -> Result<HandshakeSignatureValid, Error> {
    match ParsedCertificate::try_from(certificate) {
        Ok(_) => verify(),
        Err(_) => Ok(HandshakeSignatureValid::assertion()),
    }
}
