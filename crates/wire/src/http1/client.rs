//! A client connection: the requests asked, in order, and the outcome of each.
//!
//! How it works: the queue of outstanding requests is matched with the responses from the parser.
//! Every request that is asked is returned exactly once, with its ending, through `on_outcome`. The
//! machine owns no socket: the caller writes the bytes of a request.
//!
//! Must not know: phases, loads or histograms; a request is only a tag.

use super::body::Sink;
use super::heard::{self, Heard};
use super::limits::ParseError;
use super::repeat::repeats;
use super::response::{Fed, HeadMemory, Response, ResponseParser};
use crate::coding::Coding;
use crate::content::{BodyCheck, Needs};
use crate::exchange::{
    Asked, Content, Disposition, Ending, InOrder, Outcome, PeerClose, RequestTimeout,
};
use crate::message::{Book, Event, Limits, Rules, Wants, is_redirect};

/// Request Timeout: the peer waited too long for a complete request and ends the connection (RFC
/// 9110 §15.5.9).
const REQUEST_TIMEOUT: u16 = 408;

/// The machine of one connection. `T` is what the caller knows about a request.
#[derive(Debug)]
pub struct Client<T> {
    asked: Asked<T>,
    /// The answer that has partly arrived. Between answers a connection takes no memory for it.
    partial: Option<Box<Answer>>,
}

/// The part of an answer that has arrived so far.
#[derive(Debug, Default)]
struct Answer {
    parser: ResponseParser,
    first_byte_ns: Option<u64>,
    body: BodyCheck,
    /// What is to be told of it, if anything is wanted.
    heard: Option<Box<Heard>>,
}

impl<T> Default for Client<T> {
    fn default() -> Self {
        Client { asked: Asked::default(), partial: None }
    }
}

impl<T: Copy + PartialEq> Client<T> {
    /// The newest `count` requests, in the order in which they were asked.
    pub fn newest(&self, count: usize) -> impl Iterator<Item = &T> {
        self.asked.newest(count)
    }

    /// Handles input. Each request that it ends is passed to `on_outcome`, in order. The remembered
    /// `heads` are shared by all connections to the same server.
    #[inline]
    pub fn handle_input(
        &mut self,
        now_ns: u64,
        mut bytes: &[u8],
        book: &impl Book<T>,
        heads: &mut Vec<HeadMemory>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        // An answer that comes in many parts stays where it is.
        let (mut kept, mut fresh) = (self.partial.take(), None);
        let answer = match &mut kept {
            Some(kept) => &mut **kept,
            None => fresh.insert(Answer::default()),
        };
        let streaming = book.streaming();
        while !bytes.is_empty() {
            let Some(oldest) = self.asked.awaited().filter(|_| !self.asked.closing) else {
                let answer = kept.or_else(|| fresh.map(Box::new)).unwrap_or_default();
                return self.unasked(now_ns, bytes, answer, on_outcome);
            };
            let rules = book.rules_of(oldest);
            let memory = Some(memory_at(heads, book.memory_of(oldest)));
            let Answer { parser, body, heard, .. } = &mut *answer;
            let needs = Needs { expected: rules.body.as_deref(), streaming };
            let mut sink = Checked { book, tag: oldest, body, needs, heard };
            let (head, limits) = (rules.head_request, &rules.limits);
            match parser.feed_remembering(bytes, head, limits, memory, &mut sink) {
                Ok((_, Fed::Partial)) => {
                    if let Some(streaming) = streaming
                        && parser.status().is_some_and(|status| rules.accepts(status))
                        && let Some(arrived) = body.note_parts(streaming)
                    {
                        book.note(oldest, Event::Parts(arrived));
                    }
                    answer.first_byte_ns.get_or_insert(now_ns);
                    self.partial = kept.or_else(|| fresh.map(Box::new));
                    return Disposition::Open;
                }
                Ok((consumed, Fed::Complete(response))) => {
                    let came_whole = answer.first_byte_ns.is_none();
                    let (this, rest) = bytes.split_at(consumed);
                    bytes = rest;
                    let ending = self.settle(now_ns, response, answer, book, on_outcome);
                    let is_told = match book.wants() {
                        Wants::Outcomes => streaming.is_some(),
                        Wants::Location => streaming.is_some() || is_redirect(response.status),
                        Wants::Content(_) => true,
                    };
                    if let Some((ending, content)) =
                        ending.filter(|_| came_whole && !self.asked.closing && !is_told)
                    {
                        let alike = Alike { rules, ending, status: response.status, content };
                        let most = repeats(rest, this);
                        let again = self.settle_alike(now_ns, most, &alike, book, on_outcome);
                        bytes = &rest[again * consumed..];
                    }
                }
                Err(error) => {
                    let (first, rest) = (ending_of(error).0, Ending::ClosedPipelined);
                    self.asked.end_all(now_ns, first, rest, on_outcome);
                    // Kept because its parser knows the reason.
                    self.partial = kept.or_else(|| fresh.map(Box::new));
                    return Disposition::Broken;
                }
            }
        }
        if self.asked.closing { Disposition::Closing } else { Disposition::Open }
    }

