//! The requests of a session in the form of each version.

use std::ops::Range;

use super::script::{Script, Step};
use super::state::Session;
use crate::http2::request::write_field;
use crate::message::places::fill;
use crate::message::{Filling, Form, Head, Speech, Stamp, Turn};

impl Session {
    /// Fills the places of the path that a step has. Behind a redirect there is another path; the
    /// places behind it are filled as they were.
    fn fill_path(&mut self, step: &Step, filling: &impl Filling) {
        if self.hops.count == 0 {
            let mut path = std::mem::take(&mut self.path);
            path.clear();
            fill(&step.path, &Filled { session: self, filling }, &mut 0, &mut path);
            self.path = path;
        }
    }

    /// Writes the present request to `out`, which is empty.
    pub fn write(&mut self, script: &Script, filling: &impl Filling, out: &mut Vec<u8>) {
        let Some(step) = self.step(script) else { return };
        if let Form::Message { .. } = step.form {
            fill(&step.message, &Filled { session: self, filling }, &mut 0, out);
            self.written = out.len();
            return;
        }
        self.fill_path(step, filling);
        let filled = Filled { session: self, filling };
        step.http1.write(&filled, &mut |part| out.extend_from_slice(part.bytes()));
        self.written = out.len();
    }

    /// What the present request is in a conversation.
    pub fn speech(&self, script: &Script) -> Speech {
        let form = self.step(script).map_or(Form::Request, |step| step.form);
        Speech { form, is_last: self.turn.is_last }
    }

    /// Whether a message is the one that the present step awaits.
    pub fn awaits(
        &self,
        script: &Script,
        filling: &impl Filling,
        is_text: bool,
        message: &[u8],
    ) -> bool {
        let expected = self.step(script).and_then(|step| step.expected.as_ref());
        let filled = Filled { session: self, filling };
        expected.is_some_and(|expected| expected.is_met(&filled, is_text, message))
    }

    /// Appends the header block of the present request over HTTP/2.
    pub fn write_block(
        &mut self,
        script: &Script,
        filling: &impl Filling,
        out: &mut Vec<u8>,
    ) -> Head {
        let Some(step) = self.step(script) else { return Head::default() };
        let Some(template) = &step.http2 else { return Head::default() };
        self.fill_path(step, filling);
        let filled = Filled { session: self, filling };
        let mut head = template.write_block(&filled, out);
        let mut body = Vec::new();
        if template.fixed_body().is_none() {
            template.write_body(&filled, 0..head.body_bytes, &mut body);
        }
        self.sent_body = body;
        let mut cookies = Vec::new();
        if !step.has_cookies && self.jar.write_value(&self.path, &mut cookies) {
            head.plain_bytes += write_field(out, b"cookie", &cookies);
        }
        head
    }

    /// Appends a part of the body of the present request, given as a range of bytes.
    pub fn write_body(&self, script: &Script, part: Range<u64>, out: &mut Vec<u8>) {
        let template = self.step(script).and_then(|step| step.http2.as_ref());
        let fixed = template.and_then(|template| template.fixed_body());
        let part = part.start as usize..part.end as usize;
        let body = fixed.unwrap_or(&self.sent_body);
        out.extend_from_slice(body.get(part).unwrap_or_default());
    }
}

/// What a session knows, besides the numbers and rows that fill any request.
struct Filled<'a, F> {
    session: &'a Session,
    filling: &'a F,
}

impl<F: Filling> Filling for Filled<'_, F> {
    fn counter(&self) -> u64 {
        self.session.turn.session
    }

    fn random(&self, nth: u32) -> u64 {
        self.filling.random(nth)
    }

    fn column(&self, index: usize) -> &[u8] {
        self.filling.column(index)
    }

    fn taken(&self, index: usize) -> &[u8] {
        self.session.values.get(index).map_or(&[], Vec::as_slice)
    }

    fn turn(&self) -> Turn {
        self.session.turn
    }

    fn stamp(&self) -> Stamp {
        self.filling.stamp()
    }

    fn path(&self) -> &[u8] {
        &self.session.path
    }

    fn write_cookies(&self, out: &mut Vec<u8>) {
        self.session.jar.write(&self.session.path, out);
    }
}

#[cfg(test)]
mod tests {
    use crate::message::{Names, Site, Texts};
    use std::time::Duration;

    use super::*;
    use crate::http2::hpack::Decoder;
    use crate::message::Turn;
    use crate::session::{BODY_BYTES_MOST, Extractor, Take, Untaken};
    use proptest::prelude::*;

