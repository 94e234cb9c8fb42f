//! TLS failures, in six categories that are counted separately.

use std::fmt;
use std::net::IpAddr;

use rustls::{AlertDescription, CertificateError, Error, PeerIncompatible, PeerMisbehaved};

/// The maximum number of a certificate's names that are reported.
const NAMES_MOST: usize = 8;
/// The maximum length of a DNS name (RFC 1035 §2.3.4).
const NAME_CHARS_MOST: usize = 253;

/// The category of a TLS failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The peer's bytes are not TLS, or violate the TLS protocol.
    Protocol,
    /// The peer's certificate is not accepted.
    Certificate,
    /// The peer's side ended before the handshake was done.
    Eof,
    /// No application protocol in common.
    Alpn,
    /// The peer ended TLS with an alert.
    Alert,
    /// No TLS version in common.
    Version,
}

/// The reason why a session failed: one line in our words or those of rustls. Names from a
/// certificate are the peer's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Failure {
    /// The category.
    pub kind: Kind,
    /// One line for people.
    pub why: String,
}

impl Failure {
    pub(super) fn new(kind: Kind, why: impl Into<String>) -> Self {
        Failure { kind, why: why.into() }
    }

    /// The peer's side ended before the handshake was done.
    pub fn eof() -> Self {
        Failure::new(Kind::Eof, "the peer closed in the middle of the handshake")
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure { kind: kind_of(&error), why: text_of(&error) }
    }
}

/// What went wrong, in one sentence. What rustls prints is meant for programmers.
fn text_of(error: &Error) -> String {
    let own = match error {
        Error::InvalidCertificate(error) => return certificate_text(error),
        Error::AlertReceived(alert) => return alert_text(*alert),
        Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => "the server speaks neither TLS 1.2 nor 1.3",
        Error::PeerIncompatible(what) => {
            return format!("the peer's TLS does not fit ours: {}", words(what));
        }
        Error::PeerMisbehaved(what) => {
            return format!("the peer broke a rule of TLS: {}", words(what));
        }
        Error::InvalidMessage(what) => return format!("this is no TLS: {}", words(what)),
        Error::InappropriateMessage { got_type, .. } => {
            return format!("the peer sent a TLS message out of turn: {}", words(got_type));
        }
        Error::InappropriateHandshakeMessage { got_type, .. } => {
            return format!("the peer sent a handshake message out of turn: {}", words(got_type));
        }
        Error::InvalidEncryptedClientHello(what) => {
            return format!("an encrypted client hello cannot be sent: {}", words(what));
        }
        Error::InvalidCertRevocationList(what) => {
            return format!("a list of revoked certificates cannot be used: {}", words(what));
        }
        Error::InconsistentKeys(what) => {
            return format!("the certificate and its key do not fit: {}", words(what));
        }
        Error::NoCertificatesPresented => "the peer presented no certificate",
        Error::UnsupportedNameType => "a certificate cannot be for a name of this kind",
        Error::DecryptError => "what the peer sent cannot be decrypted",
        Error::EncryptError => "a message could not be encrypted",
        Error::FailedToGetCurrentTime => "this machine's clock cannot be read",
        Error::FailedToGetRandomBytes => "this machine gave no random bytes",
        Error::HandshakeNotComplete => "the handshake is not complete",
        Error::PeerSentOversizedRecord => "the peer sent a record that is too long",
        Error::NoApplicationProtocol => "the peer speaks no application protocol of ours (ALPN)",
        Error::BadMaxFragmentSize => "the longest fragment has a length that TLS does not allow",
        Error::General(what) => return format!("TLS failed: {what}"),
        other => return format!("TLS failed: {}", words(other)),
    };
    own.to_owned()
}

/// The name of a kind of error in words: `InvalidContentType { … }` is "invalid content type".
fn words(kind: &impl fmt::Debug) -> String {
    let shown = format!("{kind:?}");
    let name = shown.split(|each: char| !each.is_ascii_alphanumeric()).next().unwrap_or_default();
    let mut text = String::new();
    for each in name.chars() {
        if each.is_ascii_uppercase() && !text.is_empty() {
            text.push(' ');
        }
        text.push(each.to_ascii_lowercase());
    }
    text
}