    /// Handles the end of the peer's side: every outstanding request ends with it.
    pub fn handle_end(
        &mut self,
        now_ns: u64,
        end: PeerClose,
        book: &impl Book<T>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) {
        let Some(oldest) = self.asked.oldest() else { return };
        let idempotent = book.rules_of(oldest).idempotent;
        let alone = self.asked.len() == 1;
        let mut partial = self.partial.take();
        if end == PeerClose::Reset {
            let first = match &partial {
                _ if !alone || !idempotent => Ending::Reset,
                Some(answer) if answer.parser.is_timeout() => Ending::StaleReset,
                Some(_) => Ending::Reset,
                None if self.asked.has_answered() => Ending::StaleReset,
                None => Ending::UnusedReset,
            };
            self.asked.end_all(now_ns, first, Ending::Reset, on_outcome);
            return;
        }
        if let Some(answer) = &mut partial
            && let Some(response) = answer.parser.end()
        {
            self.settle(now_ns, response, answer, book, on_outcome);
            return;
        }
        let first = match (partial.is_some(), self.asked.has_answered()) {
            (true, _) => Ending::Truncated,
            (false, true) if !alone => Ending::ClosedPipelined,
            (false, true) if idempotent => Ending::Stale,
            (false, false) if idempotent && alone => Ending::UnusedEnd,
            (false, _) => Ending::Empty,
        };
        self.asked.end_all(now_ns, first, Ending::ClosedPipelined, on_outcome);
    }

    /// Handles bytes that no request awaits. A 408 says that the peer has given the connection up,
    /// perhaps before it closes it (RFC 9110 §15.5.9). Everything else, and anything that follows a
    /// 408, is unsolicited.
    #[cold]
    fn unasked(
        &mut self,
        now_ns: u64,
        bytes: &[u8],
        mut answer: Box<Answer>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Disposition {
        let may_go_on = !self.asked.closing || answer.parser.started();
        let fed = answer.parser.feed(bytes, false, &Limits::default(), &mut |_| ());
        let request_timeout = match fed {
            Ok((_, Fed::Partial)) if answer.parser.is_timeout() => RequestTimeout::Received,
            Ok((_, Fed::Partial)) if answer.parser.may_have(REQUEST_TIMEOUT) => {
                RequestTimeout::Begun
            }
            Ok((all, Fed::Complete(Response { status: REQUEST_TIMEOUT, .. })))
                if all == bytes.len() =>
            {
                RequestTimeout::Received
            }
            _ => RequestTimeout::None,
        };
        if !may_go_on || request_timeout == RequestTimeout::None {
            self.asked.request_timeout = RequestTimeout::None;
            return self.asked.end_unsent(now_ns, on_outcome);
        }
        (self.asked.closing, self.asked.request_timeout) = (true, request_timeout);
        // None of these requests has been sent, even in part.
        for tag in self.asked.drain() {
            on_outcome(Outcome::unanswered(tag, Ending::StaleBehind, now_ns));
        }
        self.partial = answer.parser.started().then_some(answer);
        Disposition::Closing
    }

    #[inline]
    fn settle(
        &mut self,
        now_ns: u64,
        response: Response,
        answer: &mut Answer,
        book: &impl Book<T>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> Option<(Ending, Option<Content>)> {
        let tag = self.asked.answer()?;
        let (mut ending, content) = answer.body.end(response.status, book, &tag);
        let gave_up = response.status == REQUEST_TIMEOUT && !response.keep_alive;
        if gave_up && ending == Ending::Status && book.rules_of(&tag).idempotent {
            ending = Ending::StaleTimeout;
        }
        if let Some(heard) = answer.heard.take() {
            book.note(&tag, Event::Location(heard.location));
        }
        let first_byte_ns = answer.first_byte_ns.take().unwrap_or(now_ns);
        let (complete, status) = (true, Some(response.status));
        on_outcome(Outcome { tag, count: 1, ending, complete, status, first_byte_ns, content });
        if !response.keep_alive {
            self.asked.closing = true;
            for tag in self.asked.drain() {
                let again = book.rules_of(&tag).idempotent;
                let ending = if again { Ending::StaleBehind } else { Ending::ClosedPipelined };
                on_outcome(Outcome::unanswered(tag, ending, now_ns));
            }
        }
        Some((ending, content))
    }

    /// Settles up to `most` requests whose answers are byte-identical to the answer before. Under
    /// the same rules they end the same way, without a parser. Returns the number of requests
    /// settled.
    #[inline]
    fn settle_alike(
        &mut self,
        now_ns: u64,
        most: usize,
        before: &Alike<'_>,
        book: &impl Book<T>,
        on_outcome: &mut impl FnMut(Outcome<T>),
    ) -> usize {
        let Alike { rules, ending, status, content } = *before;
        let (mut settled, status) = (0, Some(status));
        while settled < most {
            let next = self.asked.awaited();
            if !next.is_some_and(|tag| std::ptr::eq(book.rules_of(tag), rules)) {
                break;
            }
            let Some((tag, count)) = self.asked.answer_alike(most - settled) else { break };
            let (complete, first_byte_ns) = (true, now_ns);
            on_outcome(Outcome { tag, count, ending, complete, status, first_byte_ns, content });
            settled += count;
        }
        settled
    }
}

impl<T: Copy + PartialEq + 'static> InOrder for Client<T> {
    type Tag = T;

    #[inline]
    fn asked(&self) -> &Asked<T> {
        &self.asked
    }

    #[inline]
    fn asked_mut(&mut self) -> &mut Asked<T> {
        &mut self.asked
    }

    fn has_begun(&self) -> bool {
        self.partial.is_some()
    }

    fn lasts_until_end(&self) -> bool {
        self.partial.as_ref().is_some_and(|answer| answer.parser.lasts_until_end())
    }

    fn why_broken(&self) -> Option<(Ending, &'static str)> {
        self.partial.as_ref()?.parser.refused().map(ending_of)
    }

    #[inline]
    fn stalls_at_ns(&self) -> Option<u64> {
        self.partial.as_ref()?.body.stalls_at_ns()
    }
}

/// The memory of this index. One that was not used before is made.
#[inline]
fn memory_at(heads: &mut Vec<HeadMemory>, index: usize) -> &mut HeadMemory {
    if index >= heads.len() {
        heads.resize_with(index + 1, HeadMemory::default);
    }
    &mut heads[index]
}

/// Checks the content of a body as it is read, and its parts if it is a stream. Tells what is
/// wanted of the answer.
struct Checked<'a, T, B> {
    book: &'a B,
    tag: &'a T,
    body: &'a mut BodyCheck,
    needs: Needs<'a>,
    heard: &'a mut Option<Box<Heard>>,
}

