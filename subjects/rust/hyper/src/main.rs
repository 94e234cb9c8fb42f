//! HTTP server on hyper with tokio: subject SCHEME HOST:PORT CPUS [text].
//!
//! It speaks HTTP/2: by prior knowledge in plain text, and over TLS (rustls) by ALPN. With `text`
//! it answers a short text over HTTP/1.1.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue, SERVER};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::TlsAcceptor;

static BODY: [u8; 65_536] = [b'x'; 65_536];

/// Brings the plain response to 192 bytes, see subjects/README.md.
const PAD: (HeaderName, HeaderValue) = (
    HeaderName::from_static("x-pad"),
    HeaderValue::from_static("....................................................."),
);

async fn answer_text(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body) = match request.uri().path() {
        "/" => (StatusCode::OK, "Hello, World!"),
        _ => (StatusCode::NOT_FOUND, "not found"),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(body.as_bytes())));
    *response.status_mut() = status;
    response.headers_mut().insert(SERVER, HeaderValue::from_static("hyper"));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response.headers_mut().insert(PAD.0, PAD.1);
    Ok(response)
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body): (_, &'static [u8]) = match request.uri().path() {
        "/bytes/1024" => (StatusCode::OK, &BODY[..1024]),
        "/bytes/65536" => (StatusCode::OK, &BODY),
        _ => (StatusCode::NOT_FOUND, b"not found"),
    };
    let mut response = Response::new(Full::new(Bytes::from_static(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(SERVER, HeaderValue::from_static("hyper"));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    Ok(response)
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
    // Errors at the end of a connection are the client's business, and are ignored.
    let _ = http2::Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service_fn(answer))
        .await;
}

async fn take(stream: TcpStream, acceptor: Option<TlsAcceptor>, text: bool) {
    match acceptor {
        None if text => {
            let service = service_fn(answer_text);
            let _ = http1::Builder::new()
                .pipeline_flush(true)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        }
        None => serve(stream).await,
        Some(acceptor) => {
            if let Ok(secured) = acceptor.accept(stream).await {
                serve(secured).await;
            }
        }
    }
}

fn acceptor() -> Result<TlsAcceptor, Box<dyn Error>> {
    let certificates = CertificateDer::pem_file_iter("cert.pem")?.collect::<Result<_, _>>()?;
    let key = PrivateKeyDer::from_pem_file("key.pem")?;
    let mut config =
        ServerConfig::builder().with_no_client_auth().with_single_cert(certificates, key)?;
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

async fn listen(scheme: &str, at: &str, text: bool) -> Result<(), Box<dyn Error>> {
    let acceptor = if scheme == "https" { Some(acceptor()?) } else { None };
    let listener = TcpListener::bind(at).await?;
    let mut terminate = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            _ = terminate.recv() => return Ok(()),
            Ok((stream, _)) = listener.accept() => {
                stream.set_nodelay(true)?;
                tokio::spawn(take(stream, acceptor.clone(), text));
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [scheme, at, cpus, text @ ..] = arguments.as_slice() else {
        return Err("subject SCHEME HOST:PORT CPUS [text]".into());
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cpus.parse()?)
        .enable_all()
        .build()?;
    runtime.block_on(listen(scheme, at, !text.is_empty()))
}
