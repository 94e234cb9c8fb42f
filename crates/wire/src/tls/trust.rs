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

/// Certificates that are accepted: those of given issuers, and the given ones themselves.
///
/// `openssl req -x509` makes a certificate that is marked as an issuer's own. Strict verification
/// does not accept such a certificate from a server. A user who names it as trusted means just that
/// certificate.
#[derive(Debug)]
struct Given {
    /// None if no issuer is trusted.
    issuers: Option<Arc<WebPkiServerVerifier>>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Given {
    /// Whether this is a given certificate, which needs no issuer. Its validity period has already
    /// been checked when `error` arises.
    fn names(&self, certificate: &CertificateDer<'_>, error: &Error) -> bool {
        let Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
        let as_issuer = matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity));
        as_issuer && self.certificates.iter().any(|given| given == certificate)
    }
}

/// Decides whether a client accepts a server's certificate.
#[derive(Debug)]
pub(super) struct Verifier {
    /// None if every certificate is accepted. The handshake must still be signed with its key, if
    /// the certificate can be read at all.
    given: Option<Given>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    pub(super) fn of(given: Vec<CertificateDer<'static>>, provider: &Arc<CryptoProvider>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(given.iter().cloned());
        let builder =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let given = Given { issuers: builder.build().ok(), certificates: given };
        Verifier { given: Some(given), ..Verifier::of_anybody(provider) }
    }

    pub(super) fn of_anybody(provider: &CryptoProvider) -> Self {
        Verifier { given: None, algorithms: provider.signature_verification_algorithms }
    }

    /// Whether a signature is accepted unseen: old certificates (X.509 version 1) cannot be read.
    fn is_unreadable(&self, certificate: &CertificateDer<'_>) -> bool {
        self.given.is_none() && ParsedCertificate::try_from(certificate).is_err()
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(given) = &self.given else { return Ok(ServerCertVerified::assertion()) };
        let Some(issuers) = &given.issuers else {
            return Err(CertificateError::UnknownIssuer.into());
        };
        let verified =
            issuers.verify_server_cert(end_entity, intermediates, server_name, ocsp, now);
        match verified {
            Err(error) if given.names(end_entity, &error) => {
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
        if self.is_unreadable(certificate) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if self.is_unreadable(certificate) {
            return Ok(HandshakeSignatureValid::assertion());
        }
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