impl<T, B: Book<T>> Sink for Checked<'_, T, B> {
    #[inline]
    fn head(&mut self, part: &[u8], status: Option<u16>) {
        let (book, tag) = (self.book, self.tag);
        let wants = book.wants();
        if wants != Wants::Outcomes {
            let note = |event: Event<'_>| book.note(tag, event);
            heard::head(self.heard, part, status, wants, &note);
        }
    }

    #[inline]
    fn trailers(&mut self, part: &[u8], whole: bool) {
        let (book, tag) = (self.book, self.tag);
        if book.wants().is_content() {
            heard::trailers(self.heard, part, whole, &|event| book.note(tag, event));
        }
    }

    #[inline]
    fn content(&mut self, slice: &[u8], coding: Coding) {
        if self.book.wants().is_content() {
            self.book.note(self.tag, Event::Body(slice));
        }
        self.body.take(slice, coding, self.needs);
    }

    #[inline]
    fn end_chunk(&mut self) {
        if let Some(streaming) = self.needs.streaming {
            self.body.end_chunk(streaming.rule);
        }
    }
}

impl ResponseParser {
    /// Whether the response in progress has a complete head with status 408.
    fn is_timeout(&self) -> bool {
        self.has_head() && self.may_have(REQUEST_TIMEOUT)
    }
}

/// The ending of the request whose answer is refused, and the reason.
fn ending_of(error: ParseError) -> (Ending, &'static str) {
    match error {
        ParseError::Framing(why) => (Ending::Framing, why),
        ParseError::Limit(why) => (Ending::Limit, why),
    }
}

/// An answer that came whole and leaves the connection open: the rules, ending, status and content
/// of its request.
struct Alike<'a> {
    rules: &'a Rules,
    ending: Ending,
    status: u16,
    content: Option<Content>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_knows_why_an_answer_was_refused_until_it_is_used_again() {
        for (bytes, why) in [
            (&b"HTTP/1.1 20x OK\r\n"[..], "the status code is not a number from 100 to 999"),
            (
                b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n",
                "the Content-Length is not a decimal number",
            ),
        ] {
            let mut client = Client::default();
            crate::exchange::Exchange::ask(&mut client, 1);
            let heads = &mut Vec::new();
            let link = client.handle_input(0, bytes, &Rules::default(), heads, &mut |_| {});
            assert_eq!(
                (link, client.why_broken()),
                (Disposition::Broken, Some((Ending::Framing, why)))
            );
            client.reset();
            assert_eq!(client.why_broken(), None);
        }
    }
}
