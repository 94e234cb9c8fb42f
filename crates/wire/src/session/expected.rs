//! The message that a step of a conversation awaits.

use super::answer::Answer;
use super::extract::Extractor;
use crate::message::Filling;
use crate::message::places::{Piece, fill};

/// What the awaited message is like.
#[derive(Clone, Debug)]
pub enum Wanted {
    /// Any message.
    Any,
    /// Any binary message.
    Binary,
    /// This text.
    Text,
    /// A text that begins so.
    Prefix,
    /// A message from which a value can be taken; the text is that value, if there is one.
    Has(Extractor),
}

/// The message that a step awaits.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    pub(super) wanted: Wanted,
    /// The text that is compared, if there is one.
    pub(super) text: Option<Box<[Piece]>>,
}

impl Expected {
    /// Whether this is the message.
    pub(super) fn is_met(&self, filling: &impl Filling, is_text: bool, message: &[u8]) -> bool {
        let (mut text, mut found) = (Vec::new(), Vec::new());
        if let Some(pieces) = &self.text {
            fill(pieces, filling, &mut 0, &mut text);
        }
        match &self.wanted {
            Wanted::Any => true,
            Wanted::Binary => !is_text,
            Wanted::Text => is_text && message == text,
            Wanted::Prefix => is_text && message.starts_with(&text),
            Wanted::Has(from) => {
                let answer = Answer::of_body(message);
                from.find(&answer, &mut found) && (self.text.is_none() || found == text)
            }
        }
    }
}
