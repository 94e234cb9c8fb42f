//! HTTP/1 server on actix-server with actix-http's codec, without actix-web. A task per
//! connection reads, decodes the complete requests, and writes their answers in one go.
//!
//! A connection is not read while its answers wait to be sent, and answers are written out before
//! many have gathered. So a peer can make us hold only a limited amount of memory.

mod answers;

use std::io;
use std::time::Duration;

use actix_http::h1::{Codec, Message};
use actix_http::{KeepAlive, Request, ServiceConfig, ServiceConfigBuilder, Version};
use actix_rt::net::TcpStream;
use actix_rt::signal::unix::{SignalKind, signal};
use actix_rt::{spawn, time::sleep};
use actix_server::Server;
use actix_service::{fn_factory, fn_service};
use answers::{Persistence, refusal, route};
use bytes::BytesMut;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::codec::Decoder;

const READ_BYTES: usize = 4 * 1024;
/// Answers are written at the latest when this many bytes have gathered.
const WRITE_BYTES: usize = 32 * 1024;

struct Connection {
    io: TcpStream,
    codec: Codec,
    input: BytesMut,
    output: BytesMut,
}

impl Connection {
    fn new(io: TcpStream, config: ServiceConfig) -> Connection {
        let (input, output) = (BytesMut::new(), BytesMut::new());
        Connection { io, codec: Codec::new(config), input, output }
    }

    /// Serves the connection until the client ends it, or asks us to do so.
    async fn serve(mut self) -> io::Result<()> {
        self.io.set_nodelay(true)?;
        loop {
            self.input.reserve(READ_BYTES);
            if self.io.read_buf(&mut self.input).await? == 0 {
                return Ok(());
            }
            if !self.answer_all().await? {
                return self.drain().await;
            }
        }
    }

    /// Answers the complete requests. Returns false after the last request of the connection.
    async fn answer_all(&mut self) -> io::Result<bool> {
        let mut open = true;
        while open {
            match self.codec.decode(&mut self.input) {
                Ok(Some(Message::Item(request))) => open = self.answer(&request).await?,
                Ok(Some(Message::Chunk(_))) => {}
                Ok(None) => break,
                Err(error) => {
                    let config = self.codec.config();
                    refusal(&error).write(Persistence::Close, config, &mut self.output);
                    open = false;
                }
            }
            if self.output.len() >= WRITE_BYTES {
                self.flush().await?;
            }
        }
        self.flush().await?;
        Ok(open)
    }

    async fn answer(&mut self, request: &Request) -> io::Result<bool> {
        let (answer, wait_ms) = route(request);
        if let Some(ms) = wait_ms {
            self.flush().await?;
            sleep(Duration::from_millis(ms)).await;
        }
        // A client that expects 100 Continue may or may not send its body, so what follows is ambiguous.
        let persistence = match request.head().version {
            _ if !self.codec.keep_alive() || request.head().expect() => Persistence::Close,
            Version::HTTP_10 => Persistence::StaySaid,
            _ => Persistence::Stay,
        };
        answer.write(persistence, self.codec.config(), &mut self.output);
        Ok(persistence != Persistence::Close)
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.io.write_all(&self.output).await?;
        self.output.clear();
        Ok(())
    }

    /// Ends the connection. A close with unread bytes would reset it, and the reset could destroy
    /// the last answer on its way. So our side is shut down first, and the client's side is read
    /// to its end.
    async fn drain(mut self) -> io::Result<()> {
        self.io.shutdown().await?;
        let mut nowhere = [0; READ_BYTES];
        while self.io.read(&mut nowhere).await? > 0 {}
        Ok(())
    }
}

/// Returns the value that follows a flag on the command line.
fn argument(flag: &str) -> Option<String> {
    std::env::args().skip_while(|given| given != flag).nth(1)
}

#[actix_rt::main]
async fn main() -> io::Result<()> {
    let listen = argument("--listen").unwrap_or_else(|| "127.0.0.1:8080".into());
    let workers = argument("--cpus").and_then(|cpus| cpus.parse().ok()).unwrap_or(1);

    let server = Server::build()
        .workers(workers)
        .backlog(4096)
        .disable_signals()
        .bind("http", listen, || {
            // Called once per worker: each has its own clock for the Date header.
            fn_factory(async || {
                let config = ServiceConfigBuilder::new().keep_alive(KeepAlive::Os).build();
                Ok::<_, ()>(fn_service(move |io: TcpStream| {
                    Connection::new(io, config.clone()).serve()
                }))
            })
        })?
        .run();

    // The server's own handler of SIGTERM checks only once a second whether all connections have
    // ended.
    let handle = server.handle();
    let mut terminate = signal(SignalKind::terminate())?;
    spawn(async move {
        terminate.recv().await;
        handle.stop(false).await;
    });
    server.await
}
