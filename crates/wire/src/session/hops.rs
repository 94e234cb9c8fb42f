//! Redirects of a session's request: the cookies of each, and the request that follows it.

use crate::message::{Location, Server, Unfollowed, becomes_get, resolve};
use std::time::Duration;

use super::script::Script;
use super::state::{Hops, Session};

impl Session {
    /// The number of redirects behind the present request.
    pub fn redirects(&self) -> u8 {
        self.hops.count
    }

    /// Whether a redirect has made the present request a GET without a body.
    pub fn has_become_get(&self) -> bool {
        self.hops.as_get
    }

    /// Takes the cookies of the answer, a redirect. Returns where it leads.
    pub fn redirected(&mut self, script: &Script, unix_time: Duration) -> Location {
        let mut answer = std::mem::take(&mut self.answer);
        self.jar.take(answer.headers(), &script.site, &self.path, unix_time);
        let location = std::mem::take(&mut answer.location);
        self.answer = answer;
        self.forget_answer();
        location
    }

    /// Makes the present request the one that follows a redirect with this status. It must lead to
    /// a URL of the same server.
    pub fn go_to(
        &mut self,
        script: &Script,
        status: u16,
        location: &Location,
    ) -> Result<(), Unfollowed> {
        let step = self.step(script).ok_or(Unfollowed::Malformed)?;
        let server = Server::new(script.site.secure, &step.host).ok_or(Unfollowed::Elsewhere)?;
        self.path = resolve(&server, &self.path, location.value()?)?;
        let as_get = self.hops.as_get || becomes_get(status, &step.method);
        self.hops = Hops { count: self.hops.count.saturating_add(1), as_get };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Filling, Site, Texts, Turn};
    use crate::session::{Extractor, Take};

    struct Counting;

    impl Filling for Counting {
        fn counter(&self) -> u64 {
            0
        }

        fn random(&self, nth: u32) -> u64 {
            nth.into()
        }
    }

    fn script() -> Script {
        let mut script = Script::new(Site { host: "h".to_owned(), secure: false }).following();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers =
            [pair("Host", "h:1"), pair("Content-Type", "text/plain"), pair("X", "{random}")];
        let (path, body) = ("/log/in?{random}", Some(&b"me"[..]));
        let texts = Texts { method: "POST", path, headers: &headers, body };
        let take = Take { value: "id".to_owned(), from: Extractor::Header("X-Id".to_owned()) };
        script.add(&texts, vec![take]).expect("known values");
        script
    }

    fn written(session: &mut Session, script: &Script) -> String {
        let mut out = Vec::new();
        session.write(script, &Counting, &mut out);
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_step_goes_on_with_the_cookies_of_its_redirects_and_takes_from_the_last_answer() {
        let script = script();
        let mut session = Session::default();
        let told = |session: &mut Session, fields: &[(&str, &str)]| {
            session.note_head();
            for (name, value) in fields {
                session.note_field(&script, name.as_bytes(), value.as_bytes());
            }
        };
        session.begin(Turn::default());
        assert_eq!(
            written(&mut session, &script),
            "POST /log/in?0 HTTP/1.1\r\nHost: h:1\r\nContent-Type: text/plain\r\nX: 1\r\n\
             Content-Length: 2\r\n\r\nme"
        );
        told(
            &mut session,
            &[("Location", "../home"), ("X-Id", "no"), ("Set-Cookie", "s=1; Path=/")],
        );
        let location = session.redirected(&script, Duration::ZERO);
        assert_eq!(session.go_to(&script, 302, &location), Ok(()));
        let get = "GET /home HTTP/1.1\r\nHost: h:1\r\nX: 1\r\nCookie: s=1\r\n\r\n";
        assert_eq!(written(&mut session, &script), get);
        assert_eq!(written(&mut session, &script), get, "sent again, it is the same");
        told(&mut session, &[("location", "/x")]);
        let location = session.redirected(&script, Duration::ZERO);
        session.go_to(&script, 307, &location).expect("the same server");
        assert_eq!(written(&mut session, &script), get.replace("/home", "/x"));
        assert_eq!((session.redirects(), session.has_become_get()), (2, true));
        told(&mut session, &[("X-Id", "7")]);
        session.take(&script, Duration::ZERO).expect("all values");
        assert_eq!(session.values, [b"7"]);
        session.begin(Turn { request: 1, ..Turn::default() });
        assert!(written(&mut session, &script).starts_with("POST /log/in?0"));
    }

    #[test]
    fn no_other_server_gets_the_request_or_its_cookies() {
        let (script, mut session) = (script(), Session::default());
        session.begin(Turn::default());
        let before = written(&mut session, &script);
        for (location, why) in [
            ("http://h:2/x", Unfollowed::Elsewhere),
            ("https://h:1/x", Unfollowed::Elsewhere),
            ("//other/x", Unfollowed::Elsewhere),
            ("http:x", Unfollowed::Malformed),
        ] {
            let location = Location::At(location.as_bytes().into());
            assert_eq!(session.go_to(&script, 302, &location), Err(why), "{location:?}");
        }
        assert_eq!(session.go_to(&script, 302, &Location::Missing), Err(Unfollowed::Missing));
        assert_eq!(written(&mut session, &script), before);
    }
}
