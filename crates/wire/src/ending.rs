//! The ways in which a request can end, over all protocols.

/// The way in which a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Answered as expected.
    Ok,
    /// Answered with another status.
    Status,
    /// Answered with other content.
    Mismatch,
    /// The answer violates HTTP as defined by RFC 9112.
    Framing,
    /// The answer exceeded a cap.
    Limit,
    /// The peer closed before any byte of the answer.
    Empty,
    /// The peer closed in the middle of the answer.
    Truncated,
    /// The connection was reset.
    Reset,
    /// The request was pipelined behind one that ended the connection.
    ClosedPipelined,
    /// The reused connection was closed before any byte of the answer. The request may be sent
    /// again on a fresh connection.
    Stale,
    /// The reused connection was reset before any byte of the answer. The request may be sent again
    /// on a fresh connection if the reset came from a close by the peer that crossed the request.
    StaleReset,
    /// The request was pipelined behind an answer that announced the close. It would never have
    /// been answered on this connection and may be sent again.
    StaleBehind,
    /// The answer was a 408 that ends the connection. The request may be sent again if the peer had
    /// given up an idle connection and the request crossed that. Otherwise this counts as
    /// [`Ending::Status`].
    StaleTimeout,
    /// The connection, on which nothing had been answered, was closed before any byte of the
    /// answer. The request may be sent again if the peer had given up an idle connection and the
    /// request crossed that. Otherwise this counts as [`Ending::Empty`].
    UnusedEnd,
    /// The same as [`Ending::UnusedEnd`], but with a reset. Otherwise this counts as
    /// [`Ending::Reset`].
    UnusedReset,
    /// The answer is as expected, but lacks a value that the session takes from it.
    Extract,
    /// The answer is compressed in a way that cannot be read, and its content is needed.
    Encoded,
    /// The answer is a redirect that cannot be followed, or one too many.
    Redirect,
    /// The answer is a redirect. The request goes on with the next hop, on a fresh connection,
    /// because this one takes no more requests.
    Redirected,
    /// No byte of the answer came in time.
    TimeoutFirstByte,
    /// The answer was not complete in time.
    TimeoutTotal,
    /// The answer is a stream, and its next part did not come in time.
    TimeoutStall,
    /// The connection was not upgraded to a WebSocket.
    WsHandshake,
    /// The answer violates the WebSocket protocol (RFC 6455).
    WsProtocol,
    /// A text message is not valid UTF-8.
    WsPayload,
    /// The peer closed the WebSocket before the answer.
    WsClosed,
    /// No answer to a datagram came in time; the request or the answer may have been lost.
    Lost,
    /// The datagram's destination is not listening (ICMP port unreachable).
    Refused,
    /// The peer reset the stream of the request, or its answer violates HTTP/2 (RFC 9113) on a
    /// stream.
    H2Stream,
    /// The peer announced the end of its connection (GOAWAY) and did not answer the request.
    H2Goaway,
    /// The peer's bytes violate HTTP/2 on the connection.
    H2Protocol,
    /// An HTTP/2 frame has an illegal length.
    H2FrameSize,
    /// The peer violated HTTP/2 flow control.
    H2Flow,
    /// The peer announced that it will not answer the request on this connection (GOAWAY). The
    /// request may be sent again on another connection. Otherwise this counts as
    /// [`Ending::H2Goaway`].
    StaleGoaway,
    /// The peer refused the stream before it did anything (REFUSED_STREAM). The request may be sent
    /// again. Otherwise this counts as [`Ending::H2Stream`].
    StaleRefused,
}