    /// Fills every place of a column with the same value.
    struct Row(&'static [u8]);

    impl Filling for Row {
        fn counter(&self) -> u64 {
            0
        }

        fn random(&self, nth: u32) -> u64 {
            nth.into()
        }

        fn column(&self, _index: usize) -> &[u8] {
            self.0
        }
    }

    fn script() -> Script {
        let site = Site { host: "h".to_owned(), secure: true };
        let names = Names { columns: vec!["user".to_owned()], ..Names::default() };
        let mut script = Script::new(site).with_names(names).over_http2();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let take = |value: &str, from| Take { value: value.to_owned(), from };
        let first = [pair("Host", "h:1"), pair("Connection", "keep-alive"), pair("A", "{random}")];
        let (path, body) = ("/in?u={user}", Some(&br#"{"user":"{user}{random}"}"#[..]));
        let texts = Texts { method: "POST", path, headers: &first, body };
        let json = Extractor::json("/token").expect("a pointer");
        let takes = vec![take("token", json), take("id", Extractor::Header("X-Id".to_owned()))];
        script.add(&texts, takes).expect("known values");
        let second = [pair("Host", "h:1"), pair("Authorization", "Bearer {token}")];
        let path = "/items/{id}?{repeat}";
        let texts = Texts { method: "GET", path, headers: &second, body: None };
        script.add(&texts, Vec::new()).expect("known values");
        script
    }

    /// The fields and the body of a request.
    fn written(session: &mut Session, script: &Script, turn: Turn) -> (Vec<String>, String) {
        session.begin(turn);
        let mut block = Vec::new();
        let head = session.write_block(script, &Row(b"a b"), &mut block);
        let (mut fields, mut plain_bytes) = (Vec::new(), 0);
        let mut decoder = Decoder::default();
        decoder
            .decode(&block, 1 << 20, &mut |field| {
                plain_bytes += field.name.len() + field.value.len();
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                fields.push(format!("{}: {}", text(field.name), text(field.value)));
            })
            .expect("a block");
        assert_eq!(head.plain_bytes, plain_bytes as u64);
        let mut body = Vec::new();
        for part in [0..head.body_bytes / 2, head.body_bytes / 2..head.body_bytes] {
            session.write_body(script, part, &mut body);
        }
        (fields, String::from_utf8(body).expect("text"))
    }

    /// Tells a session an answer whose body comes in two parts.
    fn told(session: &mut Session, script: &Script, body: &str, cut: usize) -> bool {
        session.note_head();
        session.note_field(script, b"x-id", b"an interim answer");
        session.note_head();
        for (name, value) in [(":status", "200"), ("x-id", "7/8"), ("set-cookie", "s=1; Secure")] {
            session.note_field(script, name.as_bytes(), value.as_bytes());
        }
        let (first, second) = body.as_bytes().split_at(cut);
        session.note_body(script, first);
        session.note_body(script, second);
        session.take(script, Duration::ZERO).is_ok()
    }

    #[test]
    fn a_session_writes_blocks_and_takes_values_and_cookies() {
        let (script, body) = (script(), r#"{"token":"t"}"#);
        for cut in 0..=body.len() {
            let mut session = Session::default();
            let first = Turn { session: 1, user: 1, repeat: 1, ..Turn::default() };
            let (fields, sent) = written(&mut session, &script, first);
            let expected = [
                ":method: POST",
                ":scheme: https",
                ":path: /in?u=a%20b",
                ":authority: h:1",
                "a: 0",
                "content-length: 15",
            ];
            assert_eq!(fields, expected);
            assert_eq!(sent, r#"{"user":"a b1"}"#);
            assert!(told(&mut session, &script, body, cut), "cut at {cut}");
            let second = Turn { step: 1, repeat: 3, request: 1, ..first };
            let (fields, sent) = written(&mut session, &script, second);
            let expected = [
                ":method: GET",
                ":scheme: https",
                ":path: /items/7%2F8?3",
                ":authority: h:1",
                "authorization: Bearer t",
                "cookie: s=1",
            ];
            assert_eq!(fields, expected);
            assert_eq!(sent, "");
        }
    }

    #[test]
    fn what_is_not_in_an_answer_is_not_taken_from_the_one_before() {
        let script = script();
        let mut session = Session::default();
        session.begin(Turn::default());
        assert!(told(&mut session, &script, r#"{"token":"t"}"#, 3));
        session.begin(Turn { repeat: 2, request: 1, ..Turn::default() });
        assert!(!told(&mut session, &script, r#"{"other":"t"}"#, 3));
        let long = format!(r#"{{"token":"{}"}}"#, " ".repeat(BODY_BYTES_MOST));
        assert!(!told(&mut session, &script, &long, 3), "a body that is too long");
    }

    #[test]
    fn values_are_taken_from_what_a_compressed_answer_means() {
        use std::io::Write as _;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(br#"{"token":"t"}"#).expect("memory");
        let gzip = encoder.finish().expect("memory");
        let br = b"\x0b\x06\x80{\"token\":\"t\"}\x03".to_vec();
        for (coding, body, taken) in [
            ("gzip", &gzip, Ok(())),
            ("br", &br, Ok(())),
            ("br", &gzip, Err(Untaken::Encoded)),
            ("zstd", &br, Err(Untaken::Encoded)),
            ("identity", &gzip, Err(Untaken::Missing)),
        ] {
            let (script, mut session) = (script(), Session::default());
            session.begin(Turn::default());
            session.note_head();
            for (name, value) in [("x-id", "7"), ("content-encoding", coding)] {
                session.note_field(&script, name.as_bytes(), value.as_bytes());
            }
            session.note_body(&script, body);
            assert_eq!(session.take(&script, Duration::ZERO), taken, "{coding}");
        }
    }

    proptest! {
        #[test]
        fn any_answer_is_taken_without_panic(
            name in prop::collection::vec(any::<u8>(), 0..9),
            value in prop::collection::vec(any::<u8>(), 0..40),
            body in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let script = script();
            let mut session = Session::default();
            session.begin(Turn::default());
            session.note_head();
            session.note_field(&script, &name, &value);
            session.note_body(&script, &body);
            let _ = session.take(&script, Duration::ZERO);
        }
    }
}
