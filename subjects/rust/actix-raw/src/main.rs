//! HTTP/1 on actix-server with actix-http's codec, and without actix-web: a task per connection
//! reads, decodes what is there, and writes the answers in one go.
//!
//! A connection is not read while its answers wait to be taken, and they are written out before
//! there is much of them, so that what a peer can make us hold is bounded.

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
/// Answers are written when there are as many, if not before.
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

    /// Until the client ends it, or asks that we do.
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

    /// Answers the requests that are there. False after the last one of the connection.
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
        // Who waits for 100 Continue may send its body or not: nothing behind it can be understood.
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

    /// Unread bytes at the end would reset the connection and could destroy the last answer on its
    /// way, so our side is closed first, and the client's side is read to its end.
    async fn drain(mut self) -> io::Result<()> {
        self.io.shutdown().await?;
        let mut nowhere = [0; READ_BYTES];
        while self.io.read(&mut nowhere).await? > 0 {}
        Ok(())
    }
}

/// The value that follows a flag on the command line.
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
            // Once for each worker, which has a clock of its own for the Date.
            fn_factory(async || {
                let config = ServiceConfigBuilder::new().keep_alive(KeepAlive::Os).build();
                Ok::<_, ()>(fn_service(move |io: TcpStream| {
                    Connection::new(io, config.clone()).serve()
                }))
            })
        })?
        .run();

    // The server's own handler of SIGTERM looks only once a second whether the connections are gone.
    let handle = server.handle();
    let mut terminate = signal(SignalKind::terminate())?;
    spawn(async move {
        terminate.recv().await;
        handle.stop(false).await;
    });
    server.await
}