fn kind_of(error: &Error) -> Kind {
    match error {
        Error::InvalidCertificate(_)
        | Error::NoCertificatesPresented
        | Error::UnsupportedNameType => Kind::Certificate,
        Error::AlertReceived(AlertDescription::ProtocolVersion) => Kind::Version,
        Error::AlertReceived(AlertDescription::NoApplicationProtocol)
        | Error::NoApplicationProtocol
        | Error::PeerMisbehaved(PeerMisbehaved::SelectedUnofferedApplicationProtocol) => Kind::Alpn,
        Error::AlertReceived(_) => Kind::Alert,
        Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::SupportedVersionsExtensionRequired,
        ) => Kind::Version,
        _ => Kind::Protocol,
    }
}

fn certificate_text(error: &CertificateError) -> String {
    const S_PER_DAY: u64 = 86_400;
    let days = |later: u64, sooner: u64| later.saturating_sub(sooner).div_ceil(S_PER_DAY);
    match error {
        CertificateError::UnknownIssuer => {
            "its certificate comes from an issuer that is not trusted".to_owned()
        }
        CertificateError::ExpiredContext { time, not_after } => {
            let days = days(time.as_secs(), not_after.as_secs());
            format!("its certificate has expired, {days} days ago or less")
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let days = days(not_before.as_secs(), time.as_secs());
            format!("its certificate is not valid yet, for {days} days or less")
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let (expected, names) = (expected.to_str(), names_text(presented));
            format!("its certificate is not for '{expected}', but for {names}")
        }
        CertificateError::Other(other) => other_text(other),
        simple => plain_text(simple),
    }
}

/// The same for an error that says no more than its kind.
#[expect(deprecated, reason = "rustls still has kinds that it no longer returns")]
fn plain_text(error: &CertificateError) -> String {
    let why = match error {
        CertificateError::BadEncoding => "cannot be read",
        CertificateError::Expired => "has expired",
        CertificateError::NotValidYet => "is not valid yet",
        CertificateError::Revoked => "was revoked by its issuer",
        CertificateError::UnhandledCriticalExtension => {
            "has a critical extension that is not known here"
        }
        CertificateError::UnknownRevocationStatus => "may have been revoked",
        CertificateError::ExpiredRevocationList
        | CertificateError::ExpiredRevocationListContext { .. } => {
            "cannot be looked up: the list of revoked ones has expired"
        }
        CertificateError::BadSignature => "has a signature that is not its issuer's",
        CertificateError::UnsupportedSignatureAlgorithm
        | CertificateError::UnsupportedSignatureAlgorithmContext { .. } => {
            "is signed by an algorithm that is not supported here"
        }
        CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            "is signed by an algorithm that does not fit the key of its trusted issuer"
        }
        CertificateError::NotValidForName => "is not for this name",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "may not be used for this side of TLS (extended key usage)"
        }
        CertificateError::InvalidOcspResponse => "comes with an OCSP answer that cannot be used",
        CertificateError::ApplicationVerificationFailure => "is not accepted",
        other => return format!("its certificate is not accepted: {}", words(other)),
    };
    format!("its certificate {why}")
}

/// The same for an error of webpki that rustls has no kind of.
fn other_text(other: &rustls::OtherError) -> String {
    match other.0.downcast_ref() {
        Some(webpki::Error::UnsupportedCertVersion) => {
            "its certificate is of an X.509 version before 3".to_owned()
        }
        Some(webpki::Error::CaUsedAsEndEntity) => {
            "its certificate is an issuer's own, and not trusted itself".to_owned()
        }
        Some(error) => format!("its certificate is not accepted: {}", words(error)),
        None => format!("its certificate is not accepted: {}", words(&other.0)),
    }
}

/// The names in a certificate, capped because the peer decides how many there are.
fn names_text(presented: &[String]) -> String {
    if presented.is_empty() {
        return "no name at all (as subjectAltName)".to_owned();
    }
    let shown = presented.iter().take(NAMES_MOST).map(|name| bare_name(name));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match presented.len().saturating_sub(NAMES_MOST) {
        0 => shown,
        others => format!("{shown} and {others} more"),
    }
}

