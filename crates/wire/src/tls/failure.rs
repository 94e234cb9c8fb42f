//! TLS failures, in six categories that are counted separately.

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
        let kind = kind_of(&error);
        let why = match &error {
            Error::InvalidCertificate(error) => certificate_text(error),
            Error::AlertReceived(alert) => alert_text(*alert),
            Error::PeerIncompatible(
                PeerIncompatible::ServerDoesNotSupportTls12Or13
                | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
            ) => "the server speaks neither TLS 1.2 nor 1.3".to_owned(),
            Error::InvalidMessage(_) => format!("this is no TLS: {error}"),
            _ => error.to_string(),
        };
        Failure { kind, why }
    }
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
        CertificateError::Other(other) => match other.0.downcast_ref() {
            Some(webpki::Error::UnsupportedCertVersion) => {
                "its certificate is of an X.509 version before 3".to_owned()
            }
            Some(webpki::Error::CaUsedAsEndEntity) => {
                "its certificate is an issuer's own, and not trusted itself".to_owned()
            }
            _ => format!("its certificate is not accepted: {}", other.0),
        },
        other => format!("its certificate is not accepted: {other}"),
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
            "the peer demands a client certificate (alert CertificateRequired)".to_owned()
        }
        AlertDescription::ProtocolVersion => {
            "the peer speaks neither TLS 1.2 nor 1.3 (alert ProtocolVersion)".to_owned()
        }
        other => format!("the peer gave up with the alert {other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::InvalidMessage;
    use rustls::pki_types::UnixTime;

    use super::*;

    fn text_of(names: &[&str]) -> String {
        names_text(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_names_of_a_certificate_are_told_in_one_line_however_many_there_are() {
        let many: Vec<_> = (0..1500).map(|n| format!("DnsName(\"{n}.example\")")).collect();
        assert!(names_text(&many).ends_with(", 7.example and 1492 more"), "{}", names_text(&many));
        assert!(!names_text(&many[..NAMES_MOST]).contains("more"));
        let long = text_of(&[&format!("DnsName(\"{}\")", "a".repeat(3000))]);
        assert_eq!(long.chars().count(), NAME_CHARS_MOST + 1);
        let longest = "a".repeat(NAME_CHARS_MOST);
        assert_eq!(text_of(&[&format!("DnsName(\"{longest}\")")]), longest);
        assert_eq!(text_of(&["DnsName(\"a.b\")", "IpAddress(::1)"]), "a.b, ::1");
        assert_eq!(text_of(&[]), "no name at all (as subjectAltName)");
    }

    #[test]
    fn an_address_that_stands_as_a_name_is_not_told_as_the_address_that_was_asked_for() {
        let text = text_of(&["DnsName(\"127.0.0.1\")"]);
        assert_eq!(text, "127.0.0.1 as a DNS name, which is not its address");
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
                "this is no TLS: received corrupt message of type InvalidContentType",
            ),
            (
                Error::AlertReceived(AlertDescription::ProtocolVersion),
                Kind::Version,
                "the peer speaks neither TLS 1.2 nor 1.3 (alert ProtocolVersion)",
            ),
            (
                Error::AlertReceived(AlertDescription::HandshakeFailure),
                Kind::Alert,
                "the peer gave up with the alert HandshakeFailure",
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
