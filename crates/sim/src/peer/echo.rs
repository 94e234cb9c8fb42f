//! A TCP echo server that answers message by message.

use super::{Request, Speech};
use crate::scenario::Style;

#[derive(Debug)]
pub(crate) struct Echo {
    /// Bytes of a message.
    size: usize,
    kept: Vec<u8>,
    whole: u64,
}

impl Echo {
    pub(crate) fn new(size: usize) -> Self {
        Echo { size, kept: Vec::new(), whole: 0 }
    }
}

impl Speech for Echo {
    fn receive(&mut self, bytes: &[u8], requests: &mut Vec<Request>, _: &mut Vec<u8>) {
        self.kept.extend_from_slice(bytes);
        let len = self.kept.len() / self.size * self.size;
        for message in self.kept[..len].chunks(self.size) {
            let start = self.whole * self.size as u64;
            requests.push(Request { payload: message.to_vec(), ..Request::at(start) });
            self.whole += 1;
        }
        self.kept.drain(..len);
    }

    fn answer(&mut self, request: &Request, _: Style, _: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(&request.payload);
    }

    fn begun(&self) -> u64 {
        self.whole + u64::from(!self.kept.is_empty())
    }
}