/// Strips rustls's notation from `DnsName("a.b")` and `IpAddress(::1)`. A DNS name that looks like
/// an address is reported as such.
fn bare_name(shown: &str) -> String {
    let within = |start, end| shown.strip_prefix(start)?.strip_suffix(end);
    let dns = within("DnsName(\"", "\")");
    let bare = dns.or_else(|| within("IpAddress(", ")")).unwrap_or(shown);
    match dns.map(str::parse::<IpAddr>) {
        Some(Ok(address)) => format!("{address} as a DNS name, which is not its address"),
        _ if bare.chars().count() > NAME_CHARS_MOST => {
            bare.chars().take(NAME_CHARS_MOST).chain(['…']).collect()
        }
        _ => bare.to_owned(),
    }
}

fn alert_text(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateRequired => {
            "the peer demands a client certificate (alert 'certificate required')".to_owned()
        }
        AlertDescription::ProtocolVersion => {
            "the peer speaks neither TLS 1.2 nor 1.3 (alert 'protocol version')".to_owned()
        }
        other => {
            format!("the peer gave up with the alert '{}' ({})", words(&other), u8::from(other))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::InvalidMessage;
    use rustls::pki_types::UnixTime;

    use super::*;

    fn names_of(names: &[&str]) -> String {
        names_text(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_names_of_a_certificate_are_told_in_one_line_however_many_there_are() {
        let many: Vec<_> = (0..1500).map(|n| format!("DnsName(\"{n}.example\")")).collect();
        assert!(names_text(&many).ends_with(", 7.example and 1492 more"), "{}", names_text(&many));
        assert!(!names_text(&many[..NAMES_MOST]).contains("more"));
        let long = names_of(&[&format!("DnsName(\"{}\")", "a".repeat(3000))]);
        assert_eq!(long.chars().count(), NAME_CHARS_MOST + 1);
        let longest = "a".repeat(NAME_CHARS_MOST);
        assert_eq!(names_of(&[&format!("DnsName(\"{longest}\")")]), longest);
        assert_eq!(names_of(&["DnsName(\"a.b\")", "IpAddress(::1)"]), "a.b, ::1");
        assert_eq!(names_of(&[]), "no name at all (as subjectAltName)");
    }

    #[test]
    fn an_address_that_stands_as_a_name_is_not_told_as_the_address_that_was_asked_for() {
        let text = names_of(&["DnsName(\"127.0.0.1\")"]);
        assert_eq!(text, "127.0.0.1 as a DNS name, which is not its address");
    }

    /// Every kind of error that rustls has, as far as it can be made.
    #[expect(deprecated, reason = "rustls still has kinds that it no longer returns")]
    fn every_error() -> Vec<Error> {
        use CertificateError as Of;
        let (time, id) = (UnixTime::since_unix_epoch(Duration::ZERO), vec![6, 8, 42]);
        let other = || rustls::OtherError(std::sync::Arc::new(webpki::Error::BadDerTime));
        let unsupported = Of::UnsupportedSignatureAlgorithmContext {
            signature_algorithm_id: id.clone(),
            supported_algorithms: Vec::new(),
        };
        let unfit = Of::UnsupportedSignatureAlgorithmForPublicKeyContext {
            signature_algorithm_id: id.clone(),
            public_key_algorithm_id: id,
        };
        let required = rustls::ExtendedKeyPurpose::ServerAuth;
        let presented = Vec::new();
        let of_certificates = [
            Of::BadEncoding,
            Of::Expired,
            Of::ExpiredContext { time, not_after: time },
            Of::NotValidYet,
            Of::NotValidYetContext { time, not_before: time },
            Of::Revoked,
            Of::UnhandledCriticalExtension,
            Of::UnknownIssuer,
            Of::UnknownRevocationStatus,
            Of::ExpiredRevocationList,
            Of::ExpiredRevocationListContext { time, next_update: time },
            Of::BadSignature,
            Of::UnsupportedSignatureAlgorithm,
            unsupported,
            unfit,
            Of::NotValidForName,
            Of::InvalidPurpose,
            Of::InvalidPurposeContext { required, presented },
            Of::InvalidOcspResponse,
            Of::ApplicationVerificationFailure,
            Of::Other(other()),
        ];
        let mut errors: Vec<Error> = of_certificates.into_iter().map(Error::from).collect();
        errors.extend([
            Error::InappropriateMessage {
                expect_types: vec![rustls::ContentType::Handshake],
                got_type: rustls::ContentType::ApplicationData,
            },
            Error::InappropriateHandshakeMessage {
                expect_types: vec![rustls::HandshakeType::Finished],
                got_type: rustls::HandshakeType::ClientHello,
            },
            Error::InvalidEncryptedClientHello(rustls::EncryptedClientHelloError::SniRequired),
            InvalidMessage::MissingData("ServerName").into(),
            Error::NoCertificatesPresented,
            Error::UnsupportedNameType,
            Error::DecryptError,
            Error::EncryptError,
            PeerIncompatible::NoCipherSuitesInCommon.into(),
            PeerMisbehaved::TooMuchEarlyDataReceived.into(),
            Error::InvalidCertRevocationList(rustls::CertRevocationListError::ParseError),
            Error::General("no more".to_owned()),
            Error::FailedToGetCurrentTime,
            Error::FailedToGetRandomBytes,
            Error::HandshakeNotComplete,
            Error::PeerSentOversizedRecord,
            Error::NoApplicationProtocol,
            Error::BadMaxFragmentSize,
            Error::InconsistentKeys(rustls::InconsistentKeys::KeyMismatch),
            Error::Other(other()),
        ]);
        errors.extend((0..=u8::MAX).map(|alert| Error::AlertReceived(alert.into())));
        errors
    }

    #[test]
    fn no_failure_is_told_as_a_debug_print() {
        for error in every_error() {
            let why = Failure::from(error.clone()).why;
            let is_sentence = !why.contains(['{', '}', '[', '\n', '"']) && why.contains(' ');
            let joined = |word: &str| {
                let plain = word.trim_matches(|each: char| !each.is_ascii_alphanumeric());
                plain.chars().skip(1).any(|each| each.is_ascii_uppercase())
                    && !["TLS", "ALPN", "OCSP", "X.509"].contains(&plain)
            };
            assert!(is_sentence && !why.split(' ').any(joined), "{error:?}: {why}");
        }
    }

    #[test]
    fn each_failure_is_told_in_one_line_by_its_kind() {
        let time = |s| UnixTime::since_unix_epoch(Duration::from_secs(s));
        let other = |error: webpki::Error| {
            CertificateError::Other(rustls::OtherError(std::sync::Arc::new(error)))
        };
        for (error, kind, why) in [
            (
                PeerIncompatible::ServerDoesNotSupportTls12Or13.into(),
                Kind::Version,
                "the server speaks neither TLS 1.2 nor 1.3",
            ),
            (
                PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig.into(),
                Kind::Version,
                "the server speaks neither TLS 1.2 nor 1.3",
            ),
            (
                InvalidMessage::InvalidContentType.into(),
                Kind::Protocol,
                "this is no TLS: invalid content type",
            ),
            (
                Error::AlertReceived(AlertDescription::ProtocolVersion),
                Kind::Version,
                "the peer speaks neither TLS 1.2 nor 1.3 (alert 'protocol version')",
            ),
            (
                Error::AlertReceived(AlertDescription::HandshakeFailure),
                Kind::Alert,
                "the peer gave up with the alert 'handshake failure' (40)",
            ),
            (
                CertificateError::ExpiredContext { time: time(172_801), not_after: time(0) }.into(),
                Kind::Certificate,
                "its certificate has expired, 3 days ago or less",
            ),
            (
                CertificateError::NotValidYetContext { time: time(0), not_before: time(86_400) }
                    .into(),
                Kind::Certificate,
                "its certificate is not valid yet, for 1 days or less",
            ),
            (
                other(webpki::Error::UnsupportedCertVersion).into(),
                Kind::Certificate,
                "its certificate is of an X.509 version before 3",
            ),
            (
                other(webpki::Error::CaUsedAsEndEntity).into(),
                Kind::Certificate,
                "its certificate is an issuer's own, and not trusted itself",
            ),
        ] {
            assert_eq!(Failure::from(error), Failure::new(kind, why));
        }
    }
}
