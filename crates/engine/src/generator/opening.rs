//! From a connection to a usable one: what a protocol has to agree on before the first request.

use trueload_drive::{Ended, Net, Token};
use trueload_meter::Class;
use trueload_wire::exchange::{self, Exchange};

use super::Generator;
use super::carrier::Carrier;
use super::protocol::{Protocol, Refused};
use super::slot::{Link, Slot};

impl<P: Protocol> Generator<P> {
    /// The connection is there, secured if it is to be: the protocol says its first words.
    pub(super) fn begin(&mut self, net: &mut impl Net, key: u32, token: Token) {
        let Slot { client, state, .. } = &mut self.slots[key as usize];
        client.reopen();
        self.said.clear();
        if !self.protocol.open(client, key, &mut self.said) {
            self.opened(net, key, token);
            return;
        }
        self.pace.answered_by(&self.config.addresses[usize::from(state.address)]);
        state.link = Link::Opening { token, heard: false };
        state.until_ns = self.config.deadline_ns(state.attempted_ns);
        self.say(net, key, token);
        self.arm(key);
    }

    /// Sends what the protocol has to say out of turn.
    pub(super) fn say(&mut self, net: &mut impl Net, key: u32, token: Token) {
        if self.said.is_empty() {
            return;
        }
        let tls = self.slots[key as usize].tls.as_deref_mut();
        Carrier { net, token, tls, sealed: &mut self.sealed }.send(&self.said);
    }

    /// What was heard on a connection that is not usable yet: whether it is now.
    pub(super) fn is_agreed(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        said: exchange::Link,
    ) -> bool {
        let state = &mut self.slots[key as usize].state;
        match said {
            exchange::Link::Opening => {
                if let Link::Opening { heard, .. } = &mut state.link {
                    *heard = true;
                }
                false
            }
            exchange::Link::Refused => {
                let refused = self.protocol.refusal();
                self.not_opened(net, key, token, &refused);
                false
            }
            _ => {
                self.opened(net, key, token);
                // Who was charged with an earlier violation may have taken the connection with it.
                self.slots[key as usize].state.link.is_open_on(token)
            }
        }
    }

    /// The peer did not agree.
    pub(super) fn not_opened(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        refused: &Refused,
    ) {
        net.close(token);
        self.pace.note_reason(refused.class, &refused.why);
        self.attempt_failed(net, key, refused.class);
    }

    /// The peer went away before it agreed.
    pub(super) fn opening_ended(
        &mut self,
        net: &mut impl Net,
        key: u32,
        token: Token,
        ended: Ended,
        heard: bool,
    ) {
        let (class, how) = match ended {
            Ended::Reset => (Class::Reset, "reset"),
            Ended::Fin if heard => (Class::Truncated, "closed"),
            Ended::Fin => (Class::Empty, "closed"),
        };
        let why = format!("the peer {how} the connection before it was upgraded");
        self.not_opened(net, key, token, &Refused { class, why });
    }

    /// The peer did not agree in time.
    pub(super) fn opening_late(&mut self, net: &mut impl Net, key: u32, token: Token, heard: bool) {
        let class = if heard { Class::TimeoutTotal } else { Class::TimeoutFirstByte };
        let why = "the connection was not upgraded in time".to_owned();
        self.not_opened(net, key, token, &Refused { class, why });
    }
}
