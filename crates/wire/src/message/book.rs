//! What a machine of any version of HTTP asks about requests, and tells of their answers.

use std::ops::Range;
use std::sync::Arc;

use super::places::Written;
use super::redirect::Location;
use super::rules::Rules;
use crate::parts::{Arrived, Streaming, Whole};

/// The requests of a connection by their tags: the rules for their answers, and the bytes to send. A
/// version that is not spoken has no bytes. It is told what comes.
pub trait Book<T> {
    /// The rules for a request that was asked with this tag.
    fn rules_of(&self, tag: &T) -> &Rules;

    /// The index of the remembered head that the answer to a request is compared with.
    #[inline]
    fn memory_of(&self, _tag: &T) -> usize {
        0
    }

    /// The rule for answers that are streams, and the time of the present input; none if answers
    /// are not read for their parts.
    #[inline]
    fn streaming(&self) -> Option<Streaming<'_>> {
        None
    }

    /// Which events of answers are wanted, besides those of streams.
    #[inline]
    fn wants(&self) -> Wants {
        Wants::Outcomes
    }

    /// Takes note of an event of the answer to a request.
    #[inline]
    fn note(&self, _tag: &T, _event: Event<'_>) {}

    /// What a request is in a conversation over WebSocket.
    fn speech(&self, _tag: &T) -> Speech {
        Speech { form: Form::Request, is_last: false }
    }

    /// Whether a message is the one that a request waits for.
    fn awaits(&self, _tag: &T, _is_text: bool, _message: &[u8]) -> bool {
        false
    }

    /// Over HTTP/1, if all requests are alike: one or more of them in a row, and the length of one.
    #[inline]
    fn burst(&self) -> Option<(&Arc<[u8]>, usize)> {
        None
    }

    /// Passes the parts of a request over HTTP/1 to `put`, in order.
    fn write(&self, _tag: &T, _put: &mut impl FnMut(Written<'_>)) {}

    /// The length of a request over HTTP/1 that is or has been written, in bytes.
    fn bytes_of(&self, tag: &T) -> usize {
        let mut len = 0;
        self.write(tag, &mut |part| len += part.bytes().len());
        len
    }

    /// Appends the header block of a request over HTTP/2.
    fn write_block(&self, _tag: &T, _out: &mut Vec<u8>) -> Head {
        Head::default()
    }

    /// Appends a part of the body of a request over HTTP/2, given as a range of bytes.
    fn write_body(&self, _tag: &T, _part: Range<u64>, _out: &mut Vec<u8>) {}
}

/// What a step of a conversation over WebSocket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speech {
    /// The form that it has.
    pub form: Form,
    /// The conversation ends with it.
    pub is_last: bool,
}

/// The form of a step of a conversation over WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A request over HTTP/1, before the upgrade.
    Request,
    /// The request for the upgrade.
    Upgrade,
    /// Messages.
    Message {
        /// A text is sent; else binary data.
        is_text: bool,
        /// A message is sent.
        sends: bool,
        /// A message is awaited.
        awaits: bool,
        /// It must come within this time after what is sent.
        within_ns: Option<u64>,
    },
}

impl Speech {
    /// Whether a message is awaited.
    #[inline]
    pub(crate) fn awaits(&self) -> bool {
        matches!(self.form, Form::Message { awaits: true, .. })
    }
}

/// Which events of answers are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// None: outcomes are enough, so that an answer that is recognised is not read again.
    Outcomes,
    /// The Location of redirects.
    Location,
    /// The content of all answers. Over HTTP/1, fields whose names begin with other letters are not
    /// told.
    Content(Initials),
}

impl Wants {
    /// Whether the content of all answers is wanted.
    #[inline]
    pub(crate) fn is_content(self) -> bool {
        matches!(self, Wants::Content(_))
    }
}

/// The first letters of the names of wanted fields, in upper or lower case. Most other fields begin
/// with another letter, so that they can be skipped without reading their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initials(u32);

impl Initials {
    /// Every field.
    pub const ANY: Initials = Initials(u32::MAX);

    /// The first letters of these names.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let letters = names.into_iter().filter_map(|name| name.first());
        Initials(letters.fold(0, |initials, letter| initials | Self::bit(*letter)))
    }

    /// Whether a name with this first letter may be a wanted one.
    #[inline]
    pub fn have(self, letter: u8) -> bool {
        self.0 & Self::bit(letter) != 0
    }

    /// ASCII letters differ in their last five bits, and their cases in none of these.
    fn bit(letter: u8) -> u32 {
        1 << (letter & 31)
    }
}

/// What has come of an answer. It may still turn out to be faulty. Its end is the outcome of its
/// request.
#[derive(Debug)]
pub enum Event<'a> {
    /// The head begins; over HTTP/2 it may be an interim one.
    Head,
    /// The name and value of a field of the head.
    Field(&'a [u8], &'a [u8]),
    /// A part of the body.
    Body(&'a [u8]),
    /// The name and value of a field behind the body.
    Trailer(&'a [u8], &'a [u8]),
    /// The Location of a redirect, just before its outcome.
    Location(Location),
    /// Parts of a good answer that is a stream.
    Parts(Arrived),
    /// The end of a stream, before its outcome.
    Stream(Whole),
}

/// The sizes of a request whose header block has been written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The bytes of its names and values before encoding.
    pub plain_bytes: u64,
    /// The length of the body that follows.
    pub body_bytes: u64,
}

/// The same rules for all requests.
impl<T> Book<T> for Rules {
    #[inline]
    fn rules_of(&self, _: &T) -> &Rules {
        self
    }
}
