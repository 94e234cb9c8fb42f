//! What a protocol speaks on its connections: HTTP by machines of its versions, echoes, broadcasts.
//!
//! Must not know: loads, phases and how connections come about.

mod broadcast;
mod either;
mod http;
mod over_http1;
mod over_http2;
mod over_websocket;
mod tcp_echo;
mod udp_echo;
mod websocket;
mod ws_echo;

pub use broadcast::{Broadcast, Broadcasting};
pub use either::{Either, Versions};
pub use http::{Http, OverEither, OverHttp1, OverHttp2, OverWebSocket};
pub use over_http1::Http1;
pub use over_http2::Http2;
pub use over_websocket::WebSocket;
pub use tcp_echo::TcpEcho;
pub use udp_echo::UdpEcho;
pub use ws_echo::WsEcho;
