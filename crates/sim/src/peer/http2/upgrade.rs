//! The upgrade of a connection from HTTP/1.1, as its server sees it (RFC 7540 section 3.2).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{Act, Http2, Job};

/// The answer of a server that agrees.
pub(super) const AGREES: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
/// The same with names in other letters and more fields, after an interim answer.
const AGREES_OTHERWISE: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
    HTTP/1.1 101 \r\nServer: a\r\nUPGRADE: H2C\r\ncontent-length: 0\r\nconnection: x, upgrade\r\n\r\n";
/// The stream that answers the request for the upgrade.
const ANSWER: u32 = 1;

/// The request for the upgrade.
#[derive(Debug, Default)]
pub(super) struct Upgrade {
    /// The part of it that has come.
    kept: Vec<u8>,
    /// All of it has come.
    pub(super) agreed: bool,
}

impl Http2 {
    /// The number of streams that answer no request: 1 if the connection was upgraded.
    pub(super) fn unasked(&self) -> u32 {
        u32::from(self.upgrade.is_some())
    }

    /// Whether a stream answers a request that counts.
    pub(super) fn counts(&self, stream: u32) -> bool {
        self.upgrade.is_none() || stream != ANSWER
    }

    /// Takes the request for an upgrade and agrees to it. Returns the bytes that follow it; none
    /// while it is incomplete.
    pub(super) fn take_upgrade(
        &mut self,
        at_ns: u64,
        bytes: &[u8],
        acts: &mut Vec<Act>,
    ) -> Option<Vec<u8>> {
        let Some(upgrade) = self.upgrade.as_mut().filter(|upgrade| !upgrade.agreed) else {
            return Some(bytes.to_vec());
        };
        upgrade.kept.extend_from_slice(bytes);
        let len = upgrade.kept.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
        upgrade.agreed = true;
        let rest = upgrade.kept.split_off(len);
        let head = String::from_utf8_lossy(&upgrade.kept).into_owned();
        match settings_of(&head) {
            Some(settings) => self.reader.upgraded(len as u64, &settings),
            None => self.reader.mistake = Some(format!("it asks for no upgrade: {head:?}")),
        }
        let otherwise = self.manner.http2.varied && self.chance.one_in(2);
        let answer = if otherwise { AGREES_OTHERWISE } else { AGREES };
        self.send(at_ns, answer.to_vec(), None, acts);
        let delay = self.manner.delay;
        let delay_ns = self.chance.between(delay.least_ns, delay.most_ns);
        self.later(at_ns + delay_ns, Job::Answer(ANSWER), acts);
        Some(rest)
    }

    /// Answers the request for the upgrade, which was a HEAD.
    pub(super) fn answer_upgrade(&mut self, at_ns: u64, acts: &mut Vec<Act>) {
        let head = std::mem::replace(&mut self.head, true);
        match self.manner.http2.first.clone() {
            Some(trick) => self.play(&trick, ANSWER, at_ns, acts),
            None => self.answer_rightly(ANSWER),
        }
        self.head = head;
    }
}

/// The payload of the SETTINGS in a request for an upgrade; none if it is not such a request.
fn settings_of(head: &str) -> Option<Vec<u8>> {
    let mut lines = head.strip_prefix("HEAD / HTTP/1.1\r\n")?.lines();
    let value =
        |name: &str| lines.clone().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let right = value("Host")? == "a"
        && value("Connection")? == "Upgrade, HTTP2-Settings"
        && value("Upgrade")? == "h2c";
    let settings = URL_SAFE_NO_PAD.decode(value("HTTP2-Settings")?).ok()?;
    let no_body = lines.all(|line| !line.starts_with("Content-"));
    (right && no_body).then_some(settings)
}
